//! The table in use, which another may replace while it is read: an empty one, or one into which its slots are copied
//! first.
//!
//! A reader pins a collector ([`atomics::reclaim`]) and loads the table once a call. A replaced table is freed when all
//! who may have loaded it have left.
//!
//! Who still uses the old table can neither get nor do harm: a write clears only the new one, so the old table may
//! answer with a pointer that has been removed since, but only to a call that loaded it before the new one was there,
//! and so before the write began; the answer was right at the moment of that load, and the entry lives until the reader
//! leaves. What is emitted into the old table is lost with it.
//!
//! # A successor
//!
//! While slots are copied, nothing stops: lookups and emissions go to the table in use, and whoever clears a pointer
//! there clears it in the successor as well, or sees it cleared there by who copies.
//!
//! ```text
//!   copy:   successor = the new one                      clear:   again: now = current
//!           for each line: load its slots                         clear it in `now`
//!                          put them into the new one              fence
//!                          fence                                  if there is a successor: clear it there
//!                          load the slots again: who has          until current is still `now`
//!                          changed goes from the new one
//!           current = the new one; successor = none
//! ```
//!
//! * Each of the two stores first and loads then, with a fence between. If the clear does not see the new table, or not
//!   what was put into it, the copy's second load sees that the slot has been cleared (or taken by another: then the
//!   copy takes its own back).
//! * If it does not see the new table because the copy has ended, it sees that the current one is another, and clears
//!   that.
//! * A slot that is emptied and filled again with the very same word between two loads of a copy has become the new
//!   entry's, and is right.
//!
//! Rejected: *a list of what was cleared meanwhile*, to be done again at the end: a lock for who clears without a
//! stripe. *Stopping writes while slots are copied*: a millisecond for each 10 MB.

#![allow(unsafe_code)]

use atomics::reclaim::Guard;
use atomics::{AtomicPtr, Ordering, fence};

use crate::slb::Slb;

/// One table, replaceable.
#[derive(Debug)]
pub(crate) struct Current {
    now: AtomicPtr<Slb>,
    /// That which is filled to take its place, or null.
    successor: AtomicPtr<Slb>,
}

/// A table that nobody will find any more, but that somebody may still be looking at.
#[derive(Debug)]
#[must_use = "it is freed by being retired"]
pub struct Replaced(*mut Slb);

impl Replaced {
    /// Nothing if there was none.
    pub(crate) fn some(self) -> Option<Replaced> {
        (!self.0.is_null()).then_some(self)
    }

    /// Frees it when all have left who are pinned now. Not before this thread unpins, or refreshes its guard.
    ///
    /// # Safety
    /// Whoever may still be looking at it has pinned the guard's collector.
    #[cfg_attr(loom, allow(dead_code))]
    pub(crate) unsafe fn retire<L>(self, guard: &Guard<'_, L>) {
        unsafe fn free(table: *mut (), _: *const ()) {
            // SAFETY: that which is retired below. Once.
            unsafe { Replaced(table.cast()).free() };
        }
        if !self.0.is_null() {
            // SAFETY: no longer reachable, and the swap gave it to nobody else; it may be dropped by any thread.
            unsafe { guard.retire_large(self.0.cast(), std::ptr::null(), free) };
        }
    }

    /// Frees it.
    ///
    /// # Safety
    /// Nobody looks at it.
    pub unsafe fn free(self) {
        if !self.0.is_null() {
            // SAFETY: made by `Box::into_raw`, and the caller's promise.
            drop(unsafe { Box::from_raw(self.0) });
        }
    }
}

impl Current {
    pub(crate) fn new(first: Slb) -> Current {
        let none = AtomicPtr::new(std::ptr::null_mut());
        Current { now: AtomicPtr::new(Box::into_raw(Box::new(first))), successor: none }
    }

    /// The one in use.
    ///
    /// # Safety
    /// While what is returned is used, the collector is pinned to which what is replaced is retired, or nobody replaces
    /// it.
    #[inline(always)]
    pub(crate) unsafe fn load(&self) -> &Slb {
        // Acquire pairs with the releases in `replace` and `succeed`: the table is seen as it was made.
        let table = self.now.load(Ordering::Acquire);
        // SAFETY: never null: made from a value, and replaced by values only. A replaced one is freed only after all
        // guards are gone that were there at the time, and this was pinned before the load.
        unsafe { &*table }
    }

    /// Makes a change to the table in use that takes pointers out, and to its successor; gives the one that was in use
    /// at the end.
    ///
    /// # Safety
    /// As [`Current::load`].
    #[inline]
    pub(crate) unsafe fn everywhere<'g>(&'g self, mut clear: impl FnMut(&'g Slb)) -> &'g Slb {
        loop {
            // SAFETY: the caller's promise.
            let now = unsafe { self.load() };
            clear(now);
            // Pairs with the fence of who copies ([`Slb::copy_lines`]): see the head of this module.
            fence(Ordering::SeqCst);
            // Acquire pairs with the release in `begin`: the successor is seen as it was made; and with that in
            // `succeed`: who sees that there is none any more sees the new table in use.
            let successor = self.successor.load(Ordering::Acquire);
            // SAFETY: as the table in use, which it becomes, or by the same way it goes.
            if let Some(successor) = unsafe { successor.as_ref() } {
                clear(successor);
            }
            if std::ptr::eq(self.now.load(Ordering::Relaxed), now) {
                return now;
            }
        }
    }

    /// Puts another in its place.
    pub(crate) fn replace(&self, next: Slb) -> Replaced {
        // Release pairs with the acquire in `load`.
        Replaced(self.now.swap(Box::into_raw(Box::new(next)), Ordering::AcqRel))
    }

    /// Makes this one the successor, which slots are copied to. By one at a time.
    pub(crate) fn begin(&self, next: Slb) -> Replaced {
        // Release pairs with the acquire in `everywhere`. The fence is that of who copies: it comes between this and
        // his second load.
        Replaced(self.successor.swap(Box::into_raw(Box::new(next)), Ordering::AcqRel))
    }

    /// Does without a successor. By who has begun.
    pub(crate) fn abandon(&self) -> Replaced {
        Replaced(self.successor.swap(std::ptr::null_mut(), Ordering::AcqRel))
    }

    /// The successor. To be called by who has begun, and uses it no longer than until he lets it succeed or abandons
    /// it.
    ///
    /// # Safety
    /// Nobody else begins, abandons or lets succeed meanwhile.
    pub(crate) unsafe fn successor(&self) -> Option<&Slb> {
        // Relaxed: of this thread's own, or seen by the lock under which there is one at a time.
        // SAFETY: freed only after it was abandoned or has been replaced.
        unsafe { self.successor.load(Ordering::Relaxed).as_ref() }
    }

    /// Puts the successor in its place, if there is one. By who has begun.
    pub(crate) fn succeed(&self) -> Option<Replaced> {
        let successor = self.successor.load(Ordering::Relaxed);
        if successor.is_null() {
            return None;
        }
        // Release pairs with the acquire in `load`.
        let old = self.now.swap(successor, Ordering::AcqRel);
        // After it was put in its place, which is what the release is for: it pairs with the acquire in `everywhere`.
        self.successor.swap(std::ptr::null_mut(), Ordering::AcqRel);
        Some(Replaced(old))
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        for table in [&self.now, &self.successor] {
            let table = table.load(Ordering::Relaxed);
            if !table.is_null() {
                // SAFETY: `&mut self`: nobody reads, and nobody else owns it.
                drop(unsafe { Box::from_raw(table) });
            }
        }
    }
}
