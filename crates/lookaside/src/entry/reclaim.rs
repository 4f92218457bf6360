//! Where the dead go: an entry whose last handle is gone, on its way through the two waits that [`crate::entry`] asks
//! for.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use super::slab::Slabs;
use crate::pointer::Pointer;

/// What a collector is told to do with an object.
pub(crate) type Free = unsafe fn(*mut (), *const ());

/// A dead entry: where it was, how to find its successor, and how to forget and to free it.
pub(crate) struct Dead {
    pub(crate) hash: u64,
    pub(crate) address: usize,
    pub(super) successor: unsafe fn(usize) -> Option<usize>,
    /// Step 2, at the entry's home; to be called when step 1 is over.
    pub(crate) forget: Free,
    /// To be called when step 3 is over.
    pub(crate) free: Free,
}

// SAFETY: an entry's keys and values are `Send` (see `Draft::new`), and nobody else has it.
unsafe impl Send for Dead {}

impl Dead {
    /// What a table may remember of it and of its successor, of what it ever could.
    ///
    /// # Safety
    /// It is not freed, and who saw a handle of it, and could give it another successor, has left.
    pub(crate) unsafe fn pointers(&self) -> impl Iterator<Item = Pointer> + use<> {
        // SAFETY: `successor` is that of the entry's type; the rest is the caller's promise.
        let successor = unsafe { (self.successor)(self.address) };
        let addresses = [Some(self.address), successor].into_iter().flatten();
        addresses.filter_map(|address| Pointer::new(address as u64))
    }

    /// Frees it, and lets go of its successor. Does not panic, whatever its destructors do.
    ///
    /// # Safety
    /// Nobody can reach it, and nobody frees it twice; nor does the table have the successor.
    pub(crate) unsafe fn free(self) {
        // SAFETY: `free` is that of the entry's type; the rest is the caller's promise.
        unsafe { (self.free)(self.object(), std::ptr::null()) };
    }

    /// As collectors know it.
    pub(crate) fn object(&self) -> *mut () {
        std::ptr::with_exposed_provenance_mut(self.address)
    }
}

/// Where entries go when their last handle has gone.
pub(crate) trait Reclaim: Send + Sync {
    /// Takes a dead entry, to be forgotten and freed when nobody can reach it.
    fn retire(self: Arc<Self>, dead: Dead);

    /// Forgets it, and frees it when nobody can reach it any more.
    ///
    /// # Safety
    /// Called by [`Dead::forget`] only.
    unsafe fn forget(&self, dead: Dead);
}

/// Where the entries of one map lie, and where they go. Their slabs name it.
pub(crate) type Reclaimer = Slabs<Way>;

/// Where the entries of one map go.
pub(crate) struct Way {
    pub(super) reclaim: Arc<dyn Reclaim>,
    /// Entries of the map that have a successor, but for what is on its way out.
    pub(super) successions: AtomicUsize,
}

impl Reclaimer {
    /// Of a map that threads share, or of an owner's.
    pub(crate) fn of(reclaim: Arc<dyn Reclaim>, shared: bool) -> Arc<Reclaimer> {
        Slabs::new(Way { reclaim, successions: AtomicUsize::new(0) }, shared)
    }
}

impl fmt::Debug for Reclaimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reclaimer").finish_non_exhaustive()
    }
}
