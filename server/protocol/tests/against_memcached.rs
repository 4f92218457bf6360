//! The same lines to the installed memcached and to this crate, with a map behind it.
//!
//! Where the two answer differently on purpose stands in `differences`, each with its reason and with an example that
//! is itself put to memcached, so that the list cannot outlive what it lists.

use crate::differences::{DIFFERENCES, Difference, FOLLOWED, Seen, Who, difference};
use crate::lines::{self, data_of};
use crate::model::{self, Model};
use crate::peer::{Conversation, End, Memcached};
use crate::table;
use lookaside_protocol::response::{self, Parsed, Response};
use lookaside_protocol::{
    Connection, Expiry, Flush, KeyStream, Line, Request, StreamState, expiry, flush, parse, reply, split_line,
};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Whether it is a meta command: a map knows nothing of these. They are compared where there is a server.
fn is_meta(line: &[u8]) -> bool {
    Seen::new(line).is_meta()
}

/// What is to be sent for a line: the line, and the data block that belongs to it.
fn with_data(line: &[u8]) -> Vec<u8> {
    let mut sent = line.to_vec();
    let block = data_of(line);
    if block > 0 {
        sent.extend((2..block).map(|at| b'0' + (at % 10) as u8));
        sent.extend_from_slice(b"\r\n");
    }
    sent
}

/// What this crate and the model behind it make of bytes that have been received.
fn our_answer(model: &mut Model, received: &[u8]) -> (Vec<u8>, End) {
    let mut out = Vec::new();
    let mut rest = received;
    while let Line::Complete(line) = split_line(rest) {
        rest = &rest[line.len()..];
        match parse(line) {
            Ok(Request::Quit) => return (out, End::Closed),
            Ok(request) => {
                let length = if let Request::Store(store) = &request { store.length } else { 0 };
                out.extend_from_slice(&model.answer(&request, &rest[..length]));
                if let Request::Store(_) = request {
                    rest = &rest[length + 2..];
                }
            }
            Err(refusal) => {
                out.extend_from_slice(refusal.reply.map_or(b"".as_slice(), |reply| reply.bytes()));
                rest = &rest[refusal.swallow..];
                if refusal.connection == Connection::Close {
                    return (out, End::Dropped);
                }
            }
        }
    }
    assert!(rest.is_empty(), "an unfinished line in a test");
    (out, End::Open)
}

/// A reply with its CAS ids set to 0, its version to ours, and its statistics left out.
fn comparable(answer: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = answer;
    while !rest.is_empty() {
        match response::parse(rest) {
            Ok(Parsed::Complete { response, consumed }) => {
                match response {
                    Response::Value { key, flags, cas, data } => {
                        reply::value_header(&mut out, key, flags, data.len(), cas.map(|_| 0));
                        out.extend_from_slice(data);
                        out.extend_from_slice(reply::CRLF);
                    }
                    Response::Version(_) => reply::version(&mut out, "1.6.45"),
                    Response::Stat { .. } => {}
                    _ => out.extend_from_slice(&rest[..consumed]),
                }
                rest = &rest[consumed..];
            }
            Ok(Parsed::Incomplete { .. }) | Err(_) => {
                out.extend_from_slice(rest);
                break;
            }
        }
    }
    out
}

/// A memcached, a connection to it, and what should be in it.
struct Pair {
    memcached: Memcached,
    conversation: Conversation,
    started: u64,
    /// Deletes what the last lines may have stored.
    cleaning: Vec<u8>,
}

impl Pair {
    fn start() -> Option<Pair> {
        let memcached = Memcached::start()?;
        let mut conversation = memcached.connect();
        // Every store takes a CAS id: after these, no item has one of the small ids that the tests try.
        for _ in 0..200 {
            conversation.ask(b"set a 0 0 0 noreply\r\n\r\n");
        }
        // memcached counts its time from a minute and two seconds before its start.
        Some(Pair { memcached, conversation, started: model::now() - 62, cleaning: Vec::new() })
    }

    /// Both answers to the same bytes, from an empty cache, in a form that can be compared.
    fn answers(&mut self, sent: &[u8]) -> [(String, End); 2] {
        // A flush_all ends one that is still to come. It can miss an item stored in the same second, though.
        let reset = [self.cleaning.as_slice(), b"flush_all\r\n"].concat();
        let (flushed, end) = self.conversation.ask(&reset);
        if end == End::Closed {
            self.conversation = self.memcached.connect();
            return self.answers(sent);
        }
        assert_eq!(flushed, reply::OK);
        self.cleaning.clear();
        for line in sent.split_inclusive(|byte| *byte == b'\n') {
            if let Ok(Request::Store(store)) = parse(line) {
                Request::Delete { key: store.key, noreply: true }.write(&mut self.cleaning);
            }
        }
        let (theirs, their_end) = self.conversation.ask(sent);
        let (ours, our_end) = our_answer(&mut Model::new(self.started), sent);
        let shown = |answer: &[u8]| comparable(answer).escape_ascii().to_string();
        let (ours, theirs) = (shown(&ours), shown(&theirs));
        if our_end == End::Dropped && their_end == End::Closed && ours.starts_with(&theirs) {
            // Replies that wait at that moment are not sent; how many do is a matter of chance.
            return [(String::new(), End::Dropped), (String::new(), End::Dropped)];
        }
        [(ours, our_end), (theirs, their_end)]
    }
}

#[test]
fn the_table() {
    let Some(mut pair) = Pair::start() else { return };
    let mut compared = 0;
    for (line, _) in table::table() {
        if is_meta(&line) || difference(pair.memcached.version, &line).is_some() {
            continue;
        }
        compared += 1;
        let [ours, theirs] = pair.answers(&with_data(&line));
        assert_eq!(ours, theirs, "{}", line.escape_ascii());
        // And what the line has left behind, if it has stored anything.
        if let Ok(Request::Store(store)) = parse(&line) {
            let again = [with_data(&line), b"gets ".to_vec(), store.key.to_vec(), b"\r\n".to_vec()].concat();
            let [ours, theirs] = pair.answers(&again);
            assert_eq!(ours, theirs, "{}", again.escape_ascii());
        }
    }
    assert!(compared > 120, "only {compared} lines of the table could be compared");
}

#[test]
fn the_differences_are_still_there() {
    let Some(mut pair) = Pair::start() else { return };
    for Difference { reason, who, applies, example, theirs: expected } in DIFFERENCES {
        let sent = table::write_out(example);
        let line = sent.split_inclusive(|byte| *byte == b'\n').find(|line| applies(&Seen::new(line)));
        assert!(line.is_some(), "the example does not show: {reason}");
        let [ours, theirs] = pair.answers(&sent);
        let version = pair.memcached.version;
        if who.is(version) && (*who != Who::Older || version == [1, 6, 18]) {
            assert!(
                theirs.0.starts_with(&expected.as_bytes().escape_ascii().to_string()),
                "{theirs:?}, not {expected:?}: {reason}"
            );
            assert_ne!(ours, theirs, "there is no difference: {reason}");
        } else if !who.is(version) && (version == [1, 6, 18] || version >= FOLLOWED) {
            assert_eq!(ours, theirs, "it is not only {expected:?} that differs: {reason}");
        }
    }
}

#[test]
fn random_sequences() {
    let Some(mut pair) = Pair::start() else { return };
    let model = Model::new(pair.started);
    let config = ProptestConfig {
        cases: outside::cases(3000),
        max_shrink_iters: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[45; 32]));
    let mut skipped: BTreeMap<&str, u32> = BTreeMap::new();
    let (mut compared, mut refused) = (0, 0);
    let pair = std::cell::RefCell::new(&mut pair);
    let counts = std::cell::RefCell::new((&mut skipped, &mut compared, &mut refused));
    runner
        .run(&prop::collection::vec(lines::line(), 1..6), |lines| {
            let mut pair = pair.borrow_mut();
            let mut counts = counts.borrow_mut();
            let mut sent = Vec::new();
            for line in lines {
                let parsed = parse(&line);
                let unforeseeable = match &parsed {
                    _ if is_meta(&line) => true,
                    Ok(Request::CacheMemlimit { .. }) => true,
                    Ok(request) => model.is_about_now(request) || data_of(&line) > 10_000,
                    Err(_) => data_of(&line) > 10_000,
                };
                if unforeseeable {
                    *counts.0.entry("what comes of it depends on the time or on memory").or_default() += 1;
                } else if let Some(difference) = difference(pair.memcached.version, &line) {
                    *counts.0.entry(difference.reason).or_default() += 1;
                } else {
                    *counts.1 += 1;
                    *counts.2 += u32::from(parsed.is_err());
                    sent.extend_from_slice(&with_data(&line));
                }
            }
            let [ours, theirs] = pair.answers(&sent);
            prop_assert_eq!(ours, theirs, "{}", sent.escape_ascii());
            Ok(())
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
    assert!(
        compared > outside::cases(3000) && refused > outside::cases(500),
        "{compared} lines were compared, {refused} of them bad; skipped: {skipped:#?}"
    );
}

/// Which unfinished lines close the connection, which do not, and what becomes of these when they end.
#[test]
fn long_lines() {
    let Some(pair) = Pair::start() else { return };
    let line = |start: &str, piece: &str, length: usize| {
        let mut line = start.as_bytes().to_vec();
        line.extend(piece.bytes().cycle().take(length - line.len()));
        line
    };
    let spaces = |count: usize| " ".repeat(count) + "get ";
    let lines = [
        line("x", "x", 2048),
        line("x", "x", 2049),
        line("set a ", "x ", 2049),
        line("get", "k", 2049),
        line("gat 0 ", "k ", 3000),
        line("get ", "k ", 2048),
        line("get ", "k ", 3000),
        line("gets ", "k ", 3000),
        line("get ", "key ", 100_000),
        line(&spaces(101), "k ", 3000),
    ];
    for line in lines {
        let shown = format!("{} bytes: {}", line.len(), line[..12].escape_ascii());
        let mut conversation = pair.memcached.connect();
        conversation.send(&line);
        let expected = if split_line(&line) == Line::TooLong { End::Closed } else { End::Open };
        let time = if expected == End::Closed { 10_000 } else { 50 };
        assert_eq!(conversation.end_within(Duration::from_millis(time)), expected, "{shown}");
        if expected == End::Closed {
            continue;
        }
        let (theirs, _) = conversation.ask(b"\r\n");
        let whole = [line, b"\r\n".to_vec()].concat();
        assert_eq!(theirs, our_answer(&mut Model::new(0), &whole).0, "{shown}");
        // A line that is that long without its end is given to a stream of keys.
        if let Some((mut stream, begun)) = KeyStream::begin(&whole).filter(|_| whole.len() > 2050) {
            assert_eq!(stream.feed(&whole[begun..]).state, StreamState::End);
        }
    }
}

/// Data that is not followed by CRLF: exactly as many bytes are consumed as if it were, and nothing is stored.
#[test]
fn bad_data_chunks() {
    let Some(mut pair) = Pair::start() else { return };
    for (block, rest) in
        [("x\nabc\r\n", "bc\r\n"), ("xyzabc\r\n", "abc\r\n"), ("x\n\nversion\r\n", "version\r\n")]
    {
        for noreply in ["", " noreply"] {
            let sent = format!("set a 0 0 3\r\nold\r\nset a 0 0 1{noreply}\r\n{block}get a\r\n");
            let (theirs, _) = pair.conversation.ask(sent.as_bytes());
            let error = lookaside_protocol::ErrorReply::BadDataChunk.bytes();
            let mut ours = reply::STORED.to_vec();
            ours.extend_from_slice(if noreply.is_empty() { error } else { b"" });
            let mut model = Model::new(pair.started);
            our_answer(&mut model, b"set a 0 0 3\r\nold\r\n");
            ours.extend(our_answer(&mut model, format!("{rest}get a\r\n").as_bytes()).0);
            if difference(pair.memcached.version, rest.as_bytes()).is_none() {
                assert_eq!(
                    comparable(&theirs).escape_ascii().to_string(),
                    ours.escape_ascii().to_string(),
                    "{sent}"
                );
            }
        }
    }
}

#[test]
fn arithmetic() {
    let Some(mut pair) = Pair::start() else { return };
    let long_zeros = "0".repeat(100) + "7";
    let long_spaces = " ".repeat(1000) + "7";
    let longest = "7".to_owned() + &" ".repeat(lookaside_protocol::LONGEST_NUMBER - 1);
    let too_long = longest.clone() + " ";
    let mut values = vec![
        "0",
        "5",
        "10",
        "99",
        "100",
        "999",
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999",
        "-0",
        "-1",
        "-18446744073709551615",
        "-9223372036854775809",
        "-9223372036854775808",
        "+5",
        " 5",
        "\t5",
        "\u{b}5",
        "5 ",
        "5  ",
        "5 x",
        "5\u{b}",
        "5\n9",
        "5\r\n",
        "5\0",
        "5\0x",
        "\u{0}5",
        "5x",
        "x",
        "",
        "- 5",
        "+-5",
        "--5",
        "0x10",
        "1e3",
        "1.5",
        "5,",
        "05",
        "007",
        "00000000000000000000000005",
    ];
    values.extend([long_zeros.as_str(), &long_spaces, &longest, &too_long]);
    for value in values {
        for command in ["incr a 1", "decr a 1", "incr a 18446744073709551615", "decr a 18446744073709551615"]
        {
            let sent = format!("set a 0 0 {}\r\n{value}\r\n{command}\r\nget a\r\n", value.len());
            let [ours, theirs] = pair.answers(sent.as_bytes());
            assert!(ours == theirs, "{} of {:.40}", command, value.escape_debug().to_string());
        }
    }
}

/// Items stored with, touched with, and flushed after all kinds of times.
#[test]
fn times() {
    let Some(mut pair) = Pair::start() else { return };
    let now = model::now();
    let at = |offset: i64| (now as i64 + offset) as i32;
    let times = [
        0,
        -1,
        i32::MIN,
        i32::MAX,
        100,
        2_591_999,
        2_592_000,
        2_592_001,
        1_000_000_000,
        at(-100_000),
        at(-200),
        at(-50),
        at(200),
        at(2_000_000),
    ];
    for time in times {
        for sent in [
            format!("set a 0 {time} 1\r\nx\r\nget a\r\nadd a 0 0 1\r\ny\r\n"),
            format!("set a 0 0 1\r\nx\r\ntouch a {time}\r\nget a\r\n"),
            format!("set a 0 0 1\r\nx\r\ngat {time} a a\r\nget a\r\n"),
            format!("set a 0 0 1\r\nx\r\nset a 0 {time} 1\r\ny\r\nget a\r\n"),
            format!("set a 0 0 1\r\nx\r\nflush_all {time}\r\nget a\r\nset b 0 0 1\r\ny\r\nget b\r\n"),
        ] {
            let [ours, theirs] = pair.answers(sent.as_bytes());
            assert_eq!(ours, theirs, "{sent}");
        }
    }
}

/// Times that come while the test waits. memcached's clock ticks once a second, so it may be a second behind ours.
#[test]
fn times_that_come() {
    let Some(mut pair) = Pair::start() else { return };
    let mut check = |store: &str, gone_at: u64| {
        let (answer, _) = pair.conversation.ask(store.as_bytes());
        assert!(answer.starts_with(reply::STORED), "{store}");
        let begun = Instant::now();
        loop {
            let before = model::now();
            let (answer, _) = pair.conversation.ask(b"get a\r\n");
            if answer == reply::END {
                assert!(model::now() >= gone_at, "{store}: gone {} s early", gone_at - model::now());
                break;
            }
            assert!(before < gone_at + 4, "{store}: still there");
            assert!(begun.elapsed() < Duration::from_secs(10), "{store}: still there");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let Expiry::At(time) = expiry(2, model::now() - 1, 0) else { panic!("two seconds are relative") };
    check("set a 0 2 1\r\nx\r\n", time);
    let Flush::At(time) = flush(3, model::now() - 1, 0) else { panic!("three seconds are relative") };
    check("set a 0 0 1\r\nx\r\nflush_all 3\r\n", time);
    let Flush::At(time) = flush(1, model::now() - 1, 0) else { panic!("one second is relative") };
    check("set a 0 0 1\r\nx\r\nflush_all 1\r\n", time);
}
