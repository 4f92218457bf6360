//! Kind `server-expiry`: whether the memory of what has expired comes back although nobody asks for anything.
//!
//! ```text
//!   filling ... | before + after, at rest | before | all expire | after |
//!               1                         2                             3     looks: CPU time, items, bytes
//! ```
//!
//! Items are stored that all expire in the same second: as those would that are stored at once, to live for two
//! seconds, and are looked at five seconds later. Filling takes longer than two seconds, so they are given the second
//! and not the time to live. No request is made between two looks. What the full server spends at rest, between the
//! first and the second look, is subtracted from what it spends between the second and the third.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Deserialize;

use super::contender::{Contender, Running};
use super::cores::Cores;
use super::failed;
use crate::drive::{Endpoint, Statistics};
use crate::experiment::{ExperimentError, Session};
use crate::measure::turns;

/// Bytes of requests that are sent at once.
const SENT_AT_ONCE: usize = 1 << 16;
/// Share of the items that must be there before they expire, in per cent.
const THERE: f64 = 99.9;

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    servers: Vec<Contender>,
    /// Memory of a server in MiB.
    memory: u64,
    /// Items with a key of sixteen bytes.
    items: u64,
    /// Bytes of values.
    value_size: usize,
    /// Seconds that filling may take.
    filling: u64,
    /// Seconds from the second look until the items expire, and from then until the third look.
    before: u64,
    after: u64,
}

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let names = parameters.servers.iter().map(|server| server.name.as_str());
    let Some(cores) = Cores::find(session, names)? else { return Ok(()) };
    session.announce(session.runs() * parameters.servers.len());
    for run in 0..session.runs() {
        for turn in turns(parameters.servers.len(), run) {
            let server = &parameters.servers[turn];
            session.begin(format!("{}, run {}", server.name, run + 1));
            let memory = ["-m".to_owned(), parameters.memory.to_string()];
            if let Some(running) = server.start(1, &memory, Some(cores.server), session)? {
                measure(&running, parameters, session)?;
            }
            session.end();
        }
    }
    Ok(())
}

fn measure(server: &Running, parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let watched = parameters.before + parameters.after;
    let first = unix_time().as_secs() + parameters.filling;
    let (second, third) = (first + watched, first + 2 * watched);
    fill(server, parameters, second + parameters.before)?;
    let until = |second| Duration::from_secs(second).checked_sub(unix_time());
    thread::sleep(until(first).ok_or_else(|| {
        ExperimentError::Machine("filling took too long: give it more seconds, or less to do".into())
    })?);
    let full = Look::at(server)?;
    thread::sleep(until(second).unwrap_or_default());
    let before = Look::at(server)?;
    let (there, asked) = (100.0 * before.items as f64 / parameters.items as f64, parameters.items);
    if there < THERE {
        let found = format!("{} of {asked} items are there before they expire", before.items);
        return Err(ExperimentError::wrong(&server.name, found));
    }
    thread::sleep(until(third).unwrap_or_default());
    let after = Look::at(server)?;
    let rest = before.spent - full.spent;
    let spent = (after.spent - before.spent).saturating_sub(rest);
    let of_a_core = |spent: Duration| 100.0 * spent.as_secs_f64() / watched as f64;
    // Of those that have gone: who leaves some has spent nothing on them.
    let gone = before.items.saturating_sub(after.items).max(1);
    let mut record = |metric, unit, value| session.record(&server.name, "", metric, unit, value);
    record("items left", "%", 100.0 * after.items as f64 / before.items as f64);
    record("bytes left", "%", 100.0 * after.bytes as f64 / before.bytes as f64);
    record("processor time", "% of a core", of_a_core(spent));
    record("processor time at rest", "% of a core", of_a_core(rest));
    record("processor time per item gone", "ns", spent.as_nanos() as f64 / gone as f64);
    Ok(())
}

fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// What a server says of itself, and has spent.
struct Look {
    items: u64,
    bytes: u64,
    spent: Duration,
}

impl Look {
    fn at(server: &Running) -> Result<Look, ExperimentError> {
        let look = || {
            let process = &server.processes[0];
            let spent = process.clock()?.now()?;
            let statistics = Statistics::of(process.endpoint())?;
            let number = |name| statistics.number(name).unwrap_or(0);
            Ok(Look { items: number("curr_items"), bytes: number("bytes"), spent })
        };
        look().map_err(|error| failed(&server.name, error))
    }
}

/// Stores all items, to expire in this second.
fn fill(server: &Running, parameters: &Parameters, expiry: u64) -> Result<(), ExperimentError> {
    let lost = |error| ExperimentError::Machine(format!("{}: {error}", server.name));
    let [Endpoint::Tcp(address)] = server.endpoints()[..] else {
        return Err(ExperimentError::Machine(format!("{}: items go to one port", server.name)));
    };
    let mut stream = TcpStream::connect(address).map_err(lost)?;
    let tail =
        format!(" 0 {expiry} {} noreply\r\n{}\r\n", parameters.value_size, "v".repeat(parameters.value_size));
    let mut requests = Vec::with_capacity(SENT_AT_ONCE + 1024);
    for item in 0..parameters.items {
        write!(requests, "set {item:016}").map_err(lost)?;
        requests.extend_from_slice(tail.as_bytes());
        if requests.len() >= SENT_AT_ONCE {
            stream.write_all(&requests).map_err(lost)?;
            requests.clear();
        }
    }
    // Answered when all before it has been done.
    requests.extend_from_slice(b"mn\r\n");
    stream.write_all(&requests).map_err(lost)?;
    let mut reply = String::new();
    BufReader::new(stream).read_line(&mut reply).map_err(lost)?;
    if reply == "MN\r\n" {
        return Ok(());
    }
    Err(ExperimentError::wrong(
        &server.name,
        format!("it answered '{}' to sets without a reply", reply.trim()),
    ))
}
