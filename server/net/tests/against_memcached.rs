//! The same bytes to the installed memcached and to this server, over sockets.
//!
//! The list of what is different on purpose is the protocol's, `differences`: what a sequence does that stands there is
//! left out of it. Numbers to compare and swap by are each server's own; they are compared after the first one seen has
//! become 1, the second one 2 and so on, on each side, so that it shows when one server takes a new number and the
//! other does not.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::client::{Client, settings, shorten, switched_off, wait_until};
use crate::differences::{
    Difference, META_DIFFERENCES, STATISTICS, Seen, Shows, difference, is_incomparable,
};
use crate::memcached_model::{self, Model};
use crate::peer::{self, End, Memcached};
use crate::{conversations, random};
use lookaside_server::Server;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use protocol::meta::MetaRequest;
use protocol::response::{self, Parsed, Response};
use protocol::{Connection, Line, Request, parse, reply, split_line};

/// The two servers, a connection to each, and the numbers that each has told.
struct Pair {
    memcached: Memcached,
    server: Server,
    sides: [Side; 2],
    /// What takes away all that the last sequence may have stored.
    cleaning: Vec<u8>,
}

struct Side {
    conversation: peer::Conversation,
    /// The numbers to compare and swap by, in the order in which they were told.
    numbers: HashMap<u64, usize>,
    /// The number that each key was last seen with.
    last: HashMap<Vec<u8>, u64>,
}

impl Side {
    fn new(conversation: peer::Conversation) -> Side {
        Side { conversation, numbers: HashMap::new(), last: HashMap::new() }
    }

    /// The answer in a form that can be compared.
    fn ask(&mut self, sent: &[u8]) -> (String, End) {
        let (answer, end) = self.conversation.ask(sent);
        (self.comparable(&answer), end)
    }

    /// A reply with its numbers counted, with the same version, and without the statistics.
    fn comparable(&mut self, answer: &[u8]) -> String {
        let mut out = Vec::new();
        let mut rest = answer;
        while !rest.is_empty() {
            if let Some(after) = self.comparable_meta(rest, &mut out) {
                rest = after;
                continue;
            }
            let Ok(Parsed::Complete { response, consumed }) = response::parse(rest) else {
                out.extend_from_slice(rest);
                break;
            };
            match response {
                Response::Value { key, flags, cas, data } => {
                    let counted = cas.map(|number| {
                        self.last.insert(key.to_vec(), number);
                        let next = self.numbers.len() + 1;
                        *self.numbers.entry(number).or_insert(next) as u64
                    });
                    reply::value_header(&mut out, key, flags, data.len(), counted);
                    out.extend_from_slice(data);
                    out.extend_from_slice(reply::CRLF);
                }
                Response::Version(_) => reply::version(&mut out, "1"),
                Response::Stat { .. } => {}
                _ => out.extend_from_slice(&rest[..consumed]),
            }
            rest = &rest[consumed..];
        }
        shown(&out)
    }
}

impl Side {
    /// The same for the reply to a meta command, if there is one at the start; what follows it.
    fn comparable_meta<'a>(&mut self, rest: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
        let end = rest.iter().position(|byte| *byte == b'\n')? + 1;
        let (line, mut after) = rest.split_at(end);
        let line = line.strip_suffix(b"\r\n")?;
        let mut words = line.split(|byte| *byte == b' ');
        let code = words.next()?;
        let digits = |word: &[u8]| std::str::from_utf8(word).ok()?.parse::<u64>().ok();
        out.extend_from_slice(match code {
            b"VA" | b"HD" | b"EN" | b"NF" | b"NS" | b"EX" => code,
            _ => return None,
        });
        if code == b"VA" {
            let length = digits(words.next()?)? as usize;
            out.extend_from_slice(format!(" {length} ").as_bytes());
            out.extend_from_slice(after.get(..length)?);
            after = after.get(length + 2..)?;
        }
        for word in words {
            match word.strip_prefix(b"c").and_then(digits) {
                None | Some(0) => out.extend_from_slice(&[b" ", word].concat()),
                Some(number) => {
                    let next = self.numbers.len() + 1;
                    let counted = *self.numbers.entry(number).or_insert(next);
                    out.extend_from_slice(format!(" c{counted}").as_bytes());
                }
            }
        }
        out.extend_from_slice(b"\r\n");
        Some(after)
    }
}

/// Bytes so that they can be read if they are few, and compared however many.
fn shown(bytes: &[u8]) -> String {
    if bytes.len() < 3000 {
        return bytes.escape_ascii().to_string();
    }
    let sum = bytes.iter().fold(0u64, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    format!("{} sum {sum:x}", shorten(bytes))
}

/// Whether it begins as the requests of the binary protocol do, which end a connection to ours wherever they stand, and
/// to memcached nowhere.
fn is_binary(line: &[u8]) -> bool {
    line.starts_with(b"\x80")
}

/// What a server makes of bytes: the lines that it takes for requests, and whether it closes the connection.
fn requests(mut bytes: &[u8]) -> (Vec<&[u8]>, End) {
    let mut lines = Vec::new();
    loop {
        let line = match split_line(bytes) {
            Line::Complete(line) => line,
            Line::TooLong => return (lines, End::Dropped),
            Line::Incomplete | Line::LongGet => return (lines, End::Open),
        };
        lines.push(line);
        match parse(line) {
            Ok(Request::Quit) => return (lines, End::Closed),
            Err(refusal) if refusal.connection == Connection::Close => return (lines, End::Dropped),
            _ => {}
        }
        bytes = bytes.get(line.len() + random::data_of(line)..).unwrap_or_default();
    }
}

impl Pair {
    fn start() -> Option<Pair> {
        let memcached = Memcached::start()?;
        let server = Server::start(switched_off(settings().with_threads(1))).expect("it starts");
        let sides = [memcached.connect(), peer::Conversation::with(server.addresses()[0])].map(Side::new);
        let mut pair = Pair { memcached, server, sides, cleaning: Vec::new() };
        // After these, no item has one of the small numbers that the tests try.
        let warm_up = b"set a 0 0 0 noreply\r\n\r\n".repeat(20_000);
        for side in &mut pair.sides {
            assert_eq!(side.ask(&warm_up), (String::new(), End::Open));
        }
        Some(pair)
    }

    fn reconnect(&mut self) {
        self.sides[0].conversation = self.memcached.connect();
        self.sides[1].conversation = peer::Conversation::with(self.server.addresses()[0]);
    }

    /// Empties both.
    fn reset(&mut self) {
        // A flush_all ends one that is still to come. It can miss an item stored in the same second, though.
        let sent = [std::mem::take(&mut self.cleaning).as_slice(), b"flush_all\r\n"].concat();
        for side in &mut self.sides {
            let (answer, end) = side.ask(&sent);
            // What is not there `md` cannot delete in silence.
            assert_eq!((answer.replace("NF\\r\\n", "").as_str(), end), ("OK\\r\\n", End::Open));
            side.numbers.clear();
            side.last.clear();
        }
    }

    /// What both answer to these bytes, memcached first.
    fn answers(&mut self, sent: &[u8]) -> [(String, End); 2] {
        self.answers_to_each([sent, sent])
    }

    /// The same where the bytes have numbers in them.
    fn answers_to_each(&mut self, sent: [&[u8]; 2]) -> [(String, End); 2] {
        let (lines, end) = requests(sent[1]);
        for line in lines {
            match parse(line) {
                Ok(Request::Store(store)) => {
                    Request::Delete { key: store.key, noreply: true }.write(&mut self.cleaning);
                }
                Ok(Request::Meta(request)) => {
                    let (key, is_base64) = match request {
                        MetaRequest::Get(request) => (request.key, request.key.is_base64()),
                        MetaRequest::Set(request) => (request.key, request.key.is_base64()),
                        MetaRequest::Arithmetic(request) => (request.key, request.key.is_base64()),
                        _ => continue,
                    };
                    let Some(key) = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).nth(1)
                    else {
                        panic!("{key:?} stands in {}", line.escape_ascii())
                    };
                    let key = key.strip_suffix(b"\n").unwrap_or(key);
                    let key = key.strip_suffix(b"\r").unwrap_or(key);
                    let end = if is_base64 { b" b q\r\n".as_slice() } else { b" q\r\n" };
                    self.cleaning.extend_from_slice(&[b"md ", key, end].concat());
                }
                _ => {}
            }
        }
        let mut both = [0, 1].map(|number| self.sides[number].ask(sent[number]));
        if both.iter().any(|(_, end)| *end != End::Open) {
            self.reconnect();
        }
        let [(theirs, their_end), (ours, our_end)] = &both;
        if end == End::Dropped
            && (their_end, our_end) == (&End::Closed, &End::Closed)
            && ours.starts_with(theirs)
        {
            // Replies that wait at that moment memcached does not send; how many do is a matter of chance.
            both[0] = both[1].clone();
        }
        both
    }

    /// Why a sequence that goes on with these bytes cannot be compared.
    fn obstacle(&self, foresight: &Model, bytes: &[u8]) -> Option<&'static str> {
        requests(bytes).0.into_iter().find_map(|line| match parse(line) {
            _ if is_binary(line) => Some("what is binary"),
            Ok(Request::CacheMemlimit { .. }) => Some("how much memory there is"),
            Ok(request) if foresight.is_about_now(&request) => Some("what the time is"),
            _ if random::data_of(line) > 3_000_000 => Some("a very large value"),
            _ if is_incomparable(line) => Some("when an item was used, and how it lies"),
            _ => difference(self.memcached.version, line).map(|difference| difference.reason),
        })
    }
}

#[test]
fn the_conversations() {
    let Some(mut pair) = Pair::start() else { return };
    let mut compared = 0;
    for conversation in conversations::all() {
        let lines_of = |sent: &[u8]| requests(sent).0.into_iter().map(<[u8]>::to_vec).collect::<Vec<_>>();
        let concerned = conversation.exchanges.iter().any(|(sent, _)| {
            lines_of(sent)
                .iter()
                .any(|line| is_binary(line) || difference(pair.memcached.version, line).is_some())
        });
        // The question that ends an answer would become a part of an unfinished line.
        let unfinished = conversation.exchanges.iter().any(|(sent, _)| !sent.ends_with(b"\n"));
        if concerned || unfinished || conversation.is_timed() {
            continue;
        }
        compared += 1;
        pair.reset();
        for (sent, _) in &conversation.exchanges {
            let each = [0, 1].map(|number| pair.with_numbers(number, sent));
            let [theirs, ours] = pair.answers_to_each([&each[0], &each[1]]);
            assert_eq!(ours, theirs, "{}", shorten(sent));
            assert_eq!(
                ours.1 == End::Open,
                conversation.end == conversations::End::Open,
                "{}",
                shorten(sent)
            );
        }
    }
    assert!(compared > 200, "only {compared} conversations could be compared");
}

#[test]
fn the_differences_of_meta_commands_are_still_there() {
    let Some(mut pair) = Pair::start() else { return };
    for Difference { reason, who, applies, example, theirs: expected } in META_DIFFERENCES {
        let sent = crate::lines::write_out(example);
        let shows = sent.split_inclusive(|byte| *byte == b'\n').any(|line| applies(&Seen::new(line)));
        assert!(shows, "the example does not show: {reason}");
        if !who.is(pair.memcached.version) {
            continue;
        }
        pair.reset();
        let [theirs, ours] = pair.answers(&sent);
        let expected = expected.as_bytes().escape_ascii().to_string();
        assert!(theirs.0.starts_with(&expected), "{theirs:?}, not {expected:?}: {reason}");
        assert_ne!(ours, theirs, "there is no difference: {reason}");
    }
}

impl Pair {
    /// Puts the numbers that one side has told into the places of `$1` and so on.
    fn with_numbers(&self, side: usize, sent: &[u8]) -> Vec<u8> {
        let Ok(text) = std::str::from_utf8(sent) else { return sent.to_vec() };
        let mut text = text.to_owned();
        if text.len() < 1000 {
            for (number, count) in &self.sides[side].numbers {
                text = text.replace(&format!("${count}"), &number.to_string());
            }
        }
        text.into_bytes()
    }
}

/// A part of a random sequence.
#[derive(Debug, Clone)]
enum Part {
    /// A line, right or wrong, and, if it is one that data follows, data.
    Line(Vec<u8>),
    Store {
        verb: &'static str,
        key: &'static str,
        flags: u32,
        time: &'static str,
        data: Data,
        noreply: bool,
    },
    /// A `cas` with the number that the key was last seen with.
    Cas {
        key: &'static str,
        data: Data,
    },
    /// A block that is not as long as its line says.
    Misfit {
        announced: usize,
        data: Data,
        noreply: bool,
    },
    Rubbish(Vec<u8>),
    /// Everything that may be there.
    Look,
}

#[derive(Debug, Clone)]
enum Data {
    Bytes(Vec<u8>),
    Length(usize),
}

impl Data {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Data::Bytes(bytes) => bytes.clone(),
            Data::Length(length) => (0..*length).map(|at| (at * 3 + at / 255) as u8).collect(),
        }
    }
}

fn part() -> impl Strategy<Value = Part> {
    let key = || select(vec!["a", "b", "c"]);
    let numbers: Vec<Vec<u8>> =
        ["0", "7", "99", "9223372036854775806", " 12", "5 ", "5 x", "-3", "x", ""].map(Vec::from).to_vec();
    let data = || {
        prop_oneof![
            6 => select(numbers.clone()).prop_map(Data::Bytes),
            3 => vec(any::<u8>(), 0..40).prop_map(Data::Bytes),
            2 => (0usize..3000).prop_map(Data::Length),
            1 => (7_900usize..8_300).prop_map(Data::Length),
            1 => (16_200usize..16_500).prop_map(Data::Length),
            1 => (30_000usize..200_000).prop_map(Data::Length),
        ]
    };
    let verb = select(vec!["set", "set", "set", "add", "replace", "append", "prepend"]);
    let flags = prop_oneof![2 => Just(0), 1 => any::<u32>()];
    let time = select(vec!["0", "0", "0", "1000", "-1", "2592000", "2592001", "2000000000"]);
    let noreply = || prop::bool::weighted(0.2);
    prop_oneof![
        12 => random::line().prop_map(Part::Line),
        6 => (verb, key(), flags, time, data(), noreply()).prop_map(
            |(verb, key, flags, time, data, noreply)| Part::Store { verb, key, flags, time, data, noreply }
        ),
        3 => (key(), data()).prop_map(|(key, data)| Part::Cas { key, data }),
        2 => (0usize..40, data(), noreply())
            .prop_map(|(announced, data, noreply)| Part::Misfit { announced, data, noreply }),
        1 => random::rubbish().prop_map(|mut bytes| {
            bytes.extend_from_slice(b"\r\n");
            Part::Rubbish(bytes)
        }),
        4 => Just(Part::Look),
    ]
}

impl Part {
    /// What is to be sent to a side.
    fn bytes(&self, side: &Side) -> Vec<u8> {
        match self {
            Part::Line(line) => {
                let block = random::data_of(line);
                let data = (2..block.min(4_000_000)).map(|at| b'0' + (at % 10) as u8);
                let ending: &[u8] = if block > 0 { b"\r\n" } else { b"" };
                line.iter().copied().chain(data).chain(ending.iter().copied()).collect()
            }
            Part::Store { verb, key, flags, time, data, noreply } => {
                let (data, noreply) = (data.bytes(), if *noreply { " noreply" } else { "" });
                let line = format!("{verb} {key} {flags} {time} {}{noreply}\r\n", data.len());
                [line.as_bytes(), &data, b"\r\n"].concat()
            }
            Part::Cas { key, data } => {
                let (data, number) = (data.bytes(), side.last.get(key.as_bytes()).unwrap_or(&1));
                let line = format!("cas {key} 3 0 {} {number}\r\n", data.len());
                [line.as_bytes(), &data, b"\r\n"].concat()
            }
            Part::Misfit { announced, data, noreply } => {
                let noreply = if *noreply { " noreply" } else { "" };
                let line = format!("set a 0 0 {announced}{noreply}\r\n");
                // Enough line ends for whatever becomes of it.
                let rest = vec![b'\n'; *announced + 2];
                [line.as_bytes(), &data.bytes(), b"\r\n", &rest].concat()
            }
            Part::Rubbish(bytes) => bytes.clone(),
            Part::Look => b"gets a b c\r\n".to_vec(),
        }
    }
}

#[test]
fn random_sequences() {
    let Some(pair) = Pair::start() else { return };
    // memcached counts its time from a minute and two seconds before its start.
    let foresight = Model::new(memcached_model::now() - 62);
    let config = ProptestConfig {
        cases: outside::cases(3000),
        max_shrink_iters: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[46; 32]));
    let mut left_out: BTreeMap<&str, u32> = BTreeMap::new();
    let mut compared = 0;
    let state = std::cell::RefCell::new((pair, &mut left_out, &mut compared));
    runner
        .run(&vec(part(), 1..12), |mut parts| {
            let (pair, left_out, compared) = &mut *state.borrow_mut();
            pair.reset();
            parts.push(Part::Look);
            // Parts go together until one is to go by the answer to those before it.
            let mut together = [Vec::new(), Vec::new()];
            let mut transcript = String::new();
            for part in &parts {
                if matches!(part, Part::Cas { .. } | Part::Look) {
                    let [theirs, ours] = pair.answers_to_each([&together[0], &together[1]]);
                    transcript += &format!("{}\n", shorten(&together[1]));
                    prop_assert_eq!(&ours, &theirs, "{}", transcript);
                    together = [Vec::new(), Vec::new()];
                }
                if requests(&together[1]).1 != End::Open {
                    break;
                }
                let bytes = [0, 1].map(|number| part.bytes(&pair.sides[number]));
                let all = [together[1].as_slice(), &bytes[1]].concat();
                if let Some(reason) = pair.obstacle(&foresight, &all) {
                    *left_out.entry(reason).or_default() += 1;
                    continue;
                }
                **compared += 1;
                for (together, bytes) in together.iter_mut().zip(&bytes) {
                    together.extend_from_slice(bytes);
                }
            }
            let [theirs, ours] = pair.answers_to_each([&together[0], &together[1]]);
            transcript += &format!("{}\n", shorten(&together[1]));
            prop_assert_eq!(&ours, &theirs, "{}", transcript);
            Ok(())
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
    // All that they were asked, and have counted since they were last told to begin anew.
    state.into_inner().0.compare_counts();
    let expected = outside::cases(10_000);
    assert!(compared > expected, "{compared} parts were compared; left out: {left_out:#?}");
}

/// Sizes at which an item becomes too large, alone and by being extended, with all that counts.
#[test]
fn the_largest_items() {
    let Some(mut pair) = Pair::start() else { return };
    let largest: usize = (1 << 20) - 60;
    for (key, flags) in [("a", 0u32), ("a", 7), ("a-longer-key", 0), ("another-key-and-flags", 1 << 31)] {
        for size in (largest - 45)..(largest + 3) {
            if size % 5 != 0 && size.abs_diff(largest) > 6 && size.abs_diff(largest - key.len() - 3) > 6 {
                continue;
            }
            pair.reset();
            let sent = format!("set {key} {flags} 0 {size}\r\n{}\r\nget {key}\r\n", "x".repeat(size));
            let [theirs, ours] = pair.answers(sent.as_bytes());
            assert_eq!(ours, theirs, "{key} {flags}, {size} bytes");
            let half = size / 2;
            let sent = format!(
                "set {key} {flags} 0 {half}\r\n{}\r\nappend {key} 0 0 {}\r\n{}\r\nget {key}\r\n",
                "x".repeat(half),
                size - half,
                "y".repeat(size - half),
            );
            let [theirs, ours] = pair.answers(sent.as_bytes());
            assert_eq!(ours, theirs, "{key} {flags}, {half} bytes extended to {size}");
        }
    }
    pair.compare_counts();
}

/// Names, their order, and the numbers that both count.
#[test]
fn statistics() {
    let Some(mut pair) = Pair::start() else { return };
    let large = "x".repeat(100_000);
    let too_large = "x".repeat(2_000_000);
    let script = format!(
        "stats reset\r\nset a 0 0 1\r\n1\r\nset b 3 0 1\r\nx\r\nadd a 0 0 1\r\nx\r\nreplace c 0 0 1\r\nx\r\n\
         append b 0 0 1\r\ny\r\nprepend c 0 0 1\r\nx\r\nset big 0 0 100000\r\n{large}\r\n\
         set big 0 0 2000000\r\n{too_large}\r\nadd big 0 0 2000000 noreply\r\n{too_large}\r\nset c 0 0 1\r\nxyz\
         cas a 0 0 1 1\r\nx\r\ncas c 0 0 1 1\r\nx\r\nget a b c\r\ngets a\r\nget c c\r\ngat 0 a b c\r\ngats 0 c\r\n\
         touch a 0\r\ntouch c 0\r\nincr a 1\r\nincr a 1\r\nincr c 1\r\nincr b 1\r\ndecr a 1\r\ndecr c 1\r\n\
         decr c 1 noreply\r\ndelete a\r\ndelete c\r\ndelete a noreply\r\nset a 0 0 1\r\nx\r\nflush_all 0\r\n\
         flush_all\r\nflush_all noreply\r\nget a\r\nset a 0 -1 1\r\nx\r\nget a\r\nset b 0 0 1\r\nx\r\n\
         verbosity 1\r\nget b\r\nfoo\r\n"
    );
    pair.sides[1].conversation = peer::Conversation::with(pair.server.addresses()[0]);
    for line in requests(script.as_bytes()).0 {
        assert!(difference(pair.memcached.version, line).is_none(), "{}", line.escape_ascii());
    }
    let [theirs, ours] = pair.answers(script.as_bytes());
    assert_eq!(ours, theirs);

    let mut clients = [pair.memcached.address(), pair.server.addresses()[0]]
        .map(|address| Client::connect(&address.into()));
    for topic in ["", "settings", "items", "slabs"] {
        let [theirs, ours] = [0, 1].map(|side: usize| {
            let lines = clients[side].stat_lines(topic);
            let mut names: Vec<String> = Vec::new();
            for (name, _) in lines {
                let name = without_class(&name).to_owned();
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            names
        });
        for who in [Shows::Memcached, Shows::Lookaside] {
            let (has, lacks) = if who == Shows::Memcached { (&theirs, &ours) } else { (&ours, &theirs) };
            let unshared: BTreeSet<&str> =
                has.iter().filter(|name| !lacks.contains(name)).map(String::as_str).collect();
            let listed: BTreeSet<&str> = STATISTICS
                .iter()
                .filter(|unshared| unshared.topic == topic && unshared.who == who)
                .flat_map(|unshared| unshared.names.iter().copied())
                .collect();
            if pair.memcached.version == [1, 6, 18] {
                assert_eq!(unshared, listed, "stats {topic}: only {who:?} shows");
            } else if who == Shows::Memcached {
                let unlisted: Vec<_> = unshared.difference(&listed).collect();
                assert!(unlisted.is_empty(), "stats {topic}: only memcached shows {unlisted:?}");
            }
        }
        let shared = |names: &[String], others: &[String]| {
            names.iter().filter(|name| others.contains(name)).cloned().collect::<Vec<_>>()
        };
        assert_eq!(shared(&ours, &theirs), shared(&theirs, &ours), "the order in stats {topic}");
    }

    pair.compare_counts();

    // Each socket has the same lines, and does the same.
    let mut sockets = || {
        clients.each_mut().map(|client| {
            let mut sockets: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for (name, value) in client.stat_lines("conns") {
                let (number, name) = name.split_once(':').expect("a descriptor");
                let shown = if name == "state" { format!("{name} {value}") } else { name.to_owned() };
                sockets.entry(number.to_owned()).or_default().push(shown);
            }
            let mut sockets: Vec<_> = sockets.into_values().collect();
            sockets.sort();
            sockets
        })
    };
    // Those who have gone are closed a moment later.
    wait_until("as many sockets are open", || {
        let [theirs, ours] = sockets();
        theirs.len() == ours.len()
    });
    let [theirs, ours] = sockets();
    assert_eq!(ours, theirs, "stats conns");

    // A reset takes away the same: when all that was flushed has gone, or some of it would be counted after the reset.
    wait_until("nothing is left but b", || clients[1].stat("curr_items") == 1);
    let topics = ["", "items", "slabs"];
    let before = topics.map(|topic| clients.each_mut().map(|client| sums(client, topic)));
    clients.iter_mut().for_each(|client| client.ask(b"stats reset\r\n", b"RESET\r\n"));
    for (topic, before) in topics.into_iter().zip(before) {
        let after = clients.each_mut().map(|client| sums(client, topic));
        let is_gone = |side: usize, name: &String| before[side][name] > 0 && after[side][name] == 0;
        for name in before[0].keys().filter(|name| before[1].contains_key(*name)) {
            assert!(!is_gone(0, name) || after[1][name] == 0, "stats {topic}: {name} is left");
            assert!(!is_gone(1, name) || after[0][name] == 0, "stats {topic}: {name} is gone");
        }
    }
}

/// The numbers of a topic, those of all classes together.
fn sums(client: &mut Client, topic: &str) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for (name, value) in client.stat_lines(topic) {
        if let Ok(value) = value.parse::<u64>() {
            *sums.entry(without_class(&name).to_owned()).or_default() += value;
        }
    }
    sums
}

/// What both count, and count in the same way. (`cmd_flush` is not among it: memcached counts those with a bad time
/// too.)
const COUNTS: &[&str] = &[
    "cmd_get",
    "cmd_set",
    "cmd_touch",
    "cmd_meta",
    "get_hits",
    "get_misses",
    "delete_misses",
    "delete_hits",
    "incr_misses",
    "incr_hits",
    "decr_misses",
    "decr_hits",
    "cas_misses",
    "cas_hits",
    "cas_badval",
    "touch_hits",
    "touch_misses",
    "store_too_large",
    "store_no_memory",
    "limit_maxbytes",
    "evictions",
    "max_connections",
    "pointer_size",
    "rejected_connections",
    "accepting_conns",
];

impl Pair {
    fn compare_counts(&self) {
        let addresses = [self.memcached.address(), self.server.addresses()[0]];
        let [theirs, ours] = addresses.map(|address| Client::connect(&address.into()).stats(""));
        for name in COUNTS {
            assert_eq!(ours[*name], theirs[*name], "{name}");
        }
    }
}

/// A statistic's name without the slab class it is about.
fn without_class(name: &str) -> &str {
    let rest = name.strip_prefix("items:").unwrap_or(name);
    match rest.split_once(':') {
        Some((class, rest)) if class.parse::<u32>().is_ok() => rest,
        _ => name,
    }
}
