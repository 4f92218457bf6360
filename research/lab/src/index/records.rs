//! The records that the tables index: 16-byte keys, as in most of the paper's workloads (sections 2.2 and 5.3).
//!
//! Record number `i` has a key that a bijective mix makes from `i`, so that any number of distinct keys, those of
//! records that exist and those of records that never will, can be made in nanoseconds and in any order. A table stores
//! the number; the keys lie here, one beside the other, in huge pages.
//!
//! Every table hashes with XXH3 (64 bits), ours and the foreign ones: comparisons are of tables, not of hash functions.

use cuckoo::{Entries, Location};
use pages::{MapError, PageKind, Region};
use twox_hash::XxHash3_64;

use super::frozen::Frozen;
use crate::subject::mixed;

/// A key of 16 bytes, so aligned that it never lies across two cache lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct Key(pub [u8; 16]);

impl Key {
    /// The key of record `record`. Different records have different keys.
    ///
    /// ```
    /// use lookaside_lab::index::Key;
    ///
    /// assert_ne!(Key::of(1), Key::of(2));
    /// assert_eq!(Key::of(1), Key::of(1));
    /// ```
    #[inline]
    #[must_use]
    pub fn of(record: u64) -> Key {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&mixed(record).to_le_bytes());
        bytes[8..].copy_from_slice(&mixed(!record).to_le_bytes());
        Key(bytes)
    }

    /// The hash that every table here uses: XXH3, 64 bits, without a seed.
    #[inline]
    #[must_use]
    pub fn hash(&self) -> u64 {
        XxHash3_64::oneshot(&self.0)
    }

    /// The key as two integers.
    #[inline]
    #[must_use]
    pub fn to_words(&self) -> [u64; 2] {
        let both = u128::from_ne_bytes(self.0);
        [both as u64, (both >> 64) as u64]
    }

    /// The key of these two integers.
    #[inline]
    #[must_use]
    pub fn from_words([low, high]: [u64; 2]) -> Key {
        Key((u128::from(high) << 64 | u128::from(low)).to_ne_bytes())
    }

    /// Whether both are the same, compared as one integer.
    #[inline]
    #[must_use]
    pub fn same(&self, other: &Key) -> bool {
        u128::from_ne_bytes(self.0) == u128::from_ne_bytes(other.0)
    }
}

/// Feeds a hasher the bytes and nothing else, so that one that hashes with XXH3 gives [`Key::hash`].
impl std::hash::Hash for Key {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write(&self.0);
    }
}

/// Records 0 to `len`, by number.
pub struct Records {
    keys: Frozen<Key>,
}

impl Records {
    /// The first `len` records, their keys in transparent huge pages.
    ///
    /// # Errors
    /// [`MapError`]: none were asked for, or there is no memory for them.
    pub fn new(len: usize) -> Result<Records, MapError> {
        Ok(Records { keys: Frozen::make(len, PageKind::Transparent, Key::of)? })
    }

    /// The key of a record.
    ///
    /// # Panics
    /// If there is no such record.
    #[inline]
    #[must_use]
    pub fn key(&self, record: u64) -> &Key {
        &self.keys[record as usize]
    }

    /// How many records there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are none: never, for they could not have been made.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The region their keys lie in.
    #[must_use]
    pub fn region(&self) -> &Region {
        self.keys.region()
    }
}

impl Records {
    /// Whether the record at a location of a cuckoo table, which is its number, has this key.
    #[inline]
    #[must_use]
    pub fn holds(&self, location: Location, key: &Key) -> bool {
        self.key(location.get()).same(key)
    }
}

impl Entries for &Records {
    #[inline]
    fn hash(&self, location: Location) -> u64 {
        self.key(location.get()).hash()
    }

    #[inline]
    fn prefetch(&self, location: Location) {
        pages::prefetch(self.key(location.get()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn records_have_keys_of_their_own() {
        let records = Records::new(10_000).unwrap();
        let keys: HashSet<_> = (0..10_000).map(|record| records.key(record).0).collect();
        assert_eq!(keys.len(), 10_000);
        assert!(records.key(7).same(&Key::of(7)) && !records.key(7).same(&Key::of(8)));
        assert_eq!(Key::from_words(Key::of(7).to_words()), Key::of(7));
    }
}
