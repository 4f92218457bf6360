//! The records that are looked up: a key of `N` bytes and a value of 64, as in section 4.2 of the paper.
//!
//! Both are functions of the record's number, so that any answer can be checked. Keys are a bijective mix of it, so
//! that records that are neighbours by number are none in an ordered index.

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::subject::mixed;

/// A key of `N` bytes, 8 or more. It lies in memory as a struct of C, as what follows does: some indexes are written in
/// C++.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key<const N: usize>(pub [u8; N]);

/// As a byte string is hashed, without its length, which is always the same.
impl<const N: usize> Hash for Key<N> {
    #[inline(always)]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(&self.0);
    }
}

impl<const N: usize> Key<N> {
    /// The key of a record. Different records have different keys.
    #[inline]
    #[must_use]
    pub fn of(record: u64) -> Key<N> {
        let mut bytes = [0; N];
        let mut word = record;
        for part in bytes.chunks_mut(8) {
            word = mixed(word);
            part.copy_from_slice(&word.to_le_bytes()[..part.len()]);
        }
        Key(bytes)
    }
}

/// A value of 64 bytes. Words of it can be changed in place, as those of a counter or of a time can.
#[derive(Debug)]
pub struct Value([AtomicU64; 8]);

impl Clone for Value {
    fn clone(&self) -> Value {
        Value(self.words().map(AtomicU64::new))
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        self.words() == other.words()
    }
}

impl Eq for Value {}

impl Value {
    /// The value of a record.
    #[inline]
    #[must_use]
    pub fn of(record: u64) -> Value {
        Value([record; 8].map(AtomicU64::new))
    }

    /// Its words.
    #[must_use]
    pub fn words(&self) -> [u64; 8] {
        self.0.each_ref().map(|word| word.load(Ordering::Relaxed))
    }

    /// Writes the value of a record over this one. Each word is whole; who needs all of them to agree needs more than
    /// this.
    #[inline(always)]
    pub fn renew(&self, record: u64) {
        self.0.iter().for_each(|word| word.store(record, Ordering::Relaxed));
    }

    /// Reads its first and its last word, and so every cache line that it lies in.
    #[inline(always)]
    #[must_use]
    pub fn read(&self) -> u64 {
        self.0[0].load(Ordering::Relaxed).wrapping_add(self.0[7].load(Ordering::Relaxed))
    }

    /// What [`Value::read`] gives for a record.
    #[inline]
    #[must_use]
    pub fn expected(record: u64) -> u64 {
        record.wrapping_mul(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn records_have_keys_and_values_of_their_own() {
        assert_eq!((0..10_000).map(Key::<8>::of).collect::<HashSet<_>>().len(), 10_000);
        assert_eq!((0..10_000).map(Key::<24>::of).collect::<HashSet<_>>().len(), 10_000);
        assert_eq!(Value::of(77).read(), Value::expected(77));
        let value = Value::of(1);
        value.renew(77);
        assert_eq!(value, Value::of(77));
    }
}
