//! The first bucket of a key, where that is all there is of it: writers that lock one bucket instead of two.
//!
//! In a table that prefers first buckets (a map's: see [`crate::first`]) a bucket has a mark once a key whose first
//! bucket it is goes elsewhere. Without the mark, a key is in its first bucket or in none.
//!
//! ```text
//!   write(key):   if the first bucket has no mark: lock it; look again
//!                   the key is there, or is absent and there is room: write; unlock
//!                   else unlock, and as with two buckets
//! ```
//!
//! *Why one lock is enough.* Whoever writes a key, or moves one between its two buckets, holds the lock of its first
//! bucket; who splits the second one does not, but while the first has no mark the key is not there. A bucket is split,
//! merged and marked under its own lock.

use crate::geometry::Geometry;
use crate::layout::{Bucket, Layout, SlotCell};
use crate::slot::{Location, Tag, Word};
use crate::table::Table;
use crate::tags;
use crate::version::Version;

/// The first bucket of a key, locked, and without a mark: what is not in it is not in the table.
pub(crate) struct Home<'t> {
    version: &'t Version,
    pub(crate) bucket: usize,
    pub(crate) geometry: Geometry,
}

impl Drop for Home<'_> {
    #[inline]
    fn drop(&mut self) {
        self.version.unlock();
    }
}

impl<L: Layout> Table<L> {
    /// Asks for the first bucket of a key of this hash.
    #[cfg(not(loom))]
    #[inline]
    pub(crate) fn prefetch_first(&self, hash: u64) {
        self.prefetch_bucket(self.geometry().first(self.mixed(hash)));
    }

    /// Locks the first bucket of a key, if that is where all keys are whose first bucket it is.
    // Always: a table that does not prefer first buckets is not to pay for a call.
    #[inline(always)]
    pub(crate) fn lock_first(&self, hash: u64) -> Option<Home<'_>> {
        if L::STRIPES == 0 && self.config.prefers_first { self.try_lock_first(hash) } else { None }
    }

    #[inline]
    fn try_lock_first(&self, hash: u64) -> Option<Home<'_>> {
        let geometry = self.geometry();
        if !geometry.is_even() {
            self.prefetch_bucket(geometry.candidates(hash, Tag::of(hash, L::TAG_BITS)).1);
        }
        let bucket = geometry.first(hash);
        let version = self.version(bucket);
        // A look beforehand, for a lock in vain is dear.
        if version.has_elsewhere() {
            return None;
        }
        self.lock_word(version);
        // A bucket is split, merged and marked under its lock, so from here on this stays.
        let home = Home { version, bucket, geometry: self.geometry() };
        let is_first = home.geometry == geometry || home.geometry.first(hash) == bucket;
        (is_first && !version.has_elsewhere()).then_some(home)
    }

    /// The slot of the key, or of the entry, that is sought.
    #[inline]
    pub(crate) fn find_at_home(
        &self,
        home: &Home<'_>,
        tag: Tag,
        is_it: &mut impl FnMut(Location) -> bool,
    ) -> Option<(&SlotCell, Word)> {
        let bucket = &self.buckets[home.bucket];
        tags::in_one(bucket, tag.raw()).find_map(|slot| {
            let cell = &bucket.slots()[slot];
            let word = cell.load();
            (word.has_tag(tag) && self.call_out(|| is_it(word.location()))).then_some((cell, word))
        })
    }
}
