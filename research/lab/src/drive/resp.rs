//! RESP2, the protocol of Redis, as far as gets and sets of a load need it.
//!
//! A request is an array of bulk strings. A get of one key is `GET`, a get of several is `MGET`; a set is `SET`. Values
//! come without their keys, so only their order says whose they are: where replies are checked, the reader walks along
//! the requests as the replies come, and each value must be one of the key whose turn it is ([`Contents`]).
//!
//! The reader that checks is the reader that counts. Rejected: one that only counts and steps over values, as
//! [`super::counter`] does for the classic protocol. A value's line is in front of it here and is short.

use super::contents::Contents;
use super::error::WrongReply;
use super::tally::Tally;

/// What a line of a reply may have at most: the length of a value, or the words of an error.
const LONGEST_LINE: usize = 512;

/// Appends the request that these words are.
pub(crate) fn append_command(words: &[&[u8]], out: &mut Vec<u8>) {
    append_header(b'*', words.len(), out);
    words.iter().for_each(|word| append_word(word, out));
}

/// Appends a get of so many keys, which are `words` already.
pub(super) fn append_get(keys: usize, words: &[u8], out: &mut Vec<u8>) {
    append_header(b'*', 1 + keys, out);
    append_word(if keys == 1 { b"GET" } else { b"MGET" }, out);
    out.extend_from_slice(words);
}

/// Appends a word of a request, which is what a value is among replies, too.
pub(crate) fn append_word(word: &[u8], out: &mut Vec<u8>) {
    append_header(b'$', word.len(), out);
    out.extend_from_slice(word);
    out.extend_from_slice(b"\r\n");
}

fn append_header(kind: u8, number: usize, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(number.to_string().as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// A piece of the protocol, from its first byte on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece<'p> {
    Done,
    Error(&'p [u8]),
    /// The head of so many values.
    Array(usize),
    Value(&'p [u8]),
    /// In a value's place.
    Nil,
}

/// The piece that `bytes` begin with and its length; none where it is not all there.
fn parse(bytes: &[u8]) -> Result<Option<(Piece<'_>, usize)>, WrongReply> {
    let unexpected = || WrongReply::unexpected(&bytes[..bytes.len().min(LONGEST_LINE)]);
    let Some(end) = memchr::memchr(b'\n', &bytes[..bytes.len().min(LONGEST_LINE)]) else {
        return if bytes.len() < LONGEST_LINE { Ok(None) } else { Err(unexpected()) };
    };
    let line = bytes[..end].strip_suffix(b"\r").ok_or_else(unexpected)?;
    let (kind, words) = line.split_first().ok_or_else(unexpected)?;
    let number = || std::str::from_utf8(words).ok()?.parse::<usize>().ok();
    let after = end + 1;
    let piece = match kind {
        b'+' if words == b"OK" => Piece::Done,
        b'-' => Piece::Error(words),
        b'*' => Piece::Array(number().ok_or_else(unexpected)?),
        b'$' if words == b"-1" => Piece::Nil,
        b'$' => {
            let length = number().ok_or_else(unexpected)?;
            let Some(value) = bytes[after..].get(..length.saturating_add(2)) else { return Ok(None) };
            let value = value.strip_suffix(b"\r\n").ok_or_else(unexpected)?;
            return Ok(Some((Piece::Value(value), after + length + 2)));
        }
        _ => return Err(unexpected()),
    };
    Ok(Some((piece, after)))
}

/// How far the requests of one batch have been answered.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// Values of an array that are still to come.
    due: usize,
    /// Where in the requests the next answer belongs: at a request, or at a key if values are due.
    at: usize,
}

impl Reader {
    /// Counts the replies in `received`, which begins with what was left of the last piece, and checks them if
    /// `contents` are given: how many bytes are done with. The requests must be the same in every call.
    pub(super) fn read(
        &mut self,
        contents: Option<&Contents>,
        requests: &[u8],
        received: &[u8],
        tally: &mut Tally,
    ) -> Result<usize, WrongReply> {
        let mut consumed = 0;
        while let Some((piece, length)) = parse(&received[consumed..])? {
            let unexpected = || WrongReply::unexpected(&received[consumed..]);
            if contents.is_some() && self.due == 0 {
                self.begin(requests, &piece).ok_or_else(unexpected)?;
            }
            match piece {
                Piece::Array(values) if self.due == 0 && values > 0 => self.due = values,
                Piece::Value(_) | Piece::Nil => {
                    if let Some(contents) = contents {
                        let key = self.next_word(requests).ok_or_else(unexpected)?;
                        if let Piece::Value(value) = piece {
                            let name = || String::from_utf8_lossy(key).into_owned();
                            contents
                                .check(key, value)
                                .map_err(|reason| WrongReply::Value { key: name(), reason })?;
                        }
                    }
                    tally.hits += u64::from(piece != Piece::Nil);
                    self.due = self.due.saturating_sub(1);
                    tally.replies += u64::from(self.due == 0);
                }
                Piece::Done if self.due == 0 => {
                    tally.stored += 1;
                    tally.replies += 1;
                }
                Piece::Error(words) if self.due == 0 && words.starts_with(b"OOM ") => {
                    tally.refused += 1;
                    tally.replies += 1;
                }
                _ => return Err(unexpected()),
            }
            consumed += length;
        }
        Ok(consumed)
    }

    /// Goes to the key of the get, or behind the set, that the reply which begins with `piece` is due for; none where
    /// it is no answer to that.
    fn begin(&mut self, requests: &[u8], piece: &Piece<'_>) -> Option<()> {
        let Ok(Some((Piece::Array(words), length))) = parse(requests.get(self.at..)?) else { return None };
        self.at += length;
        match (self.next_word(requests)?, piece) {
            (b"GET", Piece::Value(_) | Piece::Nil) => Some(()),
            (b"MGET", Piece::Array(values)) if *values == words - 1 => Some(()),
            (b"SET", Piece::Done) | (_, Piece::Error(_)) => {
                (1..words).try_for_each(|_| self.next_word(requests).map(drop))
            }
            _ => None,
        }
    }

    fn next_word<'r>(&mut self, requests: &'r [u8]) -> Option<&'r [u8]> {
        let Ok(Some((Piece::Value(word), length))) = parse(requests.get(self.at..)?) else { return None };
        self.at += length;
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::script::{Dialect, Writer};

    const LENGTH: usize = 40;

    fn value(key: &str) -> Vec<u8> {
        let mut value = Vec::new();
        Contents::new().append(key.as_bytes(), 1, LENGTH, &mut value);
        value
    }

    /// The value of a key, as it comes.
    fn reply(key: &str) -> Vec<u8> {
        let mut reply = Vec::new();
        append_word(&value(key), &mut reply);
        reply
    }

    /// A get of `a`, `b` and `c`, a set of `d`, a get of `e`: the set first, as it does not wait for more keys.
    fn requests() -> Vec<u8> {
        let mut writer = Writer::new(1, 3).in_dialect(Dialect::Resp);
        for key in ["a", "b", "c"] {
            writer.get(key.as_bytes());
        }
        writer.set(b"d", b"*1\r\n$3\r\nGET");
        writer.get(b"e");
        writer.end_batch();
        let script = writer.finish();
        script.bytes(script.part(0, 0).0).to_vec()
    }

    /// Reads replies that come in pieces of `size` bytes.
    fn read(replies: &[u8], size: usize, is_checked: bool) -> Result<Tally, WrongReply> {
        let (mut reader, mut tally, mut left) = (Reader::default(), Tally::default(), Vec::new());
        let (contents, requests) = (Contents::new(), requests());
        for piece in replies.chunks(size) {
            left.extend_from_slice(piece);
            let done = reader.read(is_checked.then_some(&contents), &requests, &left, &mut tally)?;
            left.drain(..done);
        }
        assert!(left.is_empty() && reader.due == 0, "the replies end with a whole one");
        assert_eq!(reader.at, if is_checked { requests.len() } else { 0 });
        Ok(tally)
    }

    #[test]
    fn requests_are_arrays_of_words() {
        let expected = "*4\r\n$4\r\nMGET\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n\
            *3\r\n$3\r\nSET\r\n$1\r\nd\r\n$11\r\n*1\r\n$3\r\nGET\r\n*2\r\n$3\r\nGET\r\n$1\r\ne\r\n";
        assert_eq!(String::from_utf8(requests()).unwrap(), expected);
    }

    #[test]
    fn replies_are_counted_and_checked_in_pieces_of_any_size() {
        let replies = [
            b"*3\r\n".to_vec(),
            reply("a"),
            b"$-1\r\n".to_vec(),
            reply("c"),
            b"+OK\r\n".to_vec(),
            reply("e"),
        ]
        .concat();
        let expected = Tally { hits: 3, stored: 1, replies: 3, ..Tally::default() };
        for size in 1..=replies.len() {
            for is_checked in [false, true] {
                assert_eq!(read(&replies, size, is_checked), Ok(expected), "in pieces of {size}");
            }
        }
    }

    #[test]
    fn a_set_may_be_refused_for_want_of_memory() {
        let refusal = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n".to_vec();
        let replies = [b"*3\r\n$-1\r\n$-1\r\n$-1\r\n".to_vec(), refusal, b"$-1\r\n".to_vec()].concat();
        let expected = Tally { refused: 1, replies: 3, ..Tally::default() };
        assert_eq!(read(&replies, 7, true), Ok(expected));
    }

    #[test]
    fn a_false_reply_is_found() {
        let all = |values: [&[u8]; 3]| [b"*3\r\n".to_vec(), values.concat()].concat();
        let [a, b, c] = ["a", "b", "c"].map(reply);
        let swapped = all([&b, &a, &c]);
        let is_value = |error: &WrongReply| matches!(error, WrongReply::Value { key, .. } if key == "a");
        assert!(read(&swapped, 9, true).is_err_and(|error| is_value(&error)));
        let first = all([&a, &b, &c]);
        for wrong in [
            // Too few values, a set's answer to a get, a get's to a set, what nobody asked for, and no reply at all.
            b"*2\r\n$-1\r\n$-1\r\n".to_vec(),
            b"+OK\r\n".to_vec(),
            [&first[..], b"$-1\r\n"].concat(),
            [&first[..], b"+OK\r\n$-1\r\n$-1\r\n"].concat(),
            b"*-1\r\n".to_vec(),
            b"*0\r\n".to_vec(),
            b"-ERR unknown command\r\n".to_vec(),
            b"+QUEUED\r\n".to_vec(),
            b":1\r\n".to_vec(),
            b"*1\r\n*1\r\n".to_vec(),
            b"nonsense\r\n".to_vec(),
            b"*3\n".to_vec(),
            b"*3\r\n$1x\r\n".to_vec(),
            [b'*'; 600].to_vec(),
        ] {
            let found = read(&wrong, wrong.len(), true);
            assert!(matches!(found, Err(WrongReply::Unexpected(_))), "{found:?}: {}", wrong.escape_ascii());
        }
        // A value whose end is elsewhere.
        let longer = [b"*3\r\n$2\r\nabcd".to_vec(), a].concat();
        assert!(matches!(read(&longer, longer.len(), false), Err(WrongReply::Unexpected(_))));
    }

    proptest::proptest! {
        #[test]
        fn nothing_panics(text: Vec<u8>, heads in "[*$+:-][0-9]{0,25}\r\n") {
            for bytes in [&text[..], heads.as_bytes()] {
                let _ = Reader::default().read(Some(&Contents::new()), &requests(), bytes, &mut Tally::default());
                let _ = Reader::default().read(None, &[], bytes, &mut Tally::default());
            }
        }
    }
}
