//! A thread at a collector: the epoch it has pinned, and what it has retired.

use crossbeam_utils::CachePadded;

use super::bag::Retired;
use super::shared::Shared;
use crate::seam::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Mutex, Ordering};

/// The epoch of a record that is not pinned: later than all.
pub(super) const INACTIVE: u64 = u64::MAX;

/// Objects that wait in a thread's bag, at most, when it has unpinned or refreshed.
pub(super) const MOST: u32 = 64;

/// Times that a thread unpins, at most, until it collects what it has retired. Who pins for each lookup would else wait
/// for the heavy barrier as often as for some lookups: with 64, one write in twenty and two threads it had a third of
/// the throughput.
const UNPINS: u32 = 1024;

/// Refreshes, the same.
const REFRESHES: u32 = 2;

/// No two records share a line.
pub(super) type Padded<L> = CachePadded<Record<L>>;

/// One thread's, or who has claimed it, if it is spare. On lines of its own.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Record<L> {
    /// What is pinned, or [`INACTIVE`].
    epoch: AtomicU64,
    /// The thread whose guards those are that hold it. Means something while there are any.
    holder: AtomicUsize,
    /// Guards. Changed by the thread that holds them only: by the number's owner while there are none, or by who has
    /// claimed it.
    depth: AtomicU32,
    /// What is in the bag, large things counted as many. Changed under its lock.
    kept: AtomicU32,
    /// How long the oldest may have been there: unpins and refreshes since, of which [`UNPINS`] or [`REFRESHES`] come
    /// to so many.
    age: AtomicU32,
    /// Whether something waited for this to leave.
    wanted: AtomicBool,
    /// Of a spare one, whether somebody has it.
    claimed: AtomicBool,
    is_spare: bool,
    pub(super) next: *const Padded<L>,
    bag: Mutex<Vec<Retired>>,
    pub(super) local: L,
}

// SAFETY: `next` does not change once it is shared, `local` is reached by guards only, which stay on the thread that
// holds the record; it moves to another thread only behind the release of `depth` or `claimed`, or with a number, under
// a lock.
unsafe impl<L: Send> Sync for Record<L> {}

impl<L> Record<L> {
    /// A spare one is claimed.
    pub(super) fn new(local: L, is_spare: bool) -> Record<L> {
        Record {
            epoch: AtomicU64::new(INACTIVE),
            holder: AtomicUsize::new(0),
            depth: AtomicU32::new(0),
            kept: AtomicU32::new(0),
            age: AtomicU32::new(0),
            wanted: AtomicBool::new(false),
            claimed: AtomicBool::new(is_spare),
            is_spare,
            next: std::ptr::null(),
            bag: Mutex::new(Vec::new()),
            local,
        }
    }

    /// Pins the epoch that it is now, or renews it: the one place where that is done. What is loaded behind this was
    /// not loaded before: see the module, steps 1 and 2.
    #[inline(always)]
    pub(super) fn enter(&self, shared: &Shared) {
        // Acquire pairs with the release of who adds to it: whatever was unlinked before is found unlinked.
        let epoch = shared.epoch.load(Ordering::Acquire);
        // Release pairs with the acquire in `epoch`: who sees this sees that all is done which was done with an older
        // one.
        self.epoch.store(epoch, Ordering::Release);
        // Pairs with the heavy one of who collects.
        shared.barrier.light();
    }

    /// Enters if nobody holds the record. Its number is the calling thread's.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(super) fn enter_first(&self, identity: usize, shared: &Shared) -> bool {
        // Acquire pairs with the release in `leave`, by a thread that had the number before, and a guard after its end.
        if self.depth.load(Ordering::Acquire) != 0 {
            return self.enter_again(identity);
        }
        self.holder.store(identity, Ordering::Relaxed);
        self.depth.store(1, Ordering::Relaxed);
        self.enter(shared);
        true
    }

    /// Holds it once more, if this thread holds it.
    ///
    /// # Panics
    /// If it holds it 2^32 times.
    #[cfg(not(loom))]
    #[cold]
    pub(super) fn enter_again(&self, identity: usize) -> bool {
        let depth = self.depth.load(Ordering::Relaxed);
        // Another's is not this thread's identity, unless that has ended and its guard was forgotten: then the epoch
        // stays.
        let is_mine = depth > 0 && self.holder.load(Ordering::Relaxed) == identity;
        if is_mine {
            self.depth
                .store(depth.checked_add(1).expect("more guards than can be counted"), Ordering::Relaxed);
        }
        is_mine
    }

    /// Takes a spare one for this thread, if it is free.
    pub(super) fn claim(&self) -> bool {
        // Acquire pairs with the release in `leave`.
        self.is_spare
            && self.claimed.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    pub(super) fn enter_claimed(&self, shared: &Shared) {
        self.depth.store(1, Ordering::Relaxed);
        self.enter(shared);
    }

    /// Guards, by the thread that holds them.
    #[inline(always)]
    pub(super) fn depth(&self) -> u32 {
        self.depth.load(Ordering::Relaxed)
    }

    /// Whether there are none; for others, who cannot know for long.
    pub(super) fn is_idle(&self) -> bool {
        self.depth() == 0
    }

    /// What is pinned.
    pub(super) fn epoch(&self) -> u64 {
        // Acquire pairs with the releases in `enter` and `leave`: step 3 of the module's argument.
        self.epoch.load(Ordering::Acquire)
    }

    /// Whether there is nothing to do but to unpin.
    #[inline(always)]
    pub(super) fn is_quiet(&self) -> bool {
        let busy = self.kept.load(Ordering::Relaxed)
            | u32::from(self.wanted.load(Ordering::Relaxed))
            | u32::from(self.is_spare);
        busy == 0
    }

    /// Drops one guard, unless it is the last and there is more to do. Whether it did.
    #[inline(always)]
    pub(super) fn unpin_quietly(&self) -> bool {
        let depth = self.depth();
        if depth == 1 {
            if !self.is_quiet() {
                return false;
            }
            // Releases, as in `leave`.
            self.epoch.store(INACTIVE, Ordering::Release);
        }
        self.depth.store(depth - 1, Ordering::Release);
        true
    }

    /// Drops the last guard. Whether something waited for that. From here on the record may be another thread's.
    pub(super) fn leave(&self) -> bool {
        // Release pairs with the acquire in `epoch`.
        self.epoch.store(INACTIVE, Ordering::Release);
        // Behind the store, if the processor does not swap them: then the one who wants sees the epoch as it was, and
        // the next who leaves or refreshes looks.
        let wanted = self.wanted.load(Ordering::Relaxed);
        if wanted {
            self.wanted.store(false, Ordering::Relaxed);
        }
        // Releases pair with the acquires in `enter_first` and `claim`.
        self.depth.store(0, Ordering::Release);
        if self.is_spare {
            self.claimed.store(false, Ordering::Release);
        }
        wanted
    }

    /// Asks whoever holds it to look for what waits when it leaves.
    pub(super) fn want(&self) {
        self.wanted.store(true, Ordering::Relaxed);
    }

    /// Whether there is something in the bag.
    pub(super) fn keeps(&self) -> bool {
        self.kept.load(Ordering::Relaxed) > 0
    }

    /// Takes note of an unpin, by the thread that holds the record; whether it is time to collect.
    pub(super) fn is_due_at_unpin(&self) -> bool {
        self.is_due_after(REFRESHES)
    }

    /// Takes note of a refresh, the same.
    pub(super) fn is_due_at_refresh(&self) -> bool {
        self.is_due_after(UNPINS)
    }

    fn is_due_after(&self, step: u32) -> bool {
        let kept = self.kept.load(Ordering::Relaxed);
        if kept == 0 {
            return false;
        }
        let age = self.age.load(Ordering::Relaxed) + step;
        self.age.store(age, Ordering::Relaxed);
        kept >= MOST || age >= UNPINS * REFRESHES
    }

    /// Puts something into the bag, that counts as so many.
    #[inline]
    pub(super) fn put(&self, retired: Retired, weight: u32) {
        let mut bag = self.bag.lock();
        bag.push(retired);
        let kept = self.kept.load(Ordering::Relaxed);
        if kept == 0 {
            self.age.store(0, Ordering::Relaxed);
        }
        self.kept.store(kept.saturating_add(weight), Ordering::Relaxed);
    }

    /// Takes out what is in the bag.
    pub(super) fn empty_into(&self, gathered: &mut Vec<Retired>) {
        /// Room that a bag keeps.
        const ROOM: usize = 4 * MOST as usize;
        if !self.keeps() {
            return;
        }
        let mut bag = self.bag.lock();
        gathered.append(&mut bag);
        bag.shrink_to(ROOM);
        self.kept.store(0, Ordering::Relaxed);
    }
}
