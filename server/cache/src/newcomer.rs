//! An item on its way into the index: it gets its number at the moment in which it comes there, while the buckets of
//! its key are locked ([`crate::stamp`] says why).
//!
//! The unsafe code here is of one kind: reading the item, which is the caller's own until then.

#![allow(unsafe_code)]

use std::cell::Cell;

use cuckoo::{Entries, Location};

use crate::arena::Arena;
use crate::index::Indexed;
use crate::item::Item;
use crate::stamp::{Number, Stamps};

/// An item that is written and whole, and is about to be put into the index.
pub(crate) struct Newcomer<'a> {
    entries: Indexed<'a>,
    stamps: &'a Stamps,
    item: Item<'a>,
    key: &'a [u8],
    hash: u64,
    /// None, before it has come.
    number: Cell<Number>,
}

impl<'a> Newcomer<'a> {
    /// The item at `at`, of this key and hash. A copy of an item counts as the same, and comes with its number; others
    /// get one.
    ///
    /// # Safety
    /// The item is the caller's, finished, and in no index; and who puts it there is pinned since before that.
    pub(crate) unsafe fn new(
        arena: &'a Arena,
        entries: Indexed<'a>,
        stamps: &'a Stamps,
        at: Location,
        key: &'a [u8],
        hash: u64,
        number: Number,
    ) -> Newcomer<'a> {
        // SAFETY: the caller's own, and readable for as long as he is pinned.
        let item = unsafe { Item::at(arena, at) };
        Newcomer { entries, stamps, item, key, hash, number: Cell::new(number) }
    }

    pub(crate) fn location(&self) -> Location {
        self.item.location()
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn key(&self) -> &'a [u8] {
        self.key
    }

    pub(crate) fn item(&self) -> Item<'a> {
        self.item
    }

    /// Whether the item at a location, in the index, has the same key and is of this generation.
    pub(crate) fn has_key_of(&self, at: Location) -> bool {
        self.entries.holds(at, self.key)
    }

    /// It comes into the index now: the buckets of its key are locked.
    pub(crate) fn enters(&self) {
        if self.number.get() == Number::NONE {
            self.number.set(self.stamps.next(self.hash));
        }
        self.item.set_stamp(self.number.get().stamp());
    }

    /// What clients are told of it, once it has come.
    pub(crate) fn cas(&self) -> u64 {
        self.item.own_cas().unwrap_or_else(|| self.number.get().told(self.hash))
    }
}

impl Entries for &Newcomer<'_> {
    #[inline]
    fn hash(&self, location: Location) -> u64 {
        self.entries.hash(location)
    }

    #[inline]
    fn prefetch(&self, location: Location) {
        self.entries.prefetch(location);
    }

    #[inline]
    fn enters(&self, location: Location) {
        debug_assert_eq!(location, self.location());
        Newcomer::enters(self);
    }
}
