//! Lookups of a table whose keys are in their first bucket, mostly: the map's.
//!
//! [`Table::find`] compares the tags of both buckets at once, because it cannot know which of the two has the key, and
//! a branch would be guessed wrongly half of the time. Where an insert prefers the first bucket, two keys of three and
//! more are there, and who looks there first is mostly right: such a hit needs no second line, no second comparison,
//! and no version at all, for a slot is one word, read whole ([`crate::version`]). The second bucket is asked for
//! meanwhile, and a key that is not in the first is looked up as ever.
//!
//! ```text
//!   find(key):   geometry, both candidates; ask for the second bucket's line
//!                a slot of the first whose entry is the key's: found
//!                else Table::find
//!   a group:     ask for the first buckets of all
//!                compare: ask for the entry, or for the second bucket
//!                those that were not there: both buckets, and ask for the entry
//!                compare the entries
//! ```
//!
//! Rejected: *to fill a table that is nearly full in this way*: at a load of 0.9 hardly more keys are in their first
//! bucket than in their second.

use crate::batch::GROUP;
use crate::layout::{Bucket, Layout};
use crate::slot::Location;
use crate::table::{Entries, Probe, Sought, Table};
use crate::tags;

impl<L: Layout> Table<L> {
    /// As [`Table::find`].
    #[inline(always)]
    pub(crate) fn find_first(&self, hash: u64, mut eq: impl FnMut(Location) -> bool) -> Option<Location> {
        let hash = self.mixed(hash);
        let sought = Self::seek(hash, self.geometry());
        self.prefetch_bucket(sought.candidates.1);
        let found = self.look_in_first(sought, &mut eq);
        if found.is_some() { found } else { self.find_in_both(hash, eq) }
    }

    #[inline(never)]
    fn find_in_both(&self, hash: u64, eq: impl FnMut(Location) -> bool) -> Option<Location> {
        self.get_mixed(hash, eq)
    }

    /// What the first bucket has; if nothing, that says nothing.
    #[inline(always)]
    fn look_in_first(&self, sought: Sought, eq: &mut impl FnMut(Location) -> bool) -> Option<Location> {
        let bucket = &self.buckets[sought.candidates.0];
        for slot in tags::in_one(bucket, sought.tag.raw()) {
            let word = bucket.slots()[slot].load();
            if word.has_tag(sought.tag) && eq(word.location()) {
                return Some(word.location());
            }
        }
        None
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
        let mut sought = [Self::seek(0, geometry); GROUP];
        let sought = &mut sought[..hashes.len()];
        for (&hash, sought) in hashes.iter().zip(&mut *sought) {
            *sought = Self::seek(self.mixed(hash), geometry);
            self.prefetch_bucket(sought.candidates.0);
        }
        // The first location whose tag agrees: nearly always the right one.
        let mut found = [None; GROUP];
        let mut is_elsewhere = 0u32;
        for (i, &sought) in sought.iter().enumerate() {
            found[i] = self.look_in_first(sought, &mut |_| true);
            match found[i] {
                Some(location) => entries.prefetch(location),
                None => {
                    is_elsewhere |= 1 << i;
                    self.prefetch_bucket(sought.candidates.1);
                }
            }
        }
        let mut is_unsettled = 0u32;
        while is_elsewhere != 0 {
            let i = is_elsewhere.trailing_zeros() as usize;
            is_elsewhere &= is_elsewhere - 1;
            match self.probe(geometry, sought[i], &mut |_| true) {
                Probe::Found(location) => {
                    entries.prefetch(location);
                    found[i] = Some(location);
                }
                Probe::Absent => {}
                Probe::Disturbed => is_unsettled |= 1 << i,
            }
        }
        for (i, sought) in sought.iter().enumerate() {
            let is_wrong = found[i].is_some_and(|location| !eq(i, location));
            if is_wrong || is_unsettled & 1 << i != 0 {
                found[i] = self.get_mixed(sought.hash, |location| eq(i, location));
            }
            tell(i, found[i]);
        }
    }
}
