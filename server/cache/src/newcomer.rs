//! An item on its way into the index: it gets its number at the moment in which it comes there, while the buckets of its
//! key are locked ([`crate::stamp`] says why).
//!
//! The unsafe code here is of one kind: reading the item, which is the caller's own until then.

#![allow(unsafe_code)]

use std::cell::Cell;

use cuckoo::{Entries, Location};

use crate::arena::Arena;
use crate::index::Indexed;
use crate::item::Item;
use crate::stamp::{Number, Stamps};

/// Whether an item counts as another one than that whose place it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identity {
    /// It gets a number of its own.
    New,
    /// It is a copy, and keeps the number.
    Kept(Number),
}

/// An item that is written and whole, and is about to be put into the index.
pub(crate) struct Newcomer<'a> {
    entries: Indexed<'a>,
    stamps: &'a Stamps,
    item: Item<'a>,
    key: &'a [u8],
    hash: u64,
    identity: Identity,
    number: Cell<Number>,
}

impl<'a> Newcomer<'a> {
    /// The item at `at`, whose key has this hash.
    ///
    /// # Safety
    /// The item is the caller's, finished, and in no index; and who puts it there is pinned since before that.
    pub(crate) unsafe fn new(
        arena: &'a Arena,
        entries: Indexed<'a>,
        stamps: &'a Stamps,
        at: Location,
        hash: u64,
        identity: Identity,
    ) -> Newcomer<'a> {
        // SAFETY: the caller's own, and readable for as long as he is pinned.
        let item = unsafe { Item::at(arena, at) };
        Newcomer { entries, stamps, item, key: item.key(), hash, identity, number: Cell::new(Number::NONE) }
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
        let number = match self.identity {
            Identity::New => self.stamps.next(self.hash),
            Identity::Kept(number) => number,
        };
        self.item.set_stamp(number.stamp());
        self.number.set(number);
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
