//! Keys, and how a leaf keeps one beside its value.
//!
//! A key is a string of bytes, in whose order the tree is. Keys of one known length are arrays: their leaves are the
//! key and the value and nothing else. Keys of any length are slices: their leaves have a length too, and the bytes of
//! a key that does not fit a leaf lie on the heap.
//!
//! ```text
//! [u8; N]    | key | value |
//! [u8]       | length | value | bytes ..., or where they are |
//! ```

#![allow(unsafe_code)]

use std::hash::Hash;
use std::slice;

/// Bytes of the largest leaf; longer keys are on the heap.
pub(crate) const LARGEST_LEAF: usize = 512;

/// What can be a key: `[u8; N]` and `[u8]`. See [`crate::encode`] for making such of numbers, strings and pairs.
pub trait Key: LeafLayout + ToOwned<Owned: Hash + Ord + Send> + 'static {}

impl<const N: usize> Key for [u8; N] {}
impl Key for [u8] {}

/// How a leaf with this kind of key lies in memory.
///
/// # Safety
/// `write` makes a leaf within `size` bytes that the others read back.
pub unsafe trait LeafLayout: AsRef<[u8]> + Eq + Send + Sync {
    /// Bytes of a leaf with this key; known to be at most `LARGEST_LEAF`.
    #[doc(hidden)]
    fn size<V>(&self) -> usize;

    /// Bytes of every leaf, if all of them have the same.
    #[doc(hidden)]
    fn same_size<V>() -> Option<usize>;

    /// Bytes that a leaf with this key has on the heap.
    #[doc(hidden)]
    fn heap_bytes<V>(&self) -> usize;

    /// Writes a leaf; gives the value back if the heap has no room for the key.
    ///
    /// # Safety
    /// There is room for `size` bytes at this address, aligned to 16, which nobody else uses.
    #[doc(hidden)]
    unsafe fn write<V>(&self, leaf: *mut u8, value: V) -> Result<(), V>;

    /// The key of a leaf.
    ///
    /// # Safety
    /// A leaf with this kind of key and value was written there, and its key stays for `'a`.
    #[doc(hidden)]
    unsafe fn of_leaf<'a, V>(leaf: *const u8) -> &'a Self;

    /// Where the value of a leaf is.
    ///
    /// # Safety
    /// A leaf with this kind of key and value was written there.
    #[doc(hidden)]
    unsafe fn value_in<V>(leaf: *mut u8) -> *mut V;

    /// Frees what the key has on the heap.
    ///
    /// # Safety
    /// A leaf with this kind of key and value was written there, and nobody reads its key from now on.
    #[doc(hidden)]
    unsafe fn free_heap<V>(leaf: *mut u8);
}

/// Refuses, when it is compiled, a value that no leaf has room for.
const fn check_value<V>(leaf: usize) -> usize {
    assert!(align_of::<V>() <= 16, "values of this alignment do not fit a leaf: put them in a Box");
    assert!(leaf <= LARGEST_LEAF, "keys and values of this size do not fit a leaf: put the values in a Box");
    leaf
}

struct Array<const N: usize, V>(V);

impl<const N: usize, V> Array<N, V> {
    const VALUE_AT: usize = N.next_multiple_of(align_of::<V>());
    const SIZE: usize = check_value::<V>(Self::VALUE_AT + size_of::<V>());
}

// SAFETY: the key at offset 0, the value behind it at its alignment.
unsafe impl<const N: usize> LeafLayout for [u8; N] {
    #[inline(always)]
    fn size<V>(&self) -> usize {
        Array::<N, V>::SIZE
    }

    #[inline(always)]
    fn same_size<V>() -> Option<usize> {
        Some(Array::<N, V>::SIZE)
    }

    fn heap_bytes<V>(&self) -> usize {
        0
    }

    unsafe fn write<V>(&self, leaf: *mut u8, value: V) -> Result<(), V> {
        // SAFETY: by the contract there is room.
        unsafe {
            leaf.cast::<[u8; N]>().write(*self);
            Self::value_in::<V>(leaf).write(value);
        }
        Ok(())
    }

    #[inline(always)]
    unsafe fn of_leaf<'a, V>(leaf: *const u8) -> &'a Self {
        // SAFETY: by the contract.
        unsafe { &*leaf.cast() }
    }

    #[inline(always)]
    unsafe fn value_in<V>(leaf: *mut u8) -> *mut V {
        // SAFETY: by the contract: inside the leaf.
        unsafe { leaf.add(Array::<N, V>::VALUE_AT).cast() }
    }

    unsafe fn free_heap<V>(_leaf: *mut u8) {}
}

struct Slice<V>(V);

impl<V> Slice<V> {
    const VALUE_AT: usize = size_of::<u32>().next_multiple_of(align_of::<V>());
    const BYTES_AT: usize = Self::VALUE_AT + size_of::<V>();
    /// A leaf whose key is on the heap.
    const OUTSIDE: usize = check_value::<V>(Self::BYTES_AT + size_of::<*mut u8>());

    fn fits(length: usize) -> bool {
        Self::BYTES_AT + length <= LARGEST_LEAF
    }
}

// SAFETY: the length at offset 0, the value at its alignment, then the bytes or, if by the length they do not fit,
// their address.
unsafe impl LeafLayout for [u8] {
    #[inline]
    fn size<V>(&self) -> usize {
        if Slice::<V>::fits(self.len()) { Slice::<V>::BYTES_AT + self.len() } else { Slice::<V>::OUTSIDE }
    }

    #[inline(always)]
    fn same_size<V>() -> Option<usize> {
        None
    }

    fn heap_bytes<V>(&self) -> usize {
        if Slice::<V>::fits(self.len()) { 0 } else { self.len() }
    }

    unsafe fn write<V>(&self, leaf: *mut u8, value: V) -> Result<(), V> {
        // SAFETY: by the contract there is room for the length, the value and the bytes or an address.
        unsafe {
            let bytes = leaf.add(Slice::<V>::BYTES_AT);
            if Slice::<V>::fits(self.len()) {
                bytes.copy_from_nonoverlapping(self.as_ptr(), self.len());
            } else {
                let mut copy = Vec::new();
                if copy.try_reserve_exact(self.len()).is_err() {
                    return Err(value);
                }
                copy.extend_from_slice(self);
                bytes.cast::<*mut [u8; 0]>().write_unaligned(Box::into_raw(copy.into_boxed_slice()).cast());
            }
            leaf.cast::<u32>().write(self.len() as u32);
            Self::value_in::<V>(leaf).write(value);
        }
        Ok(())
    }

    #[inline(always)]
    unsafe fn of_leaf<'a, V>(leaf: *const u8) -> &'a Self {
        // SAFETY: by the contract: as it was written.
        unsafe {
            let length = leaf.cast::<u32>().read() as usize;
            let bytes = leaf.add(Slice::<V>::BYTES_AT);
            let bytes =
                if Slice::<V>::fits(length) { bytes } else { bytes.cast::<*const u8>().read_unaligned() };
            slice::from_raw_parts(bytes, length)
        }
    }

    #[inline(always)]
    unsafe fn value_in<V>(leaf: *mut u8) -> *mut V {
        // SAFETY: by the contract: inside the leaf.
        unsafe { leaf.add(Slice::<V>::VALUE_AT).cast() }
    }

    unsafe fn free_heap<V>(leaf: *mut u8) {
        // SAFETY: by the contract: as it was written, and nobody reads it any more.
        unsafe {
            let length = leaf.cast::<u32>().read() as usize;
            if !Slice::<V>::fits(length) {
                let bytes = leaf.add(Slice::<V>::BYTES_AT).cast::<*mut u8>().read_unaligned();
                drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(bytes, length)));
            }
        }
    }
}
