//! The table in use, which another may replace while it is read.
//!
//! A reader pins an epoch (crossbeam-epoch) and loads the table once a call. A replaced table is freed when all who may have
//! loaded it have left.
//!
//! Who still uses the old table can neither get nor do harm: a write clears only the new one, so the old table may answer
//! with a pointer that has been removed since, but only to a call that loaded it before the new one was there, and so
//! before the write began; the answer was right at the moment of that load, and the entry lives until the reader
//! leaves. What is emitted into the old table is lost with it.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicPtr, Ordering};

use crossbeam_epoch::Guard;

/// One `T`, replaceable.
#[derive(Debug)]
pub(crate) struct Current<T>(AtomicPtr<T>);

impl<T: Send + Sync + 'static> Current<T> {
    pub(crate) fn new(first: T) -> Current<T> {
        Current(AtomicPtr::new(Box::into_raw(Box::new(first))))
    }

    /// The one in use.
    ///
    /// # Safety
    /// `guard` is of the collector whose guards are given to `replace`; or nobody replaces it while what is returned is used.
    #[inline(always)]
    pub(crate) unsafe fn load<'g>(&'g self, _guard: &'g Guard) -> &'g T {
        // Acquire pairs with the release in `replace`: the table is seen as it was made.
        let table = self.0.load(Ordering::Acquire);
        // SAFETY: never null: made from a value, and replaced by values only. A replaced one is destroyed only after all
        // guards that were pinned at the time are gone, and the guard was pinned before the load.
        unsafe { &*table }
    }

    /// Puts another in its place.
    ///
    /// # Safety
    /// As `load`.
    pub(crate) unsafe fn replace(&self, next: T, guard: &Guard) {
        // Release pairs with the acquire in `load`.
        let old = self.0.swap(Box::into_raw(Box::new(next)), Ordering::AcqRel);
        // SAFETY: no longer reachable, and the swap gave it to nobody else.
        unsafe { guard.defer_unchecked(move || drop(Box::from_raw(old))) };
    }
}

impl<T> Drop for Current<T> {
    fn drop(&mut self) {
        // SAFETY: `&mut self`: nobody reads, and nobody else owns it.
        drop(unsafe { Box::from_raw(*self.0.get_mut()) });
    }
}
