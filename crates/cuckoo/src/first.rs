//! Tables whose keys are in their first bucket, mostly: the map's.
//!
//! [`Table::find`] compares the tags of both buckets at once, because it cannot know which of the two has the key, and
//! a branch would be guessed wrongly half of the time. Where an insert prefers the first bucket, most keys are there;
//! and a bucket is *marked*, by a bit of its version, once a key whose first bucket it is goes elsewhere: to its other
//! bucket, or to the stash. (F14 of Folly counts such keys, for the same reason: Bronson and Shi, 2019.) What is not in
//! a bucket without the mark is nowhere. So most hits and most misses look at one bucket.
//!
//! ```text
//!   find(key):    look at the first bucket, as at both
//!                   a slot whose entry is the key's: found
//!                   nothing, no mark, and nothing moved meanwhile: not there
//!                   else Table::find
//!   a group:      ask for the first buckets of all
//!                 compare: ask for the entry, or, where there is a mark, for the second bucket
//!                 those that were not there: both buckets, and ask for the entry
//!                 compare the entries
//! ```
//!
//! *Why a miss is right.* A mark is set under its bucket's lock, before the entry is stored elsewhere, or, in a
//! displacement, with the step that announces it, before the entry is cleared; it is never taken back, and a split and
//! a merge hand it on before they publish the geometry. So whoever does not see the key in its first bucket, although
//! it is in the table, sees the mark, or one of the changes for which a miss of both buckets is not believed either
//! ([`crate::version`]).
//!
//! In a table of a power of two of buckets hardly one bucket in ten is marked at the load a map is made for. In one
//! that grows nearly all are: unsplit buckets are wanted by twice as many keys. There the second bucket is asked for at
//! once.
//!
//! Rejected: *to fill a table that is nearly full in this way*: at a load of 0.9 hardly more keys are in their first
//! bucket than in their second. *Counts instead of marks*, which could be taken back: a displaced entry does not say
//! which of its buckets is the first.

use crate::batch::GROUP;
use crate::geometry::Geometry;
use crate::layout::{Bucket, Layout};
use crate::slot::{Location, Tag};
use crate::table::{Entries, Probe, Table};
use crate::tags;
use atomics::Ordering;

impl<L: Layout> Table<L> {
    /// As [`Table::find`].
    #[inline(always)]
    pub(crate) fn find_first(&self, hash: u64, mut eq: impl FnMut(Location) -> bool) -> Option<Location> {
        let hash = self.mixed(hash);
        let (geometry, tag) = (self.geometry(), Tag::of(hash, L::TAG_BITS));
        if !geometry.is_even() {
            self.prefetch_bucket(geometry.candidates(hash, tag).1);
        }
        match self.look_in_first(geometry, hash, tag, &mut eq) {
            Probe::Found(location) => Some(location),
            Probe::Absent => None,
            Probe::Disturbed => self.find_in_both(hash, eq),
        }
    }

    #[inline(never)]
    fn find_in_both(&self, hash: u64, eq: impl FnMut(Location) -> bool) -> Option<Location> {
        self.get_mixed(hash, eq)
    }

    /// One optimistic look at the first bucket. Where it is disturbed, the key may be elsewhere, too.
    #[inline(always)]
    fn look_in_first(
        &self,
        geometry: Geometry,
        hash: u64,
        tag: Tag,
        eq: &mut impl FnMut(Location) -> bool,
    ) -> Probe {
        let first = geometry.first(hash);
        let (bucket, version) = (&self.buckets[first], self.version(first));
        let snapshot = version.snapshot();
        for slot in tags::in_one(bucket, tag.raw()) {
            let word = bucket.slots()[slot].load();
            if word.has_tag(tag) && eq(word.location()) {
                return Probe::Found(word.location());
            }
        }
        // acquire pairs with the release in `publish`, as in `geometry`.
        let is_still_first = || self.open.load(Ordering::Acquire) == geometry.word();
        if version.is_still_complete(snapshot) && is_still_first() { Probe::Absent } else { Probe::Disturbed }
    }

    /// Looks up at most [`GROUP`] keys, and tells what was found for each, in order.
    #[inline(always)]
    pub(crate) fn find_group_first(
        &self,
        entries: &impl Entries,
        hashes: &[u64],
        mut eq: impl FnMut(usize, Location) -> bool,
        mut tell: impl FnMut(usize, Option<Location>),
    ) {
        let geometry = self.geometry();
        // What follows from a hash in a few instructions is not written down.
        let mut mixed = [0; GROUP];
        let mixed = &mut mixed[..hashes.len()];
        for (&hash, mixed) in hashes.iter().zip(&mut *mixed) {
            *mixed = self.mixed(hash);
            self.prefetch_bucket(geometry.first(*mixed));
        }
        // The first location whose tag agrees: nearly always the right one.
        let mut found = [None; GROUP];
        let mut is_elsewhere = 0u32;
        for (i, &hash) in mixed.iter().enumerate() {
            let tag = Tag::of(hash, L::TAG_BITS);
            match self.look_in_first(geometry, hash, tag, &mut |_| true) {
                Probe::Found(location) => {
                    entries.prefetch(location);
                    found[i] = Some(location);
                }
                Probe::Absent => {}
                Probe::Disturbed => {
                    is_elsewhere |= 1 << i;
                    self.prefetch_bucket(geometry.candidates(hash, tag).1);
                }
            }
        }
        let mut is_unsettled = 0u32;
        while is_elsewhere != 0 {
            let i = is_elsewhere.trailing_zeros() as usize;
            is_elsewhere &= is_elsewhere - 1;
            match self.probe(geometry, Self::seek(mixed[i], geometry), &mut |_| true) {
                Probe::Found(location) => {
                    entries.prefetch(location);
                    found[i] = Some(location);
                }
                Probe::Absent => {}
                Probe::Disturbed => is_unsettled |= 1 << i,
            }
        }
        for (i, &hash) in mixed.iter().enumerate() {
            let is_wrong = found[i].is_some_and(|location| !eq(i, location));
            if is_wrong || is_unsettled & 1 << i != 0 {
                found[i] = self.get_mixed(hash, |location| eq(i, location));
            }
            tell(i, found[i]);
        }
    }
}
