//! An array that is filled once, in pages of a chosen kind, and read ever after.
//!
//! Entries lie outside the tables that find them, and the page size they lie in decides what a comparison costs as much
//! as the table's own does. The allocator would choose it for us; so they lie in a region of their own.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::Deref;

use pages::{MapError, PageKind, Region};

/// An array of `T`, filled when it was made.
pub(crate) struct Frozen<T> {
    region: Region,
    len: usize,
    elements: PhantomData<T>,
}

// SAFETY: a Frozen owns its elements, as a boxed slice does, and its region is plain memory.
unsafe impl<T: Send> Send for Frozen<T> {}
// SAFETY: a shared Frozen only gives out `&T`.
unsafe impl<T: Sync> Sync for Frozen<T> {}

impl<T> Frozen<T> {
    /// `len` elements, the i-th of them `element(i)`, in pages of `kind` or the next smaller one.
    ///
    /// # Errors
    /// As [`Region::map`].
    pub(crate) fn make(
        len: usize,
        kind: PageKind,
        mut element: impl FnMut(u64) -> T,
    ) -> Result<Frozen<T>, MapError> {
        const {
            assert!(!std::mem::needs_drop::<T>(), "elements are never dropped");
            assert!(align_of::<T>() <= 4096, "a region starts on a page");
        }
        let bytes = len.checked_mul(size_of::<T>()).ok_or(MapError::TooLarge { bytes: usize::MAX })?;
        let region = Region::map(bytes, kind)?;
        let start = region.as_ptr().cast::<T>();
        for at in 0..len {
            // SAFETY: the region is ours alone until it is returned, is writable, starts on a page (which covers the
            // alignment, checked above) and has room for `len` elements, of which this is one.
            unsafe { start.add(at).write(element(at as u64)) };
        }
        Ok(Frozen { region, len, elements: PhantomData })
    }

    /// The region the elements lie in.
    pub(crate) fn region(&self) -> &Region {
        &self.region
    }
}

impl<T> Deref for Frozen<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `make` initialised `len` elements here before anyone could call this, the region lives as long as
        // `self`, and nothing hands out `&mut T`.
        unsafe { std::slice::from_raw_parts(self.region.as_ptr().cast::<T>(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_filled_in_is_there() {
        let squares = Frozen::make(3000, PageKind::Base, |i| (i * i) as u32).unwrap();
        assert_eq!(squares.len(), 3000);
        assert!(squares.iter().enumerate().all(|(i, &square)| square == (i * i) as u32));
        assert_eq!(squares.region().obtained(), PageKind::Base);
    }

    #[test]
    fn senseless_lengths_are_errors() {
        assert!(matches!(Frozen::make(0, PageKind::Base, |_| 0u8), Err(MapError::ZeroLength)));
        assert!(matches!(Frozen::make(usize::MAX, PageKind::Base, |_| 0u64), Err(MapError::TooLarge { .. })));
    }
}
