//! Items that lie on the heap and are owned through their address: what tables of words store.
//!
//! Our cuckoo table and MICA's store 48-bit words, not values. [`Item`] is what can be turned into such a word and
//! back: the handles of a map, and [`Kept`] records for tables alone or with a buffer beside them. A table gives what
//! it finds as a
//! [`Seen`]: an item that is looked at, and not owned.
//!
//! # When memory may be reused
//!
//! Readers are pinned before they load a word, and look at what it names while they are. Whoever takes an item out owns
//! it and may drop it at once: both kinds of item give their memory back only after all readers that were pinned then
//! have left: handles by the rule of the map, of which there is one and whose pin a search is given; records by
//! [`Kept`]'s own, for those who have pinned the laboratory's collector ([`epochs`]).

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;

use lookaside::Handle;

use super::record::{Key, Value};
use crate::measure::epochs::{self, Guard};

/// Something on the heap that has a key, and an address of at most 48 bits.
///
/// # Safety
/// After an item was dropped, its memory stays readable until every epoch that was pinned at the time has been left,
/// and the key with it. [`Item::from_address`] gives back what [`Item::into_address`] was given.
pub(super) unsafe trait Item<const N: usize>: Send + Sync + 'static {
    /// Gives the item up for its address, which is not zero.
    fn into_address(self) -> u64;

    /// The item of this address.
    ///
    /// # Safety
    /// The address came from [`Item::into_address`] of this type; the item is taken back, to be dropped, once; or it is
    /// only looked at, within an epoch that was pinned while it was not yet dropped.
    unsafe fn from_address(address: u64) -> Self;

    /// Its key.
    fn key(&self) -> &Key<N>;
}

// SAFETY: a map frees what its last handle has left only after all who were pinned have left; the owner-only form frees
// it when nobody looks.
unsafe impl<const N: usize> Item<N> for Handle<Key<N>, Value> {
    fn into_address(self) -> u64 {
        self.into_raw() as u64
    }

    #[inline(always)]
    unsafe fn from_address(address: u64) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Handle::from_raw(address as usize) }
    }

    #[inline(always)]
    fn key(&self) -> &Key<N> {
        Handle::key(self)
    }
}

/// A key and its value, alone on the heap.
#[derive(Debug)]
pub(super) struct Kept<const N: usize>(*mut (Key<N>, Value));

// SAFETY: owned, like a box; keys and values are plain bytes.
unsafe impl<const N: usize> Send for Kept<N> {}
// SAFETY: as above.
unsafe impl<const N: usize> Sync for Kept<N> {}

impl<const N: usize> Kept<N> {
    /// On the heap.
    #[must_use]
    pub(super) fn new(key: Key<N>, value: Value) -> Kept<N> {
        Kept(Box::into_raw(Box::new((key, value))))
    }

    /// Puts a record on the heap and into a table: where it is, for as long as the epoch is pinned.
    pub(super) fn put(
        (key, value): (Key<N>, Value),
        _pinned: &Guard,
        put: impl FnOnce(Kept<N>) -> Option<Kept<N>>,
    ) -> &(Key<N>, Value) {
        let kept = Kept::new(key, value);
        let record = kept.0;
        drop(put(kept));
        // SAFETY: from a box, which is freed at the earliest after this epoch has been left: it is pinned, and
        // whoever takes the record out of the table does so from now on.
        unsafe { &*record }
    }
}

impl<const N: usize> Drop for Kept<N> {
    fn drop(&mut self) {
        // SAFETY: from a box of this type, once; who looks at it is pinned, and nobody finds it any more.
        unsafe { epochs::pin().retire_box(self.0) };
    }
}

// SAFETY: dropping defers the freeing past every epoch that is pinned.
unsafe impl<const N: usize> Item<N> for Kept<N> {
    fn into_address(self) -> u64 {
        ManuallyDrop::new(self).0.expose_provenance() as u64
    }

    #[inline(always)]
    unsafe fn from_address(address: u64) -> Self {
        Kept(std::ptr::with_exposed_provenance_mut(address as usize))
    }

    #[inline(always)]
    fn key(&self) -> &Key<N> {
        // SAFETY: from a box; freed only when it is neither owned nor looked at any more.
        unsafe { &(*self.0).0 }
    }
}

/// An item that is looked at while an epoch is pinned.
pub(super) struct Seen<'g, E> {
    item: ManuallyDrop<E>,
    pinned: PhantomData<&'g ()>,
}

impl<'g, E> Seen<'g, E> {
    /// The item at this address.
    ///
    /// # Safety
    /// The address came from [`Item::into_address`] of an `E`, which was not dropped before that was pinned for `'g`
    /// which it waits for.
    #[inline(always)]
    pub(super) unsafe fn at<const N: usize, G>(address: u64, _pinned: &'g G) -> Seen<'g, E>
    where
        E: Item<N>,
    {
        // SAFETY: the caller's promise; never dropped from here.
        Seen { item: ManuallyDrop::new(unsafe { E::from_address(address) }), pinned: PhantomData }
    }
}

impl<'g, const N: usize> Seen<'g, Kept<N>> {
    /// The record, for as long as the epoch is pinned.
    #[inline(always)]
    #[must_use]
    pub(super) fn record(&self) -> &'g (Key<N>, Value) {
        // SAFETY: from a box, which is freed only after the epoch of `'g` has been left.
        unsafe { &*self.item.0 }
    }
}

impl<E> Deref for Seen<'_, E> {
    type Target = E;

    #[inline(always)]
    fn deref(&self) -> &E {
        &self.item
    }
}
