//! Sequences of commands against a plain map with a clock, byte for byte, however the bytes are cut.
//!
//! With a lookaside buffer before the index, and without. The server is called, not connected to, so that its clock
//! stands where the map's does. Commands are sent in one go until one needs an answer to those before it.

use std::collections::HashMap;

use crate::map::{Map, Piece, Time, Verb, Wanted};
use lookaside_server::{InProcess, Settings};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

const START: u64 = 1_700_000_000;
/// The largest item in these tests, as memcached counts.
const LARGEST_ITEM: usize = 100_000;
const LARGEST_VALUE: usize = LARGEST_ITEM - 60;

#[derive(Debug, Clone)]
enum Operation {
    Store {
        verb: Verb,
        key: u8,
        flags: u32,
        time: Time,
        value: Value,
        noreply: bool,
    },
    Cas {
        key: u8,
        flags: u32,
        time: Time,
        value: Value,
        wanted: Wanted,
        noreply: bool,
    },
    Get {
        keys: Vec<u8>,
        with_cas: bool,
    },
    GetAndTouch {
        keys: Vec<u8>,
        with_cas: bool,
        time: Time,
    },
    Touch {
        key: u8,
        time: Time,
        noreply: bool,
    },
    Delete {
        key: u8,
        noreply: bool,
    },
    Add {
        key: u8,
        delta: u64,
        negative: bool,
        noreply: bool,
    },
    Flush {
        delay: Option<u32>,
        noreply: bool,
    },
    /// Data that goes on where it should end.
    BadData {
        key: u8,
        value: Value,
    },
    Rubbish(&'static str),
    Tick(u8),
}

/// What is stored.
#[derive(Debug, Clone)]
enum Value {
    Text(&'static str),
    /// Bytes of every kind, so many of them.
    Bytes(usize),
}

impl Value {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Value::Text(text) => text.as_bytes().to_vec(),
            // No signs: the map does not know them.
            Value::Bytes(len) => (0..*len)
                .map(|at| (at * 7 + at / 256 + len) as u8)
                .map(|byte| if b"+-".contains(&byte) { b'_' } else { byte })
                .collect(),
        }
    }
}

fn value() -> impl Strategy<Value = Value> {
    let texts = vec![
        "",
        "0",
        "1",
        "9",
        "99",
        "007",
        "18446744073709551615",
        "18446744073709551616",
        "5  ",
        " 5",
        "5 x",
        "x",
        "5x",
        "\r\n",
        "END\r\n",
        "\0",
    ];
    prop_oneof![
        6 => select(texts).prop_map(Value::Text),
        3 => (0usize..300).prop_map(Value::Bytes),
        // Around the sizes at which something changes: one chunk, what is waited for whole, one piece, the largest.
        2 => (8_100usize..8_300).prop_map(Value::Bytes),
        1 => (16_250usize..16_450).prop_map(Value::Bytes),
        1 => (16_450..LARGEST_VALUE - 300).prop_map(Value::Bytes),
        1 => (LARGEST_VALUE - 252..LARGEST_VALUE + 3).prop_map(Value::Bytes),
    ]
}

fn time() -> impl Strategy<Value = Time> {
    prop_oneof![
        8 => Just(Time::Never),
        6 => (1u32..10).prop_map(Time::In),
        1 => Just(Time::In(2_592_000)),
        2 => (0u32..20).prop_map(Time::SinceStart),
        1 => Just(Time::Past),
        1 => Just(Time::Latest),
        1 => Just(Time::Negative),
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    let key = || 0u8..8;
    let keys = || prop_oneof![4 => vec(0u8..10, 1..5), 1 => vec(0u8..10, 100..200)];
    let flags = || prop_oneof![3 => Just(0), 1 => any::<u32>()];
    let noreply = || prop::bool::weighted(0.2);
    let verb = prop_oneof![
        4 => Just(Verb::Set),
        2 => Just(Verb::Add),
        2 => Just(Verb::Replace),
        2 => Just(Verb::Append),
        2 => Just(Verb::Prepend),
    ];
    let wanted = prop_oneof![3 => Just(Wanted::Current), 1 => Just(Wanted::Other)];
    let delta = prop_oneof![4 => 0u64..12, 1 => Just(u64::MAX), 1 => any::<u64>()];
    let rubbish = vec![
        "foo\r\n",
        "\r\n",
        "get\r\n",
        "incr a\r\n",
        "set a b c\r\n",
        "set a 0 0 -1\r\n",
        "touch a x\r\n",
        "mn\r\n",
        "foo noreply\r\n",
        "verbosity 1\r\n",
    ];
    prop_oneof![
        12 => (verb, key(), flags(), time(), value(), noreply()).prop_map(
            |(verb, key, flags, time, value, noreply)| Operation::Store { verb, key, flags, time, value, noreply }
        ),
        4 => (key(), flags(), time(), value(), wanted, noreply()).prop_map(
            |(key, flags, time, value, wanted, noreply)| Operation::Cas { key, flags, time, value, wanted, noreply }
        ),
        6 => (keys(), any::<bool>()).prop_map(|(keys, with_cas)| Operation::Get { keys, with_cas }),
        2 => (keys(), any::<bool>(), time())
            .prop_map(|(keys, with_cas, time)| Operation::GetAndTouch { keys, with_cas, time }),
        2 => (key(), time(), noreply()).prop_map(|(key, time, noreply)| Operation::Touch { key, time, noreply }),
        2 => (key(), noreply()).prop_map(|(key, noreply)| Operation::Delete { key, noreply }),
        4 => (key(), delta, any::<bool>(), noreply())
            .prop_map(|(key, delta, negative, noreply)| Operation::Add { key, delta, negative, noreply }),
        1 => (proptest::option::of(0u32..6), noreply())
            .prop_map(|(delay, noreply)| Operation::Flush { delay, noreply }),
        1 => (key(), value()).prop_map(|(key, value)| Operation::BadData { key, value }),
        1 => select(rubbish).prop_map(Operation::Rubbish),
        4 => (0u8..5).prop_map(Operation::Tick),
    ]
}

/// Keys of every length up to the longest.
fn key_of(number: u8) -> Vec<u8> {
    let len = [1, 2, 7, 16, 31, 100, 249, 250, 5, 60][usize::from(number)];
    let mut key = vec![b'k'; len];
    key[0] = b'a' + number;
    key
}

/// The server and the map, and what has been sent to neither yet.
struct World {
    server: InProcess,
    map: Map,
    sent: Vec<u8>,
    expected: Vec<Piece>,
    /// The server's number for each version, and the other way round.
    numbers: HashMap<u64, u64>,
    versions: HashMap<u64, u64>,
    /// Sizes of the pieces that what is sent is cut into, one after the other.
    cuts: std::iter::Cycle<std::vec::IntoIter<usize>>,
}

impl World {
    fn new(cuts: Vec<usize>, lookaside: usize) -> World {
        let settings = Settings::default()
            .with_lookaside(lookaside)
            .with_memory(16 << 20)
            .with_largest_item(LARGEST_ITEM)
            .with_requests_per_turn(5);
        World {
            server: InProcess::new(settings, START).expect("a cache"),
            map: Map::new(START, LARGEST_VALUE),
            sent: Vec::new(),
            expected: Vec::new(),
            numbers: HashMap::new(),
            versions: HashMap::new(),
            cuts: cuts.into_iter().cycle(),
        }
    }

    fn say(&mut self, words: &[&[u8]], noreply: bool) {
        self.sent.extend_from_slice(&words.join(&b' '));
        self.sent.extend_from_slice(if noreply { b" noreply\r\n" } else { b"\r\n" });
    }

    fn hear(&mut self, reply: &str, noreply: bool) {
        if !noreply {
            self.expected.push(Piece::Bytes(format!("{reply}\r\n").into_bytes()));
        }
    }

    fn say_data(&mut self, data: &[u8]) {
        self.sent.extend_from_slice(data);
        self.sent.extend_from_slice(b"\r\n");
    }

    fn apply(&mut self, operation: &Operation) -> Result<(), TestCaseError> {
        match operation {
            Operation::Store { verb, key, flags, time, value, noreply } => {
                let (key, data) = (key_of(*key), value.bytes());
                let name = match verb {
                    Verb::Set => b"set".as_slice(),
                    Verb::Add => b"add",
                    Verb::Replace => b"replace",
                    Verb::Append => b"append",
                    Verb::Prepend => b"prepend",
                };
                let [flags_said, len] = [flags.to_string(), data.len().to_string()];
                let time_said = self.map.said(*time);
                let words = [name, &key, flags_said.as_bytes(), time_said.as_bytes(), len.as_bytes()];
                self.say(&words, *noreply);
                self.say_data(&data);
                let reply = self.map.store(*verb, &key, *flags, *time, &data);
                self.hear(reply, *noreply);
            }
            Operation::Cas { key, flags, time, value, wanted, noreply } => {
                let key = key_of(*key);
                let mut data = value.bytes();
                data.truncate(LARGEST_VALUE - 300);
                let number = self.number_for(&key, *wanted)?;
                let [flags_said, len] = [flags.to_string(), data.len().to_string()];
                let time_said = self.map.said(*time);
                let words = [
                    b"cas".as_slice(),
                    &key,
                    flags_said.as_bytes(),
                    time_said.as_bytes(),
                    len.as_bytes(),
                    number.as_bytes(),
                ];
                self.say(&words, *noreply);
                self.say_data(&data);
                let reply = self.map.cas(&key, *flags, *time, &data, *wanted);
                self.hear(reply, *noreply);
            }
            Operation::Get { keys, with_cas } => {
                let keys: Vec<Vec<u8>> = keys.iter().copied().map(key_of).collect();
                let mut words = vec![if *with_cas { b"gets".as_slice() } else { b"get" }];
                words.extend(keys.iter().map(Vec::as_slice));
                self.say(&words, false);
                self.expected.extend(self.map.get(&keys, *with_cas, None));
            }
            Operation::GetAndTouch { keys, with_cas, time } => {
                // A line that is longer is closed if it comes in pieces.
                let mut room = 1900usize;
                let keys: Vec<Vec<u8>> = keys
                    .iter()
                    .copied()
                    .map(key_of)
                    .take_while(|key| {
                        let fits = key.len() < room;
                        room = room.saturating_sub(key.len() + 1);
                        fits
                    })
                    .collect();
                let said = self.map.said(*time);
                let mut words = vec![if *with_cas { b"gats".as_slice() } else { b"gat" }, said.as_bytes()];
                words.extend(keys.iter().map(Vec::as_slice));
                self.say(&words, false);
                self.expected.extend(self.map.get(&keys, *with_cas, Some(*time)));
            }
            Operation::Touch { key, time, noreply } => {
                let key = key_of(*key);
                self.say(&[b"touch", &key, self.map.said(*time).as_bytes()], *noreply);
                let reply = self.map.touch(&key, *time);
                self.hear(reply, *noreply);
            }
            Operation::Delete { key, noreply } => {
                let key = key_of(*key);
                self.say(&[b"delete", &key], *noreply);
                let reply = self.map.delete(&key);
                self.hear(reply, *noreply);
            }
            Operation::Add { key, delta, negative, noreply } => {
                let key = key_of(*key);
                let name = if *negative { b"decr" } else { b"incr" };
                self.say(&[name, &key, delta.to_string().as_bytes()], *noreply);
                let reply = self.map.add(&key, *delta, *negative);
                self.hear(&reply, *noreply);
            }
            Operation::Flush { delay, noreply } => {
                match delay {
                    Some(delay) => self.say(&[b"flush_all", delay.to_string().as_bytes()], *noreply),
                    None => self.say(&[b"flush_all"], *noreply),
                }
                self.map.flush(*delay);
                self.hear("OK", *noreply);
            }
            Operation::BadData { key, value } => {
                let (key, mut data) = (key_of(*key), value.bytes());
                data.truncate(LARGEST_VALUE - 300);
                self.say(&[b"set", &key, b"0", b"0", data.len().to_string().as_bytes()], false);
                self.sent.extend_from_slice(&data);
                self.sent.extend_from_slice(b"\rx");
                self.hear("CLIENT_ERROR bad data chunk", false);
            }
            Operation::Rubbish(line) => {
                self.sent.extend_from_slice(line.as_bytes());
                match *line {
                    "foo\r\n" => self.hear("ERROR", false),
                    "mn\r\n" => self.hear("MN", false),
                    "foo noreply\r\n" => {}
                    "verbosity 1\r\n" => self.hear("OK", false),
                    "touch a x\r\n" => self.hear("CLIENT_ERROR invalid exptime argument", false),
                    _ => self.hear("CLIENT_ERROR bad command line format", false),
                }
            }
            Operation::Tick(seconds) => {
                self.compare()?;
                self.map.tick((*seconds).into());
                self.server.set_time(self.map.now);
                self.server.keep_house();
            }
        }
        Ok(())
    }

    /// The server's number for what is under the key, or one that is not.
    fn number_for(&mut self, key: &[u8], wanted: Wanted) -> Result<String, TestCaseError> {
        let Some(version) = self.map.version(key).filter(|_| wanted == Wanted::Current) else {
            return Ok("18446744073709551615".into());
        };
        if !self.numbers.contains_key(&version) {
            self.say(&[b"gets", key], false);
            self.expected.extend(self.map.get(&[key.to_vec()], true, None));
            self.compare()?;
        }
        Ok(self.numbers[&version].to_string())
    }

    /// Sends what has been gathered and compares the reply.
    fn compare(&mut self) -> Result<(), TestCaseError> {
        let mut received = Vec::new();
        let sent = std::mem::take(&mut self.sent);
        let mut rest = sent.as_slice();
        while !rest.is_empty() {
            let size = self.cuts.next().expect("an endless supply").min(rest.len());
            received.extend_from_slice(&self.server.receive(&rest[..size]));
            rest = &rest[size..];
        }
        let mut rest = received.as_slice();
        for piece in std::mem::take(&mut self.expected) {
            match piece {
                Piece::Bytes(bytes) => {
                    let (reply, after) = rest.split_at(bytes.len().min(rest.len()));
                    prop_assert_eq!(shown(reply), shown(&bytes));
                    rest = after;
                }
                Piece::Number(version) => {
                    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                    let number = std::str::from_utf8(&rest[..digits]).expect("digits").parse::<u64>();
                    prop_assert!(number.is_ok(), "{} is no number", shown(&rest[..digits.max(20)]));
                    let number = number.expect("just checked");
                    prop_assert!(number != 0);
                    prop_assert_eq!(*self.numbers.entry(version).or_insert(number), number);
                    prop_assert_eq!(*self.versions.entry(number).or_insert(version), version);
                    rest = &rest[digits..];
                }
            }
        }
        prop_assert_eq!(shown(rest), "");
        prop_assert!(self.server.is_open());
        Ok(())
    }
}

fn shown(bytes: &[u8]) -> String {
    if bytes.len() < 500 {
        return bytes.escape_ascii().to_string();
    }
    let sum = bytes.iter().fold(0u64, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    format!("{}... ({} bytes, sum {sum:x})", bytes[..200].escape_ascii(), bytes.len())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: outside::cases(1000), failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn a_server_is_a_map_with_a_clock(
        operations in vec(operation(), 1..120),
        cuts in vec(prop_oneof![1usize..40, 1usize..3000, Just(1 << 20)], 1..20),
        lookaside in select(vec![0, 64, 1 << 16]),
    ) {
        let mut world = World::new(cuts, lookaside);
        for operation in &operations {
            world.apply(operation)?;
        }
        world.compare()?;
    }
}
