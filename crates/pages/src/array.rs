//! A region seen as a slice.
//!
//! Tables of atomics start as zero pages that nobody wrote: a table of gigabytes is created in microseconds and
//! costs only the pages it touches. That needs element types for which zero bytes are a value, which is what
//! [`Zeroed`] promises; everything above this module is then safe code over `&[T]`.

#![allow(unsafe_code)]

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize};

use crate::kind::PageKind;
use crate::region::{MapError, Region};

/// Types for which memory full of zero bytes is a valid value, and which need no drop.
///
/// # Safety
/// Zero bytes must be a valid value of the type, it must not need `Drop`, and its alignment must not exceed 4096.
pub unsafe trait Zeroed: Sized {}

macro_rules! zeroed {
    ($($t:ty),*) => { $(
        // SAFETY: an integer, or an atomic with the representation of one: every bit pattern is a value, there is
        // nothing to drop, and the alignment is the size.
        unsafe impl Zeroed for $t {}
    )* };
}
zeroed!(u8, u16, u32, u64, usize, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize);

// SAFETY: an array of values that may be zero bytes may be zero bytes; its alignment is its element's.
unsafe impl<T: Zeroed, const N: usize> Zeroed for [T; N] {}

/// A zero-initialised array of `T` in a [`Region`].
///
/// ```
/// use lookaside_pages::{Array, PageKind};
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// let counters = Array::<AtomicU64>::map(1000, PageKind::Transparent)?;
/// counters[999].fetch_add(7, Ordering::Relaxed);
/// assert_eq!(counters.iter().map(|c| c.load(Ordering::Relaxed)).sum::<u64>(), 7);
/// # Ok::<(), lookaside_pages::MapError>(())
/// ```
pub struct Array<T> {
    region: Region,
    len: usize,
    elements: PhantomData<T>,
}

// SAFETY: an Array owns its elements, as Vec does; the region underneath is plain memory that any thread may use.
unsafe impl<T: Send> Send for Array<T> {}
// SAFETY: a shared Array only gives out `&T`.
unsafe impl<T: Sync> Sync for Array<T> {}

impl<T: Zeroed> Array<T> {
    /// An array of `len` zeroed elements, in pages of `kind` or the next smaller kind that the machine gives.
    ///
    /// # Errors
    /// As [`Region::map`]; a `len` whose bytes overflow is [`MapError::TooLarge`].
    pub fn map(len: usize, kind: PageKind) -> Result<Self, MapError> {
        Self::over(len, |bytes| Region::map(bytes, kind))
    }

    /// As [`Array::map`], but only address space is claimed: see [`Region::reserve`].
    ///
    /// # Errors
    /// As [`Region::reserve`]; a `len` whose bytes overflow is [`MapError::TooLarge`].
    pub fn reserve(len: usize, kind: PageKind) -> Result<Self, MapError> {
        Self::over(len, |bytes| Region::reserve(bytes, kind))
    }

    fn over(len: usize, map: impl FnOnce(usize) -> Result<Region, MapError>) -> Result<Self, MapError> {
        let bytes = len.checked_mul(size_of::<T>()).ok_or(MapError::TooLarge { bytes: usize::MAX })?;
        let region = map(bytes)?;
        debug_assert!(region.as_ptr().cast::<T>().is_aligned());
        Ok(Array { region, len, elements: PhantomData })
    }
}

impl<T> Array<T> {
    /// The region the elements lie in.
    #[must_use]
    pub fn region(&self) -> &Region {
        &self.region
    }
}

impl<T: Zeroed> Deref for Array<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the region is mapped readable and writable for its whole life, which is ours; it holds at least
        // `len` elements, zeroed by the kernel, for which zero is a value (`Zeroed`); regions are page-aligned, which
        // covers T's alignment. Nothing hands out `&mut T`, so changes happen only through T's interior mutability.
        unsafe { std::slice::from_raw_parts(self.region.as_ptr().cast::<T>(), self.len) }
    }
}

impl<T> fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Array").field("len", &self.len).field("region", &self.region).finish()
    }
}
