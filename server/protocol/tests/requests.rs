//! Exact answers: the table of request lines, and the lines of every reply.

use crate::naive::{self, Outcome};
use crate::table::{Expect, table, write_out};
use lookaside_protocol::{
    Connection, ErrorReply, GetRequest, MAX_VALUE_LENGTH, Operation, Refusal, Request, StatsTopic,
    StoreRequest, Verb, parse, reply,
};

#[test]
fn the_table() {
    for (line, expect) in table() {
        let shown = line.escape_ascii();
        match (parse(&line), expect) {
            (Ok(request), Expect::Means(plain)) => {
                let mut written = Vec::new();
                request.write(&mut written);
                let plain = [write_out(plain), b"\r\n".to_vec()].concat();
                assert_eq!(written.escape_ascii().to_string(), plain.escape_ascii().to_string(), "{shown}");
                assert_eq!(parse(&plain), Ok(request), "{shown}");
            }
            (Err(refusal), Expect::Refused(reply, swallow)) => {
                let expected = Refusal { reply: Some(reply), swallow, connection: Connection::Keep };
                assert_eq!(refusal, expected, "{shown}");
            }
            (Err(refusal), Expect::Silent(swallow)) => {
                assert_eq!(
                    refusal,
                    Refusal { reply: None, swallow, connection: Connection::Keep },
                    "{shown}"
                );
            }
            (Err(refusal), Expect::Ended(reply)) => {
                let expected = Refusal { reply: Some(reply), swallow: 0, connection: Connection::Close };
                assert_eq!(refusal, expected, "{shown}");
            }
            (Err(refusal), Expect::Closed) => {
                assert_eq!(
                    refusal,
                    Refusal { reply: None, swallow: 0, connection: Connection::Close },
                    "{shown}"
                );
            }
            (got, expect) => panic!("{shown}: {got:?} instead of {expect:?}"),
        }
    }
}

/// The oracle of the property tests is itself held against the table.
#[test]
fn the_naive_parser_agrees_with_the_table() {
    for (line, expect) in table() {
        let expected = match expect {
            Expect::Means(plain) => Outcome::Request([write_out(plain), b"\r\n".to_vec()].concat()),
            Expect::Refused(reply, swallow) => Outcome::Refused(Some(reply), swallow),
            Expect::Silent(swallow) => Outcome::Refused(None, swallow),
            Expect::Ended(reply) => Outcome::Ended(reply),
            Expect::Closed => Outcome::Closed,
        };
        assert_eq!(naive::parse(&line), expected, "{}", line.escape_ascii());
    }
}

/// The table compares plain lines; this one looks into every kind of request.
#[test]
fn the_fields_of_requests() {
    let Ok(Request::Get(GetRequest { keys, with_cas: false })) = parse(b"get a bb\r\n") else { panic!() };
    assert_eq!(keys.map(|key| key.as_bytes()).collect::<Vec<_>>(), [b"a".as_slice(), b"bb"]);
    let Ok(Request::Get(GetRequest { keys, with_cas: true })) = parse(b"gets a\r\n") else { panic!() };
    assert_eq!(keys.count(), 1);
    let Ok(Request::GetAndTouch { exptime: -7, keys, with_cas: true }) = parse(b"gats -7 a b\r\n") else {
        panic!()
    };
    assert_eq!(keys.map(|key| key.as_bytes()).collect::<Vec<_>>(), [b"a", b"b"]);

    let store = |line| match parse(line) {
        Ok(Request::Store(StoreRequest { verb, key, flags, exptime, length, noreply })) => {
            (verb, key.as_bytes(), flags, exptime, length, noreply)
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(store(b"set k 1 2 3\r\n"), (Verb::Set, b"k".as_slice(), 1, 2, 3, false));
    assert_eq!(store(b"add k 1 -2 3 noreply\r\n"), (Verb::Add, b"k".as_slice(), 1, -2, 3, true));
    assert_eq!(store(b"replace k 0 0 0\r\n").0, Verb::Replace);
    assert_eq!(store(b"append k 0 0 0\r\n").0, Verb::Append);
    assert_eq!(store(b"prepend k 0 0 0\r\n").0, Verb::Prepend);
    assert_eq!(store(b"cas k 1 2 3 4\r\n"), (Verb::Cas(4), b"k".as_slice(), 1, 2, 3, false));
    // The largest length is accepted (and then the engine finds it too large), and all of it would be swallowed.
    assert_eq!(store(b"set k 0 0 2147483645\r\n").4, MAX_VALUE_LENGTH);
    assert_eq!(parse(b"set k x 0 2147483645\r\n").unwrap_err().swallow, MAX_VALUE_LENGTH + 2);

    let key = lookaside_protocol::Key::new(b"k").unwrap();
    let table = [
        (b"delete k\r\n".as_slice(), Request::Delete { key, noreply: false }),
        (
            b"incr k 5\r\n",
            Request::Arithmetic { operation: Operation::Increment, key, delta: 5, noreply: false },
        ),
        (
            b"decr k 5 noreply\r\n",
            Request::Arithmetic { operation: Operation::Decrement, key, delta: 5, noreply: true },
        ),
        (b"touch k -5\r\n", Request::Touch { key, exptime: -5, noreply: false }),
        (b"flush_all\r\n", Request::FlushAll { delay: 0, noreply: false }),
        (b"flush_all 9 noreply\r\n", Request::FlushAll { delay: 9, noreply: true }),
        (b"stats\r\n", Request::Stats(StatsTopic::General)),
        (b"stats items\r\n", Request::Stats(StatsTopic::Items)),
        (b"version\r\n", Request::Version),
        (b"verbosity 2\r\n", Request::Verbosity { level: 2, noreply: false }),
        (b"cache_memlimit 64\r\n", Request::CacheMemlimit { megabytes: 64, noreply: false }),
        (b"quit\r\n", Request::Quit),
    ];
    for (line, request) in table {
        assert_eq!(parse(line), Ok(request));
    }
}

#[test]
fn a_line_without_its_ending_is_parsed_too() {
    assert_eq!(parse(b"version"), Ok(Request::Version));
    assert_eq!(parse(b"").unwrap_err().reply, Some(ErrorReply::BadFormat));
}

#[test]
fn written_replies() {
    let mut out = Vec::new();
    reply::value_header(&mut out, b"key", 0, 5, None);
    reply::value_header(&mut out, b"k", u32::MAX, usize::MAX, Some(u64::MAX));
    reply::value_header(&mut out, b"k", 10, 9, Some(0));
    reply::number(&mut out, 0);
    reply::number(&mut out, u64::MAX);
    reply::stat(&mut out, "pid", 7);
    reply::version(&mut out, "1.6.45");
    let expected = "VALUE key 0 5\r\n\
                    VALUE k 4294967295 18446744073709551615 18446744073709551615\r\n\
                    VALUE k 10 9 0\r\n\
                    0\r\n\
                    18446744073709551615\r\n\
                    STAT pid 7\r\n\
                    VERSION 1.6.45\r\n";
    assert_eq!(str::from_utf8(&out).unwrap(), expected);
    assert_eq!(ErrorReply::BadFormat.bytes(), b"CLIENT_ERROR bad command line format\r\n");
    assert_eq!(ErrorReply::BadFormat.text(), "CLIENT_ERROR bad command line format");
}
