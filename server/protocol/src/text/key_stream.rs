//! `get` and `gets` lines that are longer than the buffer they are read into.
//!
//! The number of keys on a line is not limited, but the buffer of a connection is. A [`KeyStream`] takes such a line in
//! chunks: of each chunk it hands out the keys that are complete, and leaves at most one unfinished key (251 bytes, if
//! the last is a carriage return that may belong to the line's ending) to be offered again with the bytes that follow.
//!
//! One promise of the short form cannot be kept: replies to the first keys are under way before the last ones have been
//! seen. If a key turns out to be too long, the rest of the line is skipped, and then the error line stands where `END`
//! would have stood. memcached, which keeps the whole line in memory, sends the error line alone.

use crate::error::ErrorReply;
use crate::key::{BadKeys, Keys, MAX_KEY_LENGTH};
use crate::line::{long_get, strip_ending};
use crate::refusal::Refusal;

/// A `get` or `gets` line in the course of being read.
///
/// ```
/// # use lookaside_protocol::{KeyStream, StreamState};
/// let (mut stream, consumed) = KeyStream::begin(b"get sun mo").unwrap();
/// assert_eq!(consumed, 4);
///
/// let step = stream.feed(b"sun mo");
/// assert_eq!(step.keys.map(|key| key.len()).collect::<Vec<_>>(), [3]);
/// assert_eq!((step.consumed, step.state), (4, StreamState::More));
///
/// let step = stream.feed(b"moon\r\nversion\r\n");
/// assert_eq!(step.keys.map(|key| key.len()).collect::<Vec<_>>(), [4]);
/// assert_eq!((step.consumed, step.state), (6, StreamState::End));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyStream {
    with_cas: bool,
    found_a_key: bool,
    /// Set once the line can only be answered with this.
    refused: Option<ErrorReply>,
}

/// What one chunk held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Streamed<'a> {
    /// The complete keys of the chunk, in order; there may be none.
    pub keys: Keys<'a>,
    /// How many bytes of the chunk are done with. The others are to be offered again, followed by more.
    pub consumed: usize,
    /// Whether the line goes on.
    pub state: StreamState,
}

/// Whether the line goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamState {
    /// The line has not ended: feed more.
    More,
    /// The line has ended well: after the values of these keys comes `END`.
    End,
    /// The line has ended, and was bad: the refusal's answer stands where `END` would.
    Refused(Refusal),
}

impl KeyStream {
    /// Begins with the bytes that [`split_line`](crate::split_line) called a [`Line::LongGet`](crate::Line::LongGet);
    /// also says how many of them are the command, and are to be consumed. `None` if it is not such a line.
    ///
    /// A line with spaces before its command is an unknown command, however long: it is skipped and answered `ERROR`.
    pub fn begin(received: &[u8]) -> Option<(KeyStream, usize)> {
        let start = long_get(received)?;
        let refused = (start.leading_spaces > 0).then_some(ErrorReply::Error);
        Some((KeyStream { with_cas: start.with_cas, found_a_key: false, refused }, start.length))
    }

    /// Goes on in the middle of the list of a line that has been found good: at a key, or at the line's ending.
    ///
    /// ```
    /// # use lookaside_protocol::{KeyStream, StreamState};
    /// let step = KeyStream::resume(false).feed(b"moon star\r\n");
    /// assert_eq!((step.keys.count(), step.consumed, step.state), (2, 11, StreamState::End));
    /// ```
    pub fn resume(with_cas: bool) -> KeyStream {
        KeyStream { with_cas, found_a_key: true, refused: None }
    }

    /// Whether the reply states each value's CAS id (`gets`).
    pub fn with_cas(&self) -> bool {
        self.with_cas
    }

    /// Takes the next bytes of the line, beginning with those that the last step left.
    ///
    /// If nothing was consumed and the line goes on, more bytes are needed; 252 are always enough for a step.
    pub fn feed<'b>(&mut self, chunk: &'b [u8]) -> Streamed<'b> {
        let end = memchr::memchr(b'\n', chunk);
        let (list, consumed) = match end {
            Some(end) => (strip_ending(&chunk[..=end]), end + 1),
            None => {
                let unfinished = memchr::memrchr(b' ', chunk).map_or(0, |space| space + 1);
                (&chunk[..unfinished], unfinished)
            }
        };
        let mut keys = Keys::none();
        if self.refused.is_none() {
            match Keys::new(list) {
                Ok(found) => {
                    self.found_a_key = true;
                    keys = found;
                }
                Err(BadKeys::TooLong) => self.refused = Some(ErrorReply::BadFormat),
                Err(BadKeys::None) if end.is_some() && !self.found_a_key => {
                    self.refused = Some(ErrorReply::BadFormat);
                }
                Err(BadKeys::None) => {}
            }
        }
        if end.is_some() {
            let state =
                self.refused.map_or(StreamState::End, |reply| StreamState::Refused(Refusal::answer(reply)));
            return Streamed { keys, consumed, state };
        }
        let unfinished = &chunk[consumed..];
        if unfinished.strip_suffix(b"\r").unwrap_or(unfinished).len() > MAX_KEY_LENGTH {
            self.refused.get_or_insert(ErrorReply::BadFormat);
        }
        // Of a line already refused only its end is of interest.
        let consumed = if self.refused.is_some() { chunk.len() } else { consumed };
        Streamed { keys, consumed, state: StreamState::More }
    }
}
