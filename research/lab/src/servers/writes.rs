//! Kind `server-writes`: what writes that come together cost a server, in processor time.
//!
//! Each connection sends so many requests at once and waits for all replies; a single thread does so for all of them in
//! turn. Every record is there before it is written, so that each set replaces and each delete removes. Each operation
//! is measured in the text protocol, in meta commands and in binary frames, and every reply is compared with the one
//! that is due, byte by byte: a connection has records of its own, so that counters are known. All servers are up at
//! the same time and take turns.
//!
//! Requests and the replies that are due are written before anything is timed, and all connections but the one whose
//! replies are read have requests on their way: so a server has something to do, and what it takes to fall asleep and
//! to wake is not counted as what a write costs. A client that wrote the next requests between two rounds let every
//! server sleep once for each connection and round, which was a third of what was counted as ours.
//!
//! Redis has one protocol, and its turn where the others' is text. It has no set that asks for no reply: `CLIENT REPLY
//! OFF` silences a connection, not a request, and is left out.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use rand::RngExt;
use serde::Deserialize;
use workload::generator::Xoshiro256PlusPlus;

use super::contender::{Contender, Running};
use super::cores::Cores;
use super::failed;
use crate::drive::{Dialect, Endpoint, ServerProcess, append_command};
use crate::experiment::{ExperimentError, Session};
use crate::measure::{pin, turns};

/// What counters start at: four digits, and they stay so.
const FIRST: u64 = 1000;
/// Records that are stored at once before anything is measured.
const FILLED_AT_ONCE: usize = 512;
/// Of so many operations of a mixed load one is a set.
const MIXED: usize = 20;
/// Bytes of a binary frame's header, and where in it its body's length and its item's number are.
const HEADER: usize = 24;
const BODY: std::ops::Range<usize> = 8..12;
const NUMBER: std::ops::Range<usize> = 16..24;

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    servers: Vec<Contender>,
    /// Records.
    keys: u64,
    /// Bytes of values.
    value_size: usize,
    connections: usize,
    /// Requests that a connection sends at once.
    depth: usize,
    /// Requests in a measurement; and a tenth of them before it.
    operations: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Set,
    /// Without replies, but for one behind the last.
    QuietSet,
    Delete,
    Increment,
    /// Gets, and one set in twenty.
    Mixed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Meta,
    Binary,
    /// Redis's.
    Resp,
}

const OPERATIONS: [(Operation, &str); 5] = [
    (Operation::Set, "set"),
    (Operation::QuietSet, "noreply set"),
    (Operation::Increment, "incr"),
    (Operation::Mixed, "95/5 get/set"),
    (Operation::Delete, "delete"),
];
const FORMS: [(Form, &str); 3] = [(Form::Text, "text"), (Form::Meta, "meta"), (Form::Binary, "binary")];

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let names = parameters.servers.iter().map(|server| server.name.as_str());
    let Some(cores) = Cores::find(session, names)? else { return Ok(()) };
    session.announce(1 + session.runs() * OPERATIONS.len() * FORMS.len());
    session.begin("starting");
    let mut running = Vec::new();
    for server in &parameters.servers {
        running.extend(server.start(1, &[], Some(cores.server), session)?);
    }
    session.end();
    // Servers that have all records, none of them a counter: filling takes longer than measuring.
    let mut filled = vec![false; running.len()];
    for run in 0..session.runs() {
        for (operation, name) in OPERATIONS {
            for (form, form_name) in FORMS {
                session.begin(format!("{name}, {form_name}, run {}", run + 1));
                for turn in turns(running.len(), run) {
                    let server = &running[turn];
                    let Some((form, form_name)) = spoken(server, operation, (form, form_name)) else {
                        continue;
                    };
                    let point = format!("{name}, {form_name}");
                    let is_filled = filled[turn] && operation != Operation::Increment;
                    filled[turn] = !matches!(operation, Operation::Increment | Operation::Delete);
                    let cost = thread::scope(|scope| {
                        let client = scope.spawn(|| {
                            pin(cores.client)?;
                            measure(server, parameters, operation, form, is_filled, run as u64)
                        });
                        client.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                    })?;
                    session.record(&server.name, &point, "server CPU per operation", "us", cost);
                }
                session.end();
            }
        }
    }
    Ok(())
}

/// How a server is asked for an operation when it is the turn of a form; none if it is not.
fn spoken(
    server: &Running,
    operation: Operation,
    form: (Form, &'static str),
) -> Option<(Form, &'static str)> {
    match server.dialect {
        Dialect::Classic => Some(form),
        Dialect::Resp if form.0 != Form::Text || operation == Operation::QuietSet => None,
        Dialect::Resp => Some((Form::Resp, "RESP")),
    }
}

/// Microseconds of the server's processor time for an operation.
fn measure(
    server: &Running,
    parameters: &Parameters,
    operation: Operation,
    form: Form,
    is_filled: bool,
    seed: u64,
) -> Result<f64, ExperimentError> {
    if !is_filled {
        Client::connect(server, parameters, seed)?.fill(operation)?;
    }
    // The first byte of a connection says which protocol it speaks.
    let mut client = Client::connect(server, parameters, seed)?;
    let requests = parameters.operations.min(client.most(operation));
    let [before, timed] =
        [requests / 11, requests - requests / 11].map(|count| client.draw(operation, form, count));
    client.exchange(&before)?;
    let spent = || {
        let clocks = server.processes.iter().map(ServerProcess::clock);
        let spent = clocks.map(|clock| clock.and_then(|clock| clock.now())).sum::<Result<Duration, _>>();
        spent.map_err(|error| failed(&server.name, error))
    };
    let before = spent()?;
    client.exchange(&timed)?;
    let sent = timed.len() * parameters.connections * parameters.depth;
    Ok((spent()? - before).as_secs_f64() * 1e6 / sent as f64)
}

/// All connections to a server.
struct Client<'p> {
    server: &'p str,
    dialect: Dialect,
    parameters: &'p Parameters,
    connections: Vec<Connection>,
    value: Vec<u8>,
}

/// A connection, and which records are its own: one of so many as there are connections.
struct Connection {
    stream: TcpStream,
    random: Xoshiro256PlusPlus,
    first: u64,
    counters: Vec<u64>,
    deleted: usize,
}

impl<'p> Client<'p> {
    fn connect(server: &'p Running, parameters: &'p Parameters, seed: u64) -> Result<Self, ExperimentError> {
        let [Endpoint::Tcp(address)] = server.endpoints()[..] else {
            return Err(ExperimentError::Machine(format!("{}: writes go to one port", server.name)));
        };
        let lost = |error| lost(&server.name, error);
        let connections = parameters.connections as u64;
        let connect = |first| {
            let stream = TcpStream::connect(address).map_err(lost)?;
            stream.set_nodelay(true).map_err(lost)?;
            let records = (parameters.keys / connections) as usize;
            let random = workload::generator::seeded(seed * connections + first);
            Ok(Connection { stream, random, first, counters: vec![FIRST; records], deleted: 0 })
        };
        let connections = (0..connections).map(connect).collect::<Result<_, ExperimentError>>()?;
        let value = vec![b'v'; parameters.value_size];
        Ok(Client { server: &server.name, dialect: server.dialect, parameters, connections, value })
    }

    /// Operations that there are records for.
    fn most(&self, operation: Operation) -> usize {
        if operation == Operation::Delete { self.parameters.keys as usize / 2 } else { usize::MAX }
    }

    /// Stores all records, as the operation wants to find them.
    fn fill(&mut self, operation: Operation) -> Result<(), ExperimentError> {
        let counter = FIRST.to_string();
        let value = if operation == Operation::Increment { counter.as_bytes() } else { &self.value };
        let connections = self.connections.len() as u64;
        let form = if self.dialect == Dialect::Resp { Form::Resp } else { Form::Text };
        let mut replies = Vec::new();
        for connection in &mut self.connections {
            let records = 0..connection.counters.len() as u64;
            for records in records.collect::<Vec<_>>().chunks(FILLED_AT_ONCE) {
                let mut batch = Batch::default();
                for record in records {
                    batch.set(form, &key(record * connections + connection.first), value);
                }
                batch.send(self.server, &mut connection.stream)?;
                batch.check(self.server, &mut connection.stream, &mut replies)?;
            }
        }
        Ok(())
    }

    /// So many operations, in whole rounds: a batch for each connection.
    fn draw(&mut self, operation: Operation, form: Form, operations: usize) -> Vec<Vec<Batch>> {
        let Parameters { connections, depth, .. } = *self.parameters;
        let rounds = (operations / (connections * depth)).max(1);
        let value = &self.value;
        let mut round = || {
            let connected = self.connections.iter_mut();
            connected.map(|connection| connection.batch(operation, form, depth, connections, value)).collect()
        };
        (0..rounds).map(|_| round()).collect()
    }

    /// Sends rounds, each connection's next batch as soon as the replies to the one before have come.
    fn exchange(&mut self, rounds: &[Vec<Batch>]) -> Result<(), ExperimentError> {
        let mut replies = Vec::new();
        for number in 0..=rounds.len() {
            for (place, connection) in self.connections.iter_mut().enumerate() {
                let stream = &mut connection.stream;
                if let Some(before) = number.checked_sub(1) {
                    rounds[before][place].check(self.server, stream, &mut replies)?;
                }
                if let Some(round) = rounds.get(number) {
                    round[place].send(self.server, stream)?;
                }
            }
        }
        Ok(())
    }
}

fn lost(server: &str, error: std::io::Error) -> ExperimentError {
    ExperimentError::Machine(format!("{server}: {error}"))
}

fn key(record: u64) -> String {
    format!("key:{record:012}")
}

impl Connection {
    fn batch(
        &mut self,
        operation: Operation,
        form: Form,
        depth: usize,
        connections: usize,
        value: &[u8],
    ) -> Batch {
        let mut batch = Batch { is_binary: form == Form::Binary, ..Batch::default() };
        for _ in 0..depth {
            let record = match operation {
                // Each once, in no order that their memory has.
                Operation::Delete => {
                    self.deleted += 1;
                    self.deleted * 7919 % self.counters.len()
                }
                _ => self.random.random_range(0..self.counters.len()),
            };
            let key = key((record * connections) as u64 + self.first);
            match operation {
                Operation::Set => batch.set(form, &key, value),
                Operation::QuietSet => batch.quiet_set(form, &key, value),
                Operation::Delete => batch.delete(form, &key),
                Operation::Increment => {
                    self.counters[record] += 1;
                    batch.increment(form, &key, self.counters[record]);
                }
                Operation::Mixed if self.random.random_range(0..MIXED) == 0 => batch.set(form, &key, value),
                Operation::Mixed => batch.get(form, &key, value),
            }
        }
        if operation == Operation::QuietSet {
            match form {
                Form::Binary => {
                    batch.frame(0x0a, &[], "", &[]);
                    batch.frame_due(0x0a, &[], &[]);
                }
                Form::Text | Form::Meta => batch.line("mn", "MN"),
                Form::Resp => {}
            }
        }
        batch
    }
}

/// Requests that are sent at once, and the replies that are due.
#[derive(Default)]
struct Batch {
    requests: Vec<u8>,
    due: Vec<u8>,
    is_binary: bool,
}

impl Batch {
    fn line(&mut self, request: &str, reply: &str) {
        self.requests.extend_from_slice(request.as_bytes());
        self.requests.extend_from_slice(b"\r\n");
        if !reply.is_empty() {
            self.due.extend_from_slice(reply.as_bytes());
            self.due.extend_from_slice(b"\r\n");
        }
    }

    fn block(&mut self, line: &str, value: &[u8], reply: &str) {
        self.requests.extend_from_slice(line.as_bytes());
        self.requests.extend_from_slice(b"\r\n");
        self.requests.extend_from_slice(value);
        self.line("", reply);
    }

    fn command(&mut self, words: &[&[u8]], reply: &str) {
        append_command(words, &mut self.requests);
        self.due.extend_from_slice(reply.as_bytes());
        self.due.extend_from_slice(b"\r\n");
    }

    fn frame(&mut self, opcode: u8, extras: &[u8], key: &str, value: &[u8]) {
        append_frame(&mut self.requests, 0x80, opcode, extras, key.as_bytes(), value);
    }

    fn frame_due(&mut self, opcode: u8, extras: &[u8], value: &[u8]) {
        append_frame(&mut self.due, 0x81, opcode, extras, &[], value);
    }

    fn set(&mut self, form: Form, key: &str, value: &[u8]) {
        match form {
            Form::Text => self.block(&format!("set {key} 0 0 {}", value.len()), value, "STORED"),
            Form::Meta => self.block(&format!("ms {key} {}", value.len()), value, "HD"),
            Form::Binary => {
                self.frame(0x01, &[0; 8], key, value);
                self.frame_due(0x01, &[], &[]);
            }
            Form::Resp => self.command(&[b"SET", key.as_bytes(), value], "+OK"),
        }
    }

    fn quiet_set(&mut self, form: Form, key: &str, value: &[u8]) {
        match form {
            Form::Text => self.block(&format!("set {key} 0 0 {} noreply", value.len()), value, ""),
            Form::Meta => self.block(&format!("ms {key} {} q", value.len()), value, ""),
            Form::Binary => self.frame(0x11, &[0; 8], key, value),
            Form::Resp => unreachable!("Redis has no set without a reply"),
        }
    }

    fn delete(&mut self, form: Form, key: &str) {
        match form {
            Form::Text => self.line(&format!("delete {key}"), "DELETED"),
            Form::Meta => self.line(&format!("md {key}"), "HD"),
            Form::Binary => {
                self.frame(0x04, &[], key, &[]);
                self.frame_due(0x04, &[], &[]);
            }
            Form::Resp => self.command(&[b"DEL", key.as_bytes()], ":1"),
        }
    }

    fn increment(&mut self, form: Form, key: &str, number: u64) {
        match form {
            Form::Text => self.line(&format!("incr {key} 1"), &number.to_string()),
            Form::Meta => {
                let digits = number.to_string();
                self.line(&format!("ma {key} v"), &format!("VA {}\r\n{digits}", digits.len()));
            }
            Form::Binary => {
                // By one; none is made where there is none.
                let mut extras = [0; 20];
                extras[7] = 1;
                extras[16..].fill(0xff);
                self.frame(0x05, &extras, key, &[]);
                self.frame_due(0x05, &[], &number.to_be_bytes());
            }
            Form::Resp => self.command(&[b"INCR", key.as_bytes()], &format!(":{number}")),
        }
    }

    fn get(&mut self, form: Form, key: &str, value: &[u8]) {
        let text = String::from_utf8_lossy(value);
        match form {
            Form::Text => {
                let reply = format!("VALUE {key} 0 {}\r\n{text}\r\nEND", value.len());
                self.line(&format!("get {key}"), &reply);
            }
            Form::Meta => self.line(&format!("mg {key} v"), &format!("VA {}\r\n{text}", value.len())),
            Form::Binary => {
                self.frame(0x00, &[], key, &[]);
                self.frame_due(0x00, &[0; 4], value);
            }
            Form::Resp => self.command(&[b"GET", key.as_bytes()], &format!("${}\r\n{text}", value.len())),
        }
    }

    fn send(&self, server: &str, stream: &mut TcpStream) -> Result<(), ExperimentError> {
        stream.write_all(&self.requests).map_err(|error| lost(server, error))
    }

    /// Receives the replies into `replies`, and compares them with those that are due.
    fn check(
        &self,
        server: &str,
        stream: &mut TcpStream,
        replies: &mut Vec<u8>,
    ) -> Result<(), ExperimentError> {
        replies.resize(self.due.len(), 0);
        stream.read_exact(replies).map_err(|error| lost(server, error))?;
        if self.is_binary {
            // Nobody knows the numbers.
            let mut at = 0;
            while let Some(header) = self.due.get(at..at + HEADER) {
                let body = u32::from_be_bytes(header[BODY].try_into().expect("four bytes"));
                replies[at..at + HEADER][NUMBER].fill(0);
                at += HEADER + body as usize;
            }
        }
        if *replies == self.due {
            return Ok(());
        }
        let from = replies.iter().zip(&self.due).position(|(is, due)| is != due).unwrap_or(0);
        let [is, due] = [&*replies, &self.due].map(|bytes| bytes[from..].escape_ascii().to_string());
        let [is, due] = [is, due].map(|text| text.chars().take(80).collect::<String>());
        Err(ExperimentError::wrong(server, format!("it answered '{is}' where '{due}' was due")))
    }
}

fn append_frame(out: &mut Vec<u8>, magic: u8, opcode: u8, extras: &[u8], key: &[u8], value: &[u8]) {
    let mut header = [0; HEADER];
    header[0] = magic;
    header[1] = opcode;
    header[3] = key.len() as u8;
    header[4] = extras.len() as u8;
    header[BODY].copy_from_slice(&((extras.len() + key.len() + value.len()) as u32).to_be_bytes());
    [&header, extras, key, value].iter().for_each(|part| out.extend_from_slice(part));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_the_replies_that_are_due() {
        let mut batch = Batch::default();
        batch.set(Form::Text, "k", b"vv");
        batch.quiet_set(Form::Meta, "k", b"vv");
        batch.increment(Form::Meta, "n", 1001);
        assert_eq!(batch.requests, b"set k 0 0 2\r\nvv\r\nms k 2 q\r\nvv\r\nma n v\r\n");
        assert_eq!(batch.due, b"STORED\r\nVA 4\r\n1001\r\n");
        let mut frames = Batch::default();
        frames.get(Form::Binary, "k", b"vv");
        assert_eq!((frames.requests.len(), frames.due.len()), (25, 30));
        assert_eq!((frames.requests[BODY][3], frames.due[BODY][3]), (1, 6));
        let mut commands = Batch::default();
        commands.set(Form::Resp, "k", b"vv");
        commands.get(Form::Resp, "k", b"vv");
        commands.increment(Form::Resp, "n", 1001);
        commands.delete(Form::Resp, "k");
        let requests = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\nvv\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n\
            *2\r\n$4\r\nINCR\r\n$1\r\nn\r\n*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n";
        assert_eq!(commands.requests, requests.as_bytes());
        assert_eq!(commands.due, b"+OK\r\n$2\r\nvv\r\n:1001\r\n:1\r\n");
    }
}
