//! Lines as clients write them, read once from left to right: one space before each part, and nothing else.

use super::request::Request;
use super::store::Verb;
use super::{arithmetic, delete, store};
use crate::arithmetic::Operation;
use crate::key::Key;
use crate::meta::{self, MetaRequest};
use crate::reply::CRLF;

/// The request at the start of what was received, and the length of its line, if it writes and its line is as clients
/// write it: [`parse`](crate::parse) reads it as well. Of any other line, good or bad, nothing is said.
///
/// It is for who reads many lines ahead. All of it is done where it is called, so that a request, which is long, is
/// written once, where it stays; and where the last part ends, so does the line, which nobody looks for before.
///
/// ```
/// # use lookaside_protocol::{Request, parse, parse_plain};
/// let received = b"delete k\r\ndelete l\r\n";
/// let Some((Request::Delete { key, noreply: false }, 10)) = parse_plain(received) else { panic!() };
/// assert_eq!(key.as_bytes(), b"k");
/// assert!(parse_plain(b"delete k 0\r\n").is_none() && parse(b"delete k 0\r\n").is_ok());
/// ```
#[inline(always)]
pub fn parse_plain(received: &[u8]) -> Option<(Request<'_>, usize)> {
    let (request, behind) = match received {
        [b's', b'e', b't', b' ', rest @ ..] => {
            let (request, behind) = store::parse_plain(rest, Verb::Set)?;
            (Request::Store(request), behind)
        }
        [b'i', b'n', b'c', b'r', b' ', rest @ ..] => {
            let ((key, delta, noreply), behind) = arithmetic::parse_plain(rest)?;
            (Request::Arithmetic { operation: Operation::Increment, key, delta, noreply }, behind)
        }
        [b'd', b'e', b'l', b'e', b't', b'e', b' ', rest @ ..] => {
            let ((key, noreply), behind) = delete::parse_plain(rest)?;
            (Request::Delete { key, noreply }, behind)
        }
        [b'm', b's', b' ', rest @ ..] => {
            let (request, behind) = meta::parse_plain_set(rest)?;
            (Request::Meta(MetaRequest::Set(request)), behind)
        }
        [b'm', b'd', b' ', rest @ ..] => {
            let (request, behind) = meta::parse_plain_delete(rest)?;
            (Request::Meta(MetaRequest::Delete(request)), behind)
        }
        [b'm', b'a', b' ', rest @ ..] => {
            let (request, behind) = meta::parse_plain_arithmetic(rest)?;
            (Request::Meta(MetaRequest::Arithmetic(request)), behind)
        }
        _ => return None,
    };
    Some((request, line_length(received, behind)?))
}

/// The key of the `get` or `gets` at the start of what was received, whether it is `gets`, and the length of its line,
/// if that has one key and is as clients write it, as [`parse_plain`] has it. Nearly all requests are such.
///
/// ```
/// # use lookaside_protocol::parse_plain_get;
/// let (key, with_cas, length) = parse_plain_get(b"get k\r\ngets l\r\n").unwrap();
/// assert_eq!((key.as_bytes(), with_cas, length), (b"k".as_slice(), false, 7));
/// assert_eq!(parse_plain_get(b"get k l\r\n"), None);
/// ```
#[inline(always)]
pub fn parse_plain_get(received: &[u8]) -> Option<(Key<'_>, bool, usize)> {
    let (rest, with_cas) = match received {
        [b'g', b'e', b't', b' ', rest @ ..] => (rest, false),
        [b'g', b'e', b't', b's', b' ', rest @ ..] => (rest, true),
        _ => return None,
    };
    let (key, behind) = Key::split_plain(rest)?;
    Some((key, with_cas, line_length(received, behind)?))
}

/// The length of a line of which this is left, if that is its end.
#[inline(always)]
fn line_length(received: &[u8], behind: &[u8]) -> Option<usize> {
    behind.starts_with(CRLF).then(|| received.len() - behind.len() + CRLF.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Line, parse, split_line};
    use proptest::prelude::*;
    use proptest::sample::select;

    proptest! {
        /// Lines that are right, and lines that are nearly so.
        #[test]
        fn what_is_plain_is_what_any_line_is(
            name in select(vec!["set", "incr", "delete", "ms", "md", "ma", "mg", "add", "sets"]),
            parts in prop::collection::vec(
                select(vec![
                    " ", " k", " noreply", " 0", " 7", " 999999999", " 1000000000", " -1", " q", " v", " O123", " T30",
                    " MA", " MD", " b", " F1 F2", " x", "\t", " C", " k\r",
                    // Together with others, as many flags as memcached takes, and one more.
                    " c f h k l s t u D1 E1 J1 L N1 P R1", " C1 I", " v x",
                ]),
                0..6,
            ),
            long in select(vec![0_usize, 1, 249, 250, 251]),
            ending in select(vec!["\r\n", "\n", "\r", "", " \r\n", "\r\r\n", "\r\nset k 0 0 1\r\n1\r\n"]),
        ) {
            let key = if long == 0 { String::new() } else { format!(" {}", "k".repeat(long)) };
            let received = format!("{name}{key}{}{ending}", parts.concat());
            if let Some((request, length)) = parse_plain(received.as_bytes()) {
                let Line::Complete(line) = split_line(received.as_bytes()) else { panic!("no line") };
                prop_assert_eq!((Ok(request), length), (parse(line), line.len()));
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_a_plain_get_is_what_any_line_is(
            name in select(vec!["get ", "get  ", " get ", "gets ", "get", "GET ", "get\t", "gat "]),
            parts in prop::collection::vec(
                select(vec!["k", "key", "noreply", " ", "\t", "\r", "\n", "\0", "\x7f", "\u{e9}", "12345678"]),
                0..4,
            ),
            long in select(vec![0_usize, 1, 7, 8, 249, 250, 251]),
            ending in select(vec!["\r\n", "\n", "\r", "", " \r\n", "\r\r\n", "\r\nget k\r\n"]),
        ) {
            let received = format!("{name}{}{}{ending}", "k".repeat(long), parts.concat());
            if let Some((key, with_cas, length)) = parse_plain_get(received.as_bytes()) {
                let Line::Complete(line) = split_line(received.as_bytes()) else { panic!("no line") };
                let Ok(Request::Get(mut request)) = parse(line) else { panic!("no get") };
                prop_assert_eq!((request.keys.next(), request.with_cas, line.len()), (Some(key), with_cas, length));
                prop_assert!(request.keys.is_empty());
            }
        }
    }

    /// The limit is on tokens: they were counted for the first line of several only.
    #[test]
    fn no_more_flags_than_memcached_takes_are_plain() {
        let flags = b" c f h k l s t v x C1 D1 E1 F1 I J1 L O P R1 T1";
        for (name, most) in [("md k", 18), ("ma k", 18), ("ms k 5", 17)] {
            for number in 0..=20 {
                let text = &flags[..flags
                    .iter()
                    .enumerate()
                    .filter(|(_, byte)| **byte == b' ')
                    .nth(number)
                    .map_or(flags.len(), |(at, _)| at)];
                let line = [name.as_bytes(), text, b"\r\n"].concat();
                assert_eq!(parse(&line).is_ok(), number <= most, "{}", line.escape_ascii());
                if let Some((request, length)) = parse_plain(&line) {
                    assert_eq!((Ok(request), length), (parse(&line), line.len()));
                }
                assert!(number > 17 || parse_plain(&line).is_some(), "{}", line.escape_ascii());
            }
        }
    }

    #[test]
    fn what_clients_write_is_plain() {
        for line in [
            "set k 0 0 5\r\n",
            "set k 1 30 100 noreply\r\n",
            "incr k 1\r\n",
            "incr k 10 noreply\r\n",
            "delete k\r\n",
            "delete k noreply\r\n",
            "ms k 5\r\n",
            "ms k 5 T30 F7 q\r\n",
            "md k q\r\n",
            "ma k\r\n",
            "ma k N0 J5 D2 v\r\n",
            "md k O123 k\r\n",
        ] {
            assert!(parse_plain(line.as_bytes()).is_some(), "{line}");
        }
        for key in ["k", "seven77", "eight888", &"k".repeat(250)] {
            for (name, with_cas) in [("get", false), ("gets", true)] {
                let line = format!("{name} {key}\r\n");
                let expected = (Key::new(key.as_bytes()).expect("a key"), with_cas, line.len());
                assert_eq!(parse_plain_get(line.as_bytes()), Some(expected));
            }
        }
    }
}
