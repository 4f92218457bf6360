//! Growing: one bucket at a time, by whoever inserts.
//!
//! The table is one reservation of address space; the memory of a bucket comes into being when the bucket does. To
//! split a bucket is to rehash its entries (their keys are prefetched together), copy those of the second half into the
//! new bucket, publish the new geometry, and clear them from the old one. Readers go on throughout; the order of these
//! steps is argued in [`crate::version`]. Buckets split in the order of [`crate::geometry`], one splitter at a time; an
//! insert that finds another one at it goes on without splitting, unless it found no free slot: then it waits its turn.
//!
//! An insert that leaves the load above the target splits at most [`SPLITS_WHEN_LOADED`] buckets, one that found no
//! path at most [`SPLITS_WHEN_FULL`] for each of its attempts: that is the longest pause growth can cause. Since a
//! split adds more slots than an insert uses, growth keeps up.
//!
//! A split leaves behind prefetches for the next one, which comes a few inserts later, so it seldom waits for memory.
//!
//! Nothing is called back while a split is half done: all keys are rehashed first, so that a hash that panics leaves
//! the table as it was.
//!
//! Rejected: a table of twice the size beside the old one (see `geometry`); a thread that splits in the background (it
//! competes for cores with the writers that need the room, and must be waited for when it falls behind).

#[cfg(not(loom))]
use crate::config::PIECE;
use crate::config::{Growth, Linear};
use crate::layout::{Bucket, Layout};
use crate::outcome::Work;
use crate::slot::Word;
use crate::table::{COUNTERS, Entries, MOST_SLOTS, Table};
use atomics::{AtomicBool, Ordering, yield_now};
#[cfg(not(loom))]
use atomics::{Hold, Within};

/// Buckets that one insert splits at most because the load is above the target.
pub const SPLITS_WHEN_LOADED: usize = 2;
/// Buckets that one attempt of an insert splits at most because it found no free slot.
pub const SPLITS_WHEN_FULL: usize = 8;
/// Where less than one slot in so many is used, no split makes room: hashes are equal, and stay together.
const SPARSE: usize = 16;

/// How an attempt to split ended.
enum Split {
    Done,
    /// The table is at its limit, or memory was refused.
    Impossible,
}

/// The right to split and to merge, given back on drop, also when an owner's hash panics.
pub(crate) struct Splitter<'t> {
    splitting: &'t AtomicBool,
    #[cfg(not(loom))]
    _within: Within,
}

impl<'t> Splitter<'t> {
    /// Waits for another splitter, as a writer waits for a bucket.
    pub(crate) fn become_one(splitting: &'t AtomicBool) -> Self {
        loop {
            if let Some(splitter) = Self::try_become(splitting) {
                return splitter;
            }
            #[cfg(not(loom))]
            assert!(
                atomics::held(splitting).is_none(),
                "a cuckoo table was used by the prefetch of its own entries: it must not be (see Entries)"
            );
            yield_now();
        }
    }

    fn try_become(splitting: &'t AtomicBool) -> Option<Self> {
        // acquire pairs with the release in drop: the next splitter sees the geometry the last one left.
        splitting
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            // Lazily: a Splitter that was made in vain would give back a right that it never had.
            .then(|| Splitter {
                splitting,
                #[cfg(not(loom))]
                _within: Within::enter(splitting, Hold::Exclusive),
            })
    }
}

impl Drop for Splitter<'_> {
    fn drop(&mut self) {
        // pairs with the acquire in `try_become`.
        self.splitting.store(false, Ordering::Release);
    }
}

impl<L: Layout> Table<L> {
    /// Splits if the load is above the target, as told by the counter that this insert has just raised to `count`.
    #[inline]
    pub(crate) fn grow_if_loaded(&self, entries: &impl Entries, count: usize, work: &mut Work) {
        let Growth::Linear(linear) = &self.config.growth else { return };
        for _ in 0..SPLITS_WHEN_LOADED {
            let slots = self.slots();
            // One counter is a fair sample of a large table; a small one is counted whole.
            // (A counter is below zero for a moment where a removal is counted before the insert it undoes.)
            let counted = usize::try_from(count as isize).unwrap_or(0);
            let entries_now = if slots < COUNTERS << 14 { self.len() } else { counted * COUNTERS };
            if entries_now as f64 <= slots as f64 * linear.target_load {
                return;
            }
            let Some(splitter) = Splitter::try_become(&self.splitting) else { return };
            match self.split_next(entries, linear, &splitter) {
                Split::Done => work.split += 1,
                Split::Impossible => return,
            }
        }
    }

    /// Splits buckets until there is room for `additional` entries more, at the load at which inserts split them.
    /// Others go on meanwhile. Where growth stops, so does this.
    ///
    /// # Panics
    /// If `hasher` does.
    pub fn reserve(&self, additional: usize, hasher: impl Entries) {
        let Growth::Linear(linear) = &self.config.growth else { return };
        let wanted = (self.len().saturating_add(additional) as f64 / linear.target_load) as usize;
        while self.slots() <= wanted {
            let splitter = Splitter::become_one(&self.splitting);
            if let Split::Impossible = self.split_next(&hasher, linear, &splitter) {
                return;
            }
        }
    }

    /// Whether growth goes on for long enough that [`Table::reserve`] can make room for so many entries more.
    #[cfg(not(loom))]
    pub(crate) fn may_reserve(&self, additional: usize) -> bool {
        let Growth::Linear(linear) = &self.config.growth else { return false };
        let most = linear.limit.saturating_mul(L::SLOTS) as f64 * linear.target_load;
        (self.len().saturating_add(additional) as f64) < most
    }

    /// Splits buckets because an insert found no free slot; false if there is no hope in trying again.
    pub(crate) fn make_room(&self, entries: &impl Entries, work: &mut Work) -> bool {
        let Growth::Linear(linear) = &self.config.growth else { return false };
        if self.len() < self.slots() / SPARSE {
            return false;
        }
        let before = self.buckets();
        let splitter = Splitter::become_one(&self.splitting);
        if self.buckets() > before {
            // Another thread has made room meanwhile: first see whether that is enough.
            return true;
        }
        let splits = (0..SPLITS_WHEN_FULL)
            .take_while(|_| matches!(self.split_next(entries, linear, &splitter), Split::Done))
            .count();
        work.split += splits;
        splits > 0
    }

    /// Splits the next bucket.
    fn split_next(&self, entries: &impl Entries, linear: &Linear, _right: &Splitter<'_>) -> Split {
        let geometry = self.geometry();
        let (from, to) = geometry.next_split();
        if to >= linear.limit || !self.take_memory_for(to) {
            return Split::Impossible;
        }
        // The new bucket too, although nobody knows it before the geometry is published: between that and the clearing
        // of the old bucket an entry stands in both, and must not be removed from one of them.
        let locks = self.lock([from, to]);
        let old = &self.buckets[from];
        let new = &self.buckets[to];
        let mut words = [Word::EMPTY; MOST_SLOTS];
        for (word, cell) in words.iter_mut().zip(old.slots()) {
            *word = cell.load();
            if !word.is_empty() {
                entries.prefetch(word.location());
            }
        }
        // Where each word goes, and as what: no call out after this.
        let mut halves = [(from, Word::EMPTY); MOST_SLOTS];
        for (half, &word) in halves.iter_mut().zip(&words) {
            if !word.is_empty() {
                let hash = self.mixed(self.call_out(|| entries.hash(word.location())));
                let (bucket, next) = geometry.half(from, hash, word.tag());
                *half = (bucket, word.with_next(next));
            }
        }
        self.version(to).mark_as(self.version(from));
        let mut free = new.slots().iter();
        for &(bucket, word) in &halves {
            if bucket == to {
                let cell = free.next().expect("a bucket has no more entries than slots");
                cell.store(word);
                self.walks.moves(word.location(), from, to);
            }
        }
        self.publish(geometry.grown());
        for (&(bucket, word), cell) in halves.iter().zip(old.slots()) {
            cell.store(if bucket == from { word } else { Word::EMPTY });
        }
        drop(locks);
        self.prefetch_next_split(entries);
        Split::Done
    }

    /// Asks for what the split after this one will wait for: its entries, and the bucket of the one after that.
    fn prefetch_next_split(&self, entries: &impl Entries) {
        let (next, _) = self.geometry().next_split();
        for cell in self.buckets[next].slots() {
            let word = cell.load();
            if !word.is_empty() {
                entries.prefetch(word.location());
            }
        }
        self.prefetch_bucket((next + 1).min(self.buckets.len() - 1));
    }
}

#[cfg(not(loom))]
impl<L: Layout> Table<L> {
    /// Makes sure that the memory of `bucket`, the first that is not open, may be touched. For the splitter only.
    fn take_memory_for(&self, bucket: usize) -> bool {
        let Some(budget) = self.config.budget() else { return true };
        let taken = self.taken.load(Ordering::Relaxed);
        if (bucket + 1) * L::BUCKET_BYTES <= taken {
            return true;
        }
        let granted = budget.try_take(PIECE);
        if granted {
            self.taken.store(taken + PIECE, Ordering::Relaxed);
        }
        granted
    }
}

#[cfg(loom)]
impl<L: Layout> Table<L> {
    fn take_memory_for(&self, _bucket: usize) -> bool {
        true
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Once, an attempt in vain made a `Splitter` eagerly and dropped it, which gave back the right of the one who had
    /// it; two threads then split the same bucket, and entries were lost.
    #[test]
    fn an_attempt_in_vain_leaves_the_right_where_it_is() {
        let splitting = AtomicBool::new(false);
        let splitter = Splitter::try_become(&splitting).expect("nobody has it");
        assert!(Splitter::try_become(&splitting).is_none());
        assert!(Splitter::try_become(&splitting).is_none(), "the first attempt gave it away");
        drop(splitter);
        assert!(Splitter::try_become(&splitting).is_some());
    }
}
