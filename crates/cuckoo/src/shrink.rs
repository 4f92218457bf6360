//! Shrinking: the last bucket is merged into the one that it was split from, and memory is given back.
//!
//! ```text
//! merge:
//!   lock both buckets
//!     if they hold more than one has slots: unlock; displace an entry to its other bucket; again
//!     copy the last bucket's entries into the other one
//!     publish the geometry without the last bucket, and one merge more
//!     clear the last bucket
//! ```
//!
//! It is a split the other way round, and readers rely on the same order, copy, announce, clear: see
//! [`crate::version`], also for why merges are counted. No key is read: which of the two buckets an entry comes from is
//! the bit that the next split will ask for.
//!
//! Nobody shrinks a table but who calls [`Table::shrink`], because he wants its memory for something else.
//!
//! # Memory
//!
//! It goes back in the pieces that growth takes. A writer whose geometry is out of date may lock a bucket that is
//! closed; he finds that it is, and unlocks it. So that his lock is not lost when the memory becomes zero, and another
//! one's taken for his, all version words in the piece are locked first: zero is unlocked, and who waited gets the lock
//! of an empty bucket after that. Readers may look at the piece at any time, and find empty buckets.
//!
//! Rejected: shrinking whenever the load is low (a cache that was flushed grows again); a second, smaller table.

#![allow(unsafe_code)]

#[cfg(not(loom))]
use crate::config::{Growth, PIECE};
use crate::growth::Splitter;
use crate::insert::Step;
use crate::layout::{Bucket, Layout, SlotCell};
use crate::slot::{Next, Word};
use crate::table::Table;
#[cfg(not(loom))]
use atomics::Ordering;

/// Entries that one merge displaces at the most.
const MOST_DISPLACED: usize = 8;

impl<L: Layout> Table<L> {
    /// Merges buckets until a piece of the memory that growth took from its budget is free, and gives that back: 64
    /// KiB, which takes a thousand merges. False if no piece came free, because the load would be above `highest_load`,
    /// or an entry found no other place; the table may have fewer buckets then, all the same.
    ///
    /// Writers to other buckets, and readers, go on meanwhile.
    #[cfg(not(loom))]
    pub fn shrink(&self, highest_load: f64) -> bool {
        let Growth::Linear(_) = self.config.growth else { return false };
        let splitter = Splitter::become_one(&self.splitting);
        loop {
            let taken = self.taken.load(Ordering::Relaxed);
            let open = self.buckets();
            if taken >= PIECE && open * L::BUCKET_BYTES <= taken - PIECE {
                return self.release(taken - PIECE, taken);
            }
            let fits = self.len() as f64 <= ((open - 1) * L::SLOTS) as f64 * highest_load;
            if !fits || !self.merge_last(&splitter) {
                return false;
            }
        }
    }

    /// Merges the last bucket into the one it was split from; false if its entries find no place.
    pub(crate) fn merge_last(&self, _right: &Splitter<'_>) -> bool {
        let geometry = self.geometry();
        let Some(merged) = geometry.merged() else { return false };
        let (into, last) = merged.next_split();
        for _ in 0..=MOST_DISPLACED {
            let locks = self.lock([into, last]);
            let words = |bucket: usize| {
                self.buckets[bucket]
                    .slots()
                    .iter()
                    .map(|cell| (cell, cell.load()))
                    .filter(|(_, word)| !word.is_empty())
            };
            if words(into).count() + words(last).count() > L::SLOTS {
                drop(locks);
                if !self.displace_one_of(into, last) {
                    return false;
                }
                continue;
            }
            words(into).for_each(|(cell, word)| cell.store(word.with_next(Next::Bit(0))));
            let mut free = self.buckets[into].slots().iter().filter(|cell| cell.load().is_empty());
            for (_, word) in words(last) {
                let cell: &SlotCell = free.next().expect("just counted, under the lock");
                cell.store(word.with_next(Next::Bit(1)));
                self.walks.moves(word.location(), last, into);
            }
            self.version(into).mark_as(self.version(last));
            self.publish(merged);
            self.buckets[last].slots().iter().for_each(|cell| cell.store(Word::EMPTY));
            return true;
        }
        false
    }

    /// Moves an entry of one of two buckets to its other bucket, if that is none of the two and has a free slot.
    fn displace_one_of(&self, first: usize, second: usize) -> bool {
        let geometry = self.geometry();
        [second, first].into_iter().any(|bucket| {
            self.buckets[bucket].slots().iter().enumerate().any(|(slot, cell)| {
                let word = cell.load();
                let to = if word.is_empty() { None } else { geometry.alternate(bucket, word) };
                let Some((to, _)) = to.filter(|&(to, _)| to != first && to != second) else { return false };
                if self.free_slot(to).is_none() {
                    return false;
                }
                let _locks = self.lock([bucket, to]);
                self.displace(Step { bucket, slot, word }, to)
            })
        })
    }

    /// Gives the memory of the buckets between two offsets back, all of which are closed; false if the machine does not
    /// take it.
    #[cfg(not(loom))]
    fn release(&self, from: usize, to: usize) -> bool {
        let Some(budget) = self.config.budget() else { return false };
        let closed = &self.buckets[from / L::BUCKET_BYTES..to / L::BUCKET_BYTES];
        // In ascending order, as all locks.
        closed.iter().filter_map(Bucket::version).for_each(crate::version::Version::lock);
        // SAFETY: the buckets are closed: nobody puts anything there, for that takes a lock and then a look at the
        // geometry; they are empty, and what is not of the locks reads as it was. All locks are ours, and nobody has
        // them afterwards.
        let released = unsafe { self.buckets.region().release(from..to) };
        if !released {
            closed.iter().filter_map(Bucket::version).for_each(crate::version::Version::unlock);
            return false;
        }
        self.taken.store(from, Ordering::Relaxed);
        budget.give_back(to - from);
        true
    }
}
