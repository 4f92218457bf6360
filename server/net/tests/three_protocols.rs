//! Random operations over all three protocols, on one key space, of the installed memcached and of this server.
//!
//! Each round sends a few requests of one protocol in one piece, so that gets are gathered, and then looks at all keys:
//! in half of the rounds so that nothing is changed by it, not even whether an item was fetched.
//! Numbers to compare and swap by are each server's own; they are compared as in `against_memcached`, by the order in
//! which they were told. What goes by the clock may differ by a second, and by four where ours is kept to four.
//!
//! `LOOKASIDE_OPERATIONS` says how many operations.
//!
//! Left out is what memcached 1.6.18 answers otherwise than 1.6.45, which is followed: `differences` says what and why,
//! and `conversations` what is expected instead.

use std::collections::HashMap;
use std::env;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::client::settings;
use crate::peer::Memcached;
use lookaside_server::Server;
use protocol::binary::{Header, REQUEST_MAGIC, opcode};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

const KEYS: [&str; 4] = ["a", "bb", "key:3", "d"];

/// What is asked last, and answered as nothing else is.
const END_ASKED: &[u8] = b"mg no-such-key k Oend\r\n";
const END: &[u8] = b"EN kno-such-key Oend\r\n";

/// A connection that speaks one protocol.
struct Wire(TcpStream);

impl Wire {
    fn connect(address: std::net::SocketAddr) -> Wire {
        let stream = TcpStream::connect(address).expect("it accepts connections");
        stream.set_nodelay(true).expect("a socket");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket");
        Wire(stream)
    }

    /// Sends bytes and receives until what has come ends with these.
    fn ask(&mut self, sent: &[u8], end: &[u8]) -> Vec<u8> {
        let mut stream = self.0.try_clone().expect("a socket");
        let (sent, mut answer) = (sent.to_vec(), Vec::new());
        // Beside receiving, for neither side takes all of a large request before it answers.
        let sender = std::thread::spawn(move || stream.write_all(&sent));
        let mut buffer = [0; 65536];
        while !answer.ends_with(end) {
            let count = match self.0.read(&mut buffer) {
                // This process was stopped, and goes on.
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                outcome => outcome.unwrap_or_else(|error| {
                    panic!("{error} after {}", answer[answer.len().saturating_sub(300)..].escape_ascii())
                }),
            };
            assert!(count > 0, "closed after {}", answer[answer.len().saturating_sub(300)..].escape_ascii());
            answer.extend_from_slice(&buffer[..count]);
        }
        sender.join().expect("it sends").expect("it takes all");
        answer.truncate(answer.len() - end.len());
        answer
    }
}

/// One server, and what is known of its numbers.
struct Side {
    text: Wire,
    binary: Wire,
    /// The numbers in the order in which they were told.
    numbers: HashMap<u64, usize>,
    /// Of each key the numbers that it has had.
    history: HashMap<Vec<u8>, Vec<u64>>,
}

/// An answer that can be compared, and the numbers in it that go by the clock.
#[derive(Default, Debug)]
struct Answer {
    text: String,
    times: Vec<i64>,
}

impl Side {
    fn new(address: std::net::SocketAddr) -> Side {
        Side {
            text: Wire::connect(address),
            binary: Wire::connect(address),
            numbers: HashMap::new(),
            history: HashMap::new(),
        }
    }

    fn counted(&mut self, number: u64) -> usize {
        if number == 0 {
            return 0;
        }
        let next = self.numbers.len() + 1;
        *self.numbers.entry(number).or_insert(next)
    }

    /// The number that a key had so many stores ago, or one that no item has.
    fn number(&self, key: &str, ago: Option<usize>) -> u64 {
        let known = self.history.get(key.as_bytes());
        ago.and_then(|ago| known?.iter().rev().nth(ago).copied()).unwrap_or(1)
    }

    fn ask_text(&mut self, sent: &[u8]) -> Answer {
        let answer = self.text.ask(&[sent, END_ASKED].concat(), END);
        let mut out = Answer::default();
        let mut rest = answer.as_slice();
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            let line = String::from_utf8_lossy(&rest[..end]).trim_end().to_owned();
            rest = &rest[end + 1..];
            let words: Vec<&str> = line.split(' ').collect();
            let mut data = None;
            match words[..] {
                ["VALUE", key, flags, length, number] => {
                    let number = number.parse().expect("a number");
                    let history = self.history.entry(key.as_bytes().to_vec()).or_default();
                    if history.last() != Some(&number) {
                        history.push(number);
                    }
                    data = Some(length.parse::<usize>().expect("a length"));
                    out.text += &format!("VALUE {key} {flags} {length} {}", self.counted(number));
                }
                ["VALUE", _, _, length] => {
                    data = Some(length.parse().expect("a length"));
                    out.text += &line;
                }
                ["VA" | "HD" | "EN" | "NF" | "NS" | "EX", ..] => {
                    if words[0] == "VA" {
                        data = Some(words[1].parse().expect("a length"));
                    }
                    out.text += words[0];
                    for word in &words[1..] {
                        let number = word[1..].parse::<i64>();
                        match (&word[..1], number) {
                            ("c", Ok(number)) => out.text += &format!(" c{}", self.counted(number as u64)),
                            ("t" | "l", Ok(number @ 0..)) => {
                                out.text += &format!(" {}*", &word[..1]);
                                // What has expired already memcached tells as what is left of it in 32 bits.
                                out.times.push(i64::from((number as i32).max(0)));
                            }
                            _ => out.text += &format!(" {word}"),
                        }
                    }
                }
                ["ME", key, expiry, idle, number, fetched, ..] => {
                    let value = |word: &str| word.split_once('=').expect("a fact").1.parse::<i64>();
                    // 1.6.18 has the sign of `exp` the wrong way round, and no more than 32 bits for it.
                    let expiry = value(expiry).expect("a time") as i32;
                    out.times.push(expiry.unsigned_abs().into());
                    out.times.push(value(idle).expect("a time"));
                    let number = self.counted(value(number).expect("a number") as u64);
                    out.text += &format!("ME {key} {number} {fetched}");
                }
                _ => out.text += &line,
            }
            if let Some(length) = data {
                out.text += &format!(" {}", shown(&rest[..length]));
                rest = &rest[length + 2..];
            }
            out.text.push('\n');
        }
        assert!(rest.is_empty(), "half a line: {}", rest.escape_ascii());
        out
    }

    fn ask_binary(&mut self, sent: &[u8]) -> Answer {
        let (mut noop, mut end) = (Vec::new(), vec![0x81, opcode::NOOP]);
        Header::write_request(&mut noop, opcode::NOOP, [0; 3], 0x0eed_f00d, 0);
        end.extend_from_slice(&[0; 10]);
        end.extend_from_slice(&0x0eed_f00d_u32.to_be_bytes());
        end.extend_from_slice(&[0; 8]);
        let answer = self.binary.ask(&[sent, &noop].concat(), &end);
        let mut out = Answer::default();
        let mut rest = answer.as_slice();
        while !rest.is_empty() {
            let word = |at: usize| u32::from_be_bytes(rest[at..at + 4].try_into().expect("four bytes"));
            let (number, body) = ((u64::from(word(16)) << 32) | u64::from(word(20)), word(8) as usize);
            let head = &rest[..8];
            out.text += &format!(
                "{} {:x} {} {}\n",
                head.escape_ascii(),
                word(12),
                self.counted(number),
                shown(&rest[24..24 + body])
            );
            rest = &rest[24 + body..];
        }
        out
    }
}

/// Bytes so that they can be read if they are few, and compared however many.
fn shown(bytes: &[u8]) -> String {
    if bytes.len() < 200 {
        return bytes.escape_ascii().to_string();
    }
    let sum = bytes.iter().fold(0u64, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    format!("{} bytes, sum {sum:x}", bytes.len())
}

/// A number in a request: that of a key, some stores ago.
type Ago = Option<usize>;

/// Requests of one protocol, for each side with its own numbers.
struct Requests {
    bytes: [Vec<u8>; 2],
}

impl Requests {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.iter_mut().for_each(|side| side.extend_from_slice(bytes));
    }
}

impl Requests {
    /// Whether the first of them is one that counts up or down.
    fn counts(&self) -> bool {
        let first = &self.bytes[0];
        let opcodes = [opcode::INCREMENT, opcode::DECREMENT, opcode::INCREMENT_Q, opcode::DECREMENT_Q];
        first.starts_with(b"incr ")
            || first.starts_with(b"decr ")
            || first.starts_with(b"ma ")
            || (first.starts_with(&[REQUEST_MAGIC]) && opcodes.contains(&first[1]))
    }
}

struct Maker {
    random: StdRng,
}

impl Maker {
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        *from.choose(&mut self.random).expect("something to choose from")
    }

    fn chance(&mut self, one_in: u32) -> bool {
        self.random.random_ratio(1, one_in)
    }

    fn key(&mut self) -> &'static str {
        self.pick(&KEYS)
    }

    fn ago(&mut self) -> Ago {
        self.pick(&[Some(0), Some(0), Some(0), Some(1), None])
    }

    fn time(&mut self) -> &'static str {
        self.pick(&["0", "0", "0", "1000", "1000", "100", "-1", "2592001", "2000000000"])
    }

    fn value(&mut self) -> Vec<u8> {
        match self.random.random_range(0..40) {
            0..20 => self.pick(&["0", "7", "99", "100", "18446744073709551615", "5 ", "x", ""]).into(),
            20..34 => {
                let length = self.random.random_range(0..60);
                (0..length).map(|at| b'a' + (at % 26) as u8).collect()
            }
            34..38 => vec![b'v'; self.random.random_range(0..3000)],
            38 => vec![b'w'; self.random.random_range(7900..20_000)],
            _ => vec![b'z'; self.random.random_range(20_000..300_000)],
        }
    }

    /// A line of the classic protocol, with its data.
    fn text(&mut self, sides: &[Side; 2], out: &mut Requests) {
        let (key, noreply) = (self.key(), if self.chance(6) { " noreply" } else { "" });
        match self.random.random_range(0..14) {
            0..4 => {
                let keys: Vec<&str> = (0..self.random.random_range(1..6)).map(|_| self.key()).collect();
                let verb = self.pick(&["get", "gets"]);
                out.push(format!("{verb} {}\r\n", keys.join(" ")).as_bytes());
            }
            4..7 => {
                let verb = self.pick(&["set", "set", "add", "replace", "append", "prepend"]);
                let (flags, time, value) = (self.pick(&[0, 0, 5, u32::MAX]), self.time(), self.value());
                let line = format!("{verb} {key} {flags} {time} {}{noreply}\r\n", value.len());
                out.push(&[line.as_bytes(), &value, b"\r\n"].concat());
            }
            7 => {
                let (ago, value) = (self.ago(), self.value());
                for (side, out) in sides.iter().zip(&mut out.bytes) {
                    let number = side.number(key, ago);
                    let line = format!("cas {key} 3 0 {} {number}{noreply}\r\n", value.len());
                    out.extend_from_slice(&[line.as_bytes(), &value, b"\r\n"].concat());
                }
            }
            8 => out.push(format!("delete {key}{noreply}\r\n").as_bytes()),
            9 | 10 => {
                let verb = self.pick(&["incr", "decr"]);
                let delta = self.pick(&["1", "1", "90", "18446744073709551615"]);
                out.push(format!("{verb} {key} {delta}{noreply}\r\n").as_bytes());
            }
            11 => out.push(format!("touch {key} {}{noreply}\r\n", self.time()).as_bytes()),
            12 => {
                let verb = self.pick(&["gat", "gats"]);
                out.push(format!("{verb} {} {key} {}\r\n", self.time(), self.key()).as_bytes());
            }
            _ => out.push(
                self.pick(&["verbosity 1\r\n", "foo\r\n", "incr a x\r\n", "stats nothing\r\n"]).as_bytes(),
            ),
        }
    }

    /// Some flags, in any order.
    fn flags(&mut self, of: &[&str], most: usize) -> String {
        let count = self.random.random_range(0..=most);
        let mut flags: Vec<String> = Vec::new();
        for _ in 0..count {
            let flag = self.pick(of);
            if flags.iter().any(|there| there[..1] == flag[..1]) {
                continue;
            }
            flags.push(match flag.strip_suffix('#') {
                // Not the times of items: whether two that are the same are so to the second is a matter of chance.
                Some("R") => format!("R{}", self.pick(&["-1", "0", "30", "500", "3000"])),
                Some(letter) => format!("{letter}{}", self.time()),
                None => flag.into(),
            });
        }
        flags.iter().map(|flag| format!(" {flag}")).collect()
    }

    /// A meta command, with its data.
    fn meta(&mut self, sides: &[Side; 2], out: &mut Requests) {
        let key = self.key();
        // With the number of a key or without.
        let ago = if self.chance(3) { Some(self.ago()) } else { None };
        let number = |side: &Side| ago.map_or(String::new(), |ago| format!(" C{}", side.number(key, ago)));
        match self.random.random_range(0..14) {
            0..5 => {
                let flags = self.flags(&["v", "v", "s", "f", "c", "t", "l", "h", "k", "Oabc", "q"], 8);
                out.push(format!("mg {key}{flags}\r\n").as_bytes());
            }
            5..7 => {
                let of =
                    ["v", "s", "f", "c", "t", "l", "h", "k", "u", "Oabc", "q", "N#", "R#", "T#", "N#", "R#"];
                out.push(format!("mg {key}{}\r\n", self.flags(&of, 9)).as_bytes());
            }
            7..10 => {
                let of =
                    ["k", "O1", "q", "c", "I", "T#", "F7", "MS", "MS", "MA", "MP", "ME", "MR", "F4294967295"];
                let (flags, value) = (self.flags(&of, 7), self.value());
                for (side, out) in sides.iter().zip(&mut out.bytes) {
                    let line = format!("ms {key} {}{flags}{}\r\n", value.len(), number(side));
                    out.extend_from_slice(&[line.as_bytes(), &value, b"\r\n"].concat());
                }
            }
            10 | 11 => {
                let flags = self.flags(&["k", "O1", "q", "I", "I", "T#"], 4);
                for (side, out) in sides.iter().zip(&mut out.bytes) {
                    out.extend_from_slice(format!("md {key}{flags}{}\r\n", number(side)).as_bytes());
                }
            }
            12 => {
                let of = ["k", "O1", "q", "v", "t", "c", "N#", "T#", "J13", "D5", "MI", "MD", "M+", "M-"];
                let flags = self.flags(&of, 7);
                // An item that is created 1.6.18 answers although it is asked to be quiet.
                let flags = if flags.contains(" N") { flags.replace(" q", "") } else { flags };
                for (side, out) in sides.iter().zip(&mut out.bytes) {
                    out.extend_from_slice(format!("ma {key}{flags}{}\r\n", number(side)).as_bytes());
                }
            }
            _ => {
                let odd = [
                    "mn\r\n",
                    "mg a v v\r\n",
                    "mg a z\r\n",
                    "mg YQ== b v\r\n",
                    "mg YQ b\r\n",
                    "ms a 1 z\r\nx\r\n",
                ];
                let line = if self.chance(2) { format!("me {key}\r\n") } else { self.pick(&odd).into() };
                out.push(line.as_bytes());
            }
        }
    }

    /// A frame.
    fn binary(&mut self, sides: &[Side; 2], out: &mut Requests) {
        use opcode::*;
        let (key, opaque) = (self.key(), self.random.random());
        let time: i32 = self.time().parse().expect("a time");
        let ago = if self.chance(3) { Some(self.ago()) } else { None };
        let (number, extras, value, with_number) = match self.random.random_range(0..14) {
            0..5 => (self.pick(&[GET, GET_Q, GET_K, GET_KQ]), vec![], vec![], false),
            5..8 => {
                let flags = self.pick(&[0u32, 0, 5, u32::MAX]);
                let number = self.pick(&[SET, SET_Q, ADD, ADD_Q, REPLACE, REPLACE_Q]);
                (number, [flags.to_be_bytes(), time.to_be_bytes()].concat(), self.value(), true)
            }
            8 => (self.pick(&[APPEND, APPEND_Q, PREPEND, PREPEND_Q]), vec![], self.value(), true),
            9 => (self.pick(&[DELETE, DELETE_Q]), vec![], vec![], true),
            10 | 11 => {
                let number = self.pick(&[INCREMENT, INCREMENT_Q, DECREMENT, DECREMENT_Q]);
                let mut extras = self.pick(&[1u64, 90, u64::MAX]).to_be_bytes().to_vec();
                extras.extend_from_slice(&13u64.to_be_bytes());
                extras.extend_from_slice(&self.pick(&[0u32, 1000, u32::MAX]).to_be_bytes());
                (number, extras, vec![], true)
            }
            12 => {
                let number = self.pick(&[TOUCH, GAT, GAT_Q, GAT_K, GAT_KQ]);
                (number, time.to_be_bytes().to_vec(), vec![], false)
            }
            _ => {
                let number = self.pick(&[NOOP, 0x1f, 0x50, 0x20]);
                let mut frame = Vec::new();
                Header::write_request(&mut frame, number, [0; 3], opaque, 0);
                return out.push(&frame);
            }
        };
        for (side, out) in sides.iter().zip(&mut out.bytes) {
            let cas = ago.filter(|_| with_number).map_or(0, |ago| side.number(key, ago));
            Header::write_request(out, number, [extras.len(), key.len(), value.len()], opaque, cas);
            out.extend_from_slice(&extras);
            out.extend_from_slice(key.as_bytes());
            out.extend_from_slice(&value);
        }
    }
}

/// Whether one of the values counts to 2⁶³ or more. 1.6.18 looks for a minus sign in such a value and in what lies
/// behind it in memory, up to a NUL: whether it counts with it is a matter of chance.
fn has_large_number(there: &str) -> bool {
    let last_word = |line: &str| line.strip_prefix("VA")?.rsplit(' ').next()?.parse().ok();
    there.lines().filter_map(last_word).any(|number: u64| number >= 1 << 63)
}

#[test]
fn memcached_looks_for_the_sign_of_a_large_number_behind_its_end() {
    let Some(memcached) = Memcached::start() else { return };
    let server = Server::start(settings().with_threads(1)).expect("it starts");
    // The second value lies where the first one lay, and is shorter.
    let dashes = "-".repeat(30);
    let sent = format!(
        "set a 0 0 30\r\n{dashes}\r\nset a 0 0 30\r\n{dashes}\r\n\
         set a 0 0 20\r\n18446744073709551615\r\nincr a 1\r\n"
    );
    let refused = "CLIENT_ERROR cannot increment or decrement non-numeric value";
    let [theirs, ours] = [memcached.address(), server.addresses()[0]]
        .map(|address| Side::new(address).ask_text(sent.as_bytes()).text);
    assert_eq!(ours.lines().last(), Some("0"));
    let counts = memcached.version > [1, 6, 18];
    assert_eq!(theirs.lines().last(), Some(if counts { "0" } else { refused }));
}

/// How far times may be apart, in seconds: the two servers are asked one after the other, and a machine with much else
/// to do makes the second one wait. What a time tells was set in a round that may have been the longest of all.
struct Apart {
    longest_round: Duration,
}

impl Apart {
    /// The answers of both sides to the same question.
    fn ask(&mut self, mut ask: impl FnMut(usize) -> Answer) -> [Answer; 2] {
        let begun = Instant::now();
        let answers = [0, 1].map(&mut ask);
        self.longest_round = self.longest_round.max(begun.elapsed());
        answers
    }

    fn most(&self) -> u64 {
        5 + 2 * self.longest_round.as_secs()
    }
}

fn compare(what: &str, there: &str, sent: &Requests, answers: &[Answer; 2], apart: &Apart) {
    let [theirs, ours] = answers;
    // Without the middle of long values.
    let shown = || {
        let (mut out, mut run) = (Vec::new(), 0);
        for pair in sent.bytes[1].windows(2) {
            run = if pair[0] == pair[1] { run + 1 } else { 0 };
            if run < 5 {
                out.push(pair[0]);
            }
        }
        out.escape_ascii().to_string()
    };
    assert_eq!(
        ours.text,
        theirs.text,
        "{what}: ours and memcached's to {} where there was\n{there}",
        shown()
    );
    for (ours, theirs) in ours.times.iter().zip(&theirs.times) {
        let is_close = ours.abs_diff(*theirs) <= apart.most();
        assert!(is_close, "{what}: {ours} and not {theirs} seconds after {}", shown());
    }
}

/// What is counted, which both are to count alike.
const COUNTED: [&str; 17] = [
    "cmd_get",
    "cmd_set",
    "cmd_touch",
    "cmd_meta",
    "get_hits",
    "get_misses",
    "delete_hits",
    "delete_misses",
    "incr_hits",
    "incr_misses",
    "decr_hits",
    "decr_misses",
    "cas_hits",
    "cas_misses",
    "cas_badval",
    "touch_hits",
    "touch_misses",
];

fn counted(side: &mut Side) -> Vec<(String, String)> {
    let answer = side.text.ask(&[b"stats\r\n", END_ASKED].concat(), END);
    let answer = String::from_utf8(answer).expect("statistics are text");
    let stats: HashMap<&str, &str> =
        answer.lines().filter_map(|line| line.strip_prefix("STAT ")?.split_once(' ')).collect();
    COUNTED.iter().map(|&name| (name.to_owned(), stats[name].to_owned())).collect()
}

#[test]
fn random_operations_over_all_three_protocols() {
    let Some(memcached) = Memcached::start() else { return };
    let server = Server::start(settings().with_threads(1)).expect("it starts");
    let mut sides = [memcached.address(), server.addresses()[0]].map(Side::new);
    // After these, no item has one of the small numbers that are tried, and the counters begin anew.
    let warm_up = [b"set a 0 0 0 noreply\r\n\r\n".repeat(20_000).as_slice(), b"stats reset\r\n"].concat();
    for side in &mut sides {
        assert_eq!(side.ask_text(&warm_up).text, "RESET\n");
    }
    let operations = env::var("LOOKASIDE_OPERATIONS").map_or(50_000, |text| text.parse().expect("a number"));
    let mut maker = Maker { random: StdRng::seed_from_u64(1645) };
    let mut apart = Apart { longest_round: Duration::ZERO };
    let looks =
        [format!("gets {}\r\n", KEYS.join(" ")), KEYS.map(|key| format!("mg {key} u h v\r\n")).concat()];
    let (mut done, mut there) = (0, String::new());
    while done < operations {
        let mut sent = Requests { bytes: [Vec::new(), Vec::new()] };
        let protocol = maker.pick(&["text", "meta", "binary"]);
        let count = maker.pick(&[1, 1, 2, 3, 5, 40]);
        let mut left = count;
        while left > 0 {
            let mut next = Requests { bytes: [Vec::new(), Vec::new()] };
            match protocol {
                "text" => maker.text(&sides, &mut next),
                "meta" => maker.meta(&sides, &mut next),
                _ => maker.binary(&sides, &mut next),
            }
            // memcached writes over an old number only where no reply holds its item any more: behind other requests,
            // that is a matter of chance.
            let is_by_chance = count > 1 || has_large_number(&there);
            if !(is_by_chance && next.counts()) {
                (0..2).for_each(|side| sent.bytes[side].extend_from_slice(&next.bytes[side]));
                left -= 1;
            }
        }
        let answers = apart.ask(|number| match protocol {
            "binary" => sides[number].ask_binary(&sent.bytes[number]),
            _ => sides[number].ask_text(&sent.bytes[number]),
        });
        compare(protocol, &there, &sent, &answers, &apart);
        let look = &looks[usize::from(maker.chance(2))];
        let seen = apart.ask(|number| sides[number].ask_text(look.as_bytes()));
        compare("what is there after", &there, &sent, &seen, &apart);
        [there, _] = seen.map(|answer| answer.text);
        done += count;
    }
    let [theirs, ours] = sides.each_mut().map(counted);
    assert_eq!(ours, theirs);
}
