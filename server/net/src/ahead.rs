//! Requests that are received before the first of them is served.
//!
//! One wait tells of many connections, and most have sent one short request. Served as they come, each waits for an
//! index line and for its item, and the kernel's work for the next connection lies between two such waits, so that none
//! overlap. So a worker goes by groups:
//!
//! ```text
//!   receive     a piece from each connection of the group that has nothing else to be done first
//!   prefetch    the index lines of the keys that these begin with, then the items that are there
//!   serve       each connection's turn in order, as ever; what it would have received first is here already
//! ```
//!
//! A key that is asked for is a guess from the first bytes of a piece: whoever serves it parses all of it, so a wrong
//! guess costs a line that nobody needed. What a read has come to is kept whatever it was, and its connection's turn
//! deals with it as if it had just read.
//!
//! Rejected, with numbers, in `docs/decisions/one-request-at-a-time.md`: other ways to wait, to receive and to send.

use std::io::{self, Read};

use cache::engine::GROUP;
use protocol::binary::REQUEST_MAGIC;

use crate::executor::Executor;

/// Bytes received ahead from a connection. What is longer is received to its end in its turn.
const PIECE: usize = 4 << 10;
/// Connections in a group: as many keys as the cache asks for at once.
pub(crate) const MOST: usize = GROUP;
/// Bytes of a binary frame before its extras.
const HEADER: usize = 24;

/// What was received from a connection ahead of its turn.
pub(crate) struct Early {
    /// Where it lies.
    place: usize,
    /// What the read has come to.
    outcome: io::Result<usize>,
}

/// The pieces of a group.
pub(crate) struct Ahead {
    bytes: Box<[u8]>,
    /// How long each piece is.
    lens: [usize; MOST],
    len: usize,
}

impl Ahead {
    pub(crate) fn new() -> Self {
        Ahead { bytes: vec![0; MOST * PIECE].into_boxed_slice(), lens: [0; MOST], len: 0 }
    }

    /// Forgets the pieces of the last group.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Receives a connection's piece.
    ///
    /// # Panics
    /// If the group is full.
    pub(crate) fn receive(&mut self, stream: &mut impl Read) -> Early {
        let place = self.len;
        let outcome = stream.read(&mut self.bytes[place * PIECE..(place + 1) * PIECE]);
        self.lens[place] = outcome.as_ref().map_or(0, |&count| count);
        self.len += 1;
        Early { place, outcome }
    }

    /// Puts what was received ahead at the start of `into`, and what has come behind a full piece: what the reads have
    /// come to, and whether another one may find more.
    pub(crate) fn complete(
        &self,
        early: Early,
        stream: &mut impl Read,
        into: &mut [u8],
    ) -> (io::Result<usize>, bool) {
        let Early { place, outcome } = early;
        let piece = self.piece(place);
        into[..piece.len()].copy_from_slice(piece);
        if piece.len() < PIECE {
            return (outcome, false);
        }
        // An end or an error is there for the next read, too.
        let more = stream.read(&mut into[PIECE..]).unwrap_or(0);
        (Ok(PIECE + more), more == 0)
    }

    /// What was received there.
    fn piece(&self, place: usize) -> &[u8] {
        &self.bytes[place * PIECE..][..self.lens[place]]
    }

    /// Asks for the memory that the first requests of the pieces will touch.
    pub(crate) fn prefetch(&self, executor: &Executor) {
        let mut keys: [&[u8]; MOST] = [&[]; MOST];
        let mut len = 0;
        for key in (0..self.len).filter_map(|place| first_key(self.piece(place))) {
            keys[len] = key;
            len += 1;
        }
        // One alone has nothing that it would overlap with.
        if len > 1 {
            executor.prefetch(&keys[..len]);
        }
    }
}

/// The key that a request at the start of `piece` most likely asks for.
#[inline]
fn first_key(piece: &[u8]) -> Option<&[u8]> {
    if piece.first() == Some(&REQUEST_MAGIC) {
        let length = usize::from(u16::from_be_bytes([*piece.get(2)?, *piece.get(3)?]));
        let start = HEADER + usize::from(*piece.get(4)?);
        return piece.get(start..start + length).filter(|key| !key.is_empty());
    }
    // A command, a space, the key, and a space or the end of the line.
    let start = piece.iter().take(MOST_OF_A_COMMAND).position(|&byte| byte == b' ')? + 1;
    let rest = piece.get(start..)?;
    let length = rest.iter().take(protocol::MAX_KEY_LENGTH + 1).position(|&byte| byte <= b' ')?;
    (length > 0).then(|| &rest[..length])
}

/// Bytes in which a command that has a key has ended: `prepend` is the longest.
const MOST_OF_A_COMMAND: usize = 9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_a_first_request_is_found_in_every_protocol() {
        let key = |piece: &[u8]| first_key(piece).map(<[u8]>::to_vec);
        for text in
            ["get k1\r\n", "set k1 0 0 2\r\nvv\r\n", "mg k1 v\r\n", "get k1 k2\r\n", "prepend k1 0 0 1\r\n"]
        {
            assert_eq!(key(text.as_bytes()).as_deref(), Some(b"k1".as_slice()), "{text}");
        }
        let mut frame = vec![0; HEADER + 8];
        (frame[0], frame[1], frame[3], frame[4]) = (REQUEST_MAGIC, 1, 2, 8);
        frame.extend_from_slice(b"k1value");
        assert_eq!(key(&frame).as_deref(), Some(b"k1".as_slice()));
        for end in 0..HEADER + 10 {
            assert_eq!(key(&frame[..end]), None, "a frame cut at {end}");
        }
        for none in ["", "get", "get ", "get k1", "version\r\n", "get \r\n", "verbositylong 1\r\n"] {
            assert_eq!(key(none.as_bytes()), None, "{none}");
        }
        assert_eq!(key(&[b"get ".as_slice(), &[b'k'; 300]].concat()), None, "longer than any key");
    }

    #[test]
    fn what_comes_ahead_and_what_comes_behind_it_is_one_piece() {
        let mut ahead = Ahead::new();
        for round in 0..2 {
            ahead.clear();
            let sent: Vec<Vec<u8>> = (0..MOST)
                .map(|number| (0..number * 600).map(|i| (i * 7 + number + round) as u8).collect())
                .collect();
            let mut streams: Vec<&[u8]> = sent.iter().map(Vec::as_slice).collect();
            let early: Vec<Early> = streams.iter_mut().map(|stream| ahead.receive(stream)).collect();
            for ((early, stream), sent) in early.into_iter().zip(&mut streams).zip(&sent) {
                let mut into = vec![0; 2 * PIECE];
                let (outcome, may_be_more) = ahead.complete(early, stream, &mut into);
                let count = outcome.expect("bytes can be read");
                assert_eq!(count, sent.len().min(into.len()));
                assert!(into[..count] == sent[..count] && !may_be_more);
            }
        }
    }

    /// A socket that has a piece, and then fails once.
    struct Fails(usize);

    impl Read for Fails {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let had = std::mem::take(&mut self.0);
            if had == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(had.min(into.len())) }
        }
    }

    #[test]
    fn an_error_is_told_in_the_turn_and_never_hides_what_came_before() {
        let mut ahead = Ahead::new();
        let mut into = vec![0; 2 * PIECE];
        let early = ahead.receive(&mut Fails(0));
        let (outcome, may_be_more) = ahead.complete(early, &mut Fails(1), &mut into);
        assert_eq!(outcome.map_err(|error| error.kind()), Err(io::ErrorKind::WouldBlock));
        assert!(!may_be_more);
        let mut full = Fails(PIECE);
        let early = ahead.receive(&mut full);
        let (outcome, may_be_more) = ahead.complete(early, &mut full, &mut into);
        assert!(matches!(outcome, Ok(PIECE)) && may_be_more);
    }
}
