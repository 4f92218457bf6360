//! The entry itself, and what a search finds: an entry that stays for as long as somebody is pinned.

use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use super::place::Place;
use super::word::Word;
use crate::pointer::Pointer;

/// A key and its value. They come first: a hit reads the line that the pointer names, and no other if they are small.
#[repr(C)]
pub(super) struct Entry<K, V> {
    pub(super) key: K,
    pub(super) value: V,
    pub(super) word: Word,
    pub(super) place: Place,
}

impl<K, V> Entry<K, V> {
    #[inline(always)]
    pub(super) fn is_succeeded(&self) -> bool {
        // Acquire pairs with the release in `set_succeeded`: the place was set before, the table cleared before that.
        self.word.load(Ordering::Acquire) & Word::SUCCEEDED != 0
    }

    /// The entry has a successor from now on. Under the stripe of its hash.
    pub(super) fn set_succeeded(&self) {
        // Release pairs with the acquire in `is_succeeded`.
        self.word.0.fetch_or(Word::SUCCEEDED, Ordering::Release);
    }
}

/// An entry that was found, and stays for `'p`.
pub struct Found<'p, K: 'static, V: 'static> {
    pub(super) entry: NonNull<Entry<K, V>>,
    pub(super) life: PhantomData<&'p Entry<K, V>>,
}

impl<K: 'static, V: 'static> Clone for Found<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: 'static, V: 'static> Copy for Found<'_, K, V> {}

impl<'p, K: 'static, V: 'static> Found<'p, K, V> {
    /// The entry behind a pointer that a table gave.
    ///
    /// # Safety
    /// It was admitted by [`Found::pointer`] of an entry of this type, and is not freed for `'p`.
    #[inline(always)]
    pub(crate) unsafe fn at(pointer: Pointer) -> Found<'p, K, V> {
        let entry = std::ptr::with_exposed_provenance_mut(pointer.address() as usize);
        // SAFETY: a pointer is never zero.
        Found { entry: unsafe { NonNull::new_unchecked(entry) }, life: PhantomData }
    }

    #[inline(always)]
    pub(super) fn entry(self) -> &'p Entry<K, V> {
        // SAFETY: alive for 'p, by the promises of `Handle::found` and `Found::at`; nothing in it changes but atomics.
        unsafe { self.entry.as_ref() }
    }

    /// The entry's key.
    #[inline(always)]
    #[must_use]
    pub fn key(self) -> &'p K {
        &self.entry().key
    }

    /// The entry's value.
    #[inline(always)]
    #[must_use]
    pub fn value(self) -> &'p V {
        &self.entry().value
    }

    /// The same, for longer.
    ///
    /// # Safety
    /// The entry is not freed for `'q`.
    pub(crate) unsafe fn outlive<'q>(self) -> Found<'q, K, V> {
        Found { entry: self.entry, life: PhantomData }
    }

    /// The entry's value, to be changed; `None` if there is more than the index's handle.
    ///
    /// # Safety
    /// For `'p` nobody else looks at the entry, nor makes or uses another handle of it.
    pub(crate) unsafe fn value_mut(self) -> Option<&'p mut V> {
        // Acquire pairs with the release in `Word::let_go`: what was seen through other handles is over.
        if Word::handles(self.entry().word.load(Ordering::Acquire)) != 1 {
            return None;
        }
        // SAFETY: the caller's promise.
        Some(unsafe { &mut (*self.entry.as_ptr()).value })
    }

    /// The hash that it was made with.
    #[inline]
    pub(crate) fn hash(self) -> u64 {
        self.entry().word.load(Ordering::Relaxed) & Word::HASH
    }

    /// Whether it was made with this hash, as far as tables tell hashes apart.
    #[inline]
    pub(crate) fn is_of(self, hash: u64) -> bool {
        (self.hash() ^ hash) & Word::HASH == 0
    }

    /// What the table is to remember: nothing, if the address has more than 48 bits.
    #[inline]
    pub(crate) fn pointer(self) -> Option<Pointer> {
        Pointer::new(self.entry.as_ptr().expose_provenance() as u64)
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Found<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Found").field(self.key()).field(self.value()).finish()
    }
}

/// Asks for the lines of an entry that a hit will read: the first, where the key is, and the last of a value that is
/// not large. It may begin anywhere in its first line.
#[inline(always)]
pub(crate) fn prefetch<K, V>(pointer: Pointer) {
    let entry = std::ptr::with_exposed_provenance::<Entry<K, V>>(pointer.address() as usize);
    pages::prefetch(entry);
    let bytes = size_of::<K>() + size_of::<V>();
    if bytes > 64 {
        pages::prefetch(entry.cast::<u8>().wrapping_add(64));
    }
    if (1..=128).contains(&bytes) {
        pages::prefetch(entry.cast::<u8>().wrapping_add(bytes - 1));
    }
}
