//! Stamps: the numbers that compare-and-swap goes by.
//!
//! A client that reads an item with `gets` is told a number, and its `cas` succeeds only if the item still has that
//! number. So the number must be another one each time the key is stored, and a higher one, for clients also ask
//! whether theirs is older. There is no global counter (memcached has one) but one for each of 4096 groups of keys, of
//! 64 bits, which never wraps. The item keeps the low sixteen bits: two bytes, where memcached keeps eight.
//!
//! # The full number
//!
//! is made again from these: the highest that the group's counter has reached and that ends in them.
//!
//! ```text
//!   full(item) = counter - (counter - stamp) mod 2^16
//! ```
//!
//! *It is never lower than the true one*, for the counter has reached that, and whoever has found the item sees that it
//! has. *It is the true one* unless 2^16 other stores to the group came after the item; then it grows, by 2^16 at a
//! time. So an item that nobody has stored for long may be told another number each time, and a compare-and-swap fails
//! that might have succeeded: the client reads again and tries again, as it must anyway.
//!
//! *It never succeeds in vain.*
//!
//! ```text
//! writer: lock the key's buckets; mark the old item Limbo; number = counter += 1 (release); publish; unlock
//! reader: find the item; c = counter (acquire); if the item is Live still, its number is made again from c
//! ```
//!
//! An item is numbered while the buckets of its key are locked, just before it can be found
//! ([`cuckoo::Entries::enters`]), and after the item before it was marked. If `c` is not below the number of a later
//! item of the key, the reader sees the mark, and tells a number that no item has. Else all later items have higher
//! numbers than `c`, and are told no lower ones: not what was told of this one. So numbers of a key rise, too.
//!
//! What the client sees is unique among all keys: the number and the group's. A client may also give an item a number
//! of its own ([`Entry::cas`](crate::engine::Entry::cas)); the engine goes by its own numbers then, too.
//!
//! # Rejected
//!
//! *32 bits in the item and in the counter*: it needs two more bytes of each item and wraps nevertheless, and then a
//! compare-and-swap succeeds in vain. *Fewer groups*: a group's 2^16 stores go by sooner. *Lines of their own for the
//! counters*: 4096 of them would take half a megabyte, and at most a few threads store at the same time.

use atomics::{AtomicU64, Ordering};

/// The model checker follows one key, and sees numbers end alike soon.
const GROUPS: usize = if cfg!(loom) { 1 } else { 4096 };
const KEPT: u16 = if cfg!(loom) { 1 } else { u16::MAX };

/// A counter for each group of keys: the last number given out. The first is 1.
#[derive(Debug)]
pub(crate) struct Stamps(Box<[AtomicU64]>);

/// The low bits of an item's number: what the item keeps of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp(u16);

impl Stamp {
    pub(crate) fn from_bits(bits: u16) -> Stamp {
        Stamp(bits)
    }

    pub(crate) fn bits(self) -> u16 {
        self.0
    }
}

/// The number of an item, in its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Number(u64);

impl Number {
    /// That of no item.
    pub(crate) const NONE: Number = Number(0);

    pub(crate) fn stamp(self) -> Stamp {
        Stamp(self.0 as u16 & KEPT)
    }

    /// What a client is told: never zero, and of one key in the order of the numbers.
    pub(crate) fn told(self, hash: u64) -> u64 {
        self.0.wrapping_mul(GROUPS as u64).wrapping_add(Stamps::group(hash) as u64).wrapping_add(1)
    }
}

impl Stamps {
    pub(crate) fn new() -> Self {
        Stamps((0..GROUPS).map(|_| AtomicU64::new(0)).collect())
    }

    /// The counters of all groups.
    #[cfg(not(loom))]
    pub(crate) fn counters(&self) -> &[AtomicU64] {
        &self.0
    }

    fn group(hash: u64) -> usize {
        // Bits that decide no bucket in a table of fewer than 2^36 buckets.
        (hash >> 36) as usize % GROUPS
    }

    fn counter(&self, hash: u64) -> &AtomicU64 {
        &self.0[Self::group(hash)]
    }

    /// The number of an item that is coming into the index: the caller has the buckets of its key locked, and has
    /// marked the item that was there.
    pub(crate) fn next(&self, hash: u64) -> Number {
        // release pairs with the acquire in `full`: who sees this number sees the mark.
        Number(self.counter(hash).fetch_add(1, Ordering::Release) + 1)
    }

    /// The number of an item that has been found, if that is live still when it is looked at afterwards.
    pub(crate) fn full(&self, stamp: Stamp, hash: u64) -> Number {
        // pairs with the release in `next`. The caller has found the item, and so sees the counter as it was when the
        // item was numbered, or later.
        let counter = self.counter(hash).load(Ordering::Acquire);
        Number(counter.wrapping_sub(u64::from((counter as u16).wrapping_sub(stamp.0) & KEPT)))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn numbers_are_unique_and_never_zero() {
        let stamps = Stamps::new();
        let mut seen = HashSet::from([0]);
        for i in 0..10_000u64 {
            let hash = i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            assert!(seen.insert(stamps.next(hash).told(hash)));
        }
    }

    #[test]
    fn numbers_of_a_key_rise_and_are_made_again_from_their_ends() {
        let stamps = Stamps::new();
        let hash = 0x9E37_79B9_7F4A_7C15;
        let mut before = 0;
        for _ in 0..200_000 {
            let number = stamps.next(hash);
            assert!(number.told(hash) > before);
            before = number.told(hash);
            assert_eq!(stamps.full(number.stamp(), hash), number);
        }
    }

    #[test]
    fn a_number_that_is_made_again_is_never_lower_and_never_that_of_a_later_item() {
        let stamps = Stamps::new();
        let hash = 7;
        let old = stamps.next(hash);
        for later in 1..=200_000u64 {
            let told = stamps.full(old.stamp(), hash);
            assert!(told >= old);
            assert_eq!(told == old, later <= 1 << 16, "after {later} others");
            let new = stamps.next(hash);
            assert!(stamps.full(new.stamp(), hash) > told);
        }
    }
}
