//! What waits to be sent to a client: bytes, and large values among them that are sent from where they lie.
//!
//! Small values are copied into the bytes as soon as they are found; a large one, in several pieces, is kept in the
//! cache by reference until it has been sent, whatever happens to its item meanwhile. So a reply half sent ends as it
//! began, and what a slow client costs is bounded: [`Output::is_full`] tells when no more requests of its are to be
//! served.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Write};

use cache::engine::{Hit, Kept};

/// Bytes that may wait before a connection's next request has to.
const FULL: usize = 32 << 10;
/// Bytes of large values that may wait, beyond the one that makes it more.
const FULL_OF_VALUES: usize = 256 << 10;
/// Pieces handed to the kernel at once.
const PIECES: usize = 64;
/// Capacity above which an empty buffer is not kept.
const KEPT_CAPACITY: usize = 2 * FULL;

/// How sending went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    All,
    /// The socket takes no more at the moment.
    Blocked,
}

/// What waits to be sent.
#[derive(Default)]
pub(crate) struct Output {
    bytes: Vec<u8>,
    /// Bytes already sent.
    sent: usize,
    /// Large values, each with the place among the bytes where it is to be sent.
    values: VecDeque<(usize, Kept)>,
    /// Bytes of the first large value already sent.
    value_sent: usize,
    /// Bytes of large values that wait.
    value_bytes: usize,
}

impl Output {
    /// Where to append bytes.
    #[inline]
    pub(crate) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Appends a large value.
    pub(crate) fn value(&mut self, value: Kept) {
        self.value_bytes += value.value_len();
        self.values.push_back((self.bytes.len(), value));
    }

    /// Appends the value of an item: a copy of a small one, which lies in one piece, a large one as it lies.
    #[inline]
    pub(crate) fn value_of(&mut self, contiguous: Option<&[u8]>, hit: &Hit<'_>) {
        match contiguous {
            Some(value) => self.bytes.extend_from_slice(value),
            None => self.value(hit.keep().expect("a value in several pieces can be kept")),
        }
    }

    /// Whether enough is waiting.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() - self.sent >= FULL || self.value_bytes >= FULL_OF_VALUES
    }

    /// Bytes of memory that it takes; the large values in it are the cache's.
    pub(crate) fn held(&self) -> usize {
        self.bytes.capacity()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.sent == self.bytes.len() && self.values.is_empty()
    }

    /// Makes an empty one like new, without giving up its buffer if that is of a common size.
    pub(crate) fn reset(&mut self) {
        debug_assert!(self.is_empty());
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_CAPACITY);
        self.sent = 0;
    }

    /// Sends as much as the socket takes, and says how many bytes that was.
    ///
    /// # Errors
    /// Whatever the socket says, but that it would block.
    pub(crate) fn send(&mut self, socket: &mut impl Write) -> (usize, io::Result<Sent>) {
        let mut total = 0;
        while !self.is_empty() {
            match self.send_once(socket) {
                Ok(0) => return (total, Err(io::ErrorKind::WriteZero.into())),
                Ok(sent) => {
                    total += sent;
                    self.advance(sent);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return (total, Ok(Sent::Blocked)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return (total, Err(error)),
            }
        }
        (total, Ok(Sent::All))
    }

    fn send_once(&self, socket: &mut impl Write) -> io::Result<usize> {
        if self.values.is_empty() {
            return socket.write(&self.bytes[self.sent..]);
        }
        let mut pieces = [IoSlice::new(&[]); PIECES];
        let mut count = 0;
        for (slot, piece) in pieces.iter_mut().zip(self.pieces()) {
            *slot = IoSlice::new(piece);
            count += 1;
        }
        socket.write_vectored(&pieces[..count])
    }

    /// All that waits, in order, without empty pieces.
    fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let ends = self.values.iter().map(|&(place, _)| place).chain([self.bytes.len()]);
        let starts = [self.sent].into_iter().chain(self.values.iter().map(|&(place, _)| place));
        let bytes = starts.zip(ends).map(|(start, end)| &self.bytes[start..end]);
        let values = self.values.iter().map(Some).chain([None]).enumerate();
        bytes
            .zip(values)
            .flat_map(|(bytes, (number, value))| {
                let skip = if number == 0 { self.value_sent } else { 0 };
                let value = value.into_iter().flat_map(move |(_, value)| skip_bytes(value.pieces(), skip));
                [bytes].into_iter().chain(value)
            })
            .filter(|piece| !piece.is_empty())
    }

    fn advance(&mut self, mut sent: usize) {
        while sent > 0 {
            let bytes_end = self.values.front().map_or(self.bytes.len(), |&(place, _)| place);
            let of_bytes = sent.min(bytes_end - self.sent);
            self.sent += of_bytes;
            sent -= of_bytes;
            if let Some((_, value)) = self.values.front().filter(|_| self.sent == bytes_end) {
                let len = value.value_len();
                let of_value = sent.min(len - self.value_sent);
                self.value_sent += of_value;
                sent -= of_value;
                if self.value_sent == len {
                    self.value_bytes -= len;
                    self.value_sent = 0;
                    self.values.pop_front();
                }
            }
        }
    }
}

/// The pieces behind the first `skip` bytes.
fn skip_bytes<'a>(pieces: impl Iterator<Item = &'a [u8]>, mut skip: usize) -> impl Iterator<Item = &'a [u8]> {
    pieces.map(move |piece| {
        let skipped = skip.min(piece.len());
        skip -= skipped;
        &piece[skipped..]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cache::engine::{Cache, Config, Entry, Verb};

    /// A socket that takes a few bytes at a time and blocks in between.
    struct Trickle {
        taken: Vec<u8>,
        next: usize,
    }

    impl Write for Trickle {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.write_vectored(&[IoSlice::new(bytes)])
        }

        fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
            self.next = self.next * 7 % 9973 + 1;
            if self.next.is_multiple_of(3) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let all: Vec<u8> =
                pieces.iter().flat_map(|piece| piece.iter().copied()).take(self.next).collect();
            self.taken.extend_from_slice(&all);
            Ok(all.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn bytes_and_values_arrive_in_order_however_they_are_cut() {
        let cache: Cache = Cache::new(Config::with_limit(32 << 20)).unwrap();
        let mut session = cache.session();
        let mut output = Output::default();
        let mut expected = Vec::new();
        for round in 0..20usize {
            let text = vec![b'a' + round as u8; round * 37 % 100];
            output.bytes().extend_from_slice(&text);
            expected.extend_from_slice(&text);
            if round % 3 != 0 {
                let value: Vec<u8> = (0..10_000 + round * 3000).map(|i| (i * round) as u8).collect();
                session.store(Verb::Set, Entry::new(b"k"), &value).unwrap();
                output.value(session.pin().get(b"k").unwrap().keep().expect("a large value"));
                expected.extend_from_slice(&value);
            }
        }
        assert!(output.is_full());
        let mut socket = Trickle { taken: Vec::new(), next: 1 };
        let mut total = 0;
        loop {
            let (sent, outcome) = output.send(&mut socket);
            total += sent;
            if outcome.unwrap() == Sent::All {
                break;
            }
            // What has been sent is gone, and what has not is not.
            assert_eq!(output.pieces().map(<[u8]>::len).sum::<usize>(), expected.len() - total);
        }
        assert!(output.is_empty() && !output.is_full());
        assert!(socket.taken == expected);
        output.reset();
        assert!(output.is_empty());
    }
}
