//! A value at an address that stays when its owner is moved.
//!
//! What has left a tree is freed later, by any thread, into the tree's spaces, which it knows by their address; and the
//! tree may have been moved meanwhile. It is freed before the tree is gone at the latest: the tree owns the collector,
//! too.
//!
//! Rejected: *a box*, which would claim to be the only way to what is in it; *an `Arc`*, which goes to another thread
//! only with what may be shared among threads, while a tree of one owner needs less.

#![allow(unsafe_code)]

use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;

/// Owns a value: see the module.
pub(crate) struct Fixed<T>(NonNull<T>);

impl<T> Fixed<T> {
    pub(crate) fn new(value: T) -> Fixed<T> {
        Fixed(NonNull::from(Box::leak(Box::new(value))))
    }

    /// Where it is until this is dropped.
    pub(crate) fn address(&self) -> *const T {
        self.0.as_ptr()
    }
}

impl<T> Deref for Fixed<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: it is there as long as this is, and nobody changes it but through shared references.
        unsafe { self.0.as_ref() }
    }
}

impl<T> Drop for Fixed<T> {
    fn drop(&mut self) {
        // SAFETY: made from a box, which is dropped here, once.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

// SAFETY: it owns its value, as a box does.
unsafe impl<T: Send> Send for Fixed<T> {}
// SAFETY: it gives out `&T` alone.
unsafe impl<T: Sync> Sync for Fixed<T> {}

impl<T: fmt::Debug> fmt::Debug for Fixed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
