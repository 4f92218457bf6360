//! Lines as clients write them, read once from left to right: one space before each part, and nothing else.

use super::request::Request;
use super::store::Verb;
use super::{arithmetic, delete, store};
use crate::arithmetic::Operation;
use crate::line::strip_ending;
use crate::meta::{self, MetaRequest};

/// The request of a line, with its ending, that [`parse`](crate::parse) reads as well, if it writes and is as clients
/// write it; of any other line, good or bad, nothing is said. It is for who reads many lines ahead: all of it is done
/// where it is called, so that a request, which is long, is written once, where it stays.
///
/// ```
/// # use lookaside_protocol::{Request, parse, parse_plain};
/// let Some(Request::Delete { key, noreply: false }) = parse_plain(b"delete k\r\n") else { panic!() };
/// assert_eq!(key.as_bytes(), b"k");
/// assert!(parse_plain(b"delete k 0\r\n").is_none() && parse(b"delete k 0\r\n").is_ok());
/// ```
#[inline(always)]
pub fn parse_plain(line: &[u8]) -> Option<Request<'_>> {
    Some(match strip_ending(line) {
        [b's', b'e', b't', b' ', rest @ ..] => Request::Store(store::parse_plain(rest, Verb::Set)?),
        [b'i', b'n', b'c', b'r', b' ', rest @ ..] => {
            let (key, delta, noreply) = arithmetic::parse_plain(rest)?;
            Request::Arithmetic { operation: Operation::Increment, key, delta, noreply }
        }
        [b'd', b'e', b'l', b'e', b't', b'e', b' ', rest @ ..] => {
            let (key, noreply) = delete::parse_plain(rest)?;
            Request::Delete { key, noreply }
        }
        [b'm', b's', b' ', rest @ ..] => Request::Meta(MetaRequest::Set(meta::parse_plain_set(rest)?)),
        [b'm', b'd', b' ', rest @ ..] => Request::Meta(MetaRequest::Delete(meta::parse_plain_delete(rest)?)),
        [b'm', b'a', b' ', rest @ ..] => {
            Request::Meta(MetaRequest::Arithmetic(meta::parse_plain_arithmetic(rest)?))
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
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
            ending in select(vec!["\r\n", "\n"]),
        ) {
            let key = if long == 0 { String::new() } else { format!(" {}", "k".repeat(long)) };
            let line = format!("{name}{key}{}{ending}", parts.concat());
            if let Some(request) = parse_plain(line.as_bytes()) {
                prop_assert_eq!(Ok(request), parse(line.as_bytes()));
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
                if let Some(request) = parse_plain(&line) {
                    assert_eq!(Ok(request), parse(&line));
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
            "md k O123 k\n",
        ] {
            assert!(parse_plain(line.as_bytes()).is_some(), "{line}");
        }
    }
}
