//! Batches: many keys whose cache misses overlap.
//!
//! A lookup waits twice: for its buckets, then for its entry. Within a group of keys all buckets are asked for before
//! the first is looked at, and all entries before the first is compared, so a group waits about as long as a single
//! key. The papers look one key up at a time.
//!
//! The middle pass is a full optimistic probe of the tags, validation included, so a key whose tag is nowhere is
//! settled there; a key whose first matching tag turns out to be another key's, about one in a thousand, is looked up
//! again by itself.

use crate::layout::Layout;
#[cfg(not(loom))]
use crate::outcome::{Insertion, TooFull};
use crate::slot::{Location, Tag};
use crate::table::{Entries, Probe, Table};

/// Keys in flight at once: more than the line-fill buffers of today's cores can use, and few enough that what was
/// fetched first is still in the first-level cache when it is needed.
pub(crate) const GROUP: usize = if cfg!(loom) { 2 } else { 16 };

impl<L: Layout> Table<L> {
    /// Looks up many keys: `found[i]` becomes the location of the key whose hash is `hashes[i]`, and for whose entry
    /// `eq` is true of `i` and the location. `entries` [prefetches](Entries::prefetch) what `eq` reads.
    ///
    /// Each answer is what [`Table::find`] could have answered at some moment during the call; the batch as a whole is
    /// no snapshot.
    ///
    /// ```
    /// use lookaside_cuckoo::{Config, Location, Table};
    ///
    /// let table: Table = Table::with_capacity(100, &Config::default())?;
    /// // Entries that are their own locations, and hashes.
    /// let hasher = |at: Location| at.get();
    /// for number in 0..10 {
    ///     table.insert_unique(number, Location::new(number).unwrap(), hasher).unwrap();
    /// }
    /// let hashes = [3, 9, 27];
    /// let mut found = [None; 3];
    /// table.find_many(hasher, &hashes, |i, at| at.get() == hashes[i], &mut found);
    /// assert_eq!(found, [Location::new(3), Location::new(9), None]);
    /// # Ok::<(), lookaside_cuckoo::CreateError>(())
    /// ```
    ///
    /// # Panics
    /// If the two slices differ in length.
    #[inline]
    pub fn find_many(
        &self,
        entries: impl Entries,
        hashes: &[u64],
        mut eq: impl FnMut(usize, Location) -> bool,
        found: &mut [Option<Location>],
    ) {
        assert_eq!(hashes.len(), found.len(), "one answer a key");
        for (group, (hashes, found)) in hashes.chunks(GROUP).zip(found.chunks_mut(GROUP)).enumerate() {
            self.find_group(&entries, hashes, |i, at| eq(group * GROUP + i, at), found);
        }
    }

    #[inline]
    fn find_group(
        &self,
        entries: &impl Entries,
        hashes: &[u64],
        mut eq: impl FnMut(usize, Location) -> bool,
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
        for (i, ((sought, found), settled)) in sought.iter().zip(found).zip(settled).enumerate() {
            let wrong = found.is_some_and(|location| !eq(i, location));
            if wrong || !settled {
                *found = self.get_mixed(sought.hash, |location| eq(i, location));
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

    /// Inserts many keys as [`Table::insert_or_get`] would, in order, with the buckets of a group fetched together, and
    /// then the first ones that those of its keys will look at which need a cuckoo path: `outcomes[i]` becomes what
    /// became of the key whose hash is `hashes[i]`, whose location is `locations[i]`, and for whose entry `eq` is true
    /// of `i` and the location.
    ///
    /// # Panics
    /// If the slices differ in length.
    #[cfg(not(loom))]
    pub fn insert_many(
        &self,
        hashes: &[u64],
        locations: &[Location],
        mut eq: impl FnMut(usize, Location) -> bool,
        hasher: impl Entries,
        outcomes: &mut [Result<Insertion, TooFull>],
    ) {
        assert!(
            hashes.len() == locations.len() && hashes.len() == outcomes.len(),
            "one location and one outcome a key"
        );
        for start in (0..hashes.len()).step_by(GROUP) {
            let group = start..(start + GROUP).min(hashes.len());
            for &hash in &hashes[group.clone()] {
                self.prefetch(hash);
            }
            for &hash in &hashes[group.clone()] {
                self.prefetch_ways_out(hash);
            }
            for i in group {
                outcomes[i] = self.insert_with(hashes[i], locations[i], &mut |at| eq(i, at), &hasher);
            }
        }
    }
}
