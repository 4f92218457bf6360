//! Changing an entry that has been found: under the lock of the one bucket that it is in.
//!
//! ```text
//!   spot    search without locks; remember the bucket, the slot and its word
//!   hold    lock that bucket; is the word there still?      no: the caller takes the general path
//!   change  replace the location, or clear the slot
//!   unlock
//! ```
//!
//! [`Table::insert_or_replace`] and [`Table::remove`] lock both candidates, search under the locks, and compare keys
//! there. Who has found the entry already needs neither: a slot's word is changed only under the lock of its bucket, so
//! while that is held an entry that is there stays there and stays what it is. An entry that is being displaced is in
//! two buckets for a moment, but whoever moves it has both locked. An insert of the same key locks both, too, and so
//! comes before this change or after it. Where the bucket has been split or merged since, the word has gone or it has
//! not: a bucket splits and merges under its lock.
//!
//! *The same word* is the same entry only if its location has not come to stand for another one since it was found. The
//! owner sees to that, by whatever keeps entries readable for those who look things up.
//!
//! Nothing is announced: a replacement and a removal change one word, once ([`crate::version`]).
//!
//! Rejected: *to remember the version and skip the lock if it is the same*: writers would have to raise it at each
//! change, and lookups of absent keys would retry for them.

use std::fmt;

use atomics::Ordering;

use crate::batch::GROUP;
use crate::layout::{Bucket, DefaultLayout, Layout};
use crate::slot::{Location, Word};
use crate::table::{Entries, Sought, Table};
use crate::tags::{self, SlotSet};
use crate::version::Version;

/// Where an entry was when it was looked at: for [`Table::hold`].
#[derive(Debug, Clone, Copy)]
pub struct Spot {
    pub(crate) bucket: usize,
    pub(crate) slot: usize,
    pub(crate) word: Word,
}

/// What one look at the buckets of a key has come to.
#[derive(Debug, Clone, Copy)]
pub enum Sighting {
    /// An entry with the key's tag: nearly always its own.
    At(Spot),
    /// No such entry was there, at some moment of the look.
    Nowhere,
    /// None was seen, while others were writing: the key is to be looked for again.
    Unsettled,
}

impl Spot {
    /// The entry.
    #[inline]
    #[must_use]
    pub fn location(self) -> Location {
        self.word.location()
    }
}

/// An entry whose bucket is locked until this is dropped. This thread must not use the table otherwise meanwhile: it
/// would wait for itself.
pub struct Held<'t, L: Layout = DefaultLayout> {
    table: &'t Table<L>,
    lock: BucketLock<'t>,
    spot: Spot,
}

/// Given back on drop.
struct BucketLock<'t>(&'t Version);

impl Drop for BucketLock<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.unlock();
    }
}

impl<L: Layout> Table<L> {
    /// Where the entry of a key of this hash is, for which `eq` is true. `None` says only that it was not seen: it may
    /// be there if others are writing, or if no slot was found for it.
    ///
    /// ```
    /// use lookaside_cuckoo::{Config, Location, Table};
    ///
    /// let table: Table = Table::with_capacity(100, &Config::default())?;
    /// let [old, new] = [1, 2].map(|at| Location::new(at).unwrap());
    /// table.insert_unique(7, old, |_| 7).unwrap();
    /// let spot = table.spot(7, |at| at == old).unwrap();
    /// assert!(table.is_at(spot));
    /// table.hold(spot).unwrap().replace(new);
    /// assert!(table.hold(spot).is_none(), "it has gone");
    /// table.hold(table.spot(7, |at| at == new).unwrap()).unwrap().remove(7);
    /// assert!(table.is_empty());
    /// # Ok::<(), lookaside_cuckoo::CreateError>(())
    /// ```
    #[inline]
    pub fn spot(&self, hash: u64, mut eq: impl FnMut(Location) -> bool) -> Option<Spot> {
        let sought = Self::seek(self.mixed(hash), self.geometry());
        self.spot_of(sought, &mut eq)
    }

    #[inline]
    fn spot_of(&self, sought: Sought, eq: &mut impl FnMut(Location) -> bool) -> Option<Spot> {
        let Sought { tag, candidates: (first, second), .. } = sought;
        let buckets = [&self.buckets[first], &self.buckets[second]];
        tags::in_both(buckets[0], buckets[1], tag.raw()).find_map(|place| {
            let second_one = usize::from(place >= SlotSet::SECOND);
            let (bucket, slot) = (if second_one == 0 { first } else { second }, place % SlotSet::SECOND);
            let word = buckets[second_one].slots()[slot].load();
            (word.has_tag(tag) && eq(word.location())).then_some(Spot { bucket, slot, word })
        })
    }

    /// Asks for the buckets of many keys, and then for the [entries](Entries::prefetch) that have their tags: nearly
    /// always their own. What was seen, `sightings` says: for who looks at the keys one by one then, and compares them.
    ///
    /// # Panics
    /// If the two slices differ in length.
    #[inline]
    pub fn sight_many(&self, entries: impl Entries, hashes: &[u64], sightings: &mut [Sighting]) {
        assert_eq!(hashes.len(), sightings.len(), "one answer a key");
        for (hashes, sightings) in hashes.chunks(GROUP).zip(sightings.chunks_mut(GROUP)) {
            let geometry = self.geometry();
            let mut sought = [Self::seek(0, geometry); GROUP];
            for (&hash, sought) in hashes.iter().zip(&mut sought) {
                *sought = Self::seek(self.mixed(hash), geometry);
                self.prefetch_bucket(sought.candidates.0);
                self.prefetch_bucket(sought.candidates.1);
            }
            for (&sought, sighting) in sought.iter().zip(sightings) {
                *sighting = self.sight(geometry, sought, &mut |_| true);
                if let Sighting::At(spot) = sighting {
                    entries.prefetch(spot.location());
                }
            }
        }
    }

    /// Whether the entry is there now.
    #[inline]
    #[must_use]
    pub fn is_at(&self, spot: Spot) -> bool {
        self.buckets[spot.bucket].slots()[spot.slot].load() == spot.word
    }

    /// Locks the bucket of an entry that was found, if it is there still. It is the same entry if its location has not
    /// been used for another one since.
    #[inline]
    pub fn hold(&self, spot: Spot) -> Option<Held<'_, L>> {
        let version = self.version(spot.bucket);
        self.lock_word(version);
        let held = Held { table: self, lock: BucketLock(version), spot };
        self.is_at(spot).then_some(held)
    }
}

impl<L: Layout> Held<'_, L> {
    /// Puts another location in its place, which stands for the same key. A reader finds the one or the other.
    #[inline]
    pub fn replace(self, new: Location) {
        let Held { table, lock, spot: Spot { bucket, slot, word } } = self;
        table.buckets[bucket].slots()[slot].store(word.with_location(new));
        drop(lock);
    }

    /// Removes it: the entry of a key of this hash.
    #[inline]
    pub fn remove(self, hash: u64) {
        let Held { table, lock, spot: Spot { bucket, slot, .. } } = self;
        table.buckets[bucket].slots()[slot].store(Word::EMPTY);
        drop(lock);
        table.counter(table.mixed(hash)).fetch_sub(1, Ordering::Relaxed);
    }
}

impl<L: Layout> fmt::Debug for Held<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("spot", &self.spot).finish_non_exhaustive()
    }
}
