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
