//! The table in use, which an empty one may replace while it is read.
//!
//! A reader pins a collector ([`atomics::reclaim`]) and loads the table once a call. A replaced table is freed when all
//! who may have loaded it have left.
//!
//! Who still uses the old table can neither get nor do harm. A write clears the table that it loads under its stripe,
//! so the old one may answer with a pointer that has been removed since, but only to a call that loaded it before the
//! new one was there; the answer was right at the moment of that load, and the entry lives until the reader leaves.
//! What is admitted into the old table is lost with it. What has been admitted into the new one was so under the same
//! stripe, or by one who has left since: whoever then clears it sees the new table, too.
//!
//! Rejected: *a table that fits itself* to what is asked for, smaller and smaller copies of which took its place:
//! docs/decisions/tables-of-one-size.md has what it cost.

#![allow(unsafe_code)]

use atomics::reclaim::Guard;
use atomics::{AtomicPtr, Ordering};

use crate::slb::Slb;

/// One table, replaceable.
#[derive(Debug)]
pub(crate) struct AtomicTable(AtomicPtr<Slb>);

/// A table that nobody will find any more, but that somebody may still be looking at.
#[derive(Debug)]
#[must_use = "it is freed by being retired"]
pub(crate) struct Replaced(*mut Slb);

impl Replaced {
    /// Frees it when all have left who are pinned now. Not before this thread unpins, or refreshes its guard.
    ///
    /// # Safety
    /// Whoever may still be looking at it has pinned the guard's collector.
    pub(crate) unsafe fn retire<L>(self, guard: &Guard<'_, L>) {
        unsafe fn free(table: *mut (), _: *const ()) {
            // SAFETY: that which is retired below, made by `Box::into_raw`. Once.
            drop(unsafe { Box::from_raw(table.cast::<Slb>()) });
        }
        // SAFETY: no longer reachable, and the swap gave it to nobody else; it may be dropped by any thread.
        unsafe { guard.retire_large(self.0.cast(), std::ptr::null(), free) };
    }
}

#[cfg(all(test, loom))]
impl Replaced {
    /// Frees it.
    ///
    /// # Safety
    /// Nobody looks at it.
    pub(crate) unsafe fn free(self) {
        // SAFETY: made by `Box::into_raw`, and the caller's promise.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

impl AtomicTable {
    pub(crate) fn new(first: Slb) -> AtomicTable {
        AtomicTable(AtomicPtr::new(Box::into_raw(Box::new(first))))
    }

    /// The one in use.
    ///
    /// # Safety
    /// While what is returned is used, the collector is pinned to which what is replaced is retired, or nobody replaces
    /// it.
    #[inline(always)]
    pub(crate) unsafe fn load(&self) -> &Slb {
        // Acquire pairs with the release in `replace`: the table is seen as it was made.
        let table = self.0.load(Ordering::Acquire);
        // SAFETY: never null: made from a value, and replaced by values only. A replaced one is freed only after all
        // guards are gone that were there at the time, and this was pinned before the load.
        unsafe { &*table }
    }

    /// Puts another in its place.
    pub(crate) fn replace(&self, next: Slb) -> Replaced {
        // Release pairs with the acquire in `load`.
        Replaced(self.0.swap(Box::into_raw(Box::new(next)), Ordering::AcqRel))
    }
}

impl Drop for AtomicTable {
    fn drop(&mut self) {
        // SAFETY: made by `Box::into_raw`; `&mut self`: nobody reads, and nobody else owns it.
        drop(unsafe { Box::from_raw(self.0.load(Ordering::Relaxed)) });
    }
}
