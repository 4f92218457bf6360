//! What a flush hides, and when: now, later, and at a Unix time, by `flush_all` and by the binary protocol's flush, of
//! items stored by all three protocols.
//!
//! Of a flush in so many seconds memcached notes the second *before* its moment. From the beginning of that second on,
//! everything is hidden that was stored before its end: also what is stored while it lasts. So a flush in one second
//! hides at once what is there, and what comes as long as the same second lasts. A flush without a time, or at one that
//! has passed, hides what was stored before it, and nothing that comes after it, be it in the same second.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use lookaside_server::{InProcess, Server};
use protocol::binary::{Header, opcode};

use crate::client::{Client, settings, wait_until};
use crate::peer::Memcached;

/// How often a test that was too slow for a second, on a busy machine, is tried again.
const MOST_TRIES: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Protocol {
    Text,
    Meta,
    Binary,
}

const PROTOCOLS: [Protocol; 3] = [Protocol::Text, Protocol::Meta, Protocol::Binary];

/// When a flush is to take place.
#[derive(Debug, Clone, Copy)]
enum When {
    In(i32),
    /// At the Unix time that is so many seconds after the request's.
    At(i32),
}

/// An item that was stored.
struct Item {
    key: String,
    protocol: Protocol,
    second: u64,
    /// Whether it was stored after the flush was asked for.
    after: bool,
}

/// A server, by two connections: one for text and meta commands.
struct Side {
    lines: Client,
    frames: Client,
}

impl Side {
    fn new(address: SocketAddr) -> Side {
        Side { lines: Client::connect(&address.into()), frames: Client::connect(&address.into()) }
    }

    /// The second that its clock shows.
    fn second(&mut self) -> u64 {
        self.lines.stat("time")
    }

    /// Waits until its clock shows another second, and says which.
    fn next_second(&mut self) -> u64 {
        let before = self.second();
        let mut now = before;
        wait_until("its clock goes on", || {
            thread::sleep(Duration::from_millis(5));
            now = self.second();
            now != before
        });
        now
    }

    /// Sends a frame, and says whether all went well.
    fn frame(&mut self, opcode: u8, key: &str, extras: &[u8], value: &[u8]) -> bool {
        let mut sent = Vec::new();
        Header::write_request(&mut sent, opcode, [extras.len(), key.len(), value.len()], 0, 0);
        self.frames.send(&[&sent, extras, key.as_bytes(), value].concat());
        let header = self.frames.receive(24);
        let body = u32::from_be_bytes(header[8..12].try_into().expect("four bytes"));
        self.frames.receive(body as usize);
        header[6..8] == [0, 0]
    }

    fn store(&mut self, protocol: Protocol, key: &str) {
        match protocol {
            Protocol::Text => self.lines.ask(format!("set {key} 0 0 1\r\nx\r\n").as_bytes(), b"STORED\r\n"),
            Protocol::Meta => self.lines.ask(format!("ms {key} 1\r\nx\r\n").as_bytes(), b"HD\r\n"),
            Protocol::Binary => assert!(self.frame(opcode::SET, key, &[0; 8], b"x"), "it stores {key}"),
        }
    }

    fn is_there(&mut self, protocol: Protocol, key: &str) -> bool {
        match protocol {
            Protocol::Text => {
                self.lines.send(format!("get {key}\r\n").as_bytes());
                self.lines.receive_through(b"END\r\n").starts_with(b"VALUE ")
            }
            Protocol::Meta => {
                self.lines.send(format!("mg {key}\r\n").as_bytes());
                self.lines.receive_through(b"\r\n") == b"HD\r\n"
            }
            Protocol::Binary => self.frame(opcode::GET, key, b"", b""),
        }
    }

    fn flush(&mut self, protocol: Protocol, time: i32) {
        match protocol {
            Protocol::Binary => assert!(self.frame(opcode::FLUSH, "", &time.to_be_bytes(), b"")),
            _ => self.lines.ask(format!("flush_all {time}\r\n").as_bytes(), b"OK\r\n"),
        }
    }

    /// Stores an item by each protocol.
    fn store_all(&mut self, items: &mut Vec<Item>, second: u64, after: bool) {
        for protocol in PROTOCOLS {
            let key = format!("{protocol:?}:{}", items.len());
            self.store(protocol, &key);
            items.push(Item { key, protocol, second, after });
        }
    }
}

/// Flushes, and looks for items of the seconds around, by each protocol; false if a second was over too early.
fn flush_and_look(side: &mut Side, protocol: Protocol, when: When, what: &str) -> bool {
    let mut items = Vec::new();
    side.lines.ask(b"flush_all\r\n", b"OK\r\n");
    let before = side.next_second();
    side.store_all(&mut items, before, false);
    let called = side.next_second();
    side.store_all(&mut items, called, false);
    let (time, at) = match when {
        When::In(seconds) => (seconds, called as i64 + i64::from(seconds)),
        When::At(later) => (called as i32 + later, called as i64 + i64::from(later)),
    };
    side.flush(protocol, time);
    let last = (time != 0 && at > called as i64).then_some(at as u64 - 1);
    for second in called..called + 4 {
        let now = if second == called { called } else { side.next_second() };
        let mut wrong = Vec::new();
        for stored in [false, true] {
            if stored {
                side.store_all(&mut items, second, true);
            }
            for item in &items {
                let hidden = last.map_or(!item.after, |last| second >= last && item.second <= last);
                if side.is_there(item.protocol, &item.key) == hidden {
                    let Item { protocol, second: of, after, .. } = item;
                    let of = *of as i64 - called as i64;
                    wrong.push(format!("{protocol:?} of second {of}, after {after}: is hidden {}", !hidden));
                }
            }
        }
        if (now, side.second()) != (second, second) {
            return false;
        }
        assert!(
            wrong.is_empty(),
            "{what}, {protocol:?}, {when:?}, in second {}: {wrong:#?}",
            second - called
        );
    }
    true
}

/// Tries all flushes at the same time, each on servers of its own.
fn try_all(address: impl Fn() -> Option<(SocketAddr, Box<dyn Send>)>, what: &str) {
    use When::{At, In};
    let of_lines =
        [In(0), In(-1), In(1), In(2), In(3), At(0), At(1), At(2)].map(|when| (Protocol::Text, when));
    let of_frames = [In(1), In(2), At(2)].map(|when| (Protocol::Binary, when));
    thread::scope(|scope| {
        for (protocol, when) in of_lines.into_iter().chain(of_frames) {
            let Some((address, server)) = address() else { return };
            scope.spawn(move || {
                let mut side = Side::new(address);
                let tries = (0..MOST_TRIES).take_while(|_| !flush_and_look(&mut side, protocol, when, what));
                assert!(tries.count() < MOST_TRIES, "{what}: no second is long enough");
                drop(server);
            });
        }
    });
}

#[test]
fn a_flush_hides_what_memcached_hides() {
    try_all(
        || {
            let server = Server::start(settings().with_threads(1)).expect("it starts");
            Some((server.addresses()[0], Box::new(server)))
        },
        "ours",
    );
}

#[test]
fn memcached_hides_what_is_expected_of_a_flush() {
    try_all(
        || {
            let memcached = Memcached::start()?;
            Some((memcached.address(), Box::new(memcached)))
        },
        "memcached",
    );
}

const START: u64 = 1_700_000_000;

fn ask(server: &mut InProcess, sent: &str, replies: &str) {
    assert_eq!(String::from_utf8_lossy(&server.receive(sent.as_bytes())), replies, "{sent}");
}

/// As in memcached, an item that is hidden is there for no command, and a later flush ends the hiding.
#[test]
fn what_is_stored_in_the_second_of_a_flush_is_there_for_nobody() {
    let mut server = InProcess::new(settings(), START).expect("a cache");
    ask(&mut server, "set a 0 0 1\r\n1\r\nflush_all 1\r\nget a\r\n", "STORED\r\nOK\r\nEND\r\n");
    let all = "set a 0 0 1\r\n1\r\nget a\r\nmg a v\r\nappend a 0 0 1\r\n2\r\nincr a 1\r\ntouch a 0\r\n\
               add a 0 0 1\r\n2\r\nadd a 0 0 1\r\n3\r\ndelete a\r\nms a 1 ME\r\n4\r\nma b N0 v\r\nmg b\r\n";
    let hidden = "STORED\r\nEND\r\nEN\r\nNOT_STORED\r\nNOT_FOUND\r\nNOT_FOUND\r\n\
                  STORED\r\nSTORED\r\nNOT_FOUND\r\nHD\r\nVA 1\r\n0\r\nEN\r\n";
    ask(&mut server, all, hidden);
    server.keep_house();
    ask(&mut server, "get a b\r\n", "END\r\n");
    // The clock ends it, and not who keeps the house.
    server.set_time(START + 1);
    ask(&mut server, "get a b\r\nset a 0 0 1\r\n5\r\n", "END\r\nSTORED\r\n");
    server.keep_house();
    ask(&mut server, "get a\r\n", "VALUE a 0 1\r\n5\r\nEND\r\n");
    // Other flushes end it: what was hidden stays so.
    for flush in ["flush_all", "flush_all 1000"] {
        ask(&mut server, "flush_all 1\r\nset a 0 0 1\r\n6\r\n", "OK\r\nSTORED\r\n");
        ask(&mut server, &format!("{flush}\r\nset b 0 0 1\r\n7\r\n"), "OK\r\nSTORED\r\n");
        ask(&mut server, "get a b\r\n", "VALUE b 0 1\r\n7\r\nEND\r\n");
    }
}

/// What was hidden is swept away before its generation is used again, also if it came after a sweep.
#[test]
fn what_was_hidden_does_not_come_back() {
    let mut server = InProcess::new(settings(), START).expect("a cache");
    for round in 0..40 {
        server.set_time(START + round);
        // It comes by the clock, by a request, or both.
        if round % 3 == 0 {
            server.keep_house();
        }
        ask(&mut server, "flush_all 1\r\n", "OK\r\n");
        for _ in 0..round % 4 {
            server.keep_house();
        }
        ask(&mut server, &format!("set k{round} 0 0 1\r\nx\r\n"), "STORED\r\n");
        if round % 5 < 2 {
            server.set_time(START + round + 1);
            server.keep_house();
            ask(
                &mut server,
                &"flush_all\r\n".repeat(round as usize % 5),
                &"OK\r\n".repeat(round as usize % 5),
            );
        }
        for key in 0..=round {
            ask(&mut server, &format!("get k{key}\r\n"), "END\r\n");
        }
    }
}
