//! Stamps: the numbers that compare-and-swap goes by.
//!
//! A client that reads an item with `gets` is told a number, and its `cas` succeeds only if the item still has that
//! number. The number must be another one each time the same key is stored; nothing more is asked. So there is no
//! global counter (memcached has one) but a counter for each of 64 groups of keys, and the item keeps 32 bits of it:
//! four bytes, where memcached keeps eight. What the client sees is unique among all keys: the stamp and the group's
//! number.
//!
//! A number comes again after 2^32 stores to one group. To be fooled, a client must hold a number over exactly a
//! multiple of that many.

use std::sync::atomic::{AtomicU32, Ordering};

use crossbeam_utils::CachePadded;

const GROUPS: usize = 64;

/// A counter for each group of keys.
#[derive(Debug)]
pub(crate) struct Stamps([CachePadded<AtomicU32>; GROUPS]);

impl Stamps {
    pub(crate) fn new() -> Self {
        Stamps(std::array::from_fn(|_| CachePadded::new(AtomicU32::new(0))))
    }

    fn group(hash: u64) -> usize {
        // Bits that decide neither the tag nor the bucket of a table of fewer than 2^40 buckets.
        (hash >> 42) as usize % GROUPS
    }

    /// A stamp that no item of a key with this hash has.
    pub(crate) fn next(&self, hash: u64) -> u32 {
        // Relaxed: the read-modify-write alone makes them differ.
        self.0[Self::group(hash)].fetch_add(1, Ordering::Relaxed)
    }

    /// What a client is told: never zero.
    pub(crate) fn number(stamp: u32, hash: u64) -> u64 {
        u64::from(stamp) * GROUPS as u64 + Self::group(hash) as u64 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn numbers_are_unique_and_never_zero() {
        let stamps = Stamps::new();
        let mut seen = HashSet::from([0]);
        for i in 0..10_000u64 {
            let hash = i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            assert!(seen.insert(Stamps::number(stamps.next(hash), hash)));
        }
    }
}
