//! What the index asks of items: their hashes, their keys, and their lines beforehand.

#![allow(unsafe_code)]

use cuckoo::{Entries, Location};
use twox_hash::XxHash3_64;

use crate::arena::Arena;
use crate::item::{Generation, Item};

/// Keys that are looked up together: as many as the index has in flight at once.
pub const GROUP: usize = 16;

/// The hash of a key, in a cache with this seed.
#[inline]
pub(crate) fn hash(seed: u64, key: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(seed, key)
}

/// The entries as the index sees them.
#[derive(Clone, Copy)]
pub(crate) struct Indexed<'a> {
    arena: &'a Arena,
    hash_seed: u64,
    generation: Generation,
}

impl<'a> Indexed<'a> {
    /// For an operation of this generation.
    #[inline]
    pub(crate) fn new(arena: &'a Arena, hash_seed: u64, generation: Generation) -> Self {
        Indexed { arena, hash_seed, generation }
    }

    /// The item at a location that is in the index, or was when the caller had pinned.
    #[inline]
    fn item(&self, location: Location) -> Item<'a> {
        // SAFETY: the index asks for what it holds, under the lock of a bucket that the location is in, so that it
        // cannot leave the index and be retired meanwhile; or, in a lookup, for what it found, and then the caller of
        // the lookup is pinned. The lookaside buffer asks for what it found, for a caller who is pinned (see `front`).
        unsafe { Item::at(self.arena, location) }
    }

    /// Whether the item there is of this key and generation.
    #[inline]
    pub(crate) fn holds(&self, location: Location, key: &[u8]) -> bool {
        let item = self.item(location);
        item.key() == key && item.generation() == self.generation
    }

    /// Whether the item there has this key, whichever generation it is of.
    pub(crate) fn has_key(&self, location: Location, key: &[u8]) -> bool {
        self.item(location).key() == key
    }
}

impl Entries for Indexed<'_> {
    #[inline]
    fn hash(&self, location: Location) -> u64 {
        hash(self.hash_seed, self.item(location).key())
    }

    #[inline]
    fn prefetch(&self, location: Location) {
        let start = self.arena.start(location);
        pages::prefetch(start);
        // Most small items end in the next line.
        pages::prefetch(start.wrapping_add(64));
    }
}
