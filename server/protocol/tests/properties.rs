//! What holds for every line: no panic, agreement with the naive parser, and that formatting and parsing undo each
//! other.

use crate::lines;
use crate::naive::{self, Outcome};
use lookaside_protocol::meta::{MetaLookups, MetaRequest};
use lookaside_protocol::response::{self, Parsed};
use lookaside_protocol::{
    Connection, ErrorReply, KeyStream, Line, Operation, Refusal, Request, StreamState, apply, expiry, flush,
    parse, reply, split_line,
};
use proptest::collection::vec;
use proptest::prelude::*;

fn outcome(line: &[u8]) -> Outcome {
    match parse(line) {
        Ok(request) => {
            let mut plain = Vec::new();
            request.write(&mut plain);
            Outcome::Request(plain)
        }
        Err(Refusal { reply: None, swallow: 0, connection: Connection::Close }) => Outcome::Closed,
        Err(Refusal { reply: Some(reply), swallow: 0, connection: Connection::Close }) => {
            Outcome::Ended(reply)
        }
        Err(Refusal { reply, swallow, connection: Connection::Keep }) => Outcome::Refused(reply, swallow),
        Err(other) => panic!("a refusal that closes and swallows: {other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(outside::cases(4000)))]

    #[test]
    fn agrees_with_the_naive_parser(line in lines::line()) {
        prop_assert_eq!(outcome(&line), naive::parse(&line), "{}", line.escape_ascii());
    }

    #[test]
    fn agrees_with_the_naive_parser_on_rubbish(bytes in lines::rubbish()) {
        let line = [bytes.split(|byte| *byte == b'\n').next().unwrap_or_default(), b"\n"].concat();
        prop_assert_eq!(outcome(&line), naive::parse(&line), "{}", line.escape_ascii());
    }

    #[test]
    fn the_plain_line_means_the_same_request(line in lines::line()) {
        if let Ok(request) = parse(&line) {
            let mut plain = Vec::new();
            request.write(&mut plain);
            prop_assert_eq!(split_line(&plain), Line::Complete(&plain));
            prop_assert_eq!(parse(&plain), Ok(request));
        }
    }

    /// The way of those that are gathered, and the one of all lines.
    #[test]
    fn a_meta_get_is_the_same_either_way(
        before in mg_line(),
        line in mg_line(),
        again in any::<bool>(),
        after in "[\\x00-\\xff]{0,20}",
    ) {
        // What is known of the line before does not matter.
        let mut lookups = MetaLookups::default();
        let before = if again { &line } else { &before };
        lookups.next(&[before.as_slice(), b"mg another v f k\r\n"].concat());
        let received = [line.as_slice(), after.as_bytes()].concat();
        let expected = match parse(&line) {
            Ok(Request::Meta(MetaRequest::Get(get))) if get.is_lookup() => Some((get, line.len())),
            _ => None,
        };
        prop_assert_eq!(lookups.next(&received), expected, "{}", line.escape_ascii());
        if let Ok(Request::Meta(MetaRequest::Get(get))) = parse(&line) {
            let flags: Vec<Vec<u8>> =
                get.flags.iter().map(|flag| [&[flag.letter], flag.argument].concat()).collect();
            let words = line.split(|byte| b" \r\n".contains(byte)).filter(|word| !word.is_empty());
            prop_assert_eq!(flags, words.skip(2).collect::<Vec<_>>());
        }
        for end in 0..line.len() {
            prop_assert_eq!(lookups.next(&line[..end]), None);
        }
    }

    #[test]
    fn nothing_panics_and_nothing_is_consumed_twice(bytes in prop_oneof![vec(any::<u8>(), 0..4000), lines::rubbish()]) {
        let mut received = bytes.as_slice();
        loop {
            match split_line(received) {
                Line::Complete(line) => {
                    prop_assert_eq!(line.iter().position(|byte| *byte == b'\n'), Some(line.len() - 1));
                    let swallow = parse(line).err().map_or(0, |refusal| refusal.swallow);
                    received = received[line.len()..].get(swallow..).unwrap_or_default();
                }
                Line::Incomplete => {
                    prop_assert!(received.len() <= 2048 && !received.contains(&b'\n'));
                    break;
                }
                Line::LongGet | Line::TooLong => {
                    prop_assert!(received.len() > 2048 && !received.contains(&b'\n'));
                    break;
                }
            }
        }
        let _ = parse(&bytes);
        let _ = apply(&bytes, 1, Operation::Increment);
    }

    #[test]
    fn any_reply_bytes(bytes in prop_oneof![vec(any::<u8>(), 0..200), lines::rubbish()]) {
        match response::parse(&bytes) {
            Ok(Parsed::Complete { consumed, .. }) => prop_assert!((1..=bytes.len()).contains(&consumed)),
            Ok(Parsed::Incomplete { needed }) => prop_assert!(needed > bytes.len()),
            Err(_) => {}
        }
    }

    #[test]
    fn times_and_numbers_of_any_size(
        exptime: i32,
        now: u64,
        started: u64,
        value in vec(any::<u8>(), 0..30),
        delta: u64,
    ) {
        let _ = expiry(exptime, now, started);
        let _ = flush(exptime, now, started);
        for operation in [Operation::Increment, Operation::Decrement] {
            if let Ok(result) = apply(&value, delta, operation) {
                prop_assert!(result.length() >= value.len());
                let mut new = vec![0; result.length()];
                result.fill(&mut new);
                let text = String::from_utf8_lossy(&new);
                prop_assert_eq!(text.trim_end(), result.number().to_string());
            }
        }
    }

    /// Whatever the chunks, the stream hands out the keys of the line in order, or refuses what `parse` refuses.
    #[test]
    fn a_key_stream_gives_the_keys_of_the_line(
        line in long_get_line(),
        chunks in vec(1usize..400, 1..40),
    ) {
        let (mut stream, begun) = KeyStream::begin(&line).expect("the line starts with get or gets");
        let mut streamed = Vec::new();
        // The reader's buffer: what the stream left of the last chunk, and more.
        let (mut from, mut to) = (begun, begun);
        let mut sizes = chunks.into_iter().cycle();
        let end = loop {
            to = (to + sizes.next().unwrap_or(1)).min(line.len());
            let step = stream.feed(&line[from..to]);
            streamed.extend(step.keys.map(|key| key.as_bytes().to_vec()));
            from += step.consumed;
            match step.state {
                StreamState::More => {
                    prop_assert!(to - from <= 251, "{} bytes were left", to - from);
                    prop_assert!(to < line.len(), "the line has ended and the stream did not notice");
                }
                end => break end,
            }
        };
        prop_assert_eq!(from, line.len());
        match naive::parse(&line) {
            Outcome::Request(plain) => {
                prop_assert_eq!(end, StreamState::End);
                let mut again = if stream.with_cas() { b"gets".to_vec() } else { b"get".to_vec() };
                for key in &streamed {
                    again.push(b' ');
                    again.extend_from_slice(key);
                }
                again.extend_from_slice(b"\r\n");
                prop_assert_eq!(again, plain);
            }
            Outcome::Refused(reply, swallow) => {
                let StreamState::Refused(refusal) = end else { panic!("accepted a bad line") };
                prop_assert_eq!((refusal.reply, refusal.swallow), (reply, swallow));
                prop_assert!(streamed.iter().all(|key| (1..=250).contains(&key.len())));
            }
            Outcome::Ended(_) | Outcome::Closed => panic!("nothing closes on a get"),
        }
    }
}

/// A `get` or `gets` with keys of any length and any bytes, sometimes with one that is too long, or with none.
/// An `mg` of any flags, right or wrong, with spaces as they come.
fn mg_line() -> impl Strategy<Value = Vec<u8>> {
    let plain = proptest::sample::select(b"vqskfctlhxIPL".to_vec()).prop_map(|letter| vec![letter]);
    let arguments = vec![
        "O7",
        "N30",
        "T0",
        "R30",
        "C1",
        "b",
        "u",
        "z",
        "O",
        "M",
        "vx",
        "R-1",
        "R",
        "E123456789",
        "E1234567890",
        "O234567890123456789012345678901",
        "O2345678901234567890123456789012",
        "MS",
        "O\t",
        "F1x",
        "`",
        "@",
    ];
    let argument = proptest::sample::select(arguments).prop_map(|flag| flag.as_bytes().to_vec());
    let flag = prop_oneof![6 => plain, 1 => argument];
    let space = prop_oneof![9 => Just(b" ".to_vec()), 1 => Just(b"  ".to_vec())];
    let word = (space, flag).prop_map(|(space, flag)| [space, flag].concat());
    let end = proptest::sample::select(vec!["\r\n", "\n", " \r\n"]);
    ("mg {1,2}(key|YQ==)?", vec(word, 0..13), end)
        .prop_map(|(start, words, end)| [start.into_bytes(), words.concat(), end.into()].concat())
}

fn long_get_line() -> impl Strategy<Value = Vec<u8>> {
    let byte = any::<u8>().prop_map(|byte| if b" \n".contains(&byte) { b'\r' } else { byte });
    let key = prop_oneof![
        20 => vec(byte, 1..30),
        2 => Just(vec![b'k'; 250]),
        1 => Just(vec![b'\r'; 3]),
    ];
    let too_long = prop_oneof![6 => Just(None), 1 => (0usize..60, 251usize..900).prop_map(Some)];
    let spaces = prop_oneof![5 => Just(1usize), 1 => Just(2), 1 => Just(300)];
    let keys = vec((key, spaces), 0..60);
    (any::<bool>(), keys, too_long, any::<bool>()).prop_map(
        |(with_cas, mut keys, too_long, carriage_return)| {
            if let Some((at, length)) = too_long {
                keys.insert(at.min(keys.len()), (vec![b'L'; length], 1));
            }
            let mut line = if with_cas { b"gets ".to_vec() } else { b"get ".to_vec() };
            for (key, spaces) in keys {
                line.extend_from_slice(&key);
                line.resize(line.len() + spaces, b' ');
            }
            line.extend_from_slice(if carriage_return { b"\r\n" } else { b"\n" });
            line
        },
    )
}

#[test]
fn a_key_stream_split_at_every_place() {
    let key = [b'k'; 250];
    let lines: [&[u8]; 6] = [
        b"get a bb  ccc \r\n",
        b"gets a\r\n",
        b"get a b\n",
        b"get   \r\n",
        &[b"get a ".as_slice(), &key, b"\r\n"].concat(),
        &[b"get a ".as_slice(), &key, b"k b\r\n"].concat(),
    ];
    for line in lines {
        let expected: Result<Vec<Vec<u8>>, Option<ErrorReply>> = match naive::parse(line) {
            Outcome::Request(plain) => Ok(naive::all_tokens(naive::text_of(&plain))[1..]
                .iter()
                .map(|(_, key)| key.to_vec())
                .collect()),
            Outcome::Refused(reply, _) => Err(reply),
            Outcome::Ended(_) | Outcome::Closed => panic!("nothing closes on a get"),
        };
        let (stream, begun) = KeyStream::begin(line).expect("a get");
        for split in begun..=line.len() {
            let mut stream = stream.clone();
            let first = stream.feed(&line[begun..split]);
            let mut keys: Vec<Vec<u8>> = first.keys.map(|key| key.to_vec()).collect();
            let end = match first.state {
                StreamState::More => {
                    let second = stream.feed(&line[begun + first.consumed..]);
                    assert_eq!(begun + first.consumed + second.consumed, line.len());
                    keys.extend(second.keys.map(|key| key.to_vec()));
                    second.state
                }
                end => end,
            };
            match (&expected, end) {
                (Ok(expected), StreamState::End) => assert_eq!(&keys, expected),
                (Err(expected), StreamState::Refused(refusal)) => assert_eq!(refusal.reply, *expected),
                (expected, end) => panic!("{expected:?} became {end:?} when split at {split}"),
            }
        }
    }
}

#[test]
fn a_key_stream_waits_for_no_more_than_a_key_and_a_carriage_return() {
    let (stream, _) = KeyStream::begin(b"get ").expect("a get");
    let waits = |unfinished: &[u8]| stream.clone().feed(unfinished).consumed == 0;
    let mut unfinished = vec![b'k'; 250];
    assert!(waits(&unfinished));
    unfinished.push(b'\r');
    assert!(waits(&unfinished));
    unfinished[250] = b'k';
    assert!(!waits(&unfinished));
    unfinished.push(b'\r');
    assert!(!waits(&unfinished));
}

#[test]
fn a_long_get_behind_spaces_is_an_unknown_command() {
    let line = [b"   get ".as_slice(), &b"key ".repeat(700), b"\r\nversion\r\n"].concat();
    assert_eq!(split_line(&line[..2500]), Line::LongGet);
    let (mut stream, begun) = KeyStream::begin(&line).expect("a get");
    let first = stream.feed(&line[begun..2500]);
    assert_eq!((first.keys.count(), first.consumed, first.state), (0, 2500 - begun, StreamState::More));
    let second = stream.feed(&line[2500..]);
    assert_eq!(second.keys.count(), 0);
    assert_eq!(&line[2500 + second.consumed..], b"version\r\n");
    let StreamState::Refused(refusal) = second.state else { panic!("accepted") };
    assert_eq!(refusal.reply, Some(ErrorReply::Error));
    assert_eq!(KeyStream::begin(b"set a 0 0 1"), None);
}

#[test]
fn values_of_any_kind_come_back_through_the_response_parser() {
    let mut runner = proptest::test_runner::TestRunner::default();
    let value = (vec(33u8..=126, 1..=250), any::<u32>(), vec(any::<u8>(), 0..300), any::<Option<u64>>());
    runner
        .run(&(vec(value, 0..5), 0usize..3000), |(values, cut)| {
            let mut out = Vec::new();
            for (key, flags, data, cas) in &values {
                reply::value_header(&mut out, key, *flags, data.len(), *cas);
                out.extend_from_slice(data);
                out.extend_from_slice(reply::CRLF);
            }
            out.extend_from_slice(reply::END);
            let mut rest = out.as_slice();
            for (key, flags, data, cas) in &values {
                let Ok(Parsed::Complete { response, consumed }) = response::parse(rest) else {
                    panic!("no value")
                };
                let expected = response::Response::Value { key, flags: *flags, cas: *cas, data };
                prop_assert_eq!(response, expected);
                // Every shorter piece asks for more, and never for more than there is to come.
                let piece = &rest[..cut % consumed];
                let Ok(Parsed::Incomplete { needed }) = response::parse(piece) else {
                    panic!("{cut} bytes were enough")
                };
                prop_assert!(needed > piece.len() && needed <= consumed);
                rest = &rest[consumed..];
            }
            prop_assert_eq!(
                response::parse(rest),
                Ok(Parsed::Complete { response: response::Response::End, consumed: 5 })
            );
            Ok(())
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
}
