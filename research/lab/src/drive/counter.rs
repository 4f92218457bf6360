//! Counting replies as fast as they come.
//!
//! A load generator that costs more than the server measures itself, and what it does with a reply is most of its own
//! cost. So a reply is only looked at as far as it must be to find the next one: a value's line is found by its line
//! feed, its length is read backwards from there, and the value is stepped over, also where it has not come yet. The
//! key and the data are not looked at: that is what [`super::checker`] is for.

use protocol::response::{Malformed, Parsed, Response, parse};

use super::error::WrongReply;
use super::tally::Tally;

/// A value's line without an end within so many bytes is none.
const LONGEST_VALUE_LINE: usize = 512;
const VALUE: &[u8] = b"VALUE ";
const END: &[u8] = b"END\r\n";
const STORED: &[u8] = b"STORED\r\n";

/// Where in the replies of one connection the count is.
#[derive(Debug, Default)]
pub(super) struct Counter {
    /// Bytes of a value and its line's end that are still to come.
    skip: usize,
}

impl Counter {
    /// Counts the replies in `received`, which begins with what was left of the last piece: how many bytes are done
    /// with.
    #[inline]
    pub(super) fn count(&mut self, received: &[u8], tally: &mut Tally) -> Result<usize, WrongReply> {
        let mut at = self.skip.min(received.len());
        self.skip -= at;
        while at < received.len() {
            let rest = &received[at..];
            if rest.starts_with(VALUE) {
                let Some(end) = memchr::memchr(b'\n', rest) else {
                    if rest.len() > LONGEST_VALUE_LINE {
                        return Err(Malformed::ValueLine.into());
                    }
                    break;
                };
                let data = length_before(&rest[..end]).ok_or(Malformed::ValueLine)? + 2;
                tally.hits += 1;
                at += end + 1;
                let here = data.min(received.len() - at);
                at += here;
                self.skip = data - here;
            } else if rest.starts_with(END) {
                tally.replies += 1;
                at += END.len();
            } else if rest.starts_with(STORED) {
                tally.replies += 1;
                tally.stored += 1;
                at += STORED.len();
            } else {
                match other(rest, tally)? {
                    0 => break,
                    length => at += length,
                }
            }
        }
        Ok(at)
    }
}

/// The number at the end of a line that ends with a carriage return, read from its last digit on.
#[inline]
fn length_before(line: &[u8]) -> Option<usize> {
    let digits = line.strip_suffix(b"\r")?;
    let (mut number, mut worth) = (0usize, 1usize);
    for byte in digits.iter().rev() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return (*byte == b' ' && worth > 1).then_some(number);
        }
        number = number.checked_add(worth.checked_mul(usize::from(digit))?)?;
        worth = worth.checked_mul(10)?;
    }
    None
}

/// Anything else: its length, or 0 where it is not all there.
#[cold]
fn other(rest: &[u8], tally: &mut Tally) -> Result<usize, WrongReply> {
    let Parsed::Complete { response, consumed } = parse(rest)? else { return Ok(0) };
    match response {
        Response::Error(line) if line.starts_with(b"SERVER_ERROR") => {
            tally.refused += 1;
            tally.replies += 1;
            Ok(consumed)
        }
        _ => Err(WrongReply::unexpected(&rest[..consumed])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Counts a text that comes in pieces of `size` bytes.
    fn count(text: &[u8], size: usize) -> Result<Tally, WrongReply> {
        let (mut counter, mut tally, mut left) = (Counter::default(), Tally::default(), Vec::new());
        for piece in text.chunks(size) {
            left.extend_from_slice(piece);
            let done = counter.count(&left, &mut tally)?;
            left.drain(..done);
        }
        assert!(left.is_empty() && counter.skip == 0, "the text ends with a whole reply");
        Ok(tally)
    }

    #[test]
    fn all_kinds_of_replies_are_counted() {
        let text = b"VALUE k 0 0\r\n\r\nVALUE longer 12 10\r\nEND\r\nVALUE\r\nEND\r\nSTORED\r\nEND\r\n\
            SERVER_ERROR out of memory storing object\r\n";
        let expected = Tally { hits: 2, stored: 1, refused: 1, replies: 4, ..Tally::default() };
        for size in 1..text.len() {
            assert_eq!(count(text, size), Ok(expected), "in pieces of {size}");
        }
    }

    #[test]
    fn what_is_no_reply_to_a_get_or_a_set_is_an_error() {
        for text in ["ERROR\r\n", "CLIENT_ERROR bad data chunk\r\n", "NOT_STORED\r\n", "OK\r\n"] {
            assert_eq!(count(text.as_bytes(), 3), Err(WrongReply::unexpected(text.as_bytes())));
        }
        for text in ["VALUE k 0 \r\n", "VALUE k 0 1x\r\n", "VALUE k 0 1\n", "VALUE 99999999999999999999\r\n"]
        {
            assert_eq!(count(text.as_bytes(), 100), Err(Malformed::ValueLine.into()), "{text}");
        }
        assert_eq!(count(b"nonsense\r\n", 100), Err(Malformed::Line.into()));
        let endless = [b"VALUE ".as_slice(), &[b'k'; 600]].concat();
        assert_eq!(count(&endless, 1000), Err(Malformed::ValueLine.into()));
    }

    proptest! {
        /// The oracle is the protocol's own parser.
        #[test]
        fn the_count_is_that_of_the_parser(
            replies in prop::collection::vec(
                prop_oneof![
                    (0usize..300, "[a-z]{1,40}", any::<u32>()).prop_map(|(length, key, flags)| {
                        format!("VALUE {key} {flags} {length}\r\n{}\r\n", "\n".repeat(length))
                    }),
                    Just("END\r\n".to_owned()),
                    Just("STORED\r\n".to_owned()),
                ],
                1..40,
            ),
            size in 1usize..200,
        ) {
            let text = replies.concat().into_bytes();
            let (mut at, mut expected) = (0, Tally::default());
            while at < text.len() {
                let Ok(Parsed::Complete { response, consumed }) = parse(&text[at..]) else { panic!() };
                at += consumed;
                match response {
                    Response::Value { .. } => expected.hits += 1,
                    Response::End => expected.replies += 1,
                    _ => (expected.stored, expected.replies) = (expected.stored + 1, expected.replies + 1),
                }
            }
            prop_assert_eq!(count(&text, size), Ok(expected));
        }

        #[test]
        fn nothing_panics(text: Vec<u8>, digits in "VALUE [0-9 ]{0,40}\r\n") {
            let _ = Counter::default().count(&text, &mut Tally::default());
            let _ = Counter::default().count(digits.as_bytes(), &mut Tally::default());
        }
    }
}
