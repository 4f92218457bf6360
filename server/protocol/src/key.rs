//! Keys, and lists of keys that have been checked as a whole before the first one is used.
//!
//! A reply to `get` must not begin before the whole line is known to be good. Looking at each key twice would double
//! the cost of a `get` of a hundred keys, so the check takes long strides: from the start of a key, the *last* space
//! among the next 251 bytes is looked for. If there is none, the key is too long; if there is one, every key before it
//! is short enough, and the next stride starts behind it. A list of up to 250 bytes needs no check at all.
//! (Rejected: noting down where the keys lie. It needs memory in proportion to the line.)

use crate::token::{skip_spaces, split_token, word_length};
use std::fmt;
use std::iter::FusedIterator;
use std::ops::Deref;

/// The longest key in bytes.
pub const MAX_KEY_LENGTH: usize = 250;

/// A key: 1 to [`MAX_KEY_LENGTH`] bytes, none of them a space or a line feed.
///
/// Every other byte is allowed, as memcached allows it, control characters included.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key<'a>(&'a [u8]);

impl<'a> Key<'a> {
    /// The bytes as a key, or `None` if they cannot be one.
    ///
    /// ```
    /// # use lookaside_protocol::Key;
    /// assert!(Key::new(b"user:7").is_some());
    /// assert!(Key::new(b"").is_none());
    /// assert!(Key::new(b"two words").is_none());
    /// ```
    pub fn new(bytes: &'a [u8]) -> Option<Key<'a>> {
        let fits = (1..=MAX_KEY_LENGTH).contains(&bytes.len());
        (fits && memchr::memchr2(b' ', b'\n', bytes).is_none()).then_some(Key(bytes))
    }

    /// A token of a request line, which can have neither a space nor a line feed in it, as a key.
    pub(crate) fn from_token(token: &'a [u8]) -> Option<Key<'a>> {
        (1..=MAX_KEY_LENGTH).contains(&token.len()).then_some(Key(token))
    }

    /// The key at the start of a text that may go on behind its line, and what stands behind it, if that is a key that
    /// is not looked at any further: no space before it, not too long. Where it ends is any space, control character or
    /// line end.
    #[inline(always)]
    pub(crate) fn split_plain(text: &'a [u8]) -> Option<(Key<'a>, &'a [u8])> {
        let (key, behind) = text.split_at(word_length(text));
        Some((Key::from_token(key)?, behind))
    }

    /// The key's bytes.
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }
}

impl Deref for Key<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0
    }
}

impl fmt::Debug for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key(\"{}\")", self.0.escape_ascii())
    }
}

/// The keys of a request, in the order of the request, duplicates included. All have been checked.
///
/// A cheap cursor over the request line: clone it to walk over the keys again. Two lists are equal if their keys are.
#[derive(Clone)]
pub struct Keys<'a> {
    /// What is left of the list; starts with a key, never with a space.
    rest: &'a [u8],
}

/// Why a list of keys was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BadKeys {
    /// There is no key in it.
    None,
    /// A key is longer than [`MAX_KEY_LENGTH`].
    TooLong,
}

impl<'a> Keys<'a> {
    /// Checks a list of keys with spaces between (and before, and behind) them.
    #[inline]
    pub(crate) fn new(list: &'a [u8]) -> Result<Keys<'a>, BadKeys> {
        let rest = skip_spaces(list);
        if rest.is_empty() {
            return Err(BadKeys::None);
        }
        if rest.len() > MAX_KEY_LENGTH {
            check_lengths(rest)?;
        }
        Ok(Keys { rest })
    }

    /// Whether there is none left.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn none() -> Keys<'a> {
        Keys { rest: &[] }
    }
}

fn check_lengths(mut list: &[u8]) -> Result<(), BadKeys> {
    while let Some(stride) = list.get(..=MAX_KEY_LENGTH) {
        let space = memchr::memrchr(b' ', stride).ok_or(BadKeys::TooLong)?;
        list = &list[space + 1..];
    }
    Ok(())
}

impl<'a> Iterator for Keys<'a> {
    type Item = Key<'a>;

    #[inline]
    fn next(&mut self) -> Option<Key<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let (key, after) = split_token(self.rest);
        self.rest = after;
        Some(Key(key))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::from(!self.rest.is_empty()), Some(self.rest.len().div_ceil(2)))
    }
}

impl FusedIterator for Keys<'_> {}

impl PartialEq for Keys<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.clone().eq(other.clone())
    }
}

impl Eq for Keys<'_> {}

impl fmt::Debug for Keys<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_at_the_limit_wherever_the_key_stands() {
        for before in 0..600 {
            for (length, fine) in [(249, true), (250, true), (251, false), (252, false), (700, false)] {
                let mut list = b"ab ".repeat(before / 3);
                list.resize(before, b' ');
                list.resize(before + length, b'k');
                list.extend_from_slice(b" c");
                if before > 0 && list[before - 1] != b' ' {
                    continue; // the key would be glued to the one before it
                }
                let keys = Keys::new(&list);
                assert_eq!(keys.is_ok(), fine, "{length} bytes at {before}");
                if let Ok(keys) = keys {
                    assert_eq!(keys.map(|key| key.len()).max(), Some(length));
                }
            }
        }
    }

    #[test]
    fn lists_without_a_key() {
        assert_eq!(Keys::new(b""), Err(BadKeys::None));
        assert_eq!(Keys::new(&[b' '; 1000]), Err(BadKeys::None));
        assert_eq!(Keys::none().next(), None);
    }
}
