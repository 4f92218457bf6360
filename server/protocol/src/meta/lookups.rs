//! Pipelined `mg`: the lines that follow one that is being served, for those who gather them.
//!
//! Who pipelines asks for the same things of each key. So what stands behind the key is compared with what stood there
//! in the line before, up to sixteen bytes at once, the line's end included; if it is the same, its flags are known. An
//! opaque token, which differs from line to line, is left out: what stands before it and behind it is compared. All
//! else is walked letter by letter.

use super::flags::{Flags, Letters, short_argument};
use super::get::{self, MetaGet};
use super::key::MetaKey;
use crate::key::Key;
use crate::reply::CRLF;

/// Finds the `mg` that follow each other.
///
/// ```
/// # use lookaside_protocol::meta::MetaLookups;
/// let mut lookups = MetaLookups::default();
/// let (request, length) = lookups.next(b"mg key v\r\nmg key T30\r\n").unwrap();
/// assert_eq!((request.key.plain(), length), (Some(b"key".as_slice()), 10));
/// assert_eq!(lookups.next(b"mg key T30\r\n"), None);
/// ```
#[derive(Debug, Default)]
pub struct MetaLookups {
    before: Ending,
}

/// What a line ends with, behind its key: the flags, and what ends it.
#[derive(Debug, Default)]
struct Ending {
    /// All of it, or what stands before the opaque token.
    head: Piece,
    /// What stands behind that.
    tail: Option<Piece>,
    letters: Letters,
}

/// A few bytes to compare others with.
#[derive(Debug)]
struct Piece {
    /// The first the lowest.
    bytes: u128,
    /// As many bytes that are all ones.
    mask: u128,
    length: usize,
}

impl Default for Piece {
    /// One that is found nowhere.
    fn default() -> Self {
        Piece { bytes: 1, mask: 0, length: 0 }
    }
}

impl MetaLookups {
    /// The `mg` at the start of what was received, with the length of its line, if one stands there that
    /// [is a lookup](MetaGet::is_lookup). Other commands need not be told apart.
    #[inline]
    pub fn next<'a>(&mut self, received: &'a [u8]) -> Option<(MetaGet<'a>, usize)> {
        let rest = received.strip_prefix(b"mg ")?;
        let Some((key, behind)) = Key::split_plain(rest) else { return get::next_lookup(received) };
        let key = MetaKey::from_plain(key.as_bytes());
        let head = received.len() - behind.len();
        if let Some((flags, length)) = self.before.flags_like_these(behind) {
            return Some((MetaGet { key, flags }, head + length));
        }
        let (flags, length) = Flags::short_behind(behind);
        if !behind[length..].starts_with(CRLF) {
            return get::next_lookup(received);
        }
        let request = MetaGet { key, flags };
        if !request.is_lookup() {
            return None;
        }
        let length = length + CRLF.len();
        if let Some(ending) = Ending::of(behind, length, flags) {
            self.before = ending;
        }
        Some((request, head + length))
    }
}

impl Ending {
    /// That of a line whose flags have this text behind them, if both its pieces are short.
    fn of(behind: &[u8], length: usize, flags: Flags<'_>) -> Option<Ending> {
        let letters = flags.letters();
        let Some(token) = flags.argument(b'O') else {
            return Some(Ending { head: Piece::of(behind, length)?, tail: None, letters });
        };
        let start = token.as_ptr() as usize - behind.as_ptr() as usize;
        let end = start + token.len();
        let (head, tail) = (Piece::of(behind, start)?, Piece::of(&behind[end..], length - end)?);
        Some(Ending { head, tail: Some(tail), letters })
    }

    /// The flags behind a key, and the bytes up to the end of their line, if that ends like this.
    #[inline(always)]
    fn flags_like_these<'a>(&self, behind: &'a [u8]) -> Option<(Flags<'a>, usize)> {
        if !self.head.begins(behind) {
            return None;
        }
        let mut length = self.head.length;
        if let Some(tail) = &self.tail {
            let token = short_argument(b'O', &behind[length..])?;
            length += token;
            if !tail.begins(&behind[length..]) {
                return None;
            }
            length += tail.length;
        }
        let text = behind[..length - CRLF.len()].get(1..).unwrap_or_default();
        Some((Flags::known(text, self.letters), length))
    }
}

impl Piece {
    /// So many bytes at the start of these, if they are few and others follow them.
    fn of(bytes: &[u8], length: usize) -> Option<Piece> {
        let start = bytes.first_chunk()?;
        let unused = u128::BITS as usize - 8 * Some(length).filter(|length| matches!(length, 1..=16))?;
        let mask = u128::MAX >> unused;
        Some(Piece { bytes: u128::from_le_bytes(*start) & mask, mask, length })
    }

    #[inline(always)]
    fn begins(&self, bytes: &[u8]) -> bool {
        bytes.first_chunk().is_some_and(|start| u128::from_le_bytes(*start) & self.mask == self.bytes)
    }
}
