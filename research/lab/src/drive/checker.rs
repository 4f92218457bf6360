//! Checking replies against the requests that they answer.
//!
//! The checker walks along the request's text as its replies come: a value must be for one of the keys that the get
//! asks for, in the order in which it asks, and must be a value of that key ([`Contents`]); what is asked for and
//! passed over is a miss; a set is stored. So a reply that is lost, doubled, swapped or false is found, and misses are
//! known by name, which is what a replay needs.

use protocol::response::{Parsed, Response, parse};

use super::contents::Contents;
use super::error::WrongReply;
use super::script::request_length;
use super::tally::Tally;

/// How far the requests of one batch have been answered.
#[derive(Debug, Default)]
pub(super) struct Checker {
    /// Where in the requests the next answer belongs.
    at: usize,
    /// Whether that is among the keys of a get.
    in_get: bool,
}

/// What came of a piece of the replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Checked {
    /// Bytes that are done with.
    pub(super) consumed: usize,
    /// What is left cannot be understood before it has this many bytes.
    pub(super) needed: usize,
}

impl Checker {
    /// Checks the replies in `received` to `requests`, which must be the same text in every call; `missed` is told
    /// every key that was not there.
    pub(super) fn check(
        &mut self,
        contents: &Contents,
        requests: &[u8],
        received: &[u8],
        tally: &mut Tally,
        mut missed: impl FnMut(&[u8]),
    ) -> Result<Checked, WrongReply> {
        let mut consumed = 0;
        loop {
            let rest = &received[consumed..];
            if rest.is_empty() {
                return Ok(Checked { consumed, needed: 1 });
            }
            let (response, length) = match parse(rest)? {
                Parsed::Complete { response, consumed } => (response, consumed),
                Parsed::Incomplete { needed } => return Ok(Checked { consumed, needed }),
            };
            let unexpected = || WrongReply::unexpected(&rest[..length]);
            if !self.in_get && requests[self.at..].starts_with(b"get ") {
                (self.at, self.in_get) = (self.at + 3, true);
            }
            match response {
                Response::Value { key, data, .. } if self.in_get => {
                    let name = || String::from_utf8_lossy(key).into_owned();
                    loop {
                        let asked = self.next_key(requests).ok_or_else(|| WrongReply::NotAsked(name()))?;
                        if asked == key {
                            break;
                        }
                        missed(asked);
                    }
                    contents.check(key, data).map_err(|reason| WrongReply::Value { key: name(), reason })?;
                    tally.hits += 1;
                }
                Response::End if self.in_get => {
                    while let Some(asked) = self.next_key(requests) {
                        missed(asked);
                    }
                    self.end_line(requests);
                    tally.replies += 1;
                }
                Response::Stored if self.is_set(requests) => {
                    self.end_set(requests);
                    tally.stored += 1;
                    tally.replies += 1;
                }
                Response::Error(line) if line.starts_with(b"SERVER_ERROR") => {
                    if self.in_get {
                        self.end_line(requests);
                    } else if self.is_set(requests) {
                        self.end_set(requests);
                    } else {
                        return Err(unexpected());
                    }
                    tally.refused += 1;
                    tally.replies += 1;
                }
                _ => return Err(unexpected()),
            }
            consumed += length;
        }
    }

    /// The next key of the get; none where its line ends.
    fn next_key<'r>(&mut self, requests: &'r [u8]) -> Option<&'r [u8]> {
        let rest = requests[self.at..].strip_prefix(b" ")?;
        let length = memchr::memchr2(b' ', b'\r', rest)?;
        self.at += 1 + length;
        Some(&rest[..length])
    }

    /// Goes behind the line.
    fn end_line(&mut self, requests: &[u8]) {
        let rest = &requests[self.at..];
        self.at += memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        self.in_get = false;
    }

    fn is_set(&self, requests: &[u8]) -> bool {
        !self.in_get && requests[self.at..].starts_with(b"set ")
    }

    /// Goes behind a set and its data.
    fn end_set(&mut self, requests: &[u8]) {
        self.at += request_length(&requests[self.at..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::contents::WrongValue;
    use crate::drive::script::Writer;

    const LENGTH: usize = 40;

    fn value(key: &str) -> Vec<u8> {
        let mut value = Vec::new();
        Contents::new().append(key.as_bytes(), 1, LENGTH, &mut value);
        value
    }

    fn reply(key: &str, value: &[u8]) -> Vec<u8> {
        [format!("VALUE {key} 0 {}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat()
    }

    /// `get a b c`, a set of `d`, `get e`.
    fn requests() -> Vec<u8> {
        let mut writer = Writer::new(1, 3);
        for key in ["a", "b", "c"] {
            writer.get(key.as_bytes());
        }
        writer.set(b"d", b"get x\r\nset");
        writer.get(b"e");
        writer.end_batch();
        let script = writer.finish();
        script.bytes(script.part(0, 0).0).to_vec()
    }

    /// Checks replies that come in pieces of `size` bytes: the tally, and the keys missed.
    fn check(replies: &[u8], size: usize) -> Result<(Tally, Vec<String>), WrongReply> {
        let (mut checker, mut tally, mut missed) = (Checker::default(), Tally::default(), Vec::new());
        let (contents, requests, mut left) = (Contents::new(), requests(), Vec::new());
        for piece in replies.chunks(size) {
            left.extend_from_slice(piece);
            let note = |key: &[u8]| missed.push(String::from_utf8_lossy(key).into_owned());
            let checked = checker.check(&contents, &requests, &left, &mut tally, note)?;
            left.drain(..checked.consumed);
            assert!(checked.needed > left.len());
        }
        Ok((tally, missed))
    }

    #[test]
    fn hits_misses_and_sets_are_told_apart() {
        let replies = [&*reply("b", &value("b")), b"END\r\nSTORED\r\nEND\r\n"].concat();
        let expected = Tally { hits: 1, stored: 1, replies: 3, ..Tally::default() };
        let missed = ["a", "c", "e"].map(str::to_owned).to_vec();
        for size in 1..replies.len() {
            assert_eq!(check(&replies, size), Ok((expected, missed.clone())), "in pieces of {size}");
        }
    }

    #[test]
    fn a_wrong_value_is_found() {
        let mut changed = value("b");
        changed[LENGTH - 1] ^= 1;
        let wrong = |reason| WrongReply::Value { key: "b".into(), reason };
        assert_eq!(check(&reply("b", &changed), 100), Err(wrong(WrongValue::Body(LENGTH - 1))));
        assert_eq!(check(&reply("b", &value("a")), 100), Err(wrong(WrongValue::Header)));
        assert_eq!(check(&reply("b", &value("b")[..39]), 100), Err(wrong(WrongValue::Header)));
    }

    #[test]
    fn an_answer_to_another_question_is_found() {
        let not_asked = |key: &str| WrongReply::NotAsked(key.to_owned());
        // One that nobody asked for, one that comes twice, one in the wrong order.
        assert_eq!(check(&reply("z", &value("z")), 100), Err(not_asked("z")));
        for (first, second) in [("a", "a"), ("b", "a")] {
            let replies = [reply(first, &value(first)), reply(second, &value(second))].concat();
            assert_eq!(check(&replies, 1000), Err(not_asked(second)));
        }
        for replies in ["STORED\r\n", "END\r\nEND\r\n", "END\r\nNOT_STORED\r\n", "END\r\nVALUE d 0 0\r\n\r\n"]
        {
            let error = check(replies.as_bytes(), 100).unwrap_err();
            assert!(matches!(error, WrongReply::Unexpected(_)), "{replies:?}: {error}");
        }
        let after_the_last = "END\r\nSTORED\r\nEND\r\nEND\r\n";
        assert!(matches!(check(after_the_last.as_bytes(), 100), Err(WrongReply::Unexpected(_))));
    }

    #[test]
    fn a_refusal_answers_one_request() {
        let replies = b"END\r\nSERVER_ERROR out of memory storing object\r\nEND\r\n";
        let expected = Tally { refused: 1, replies: 3, ..Tally::default() };
        assert_eq!(check(replies, 7).unwrap().0, expected);
    }
}
