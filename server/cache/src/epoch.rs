//! Epochs: when the memory of an item that has been taken out of the index may be used again.
//!
//! # Who reads, who writes
//!
//! There is one global epoch and one word per *participant* (a session of the cache, usually a worker thread). A
//! participant that is about to look at items *pins*: it copies the global epoch into its word. When it is done it
//! goes *offline*. Whoever takes an item out of the index *stamps* it with the global epoch afterwards, and its memory
//! waits in a limbo list. The memory may be reused once every participant is offline or pinned at a later epoch than
//! the stamp.
//!
//! # Why that is enough
//!
//! The steps, each thread's in its order, `F` being sequentially consistent fences:
//!
//! ```text
//! reader: e = epoch; word = e; F_r; search the index, read items; word = offline (release)
//! writer: unlink; F_w; stamp = epoch; put into limbo (under a lock)
//! reuser: take from limbo (under that lock); reuse if stamp < every word (acquire) and < epoch
//! ```
//!
//! Of two such fences one comes first. If `F_w` comes before `F_r`, the reader's search sees the unlinking: it cannot
//! find the location. If `F_r` comes before `F_w`, then the writer's load of the epoch is not older than the reader's,
//! so `e <= stamp`; and the reuser, whose loads follow `F_w` through the lock, sees the word as `e`, which forbids the
//! reuse, or as the reader set it later: offline, or pinned anew. Either was a release after the reader's last look at
//! the item, which the reuser acquires: what it writes comes after what the reader read.
//!
//! # What it costs
//!
//! A pin is a store and a fence, once for a batch of lookups or a turn of an event loop, not once a lookup. Readers
//! never write a word that another reader reads. A thread that sleeps is offline and holds nothing back.
//!
//! # Rejected
//!
//! `crossbeam-epoch`: its garbage bags are per thread and bounded in number, not in bytes; a few bags of 1 MiB values
//! are gigabytes outside the cache's memory limit. Here garbage stays inside the slab it came from and is counted.
//! Reference counts in every item (memcached): a shared write on every read, and two bytes an item. Validation by
//! version with reuse at will (the paper, section 4): readers copy bytes while they are overwritten, which is a data
//! race, and the paper's published code sends what it copied.
//!
//! # Literature
//!
//! Fraser, "Practical lock-freedom", 2004, section 5.2.3. Hart, McKenney, Demke Brown, Walpole, "Performance of memory
//! reclamation for lockless synchronization", JPDC 2007.

use std::fmt;

use crossbeam_utils::CachePadded;

use atomics::{Arc, AtomicU64, Mutex, Ordering, fence};

/// A moment of the global epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Epoch(u64);

/// The word of a participant that is not looking at anything.
const OFFLINE: u64 = u64::MAX;

/// The global epoch and everybody who takes part.
pub(crate) struct Epochs {
    global: CachePadded<AtomicU64>,
    participants: Mutex<Vec<Arc<CachePadded<AtomicU64>>>>,
}

/// One who looks at items: see the module. Offline when it is made.
pub(crate) struct Participant {
    word: Arc<CachePadded<AtomicU64>>,
    epochs: Arc<Epochs>,
}

impl Epochs {
    pub(crate) fn new() -> Self {
        // The first epoch is 1, so that 0 is before all of them.
        Epochs { global: CachePadded::new(AtomicU64::new(1)), participants: Mutex::new(Vec::new()) }
    }

    /// The stamp for what the caller has just unlinked.
    pub(crate) fn stamp(&self) -> Epoch {
        // F_w: pairs with the fence in `pin`.
        fence(Ordering::SeqCst);
        Epoch(self.global.load(Ordering::Relaxed))
    }

    /// Starts a new epoch, so that what is stamped so far can become reusable: once
    /// [`safe_before`](Epochs::safe_before) has reached the one that is returned.
    pub(crate) fn advance(&self) -> Epoch {
        // Relaxed: the fences order everything that must be ordered.
        Epoch(self.global.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// The first epoch whose stamps are not yet safe: whatever carries an earlier one may be reused.
    pub(crate) fn safe_before(&self) -> Epoch {
        let global = self.global.load(Ordering::Relaxed);
        let oldest = self
            .participants
            .lock()
            .iter()
            // acquire pairs with the release in `offline` and `pin`: what a participant read, it read before this.
            .map(|word| word.load(Ordering::Acquire))
            .fold(global, u64::min);
        Epoch(oldest)
    }
}

impl Participant {
    pub(crate) fn join(epochs: &Arc<Epochs>) -> Participant {
        let word = Arc::new(CachePadded::new(AtomicU64::new(OFFLINE)));
        epochs.participants.lock().push(word.clone());
        Participant { word, epochs: epochs.clone() }
    }

    /// Its word, which only it writes.
    #[cfg(not(loom))]
    pub(crate) fn word(&self) -> &AtomicU64 {
        &self.word
    }

    /// From now on, and until [`offline`](Participant::offline), what this participant finds in the index stays
    /// readable. What it found before does not: also used to move on to the present while pinned.
    pub(crate) fn pin(&self) {
        let now = self.epochs.global.load(Ordering::Relaxed);
        // release pairs with the acquire in `safe_before`: what was read under an earlier pin was read before this.
        self.word.store(now, Ordering::Release);
        // F_r: pairs with the fence in `stamp`.
        fence(Ordering::SeqCst);
    }

    /// This participant holds nothing any more.
    pub(crate) fn offline(&self) {
        // pairs with the acquire in `safe_before`.
        self.word.store(OFFLINE, Ordering::Release);
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        self.offline();
        self.epochs.participants.lock().retain(|word| !Arc::ptr_eq(word, &self.word));
    }
}

impl fmt::Debug for Epochs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Epochs").finish_non_exhaustive()
    }
}
