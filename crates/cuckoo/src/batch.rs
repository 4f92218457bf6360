//! Batches: many keys whose cache misses overlap.
//!
//! A lookup waits twice: for its buckets, then for its entry. Within a group of keys all buckets are asked for before
//! the first is looked at, and all entries before the first is compared, so a group waits about as long as a single key.
//! The papers look one key up at a time.
//!
//! The middle pass is a full optimistic probe of the tags, validation included, so a key whose tag is nowhere is settled
//! there; a key whose first matching tag turns out to be another key's, about one in a thousand, is looked up again by
//! itself.

#[cfg(not(loom))]
use crate::insert::{Insertion, TooFull};
use crate::layout::Layout;
use crate::slot::{Location, Tag};
use crate::table::{Entries, Probe, Table};

/// Keys in flight at once: more than the line-fill buffers of today's cores can use, and few enough that what was fetched
/// first is still in the first-level cache when it is needed.
const GROUP: usize = if cfg!(loom) { 2 } else { 16 };

impl<L: Layout> Table<L> {
    /// Looks up every key: `found[i]` becomes the location of `keys[i]`, whose hash is `hashes[i]`.
    ///
    /// Each answer is what [`Table::get`] could have answered at some moment during the call; the batch as a whole is no
    /// snapshot.
    ///
    /// # Panics
    /// If the three slices differ in length.
    pub fn get_many<E: Entries + ?Sized>(
        &self,
        entries: &E,
        keys: &[&E::Key],
        hashes: &[u64],
        found: &mut [Option<Location>],
    ) {
        assert!(keys.len() == hashes.len() && keys.len() == found.len(), "one hash and one answer a key");
        let groups = keys.chunks(GROUP).zip(hashes.chunks(GROUP)).zip(found.chunks_mut(GROUP));
        for ((keys, hashes), found) in groups {
            self.get_group(entries, keys, hashes, found);
        }
    }

    fn get_group<E: Entries + ?Sized>(
        &self,
        entries: &E,
        keys: &[&E::Key],
        hashes: &[u64],
        found: &mut [Option<Location>],
    ) {
        let geometry = self.geometry();
        let mut sought = [Self::seek(0, geometry); GROUP];
        for (&hash, sought) in hashes.iter().zip(&mut sought) {
            *sought = Self::seek(self.mixed(hash), geometry);
            self.prefetch_bucket(sought.candidates.0);
            self.prefetch_bucket(sought.candidates.1);
        }
        let mut settled = [true; GROUP];
        for ((&sought, found), settled) in sought.iter().zip(&mut *found).zip(&mut settled) {
            // The first location whose tag agrees: nearly always the right one.
            *found = match self.probe(geometry, sought, &mut |_| true) {
                Probe::Found(location) => {
                    entries.prefetch(location);
                    Some(location)
                }
                Probe::Absent => None,
                Probe::Disturbed => {
                    *settled = false;
                    None
                }
            };
        }
        for (((key, sought), found), settled) in keys.iter().zip(&sought).zip(found).zip(settled) {
            let wrong = found.is_some_and(|location| !entries.holds(location, key));
            if wrong || !settled {
                *found = self.get_mixed(sought.hash, |location| entries.holds(location, key));
            }
        }
    }

    /// Asks for the two buckets of a key of this hash.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        let hash = self.mixed(hash);
        let (first, second) = self.geometry().candidates(hash, Tag::of(hash, L::TAG_BITS));
        self.prefetch_bucket(first);
        self.prefetch_bucket(second);
    }

    /// Inserts every key as [`Table::insert`] would, in order, with the buckets of a group fetched together, and then the
    /// first ones that those of its keys will look at which need a cuckoo path: `outcomes[i]` becomes what became of `keys[i]`.
    ///
    /// # Panics
    /// If the slices differ in length.
    #[cfg(not(loom))]
    pub fn insert_many<E: Entries + ?Sized>(
        &self,
        entries: &E,
        keys: &[&E::Key],
        hashes: &[u64],
        locations: &[Location],
        outcomes: &mut [Result<Insertion, TooFull>],
    ) {
        assert!(
            keys.len() == hashes.len() && keys.len() == locations.len() && keys.len() == outcomes.len(),
            "one hash, one location and one outcome a key"
        );
        for start in (0..keys.len()).step_by(GROUP) {
            let group = start..(start + GROUP).min(keys.len());
            for &hash in &hashes[group.clone()] {
                self.prefetch(hash);
            }
            for &hash in &hashes[group.clone()] {
                self.prefetch_ways_out(hash);
            }
            for i in group {
                outcomes[i] = self.insert(entries, keys[i], hashes[i], locations[i]);
            }
        }
    }
}
