//! Removing, from bucket after bucket, what its owner does not want any more.
//!
//! ```text
//!   of a few buckets:    read the words without locks; ask of each whether it may go
//!   of each of them:     if something may: lock the bucket, ask again of each entry, clear its slot, unlock
//! ```
//!
//! Who [removes](Table::remove) many entries by their hashes waits for two lines of the table for each. Here the table
//! is read in the order in which it lies, a line has seven entries, and one lock serves them all. All that is waited
//! for is the entry's own memory, and who is asked whether it may go can ask for that: so it is of a few buckets
//! together.
//!
//! A removal changes one word, once, under the lock of its bucket, as everywhere ([`crate::version`]). An entry that is
//! displaced meanwhile, from a bucket still to come to one that was visited, is missed. So this is for owners who look
//! again, or to whom an entry more does not matter.
//!
//! Rejected: *a registered walk* ([`crate::walk`]), which misses nothing, and of which whoever displaces must be told.

use std::ops::Range;

use atomics::Ordering;

use crate::layout::{Bucket, Layout};
use crate::slot::{Location, Word};
use crate::table::{COUNTERS, MOST_SLOTS, Table};

/// Buckets of which entries are asked for together: the nearest cache holds a line of each.
const TOGETHER: usize = 8;

impl<L: Layout> Table<L> {
    /// Removes entries of these buckets, as far as there are so many, and says how many: those of which `may_go` is
    /// true, and then `goes`.
    ///
    /// `may_go` is asked without locks, of what may be leaving, and of several entries before `goes` is asked of the
    /// first: it can prefetch what `goes` will read. `goes` is asked while the entry's bucket is locked: it must not
    /// use the table. An entry that is displaced meanwhile may be missed.
    ///
    /// # Panics
    /// If `may_go` or `goes` does: what it has agreed to of the last bucket stays.
    ///
    /// ```
    /// use lookaside_cuckoo::{Config, Location, Table};
    ///
    /// let table: Table = Table::with_capacity(100, &Config::default())?;
    /// for key in 1..=10 {
    ///     table.insert_unique(key, Location::new(key).unwrap(), |at: Location| at.get()).unwrap();
    /// }
    /// let removed = table.sweep(0..table.buckets(), |_| true, |at| at.get() > 7);
    /// assert_eq!((removed, table.len()), (3, 7));
    /// # Ok::<(), lookaside_cuckoo::CreateError>(())
    /// ```
    pub fn sweep(
        &self,
        buckets: Range<usize>,
        may_go: impl Fn(Location) -> bool,
        mut goes: impl FnMut(Location) -> bool,
    ) -> usize {
        let (mut from, end, mut removed) = (buckets.start, buckets.end.min(self.buckets()), 0);
        while from < end {
            let group = from..(from + TOGETHER).min(end);
            let mut wanted = [false; TOGETHER];
            for (bucket, wanted) in group.clone().zip(&mut wanted) {
                for cell in self.buckets[bucket].slots() {
                    let word = cell.load();
                    *wanted |= !word.is_empty() && may_go(word.location());
                }
            }
            for (bucket, _) in group.clone().zip(wanted).filter(|&(_, wanted)| wanted) {
                removed += self.sweep_bucket(bucket, &may_go, &mut goes);
            }
            from = group.end;
        }
        removed
    }

    fn sweep_bucket(
        &self,
        bucket: usize,
        may_go: &impl Fn(Location) -> bool,
        goes: &mut impl FnMut(Location) -> bool,
    ) -> usize {
        let locks = self.lock([bucket]);
        let cells = self.buckets[bucket].slots();
        // All are asked before one goes: who panics leaves the bucket as it was.
        let mut leaving = [false; MOST_SLOTS];
        for (cell, leaves) in cells.iter().zip(&mut leaving) {
            let word = cell.load();
            let is_one = !word.is_empty() && may_go(word.location());
            *leaves = is_one && self.call_out(|| goes(word.location()));
        }
        let mut removed = 0;
        for (cell, _) in cells.iter().zip(leaving).filter(|&(_, leaves)| leaves) {
            cell.store(Word::EMPTY);
            removed += 1;
        }
        drop(locks);
        // Their hashes are not known: evenly from all counters.
        self.counters[bucket % COUNTERS].fetch_sub(removed, Ordering::Relaxed);
        removed
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::cell::Cell;

    use crate::slot::Location;
    use crate::{Config, Table};

    fn location(key: u64) -> Location {
        Location::new(key).expect("a small number")
    }

    /// Buckets that are not there are not swept, and what is not asked for stays.
    #[test]
    fn only_those_go_on_which_both_questions_agree() {
        let table: Table = Table::with_capacity(10_000, &Config::default()).expect("memory");
        let hash = |at: Location| at.get().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for key in 1..=10_000 {
            table.insert_unique(hash(location(key)), location(key), hash).expect("room");
        }
        let asked = Cell::new(0);
        let goes = |at: Location| {
            asked.set(asked.get() + 1);
            at.get().is_multiple_of(3)
        };
        let removed = table.sweep(0..usize::MAX, |at| at.get().is_multiple_of(2), goes);
        assert_eq!((asked.get(), removed, table.len()), (5000, 1666, 10_000 - 1666));
        for key in 1..=10_000 {
            let found = table.find(hash(location(key)), |at| at == location(key));
            assert_eq!(found.is_some(), !key.is_multiple_of(6), "{key}");
        }
        let buckets = table.buckets();
        assert_eq!(table.sweep(buckets..buckets + 1, |_| true, |_| true), 0);
    }

    #[test]
    fn one_who_panics_leaves_the_bucket_as_it_was() {
        let table: Table = Table::with_capacity(100, &Config::default()).expect("memory");
        for key in 1..=7 {
            table.insert_unique(0, location(key), |_: Location| 0).expect("room");
        }
        let asked = Cell::new(0);
        let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            table.sweep(
                0..table.buckets(),
                |_| true,
                |_| {
                    asked.set(asked.get() + 1);
                    assert!(asked.get() < 3, "on purpose");
                    true
                },
            )
        }));
        assert!(panics.is_err());
        // Of the bucket before it those may have gone on which it had agreed; none is counted that is there.
        let there = (1..=7).filter(|&key| table.find(0, |at| at == location(key)).is_some()).count();
        assert_eq!(there, table.len());
        assert!(there >= 5);
        // And nothing is locked.
        table.sweep(0..table.buckets(), |_| true, |_| true);
        assert!(table.is_empty());
    }
}
