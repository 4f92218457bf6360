//! Exact cases for the client's side: what each reply is parsed as, what is missing, and what is no reply at all.

use lookaside_protocol::response::{Malformed, Parsed, Response, parse};

#[test]
fn every_reply() {
    let value = |flags, cas, data| Response::Value { key: b"k", flags, cas, data };
    let table: [(&[u8], Response<'_>); 26] = [
        (b"VALUE k 0 4\r\nstar\r\n", value(0, None, b"star")),
        (b"VALUE k 4294967295 0 18446744073709551615\r\n\r\n", value(u32::MAX, Some(u64::MAX), b"")),
        (b"VALUE k 1 6\r\nEND\r\n\n\r\n", value(1, None, b"END\r\n\n")),
        (b"END\r\n", Response::End),
        (b"STORED\r\n", Response::Stored),
        (b"NOT_STORED\r\n", Response::NotStored),
        (b"EXISTS\r\n", Response::Exists),
        (b"NOT_FOUND\r\n", Response::NotFound),
        (b"DELETED\r\n", Response::Deleted),
        (b"TOUCHED\r\n", Response::Touched),
        (b"OK\r\n", Response::Ok),
        (b"RESET\r\n", Response::Reset),
        (b"0\r\n", Response::Number(0)),
        (b"18446744073709551615\r\n", Response::Number(u64::MAX)),
        (b"STAT pid 7\r\n", Response::Stat { name: b"pid", value: b"7" }),
        (b"STAT libevent 2.1 stable\r\n", Response::Stat { name: b"libevent", value: b"2.1 stable" }),
        (b"STAT inter \r\n", Response::Stat { name: b"inter", value: b"" }),
        (b"STAT inter\r\n", Response::Stat { name: b"inter", value: b"" }),
        (b"VERSION 1.6.45\r\n", Response::Version(b"1.6.45")),
        (b"ERROR\r\n", Response::Error(b"ERROR")),
        (b"ERROR Too many open connections\r\n", Response::Error(b"ERROR Too many open connections")),
        (b"CLIENT_ERROR bad data chunk\r\n", Response::Error(b"CLIENT_ERROR bad data chunk")),
        (b"SERVER_ERROR out of memory\r\n", Response::Error(b"SERVER_ERROR out of memory")),
        (b"SERVER_ERROR: shutdown not enabled\r\n", Response::Error(b"SERVER_ERROR: shutdown not enabled")),
        (b"BUSY currently processing\r\n", Response::Other(b"BUSY currently processing")),
        (b"MN\r\n", Response::Other(b"MN")),
    ];
    for (bytes, response) in table {
        let complete = Ok(Parsed::Complete { response, consumed: bytes.len() });
        assert_eq!(parse(bytes), complete, "{}", bytes.escape_ascii());
        // What follows does not matter, and what is missing is missed.
        assert_eq!(parse(&[bytes, b"VALUE"].concat()), complete, "{}", bytes.escape_ascii());
        for length in 0..bytes.len() {
            match parse(&bytes[..length]) {
                Ok(Parsed::Incomplete { needed }) => assert!(needed > length && needed <= bytes.len()),
                other => panic!("{other:?} from {}", bytes[..length].escape_ascii()),
            }
        }
    }
}

#[test]
fn a_value_that_has_begun_says_its_whole_length() {
    let header = b"VALUE k 0 1000000\r\n";
    let needed = header.len() + 1_000_002;
    assert_eq!(parse(header), Ok(Parsed::Incomplete { needed }));
    assert_eq!(parse(&[header.as_slice(), &[0; 1000]].concat()), Ok(Parsed::Incomplete { needed }));
}

#[test]
fn what_is_no_reply() {
    let table: [(&[u8], Malformed); 24] = [
        (b"VALUE  0 4\r\n", Malformed::ValueLine),
        (b"VALUE k\r\n", Malformed::ValueLine),
        (b"VALUE k 0\r\n", Malformed::ValueLine),
        (b"VALUE k 0 \r\n", Malformed::ValueLine),
        (b"VALUE k x 4\r\n", Malformed::ValueLine),
        (b"VALUE k 0 -4\r\n", Malformed::ValueLine),
        (b"VALUE k  0 4\r\n", Malformed::ValueLine),
        (b"VALUE k 4294967296 4\r\n", Malformed::ValueLine),
        (b"VALUE k 0 18446744073709551616\r\n", Malformed::ValueLine),
        (b"VALUE k 0 18446744073709551615\r\n", Malformed::ValueLine),
        (b"VALUE k 0 4 x\r\n", Malformed::ValueLine),
        (b"VALUE k 0 4 1 1\r\n", Malformed::ValueLine),
        (b"VALUE k 0 4\n", Malformed::ValueLine),
        (b"VALUE\r\n", Malformed::ValueLine),
        (b"VALUE k\n 0 4\r\n", Malformed::ValueLine),
        (&[b"VALUE ".as_slice(), &[b'k'; 600]].concat(), Malformed::ValueLine),
        (b"VALUE k 0 4\r\nstars\r\n", Malformed::ValueEnd),
        (b"VALUE k 0 4\r\nstar\n\n", Malformed::ValueEnd),
        (b"1x\r\n", Malformed::Number),
        (b"18446744073709551616\r\n", Malformed::Number),
        (b"STAT \r\n", Malformed::Stat),
        (b"END\n", Malformed::Line),
        (b"\r\nEND\r\n", Malformed::Line),
        (b"stored\r\n", Malformed::Line),
    ];
    for (bytes, malformed) in table {
        assert_eq!(parse(bytes), Err(malformed), "{}", bytes.escape_ascii());
    }
}
