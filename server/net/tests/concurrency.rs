//! Many clients at once: every value that comes back is one that could be current, what must be atomic is, and a server
//! can stop in the middle of it.

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::client::{Address, Client, LOCALHOST, settings, shorten, wait_until};
use crate::history::{Clock, Eviction, Log, Span, check, number_in, value};
use lookaside_server::{Server, Settings, UnixSocket, VERSION};
use protocol::response::{self, Parsed, Response};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// How long clients keep at it, and what each has done at least, however slow the machine is.
const BUSY: Duration = Duration::from_secs(2);
const LEAST_WRITES: usize = 500;

/// What was asked, for the answer to be understood.
enum Asked {
    Set(u32, u64),
    Delete(u32),
    Touch,
    Get(Vec<u32>),
    Flush,
}

/// A client that does this and that, several things at a time, and remembers all of it.
struct Busy<'a> {
    client: Client,
    received: Vec<u8>,
    random: SmallRng,
    clock: &'a Clock,
    keys: u32,
    log: Log,
}

impl Busy<'_> {
    fn run(mut self, until: Instant) -> Log {
        while Instant::now() < until || self.log.writes.len() < LEAST_WRITES {
            let mut requests = Vec::new();
            let asked: Vec<Asked> =
                (0..self.random.random_range(1..12)).map(|_| self.ask(&mut requests)).collect();
            let from = self.clock.tick();
            self.client.send(&requests);
            for asked in asked {
                self.answer(asked, from);
            }
        }
        self.log
    }

    fn ask(&mut self, requests: &mut Vec<u8>) -> Asked {
        let key = self.random.random_range(0..self.keys);
        match self.random.random_range(0..1000) {
            0..500 => {
                let count = self.random.random_range(1..20);
                let keys: Vec<u32> = (0..count).map(|_| self.random.random_range(0..self.keys)).collect();
                let command = ["get", "gets", "gat 0", "gats 1000"][self.random.random_range(0..4)];
                requests.extend_from_slice(command.as_bytes());
                keys.iter().for_each(|key| requests.extend_from_slice(format!(" key-{key}").as_bytes()));
                requests.extend_from_slice(b"\r\n");
                Asked::Get(keys)
            }
            500..850 => {
                // In one piece, in several, and so large that it is taken in as it comes.
                let len = match self.random.random_range(0..100) {
                    0..80 => self.random.random_range(0..300),
                    80..95 => self.random.random_range(0..12_000),
                    _ => self.random.random_range(0..60_000),
                };
                let number = self.clock.number();
                let value = value(key, number, len);
                requests.extend_from_slice(format!("set key-{key} 0 0 {}\r\n", value.len()).as_bytes());
                requests.extend_from_slice(&value);
                requests.extend_from_slice(b"\r\n");
                Asked::Set(key, number)
            }
            850..950 => {
                requests.extend_from_slice(format!("delete key-{key}\r\n").as_bytes());
                Asked::Delete(key)
            }
            950..997 => {
                requests.extend_from_slice(format!("touch key-{key} 0\r\n").as_bytes());
                Asked::Touch
            }
            // Where something is to be evicted, rarely: flushed items make room for all that comes, and nothing is
            // evicted.
            _ if self.keys < 1000 || self.random.random_range(0..100) == 0 => {
                requests.extend_from_slice(b"flush_all\r\n");
                Asked::Flush
            }
            _ => {
                requests.extend_from_slice(format!("touch key-{key} 0\r\n").as_bytes());
                Asked::Touch
            }
        }
    }

    fn answer(&mut self, asked: Asked, from: u64) {
        match asked {
            Asked::Set(key, number) => {
                let stored = self.next(|response| match response {
                    Response::Stored => true,
                    Response::Error(b"SERVER_ERROR out of memory storing object") => false,
                    other => panic!("{other:?}"),
                });
                let to = self.clock.tick();
                self.log.writes.push((key, stored.then_some(number), Span { from, to }));
            }
            Asked::Delete(key) => {
                self.next(|response| assert!(matches!(response, Response::Deleted | Response::NotFound)));
                let to = self.clock.tick();
                self.log.writes.push((key, None, Span { from, to }));
            }
            Asked::Touch => {
                self.next(|response| assert!(matches!(response, Response::Touched | Response::NotFound)));
            }
            Asked::Flush => {
                self.next(|response| assert_eq!(response, Response::Ok));
                let to = self.clock.tick();
                self.log.flushes.push(Span { from, to });
            }
            Asked::Get(keys) => {
                // What was found, in the order of the keys, with gaps.
                let mut found = Vec::new();
                while let Some(value) = self.next(|response| match response {
                    Response::Value { key, data, .. } => {
                        let key = std::str::from_utf8(key).expect("a key of ours").replace("key-", "");
                        let key: u32 = key.parse().expect("a key of ours");
                        Some((key, number_in(key, data)))
                    }
                    Response::End => None,
                    other => panic!("{other:?}"),
                }) {
                    found.push(value);
                }
                let to = self.clock.tick();
                let mut found = found.into_iter().peekable();
                // A key that is asked for twice, and found once, may be either: neither is looked at then.
                let all = keys.len();
                for (at, key) in keys.iter().enumerate() {
                    let seen = found.next_if(|(found, _)| found == key).map(|(_, number)| number);
                    let doubtful = (0..all).any(|other| other != at && keys[other] == *key);
                    if seen.is_some() || !doubtful {
                        self.log.reads.push((*key, seen, Span { from, to }));
                    }
                }
                assert_eq!(found.next(), None, "a value that was not asked for, or in another order");
            }
        }
    }

    fn next<T>(&mut self, look: impl FnOnce(Response<'_>) -> T) -> T {
        loop {
            let needed = match response::parse(&self.received).expect("a reply") {
                Parsed::Complete { response, consumed } => {
                    let seen = look(response);
                    self.received.drain(..consumed);
                    return seen;
                }
                Parsed::Incomplete { needed } => needed,
            };
            let filled = self.received.len();
            self.received.resize(needed.max(filled + (16 << 10)), 0);
            let count = self.client.read(&mut self.received[filled..]).expect("the connection is open");
            assert!(count > 0, "the end after {}", shorten(&self.received[..filled]));
            self.received.truncate(filled + count);
        }
    }
}

/// Lets clients loose on a server, and checks what they have seen.
fn unleash(settings: Settings, keys: u32, eviction: Eviction) {
    let lookaside = settings.lookaside;
    let server = Server::start(settings).expect("it starts");
    let address = Address::from(server.addresses()[0]);
    let clock = Clock::default();
    let until = Instant::now() + BUSY;
    let logs: Vec<Log> = thread::scope(|scope| {
        let clients: Vec<_> = (0..6)
            .map(|seed| {
                let busy = Busy {
                    client: Client::connect(&address),
                    received: Vec::new(),
                    random: SmallRng::seed_from_u64(seed),
                    clock: &clock,
                    keys,
                    log: Log::default(),
                };
                scope.spawn(move || busy.run(until))
            })
            .collect();
        clients.into_iter().map(|client| client.join().expect("nothing wrong was read")).collect()
    });
    let hits = logs.iter().flat_map(|log| &log.reads).filter(|(_, seen, _)| seen.is_some()).count();
    assert!(hits > 500, "only {hits} hits");
    check(&logs, eviction);
    let mut observer = Client::connect(&address);
    let (evictions, sets) = (observer.stat("evictions"), observer.stat("cmd_set"));
    assert_eq!(evictions > 0, eviction == Eviction::Possible, "{evictions} evictions");
    if lookaside > 0 {
        let (known, unknown) = (observer.stat("lookaside_hits"), observer.stat("lookaside_misses"));
        assert!(known > 100 && unknown > 100, "{known} hits in the lookaside buffer, {unknown} misses");
    }
    // A set does not wait for memory that others are still reading. Where there is hardly any it may be refused.
    let refused = observer.stat("store_no_memory");
    assert!(refused * 500 <= sets, "{refused} of {sets} sets were refused");
    drop(observer);
    server.stop().expect("no thread has failed");
}

#[test]
fn every_value_could_be_current() {
    // Few keys, so that clients are in each other's way, and room for all of them.
    unleash(settings().with_threads(4), 12, Eviction::Impossible);
}

#[test]
fn every_value_could_be_current_behind_a_lookaside_buffer() {
    unleash(settings().with_threads(4).with_lookaside(64), 12, Eviction::Impossible);
    let evicting = settings().with_threads(3).with_memory(8 << 20).with_lookaside(1 << 16);
    unleash(evicting, 8000, Eviction::Possible);
}

#[test]
fn every_value_could_be_current_while_others_are_evicted() {
    unleash(settings().with_threads(3).with_memory(8 << 20), 8000, Eviction::Possible);
}

/// Runs a client's part in as many threads as there are clients, all beginning at the same time.
fn together<T: Send>(address: &Address, clients: usize, part: impl Fn(usize, Client) -> T + Sync) -> Vec<T> {
    let barrier = Barrier::new(clients);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..clients)
            .map(|number| {
                let (part, barrier) = (&part, &barrier);
                scope.spawn(move || {
                    let client = Client::connect(address);
                    barrier.wait();
                    part(number, client)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no client has failed")).collect()
    })
}

/// The line that a client is answered with.
fn line(client: &mut Client) -> String {
    let line = client.receive_through(b"\r\n");
    String::from_utf8(line).expect("text").trim_end().to_owned()
}

#[test]
fn what_must_be_atomic_is() {
    const CLIENTS: usize = 6;
    let server = Server::start(settings().with_threads(4)).expect("it starts");
    let address = Address::from(server.addresses()[0]);
    let mut observer = Client::connect(&address);

    // Each increment counts, and is told a number of its own.
    observer.ask(b"set n 0 0 1\r\n0\r\n", b"STORED\r\n");
    let told = together(&address, CLIENTS, |_, mut client| {
        let numbers = (0..500).map(|_| {
            client.send(b"incr n 1\r\n");
            line(&mut client).parse().expect("a number")
        });
        let numbers: Vec<u64> = numbers.collect();
        numbers
    });
    let mut all = told.concat();
    all.sort_unstable();
    assert_eq!(all, (1..=3000).collect::<Vec<_>>());
    together(&address, CLIENTS, |_, mut client| {
        client.send(&b"decr n 1 noreply\r\n".repeat(100));
        client.expect_open();
    });
    observer.send(b"incr n 0\r\n");
    assert_eq!(line(&mut observer), (CLIENTS * 400).to_string());

    // One of all those who add a key has added it.
    let added = together(&address, CLIENTS, |number, mut client| {
        (0..500)
            .filter(|key| {
                client.send(format!("add key-{key} 0 0 1\r\n{number}\r\n").as_bytes());
                line(&mut client) == "STORED"
            })
            .collect::<Vec<_>>()
    });
    let mut all: Vec<i32> = added.concat();
    all.sort_unstable();
    assert_eq!(all, (0..500).collect::<Vec<_>>());

    // A compare and swap that succeeds has seen what it swaps.
    observer.ask(b"set m 0 0 1\r\n0\r\n", b"STORED\r\n");
    let lost = together(&address, CLIENTS, |_, mut client| {
        let (mut done, mut lost) = (0, 0);
        while done < 200 {
            client.send(b"gets m\r\n");
            let reply = String::from_utf8(client.receive_through(b"END\r\n")).expect("text");
            let mut words = reply.split_whitespace().skip(4);
            let (number, count) = (words.next().expect("a number"), words.next().expect("a count"));
            let next = (count.parse::<u32>().expect("a count") + 1).to_string();
            client.send(format!("cas m 0 0 {} {number}\r\n{next}\r\n", next.len()).as_bytes());
            match line(&mut client).as_str() {
                "STORED" => done += 1,
                "EXISTS" => lost += 1,
                other => panic!("{other}"),
            }
        }
        lost
    });
    observer.ask(b"get m\r\n", b"VALUE m 0 4\r\n1200\r\nEND\r\n");
    let stats = observer.stats("");
    assert_eq!(stats["cas_hits"], (CLIENTS * 200).to_string());
    assert_eq!(stats["cas_badval"], lost.iter().sum::<u64>().to_string());

    // What is appended and prepended is all there, in each one's order.
    observer.ask(b"set l 0 0 1\r\n|\r\n", b"STORED\r\n");
    together(&address, CLIENTS, |number, mut client| {
        for round in 0..200 {
            let piece = format!("{number}:{round};");
            let verb = if round % 2 == 0 { "append" } else { "prepend" };
            client.ask(format!("{verb} l 0 0 {}\r\n{piece}\r\n", piece.len()).as_bytes(), b"STORED\r\n");
        }
    });
    observer.send(b"get l\r\n");
    let reply = String::from_utf8(observer.receive_through(b"END\r\n")).expect("text");
    let list = reply.split("\r\n").nth(1).expect("a value");
    let (before, after) = list.split_once('|').expect("the middle");
    for number in 0..CLIENTS {
        let of_this_one = |pieces: &str| {
            let pieces = pieces.split_terminator(';').filter_map(|piece| {
                piece.strip_prefix(&format!("{number}:")).map(|round| round.parse::<u32>().expect("a round"))
            });
            pieces.collect::<Vec<_>>()
        };
        assert_eq!(of_this_one(after), (0..200).step_by(2).collect::<Vec<_>>());
        assert_eq!(of_this_one(before), (0..200).rev().step_by(2).collect::<Vec<_>>());
    }
    drop(observer);
    server.stop().expect("no thread has failed");
}

/// A deletion takes away what is there, and what others make of it at the same moment too.
#[test]
fn what_is_deleted_stays_deleted() {
    let server = Server::start(settings().with_threads(2)).expect("it starts");
    let address = Address::from(server.addresses()[0]);
    let [mut observer, mut other] = [(); 2].map(|()| Client::connect(&address));
    let changes = b"incr n 1\r\nappend n 0 0 1\r\n \r\ntouch n 1000\r\n".repeat(40);
    let version = format!("VERSION {VERSION}\r\n");
    const ROUNDS: usize = 400;
    let (begin, begun) = mpsc::channel();
    let (end, ended) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            while begun.recv().is_ok() {
                other.send(&[changes.as_slice(), b"version\r\n"].concat());
                let replies = other.receive_through(version.as_bytes());
                assert!(!replies.windows(5).any(|part| part == b"ERROR"), "{}", shorten(&replies));
                end.send(()).expect("somebody waits for it");
            }
        });
        let mut deleted = 0;
        for round in 0..ROUNDS {
            observer.ask(b"set n 0 0 1\r\n1\r\n", b"STORED\r\n");
            begin.send(()).expect("the other one goes on");
            // Now, or a little later.
            let misses = round % 8 * 10;
            observer.ask(&b"get nothing\r\n".repeat(misses), &b"END\r\n".repeat(misses));
            observer.send(b"delete n\r\n");
            deleted += usize::from(line(&mut observer) == "DELETED");
            ended.recv().expect("the other one goes on");
            observer.ask(b"get n\r\n", b"END\r\n");
        }
        drop(begin);
        assert_eq!(deleted, ROUNDS, "it was there all the time");
    });
    drop(observer);
    server.stop().expect("no thread has failed");
}

/// A server stops while clients send, wait, read slowly or not at all, and leaves nothing behind.
#[test]
fn stopping_in_the_middle_of_it() {
    for round in 0..6 {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let server = Server::start(
            settings()
                .with_tcp([LOCALHOST])
                .with_unix(UnixSocket::new(path.clone(), 0o700))
                .with_threads(1 + round % 4),
        )
        .expect("it starts");
        let places = [Address::from(server.addresses()[0]), Address::Unix(path.clone())];
        let large = [b"set large 0 0 500000\r\n".as_slice(), &vec![b'x'; 500_000], b"\r\n"].concat();
        let served = AtomicU64::new(0);
        let ended_badly = Mutex::new(Vec::new());
        let stopped = AtomicBool::new(false);
        let clients: Vec<Client> = (0..8).map(|number| Client::connect(&places[number % 2])).collect();
        thread::scope(|scope| {
            for (number, mut client) in clients.into_iter().enumerate() {
                let (large, served, ended_badly, stopped) = (&large, &served, &ended_badly, &stopped);
                scope.spawn(move || {
                    let mut buffer = vec![0; 200_000];
                    loop {
                        let sent = match number % 4 {
                            0 => client.socket.write_all(b"set a 0 0 1\r\nx\r\nget a\r\n"),
                            1 => client.socket.write_all(large),
                            2 => client.socket.write_all(b"get large large large\r\n"),
                            _ => client.socket.write_all(&b"get large\r\n".repeat(100)),
                        };
                        // The last kind reads nothing, but what the socket holds.
                        let received = match sent {
                            Ok(()) if number % 4 == 3 => client.read(&mut buffer[..1]),
                            Ok(()) => client.read(&mut buffer),
                            Err(error) => Err(error),
                        };
                        match received {
                            Ok(count) if count > 0 => served.fetch_add(1, Ordering::Relaxed),
                            _ if stopped.load(Ordering::SeqCst) => break,
                            end => {
                                ended_badly.lock().expect("no client panics").push(format!("{end:?}"));
                                break;
                            }
                        };
                    }
                });
            }
            wait_until("they are at it", || served.load(Ordering::Relaxed) > 300);
            stopped.store(true, Ordering::SeqCst);
            let begun = Instant::now();
            if round % 2 == 0 {
                server.stop().expect("no thread has failed");
            } else {
                drop(server);
            }
            assert!(begun.elapsed() < Duration::from_secs(10), "it took {:?} to stop", begun.elapsed());
            assert!(Client::try_connect(&places[0]).is_err(), "somebody still listens");
            assert!(!path.exists(), "the socket is still there");
        });
        assert_eq!(ended_badly.into_inner().expect("no client panics"), Vec::<String>::new());
    }
}
