//! Clients that are slow, half dead or too many: each costs a bounded buffer, and blocks nobody but itself.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::thread;
use std::time::Duration;

use crate::client::{Address, Client, LOCALHOST, settings, shorten, wait_until};
use crate::process::{self, ServerProcess, Wanted};
use lookaside_server::{Server, Settings, UnixSocket};
use protocol::binary::{Header, opcode};
use protocol::response::{self, Parsed, Response};

#[test]
#[ignore = "started by other tests, in a process of its own"]
fn a_server_process() {
    process::serve();
}

fn server_process(connections: usize, descriptors: Option<usize>) -> ServerProcess {
    ServerProcess::start(
        "slow_clients::a_server_process",
        &Wanted { connections, descriptors, ..Wanted::default() },
    )
}

/// What a connection may cost at the most: half a request, replies, and the room that buffers have grown by.
const MOST_PER_CLIENT: usize = 192 << 10;
/// What a request may cost with all of them there, in processor time: a value of a megabyte is a few milliseconds.
const MOST_WORK: Duration = Duration::from_millis(500);
/// The buffer of a client's socket, small, so that a server is soon blocked.
const SMALL: Option<usize> = Some(4096);

fn value(size: usize, mark: u8) -> Vec<u8> {
    (0..size).map(|at| (at / 7 + at) as u8 ^ mark).collect()
}

fn set(key: &str, value: &[u8]) -> Vec<u8> {
    [format!("set {key} 0 0 {}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat()
}

/// A get of the binary protocol.
fn binary_get(key: &str) -> Vec<u8> {
    let mut frame = Vec::new();
    Header::write_request(&mut frame, opcode::GET_KQ, [0, key.len(), 0], 0, 0);
    frame.extend_from_slice(key.as_bytes());
    frame
}

/// Sends until the server takes no more; how much that was.
fn stuff(client: &mut Client, requests: &[u8]) -> usize {
    let mut sent = 0;
    let mut rounds_without = 0;
    while sent < requests.len() && rounds_without < 20 {
        let count = client.send_what_fits(&requests[sent..]);
        sent += count;
        rounds_without = if count == 0 { rounds_without + 1 } else { 0 };
        // What it has not taken by then it takes later, which changes nothing.
        thread::sleep(Duration::from_micros(200));
    }
    sent
}

/// One who asks a lot and never reads costs little, and nobody else notices.
#[test]
fn clients_that_never_read() {
    let server = server_process(1024, None);
    let mut other = Client::connect(&server.address);
    let sizes = [("small", 100), ("middle", 8_000), ("large", 300_000), ("largest", 1_000_000)];
    let values = sizes.map(|(key, size)| (key, value(size, 0)));
    for (key, value) in &values {
        other.ask(&set(key, value), b"STORED\r\n");
        other.send(format!("get {key}\r\n").as_bytes());
        let reply = other.receive_through(b"END\r\n");
        assert!(reply.len() > value.len());
    }
    let before = server.resident();

    // Many requests, a long list of keys, or both between other things.
    let requests = sizes.map(|(key, _)| {
        [
            format!("get {key}\r\n").repeat(200_000),
            format!("gets {}\r\n", format!("{key} ").repeat(300_000)),
            format!("get {key} {key}\r\nset other 0 0 3\r\nabc\r\n").repeat(50_000),
            format!("mg {key} v k\r\nmg {key} v T0\r\n").repeat(100_000),
        ]
        .map(String::into_bytes)
        .into_iter()
        .chain([binary_get(key).repeat(200_000)])
        .collect::<Vec<_>>()
    });
    let read_before = other.stat("bytes_read");
    let mut stuffed = Vec::new();
    for number in 0..100 {
        let kind = (number % 4, number / 4 % 5);
        let mut client = Client::with_buffers(&server.address, SMALL).expect("there is room");
        let sent = stuff(&mut client, &requests[kind.0][kind.1]);
        stuffed.push((client, kind, sent));
    }
    // The kernel holds more than the server has taken.
    let sent: usize = stuffed.iter().map(|(_, _, sent)| sent).sum();
    let read = (other.stat("bytes_read") - read_before) as usize;
    assert!(read < sent / 2, "the server has read {read} of {sent} bytes");
    let cost = server.resident().saturating_sub(before);
    assert!(
        cost < 100 * MOST_PER_CLIENT + (4 << 20),
        "{} KiB for each of 100 clients that do not read",
        cost / 100 / 1024
    );

    // Both threads have fifty of them, and serve others as if they had not. How long a request waits is also for the
    // rest of the machine to say; how much work it is, is not.
    for _ in 0..4 {
        let mut client = Client::connect(&server.address);
        let mut most_work = Duration::ZERO;
        for round in 0..500 {
            let before = server.processor_time();
            client.ask(b"set mine 0 0 1\r\nx\r\nget mine\r\n", b"STORED\r\nVALUE mine 0 1\r\nx\r\nEND\r\n");
            if round % 100 == 0 {
                client.send(b"get largest\r\n");
                assert!(client.receive_through(b"END\r\n").len() > 1_000_000);
            }
            most_work = most_work.max(server.processor_time() - before);
        }
        assert!(most_work < MOST_WORK, "a request has taken {most_work:?}");
    }

    // When one of each classic kind reads at last, all is there. The others go without.
    for (client, kind, sent) in stuffed.drain(..12) {
        // Many more than were under way.
        let replies = (40 << 20) / (sizes[kind.0].1 + 2000);
        read_replies(client, &requests[kind.0][kind.1], sent, replies, &values);
    }
    drop(stuffed);
    wait_until("they are gone", || other.stat("curr_connections") == 1);
    // And what they held is free again.
    for round in 0..200 {
        other.ask(&set(&format!("new-{round}"), &value(1_000_000, 1)), b"STORED\r\n");
    }
    assert_eq!(other.stat("store_no_memory"), 0);
}

/// Reads so many replies, sending the rest of the requests meanwhile, and sees that each is what it should be.
fn read_replies(mut client: Client, requests: &[u8], sent: usize, count: usize, values: &[(&str, Vec<u8>)]) {
    let mut sender = Client { socket: client.socket.try_clone().expect("a socket") };
    let rest = requests[sent..].to_vec();
    // Ends when the other half is closed, if not before.
    let sending = thread::spawn(move || {
        let _ = sender.socket.write_all(&rest);
    });
    let mut replies = Replies::new(&mut client);
    for _ in 0..count {
        replies.next(|response| match response {
            Response::Value { key, data, .. } => {
                let value = values.iter().find(|(name, _)| name.as_bytes() == key);
                assert!(value.is_some_and(|(_, value)| value == data), "a wrong {}", key.escape_ascii());
            }
            Response::End | Response::Stored => {}
            other => panic!("{other:?}"),
        });
    }
    client.socket.shutdown(Shutdown::Both).expect("a socket");
    sending.join().expect("it does not panic");
}

/// The replies that a client receives, one by one.
struct Replies<'c> {
    client: &'c mut Client,
    received: Vec<u8>,
    done: usize,
}

impl<'c> Replies<'c> {
    fn new(client: &'c mut Client) -> Self {
        Replies { client, received: Vec::new(), done: 0 }
    }

    fn next<T>(&mut self, look: impl FnOnce(Response<'_>) -> T) -> T {
        loop {
            let needed = match response::parse(&self.received[self.done..]).expect("a reply") {
                Parsed::Complete { response, consumed } => {
                    self.done += consumed;
                    return look(response);
                }
                Parsed::Incomplete { needed } => needed,
            };
            self.received.drain(..self.done);
            self.done = 0;
            let filled = self.received.len();
            self.received.resize(needed.max(filled + (64 << 10)), 0);
            let count = self.client.read(&mut self.received[filled..]).expect("it goes on");
            assert!(count > 0, "the end after {}", shorten(&self.received[..filled]));
            self.received.truncate(filled + count);
        }
    }
}

/// The key of the item that is changed, and as long as all others there, so that they are in each other's way.
const KEY: &str = "the-item-changed";
const KEY_BYTES: &[u8] = KEY.as_bytes();
const GET: &str = "get the-item-changed\r\n";

/// What is done to an item while a reply with its value is under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Change {
    Overwritten,
    Extended,
    Deleted,
    Expired,
    Flushed,
    Evicted,
}

/// A reply half sent while its item changes ends as the old value; those after it have the new one, or none.
#[test]
fn replies_under_way_when_their_item_changes() {
    let changes = [
        Change::Overwritten,
        Change::Extended,
        Change::Deleted,
        Change::Expired,
        Change::Flushed,
        Change::Evicted,
    ];
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("socket");
    let server = Server::start(
        Settings::new()
            .with_tcp([LOCALHOST])
            .with_unix(UnixSocket::new(path.clone(), 0o700))
            .with_threads(2)
            .with_memory(16 << 20),
    )
    .expect("it starts");
    let places = [Address::from(server.addresses()[0]), Address::Unix(path)];
    // The only one whose replies are known to the byte: what all others have been sent can be told.
    let mut observer = Observer { client: Client::connect(&places[0]), heard: 0 };
    let mut seen = 0;
    let mut half_sent = 0;
    for (number, change) in changes.into_iter().enumerate() {
        for (at, size) in [100, 8_100, 8_400, 100_000, 700_000, (1 << 20) - 100].into_iter().enumerate() {
            let place = &places[(number + at) % 2];
            let (old, new) = (value(size, 0x55), value(size / 2 + 1, 0xAA));
            observer.ask(&set(KEY, &old), b"STORED\r\n");
            let before = observer.sent_to_others();
            let mut client = Client::with_buffers(place, SMALL).expect("there is room");
            let requests = GET.as_bytes().repeat((24 << 20) / (size + 30));
            let sent = stuff(&mut client, &requests);
            let at_the_change = observer.blocked(before) - before;

            let new: Option<Vec<u8>> = match change {
                Change::Overwritten => {
                    observer.ask(&set(KEY, &new), b"STORED\r\n");
                    Some(new)
                }
                Change::Extended => {
                    observer.ask(format!("append {KEY} 0 0 4\r\nmore\r\n").as_bytes(), b"STORED\r\n");
                    Some([old.as_slice(), b"more"].concat())
                }
                Change::Deleted => {
                    observer.ask(format!("delete {KEY}\r\n").as_bytes(), b"DELETED\r\n");
                    None
                }
                Change::Expired => {
                    observer.ask(format!("touch {KEY} -1\r\n").as_bytes(), b"TOUCHED\r\n");
                    None
                }
                Change::Flushed => {
                    observer.ask(b"flush_all\r\n", b"OK\r\n");
                    None
                }
                Change::Evicted => {
                    observer.evict(size);
                    None
                }
            };
            // Whatever takes the place of the old value's memory, if anything may.
            for round in 0..30 {
                observer.ask(&set(&format!("filler-{round:09}"), &value(size, 0x33)), b"STORED\r\n");
            }
            let olds = read_old_then_new(client, &requests, sent, &old, new.as_deref());
            let reply = format!("VALUE {KEY} 0 {size}\r\n").len() + size + b"\r\nEND\r\n".len();
            assert!(
                olds * reply >= at_the_change,
                "{change:?}, {size} bytes: what was sent before was not old"
            );
            seen += 1;
            half_sent += u32::from(!at_the_change.is_multiple_of(reply));
        }
    }
    assert!(half_sent * 4 > seen * 3, "only {half_sent} of {seen} replies were half sent");
    drop(observer);
    server.stop().expect("no thread has failed");
}

/// Bytes of a reply with these statistics.
fn reply_length(lines: &[(String, String)]) -> usize {
    let lines = lines.iter().map(|(name, value)| format!("STAT {name} {value}\r\n").len());
    lines.sum::<usize>() + b"END\r\n".len()
}

/// A client that knows how much it has been told itself.
struct Observer {
    client: Client,
    heard: usize,
}

impl Observer {
    fn ask(&mut self, request: &[u8], reply: &[u8]) {
        self.client.ask(request, reply);
        self.heard += reply.len();
    }

    /// Bytes that the server has sent to all others.
    fn sent_to_others(&mut self) -> usize {
        let lines = self.client.stat_lines("");
        let (_, sent) = lines.iter().find(|(name, _)| name == "bytes_written").expect("it is shown");
        // The server counts a reply when it has sent it: this one is not among them yet.
        let sent = sent.parse::<usize>().expect("a number") - self.heard;
        self.heard += reply_length(&lines);
        sent
    }

    /// The same when it has grown, and grows no more, for the other client takes no more. So somebody has asked for the
    /// item, and it is not the next to be evicted.
    fn blocked(&mut self, first: usize) -> usize {
        let mut before = first;
        loop {
            thread::sleep(Duration::from_millis(5));
            // A thread of the server that has lost its core sends nothing for a while, either.
            let is_blocked = self.somebody_is_sent_to();
            let now = self.sent_to_others();
            if is_blocked && now == before && now > first {
                return now;
            }
            before = now;
        }
    }

    /// Whether there are replies that a client does not take.
    fn somebody_is_sent_to(&mut self) -> bool {
        let lines = self.client.stat_lines("conns");
        self.heard += reply_length(&lines);
        lines.iter().any(|(_, value)| value == "conn_mwrite")
    }

    /// Stores other things of the same size until the key is not there any more.
    fn evict(&mut self, size: usize) {
        let filler = value(size, 0x11);
        for round in 0.. {
            assert!(round < 30, "{size} bytes: it is not evicted");
            let mut requests = Vec::new();
            for item in 0..(8 << 20) / (size + 20) {
                let line = format!("set {round:05}-{item:010} 0 0 {size} noreply\r\n");
                requests.extend([line.as_bytes(), &filler, b"\r\n"].concat());
            }
            self.client.send(&requests);
            // Asks whether it is there, without using it, as a get would.
            self.client.send(format!("add {KEY} 0 -1 0\r\n\r\n").as_bytes());
            let reply = self.client.receive_through(b"STORED\r\n");
            self.heard += reply.len();
            if reply == b"STORED\r\n" {
                return;
            }
        }
    }
}

/// What a reply shows: in this order, whatever else happens.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Shown {
    Old,
    New,
    Nothing,
}

/// Reads all replies: the old value some times, then, if at all, the new one, then, if that goes too, none. How often
/// it was the old one.
fn read_old_then_new(
    mut client: Client,
    requests: &[u8],
    sent: usize,
    old: &[u8],
    new: Option<&[u8]>,
) -> usize {
    let count = requests.len() / GET.len();
    let mut sender = Client { socket: client.socket.try_clone().expect("a socket") };
    let rest = requests[sent..].to_vec();
    let sending = thread::spawn(move || sender.send(&rest));
    let mut replies = Replies::new(&mut client);
    let mut olds = 0;
    let mut before = Shown::Old;
    for number in 0..count {
        let shown = replies.next(|response| match response {
            Response::Value { key: KEY_BYTES, flags: 0, data, .. } if data == old => Shown::Old,
            Response::Value { key: KEY_BYTES, flags: 0, data, .. } if Some(data) == new => Shown::New,
            Response::End => Shown::Nothing,
            Response::Value { .. } => panic!("reply {number} is neither the old nor the new value"),
            other => panic!("reply {number}: {other:?}"),
        });
        assert!(shown >= before, "reply {number}: {shown:?} after {before:?}");
        before = shown;
        olds += usize::from(shown == Shown::Old);
        if shown != Shown::Nothing {
            replies.next(|response| assert_eq!(response, Response::End));
        }
    }
    sending.join().expect("it does not panic");
    client.expect_open();
    olds
}

/// Half a request, and then nothing more: nothing is stored, nothing stays behind.
#[test]
fn half_a_request_and_then_gone() {
    let server = Server::start(settings().with_memory(16 << 20)).expect("it starts");
    let address = server.addresses()[0].into();
    let mut observer = Client::connect(&address);
    observer.ask(b"set kept 0 0 1\r\nx\r\n", b"STORED\r\n");
    let large = [b"set a 0 0 500000\r\n".as_slice(), &value(499_999, 0)].concat();
    let long_list = [b"get ".as_slice(), &b"kept nothing ".repeat(3000)].concat();
    let halves: [&[u8]; 9] = [
        b"g",
        b"get a",
        b"get a\r",
        b"set a 0 0 10\r\n",
        b"set a 0 0 10\r\nabcdefghij\r",
        &large[..20_000],
        &large,
        &long_list,
        b"set a x 0 100000\r\nabc",
    ];
    for round in 0..60 {
        let mut clients: Vec<Client> = halves
            .iter()
            .map(|half| {
                let mut client = Client::connect(&address);
                client.send(half);
                client
            })
            .collect();
        for (number, client) in clients.iter_mut().enumerate() {
            match (round + number) % 3 {
                // In order, ...
                0 => {}
                // ... with a reset, or only the half that sends.
                1 => client.socket.set_linger(Some(Duration::ZERO)).expect("a socket"),
                _ => {
                    client.socket.shutdown(Shutdown::Write).expect("a socket");
                    let mut rest = Vec::new();
                    match client.socket.read_to_end(&mut rest) {
                        // The list of keys has been answered as far as it went, and the bad line at once.
                        Ok(_) => {
                            let answers: [&[u8]; 2] =
                                [b"VALUE kept", b"CLIENT_ERROR bad command line format"];
                            let answered = answers.iter().any(|answer| rest.starts_with(answer));
                            assert!(rest.is_empty() || answered, "{}", shorten(&rest));
                        }
                        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
                    }
                }
            }
        }
    }
    wait_until("they are gone", || observer.stat("curr_connections") == 1);
    let stats = observer.stats("");
    assert_eq!((stats["cmd_set"].as_str(), stats["curr_items"].as_str()), ("1", "1"));
    assert_eq!((stats["evictions"].as_str(), stats["store_no_memory"].as_str()), ("0", "0"));
    observer.ask(b"get a kept\r\n", b"VALUE kept 0 1\r\nx\r\nEND\r\n");
    // What was reserved is free: it takes nearly all memory, and nothing has to go.
    for number in 0..10 {
        observer.ask(&set(&format!("large-{number}"), &value(1_000_000, 0)), b"STORED\r\n");
    }
    assert_eq!(observer.stat("evictions"), 0);
    drop(observer);
    server.stop().expect("no thread has failed");
}

/// Who has said all that there is to say still gets all replies.
#[test]
fn a_client_that_only_listens_any_more() {
    let server = Server::start(settings()).expect("it starts");
    let address = server.addresses()[0].into();
    let large = value(700_000, 0);
    let mut client = Client::connect(&address);
    client.ask(&set("a", &large), b"STORED\r\n");
    let reply = [b"VALUE a 0 700000\r\n", large.as_slice(), b"\r\nEND\r\n"].concat();
    for times in [0, 1, 2, 30] {
        let mut client = Client::with_buffers(&address, SMALL).expect("there is room");
        client.send(&b"get a\r\n".repeat(times));
        client.socket.shutdown(Shutdown::Write).expect("a socket");
        for _ in 0..times {
            client.expect(&reply);
        }
        client.expect_closed();
    }
    wait_until("they are gone", || client.stat("curr_connections") == 1);
    drop(client);
    server.stop().expect("no thread has failed");
}

/// A worker welcomes a few clients at a time, and parts with a few: of a crowd nobody is forgotten.
#[test]
fn a_crowd_that_comes_and_goes_at_once() {
    for threads in [1, 3] {
        let server = Server::start(settings().with_threads(threads)).expect("it starts");
        let address = server.addresses()[0].into();
        let mut observer = Client::connect(&address);
        observer.ask(b"set a 0 0 1\r\nx\r\n", b"STORED\r\n");
        for _ in 0..3 {
            let mut crowd: Vec<Client> = (0..200).map(|_| Client::connect(&address)).collect();
            for client in &mut crowd {
                client.send(b"get a\r\n");
                client.socket.shutdown(Shutdown::Write).expect("a socket");
            }
            for client in &mut crowd {
                client.expect(b"VALUE a 0 1\r\nx\r\nEND\r\n");
                client.expect_closed();
            }
        }
        wait_until("they are gone", || observer.stat("curr_connections") == 1);
        drop(observer);
        server.stop().expect("no thread has failed");
    }
}

/// One connection more than there may be is told so; when another one has gone there is room again.
#[test]
fn too_many_connections() {
    for threads in [1, 4] {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let unix = UnixSocket::new(path.clone(), 0o700);
        let server = Server::start(settings().with_threads(threads).with_unix(unix).with_connections(10))
            .expect("it starts");
        let places = [Address::from(server.addresses()[0]), Address::Unix(path)];
        let mut clients: Vec<Client> = (0..10).map(|number| Client::connect(&places[number % 2])).collect();
        clients.iter_mut().for_each(Client::expect_open);
        for round in 1..20 {
            let place = &places[round % 2];
            let mut surplus = Client::connect(place);
            surplus.expect(b"ERROR Too many open connections\r\n");
            surplus.expect_closed();
            assert_eq!(clients[0].stat("rejected_connections"), round as u64);
        }
        clients.iter_mut().for_each(Client::expect_open);
        let rejected = clients[0].stat("rejected_connections");
        drop(clients.pop());
        // It is not told when the server has noticed; until then it goes on refusing.
        let mut attempts = 0;
        wait_until("there is room again", || {
            attempts += 1;
            let mut client = Client::connect(&places[0]);
            // Refused, it may be closed before this arrives.
            let _ = client.socket.write_all(b"get a\r\n");
            if client.receive(5) == b"END\r\n" {
                clients.push(client);
                return true;
            }
            false
        });
        let mut surplus = Client::connect(&places[1]);
        surplus.expect(b"ERROR Too many open connections\r\n");
        let stats = clients[0].stats("");
        assert_eq!(stats["curr_connections"], "10");
        assert_eq!(stats["total_connections"], "11");
        assert_eq!(stats["rejected_connections"], (rejected + attempts - 1 + 1).to_string());
        server.stop().expect("no thread has failed");
    }
}

/// Clients that come and go, in every way there is to go, leave nothing behind.
#[test]
fn thousands_that_come_and_go() {
    let server = server_process(1024, None);
    let mut observer = Client::connect(&server.address);
    observer.expect_open();
    let (descriptors, threads) = (server.descriptors(), server.threads());
    let settle = |observer: &mut Client, count: u64| {
        wait_until("all have come", || observer.stat("total_connections") == count + 1);
        wait_until("all are gone", || observer.stat("curr_connections") == 1);
    };
    let come_and_go = |observer: &mut Client, from: u64, to: u64| {
        for number in from..to {
            // What they have at the same time takes memory, which stays the server's: on a busy machine all could.
            if number.is_multiple_of(100) {
                settle(observer, number);
            }
            let mut client = Client::connect(&server.address);
            match number % 6 {
                0 => {}
                1 => client.send(b"get a\r\n"),
                2 => client.ask(b"get a\r\n", b"END\r\n"),
                3 => {
                    client.send(b"quit\r\n");
                    client.expect_closed();
                }
                4 => client.send(b"set a 0 0 100000\r\nabc"),
                _ => {
                    client.send(b"get a\r\nget a\r\n");
                    client.socket.set_linger(Some(Duration::ZERO)).expect("a socket");
                }
            }
        }
        settle(observer, to);
    };
    // Memory for items comes by huge pages, now and then. What connections leave behind would be more in each round.
    let mut resident = Vec::new();
    for round in 0..5 {
        come_and_go(&mut observer, round * 1000, (round + 1) * 1000);
        resident.push(server.resident());
    }
    let more = resident.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).min().expect("four rounds");
    assert!(more < 512 << 10, "{} KiB are left of each 1000 connections", more >> 10);
    // One that is counted no more is closed a moment later.
    wait_until("all are closed", || server.descriptors() == descriptors);
    assert_eq!(server.threads(), threads);
    assert_eq!(observer.stat("rejected_connections"), 0);
}

/// When file descriptors run out, those who are connected are served, and those who wait come in as others go.
#[test]
fn out_of_file_descriptors() {
    let server = server_process(1024, Some(20));
    // The kernel accepts them all; the server can have no more than twenty.
    let mut clients: Vec<Client> = (0..50).map(|_| Client::connect(&server.address)).collect();
    clients[..20].iter_mut().for_each(Client::expect_open);
    for client in &mut clients[20..] {
        client.send(b"get a\r\n");
    }
    // It does not spin, and does not stop serving either.
    for round in 0..100 {
        clients[round % 20].ask(b"set a 0 0 1\r\nx\r\ndelete a\r\n", b"STORED\r\nDELETED\r\n");
    }
    assert_eq!(clients[0].stat("curr_connections"), 20);
    // Whoever accepts may not have come to the first of the others yet.
    wait_until("it is noticed", || clients[0].stat("accepting_conns") == 0);
    assert_eq!(clients[0].stat("listen_disabled_num"), 1);
    clients.drain(..19);
    // One was left. Nineteen of those who were waiting come in, whose question has long been asked.
    for client in &mut clients[1..20] {
        client.expect(b"END\r\n");
        client.expect_open();
    }
    assert_eq!(clients[0].stat("curr_connections"), 20);
    clients.drain(..20);
    clients.iter_mut().for_each(|client| client.expect(b"END\r\n"));
    drop(clients);
    let mut late = Client::connect(&server.address);
    wait_until("they are gone", || late.stat("curr_connections") == 1);
    assert_eq!(late.stat("accepting_conns"), 1);
    assert!(late.stat("time_in_listen_disabled_us") > 0);
}

/// Half requests of all kinds, whose end does not come, cost what has come of them and no more.
#[test]
fn clients_that_never_finish() {
    let server = server_process(1024, None);
    let mut other = Client::connect(&server.address);
    other.ask(b"set a 0 0 1\r\nx\r\n", b"STORED\r\n");
    let before = server.resident();
    let mut clients: Vec<Client> = (0..300).map(|_| Client::connect(&server.address)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        match number % 3 {
            0 => client.send(&[b"set b 0 0 16000\r\n".as_slice(), &value(15_000, 0)].concat()),
            1 => client.send(&[b"set b ".as_slice(), &[b'k'; 2000]].concat()),
            // A list of keys that does not fit any buffer, and whose end does not come.
            _ => client.send(&[b"get ".as_slice(), &b"kkkkkkkkkkkkkkk ".repeat(20_000)].concat()),
        }
    }
    wait_until("all has been received", || other.stat("bytes_read") > 100 * (15_000 + 2_000 + 320_000));
    let cost = server.resident().saturating_sub(before);
    // Of the first kind sixteen thousand bytes each, of the others less; something for the tables of connections.
    assert!(cost < 300 * (20 << 10) + (1 << 20), "{} KiB for each of 300 clients", cost / 300 / 1024);
    for _ in 0..1000 {
        other.ask(b"get a\r\n", b"VALUE a 0 1\r\nx\r\nEND\r\n");
    }
    drop(clients);
    wait_until("they are gone", || other.stat("curr_connections") == 1);
}
