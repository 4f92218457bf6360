//! The table: its parts, its lookup, and its locks.
//!
//! A lookup (paper, section 3.1) reads the key's two buckets, compares tags, and asks the owner of the entries to
//! compare the full key only where a tag agrees: two parallel cache-line reads and, for a key that is there, one for
//! its entry.
//!
//! ```text
//! get(key):
//!   loop
//!     (b1, b2) = candidates(hash, geometry)
//!     v1, v2 = versions of b1, b2
//!     for each slot of b1 and b2 whose tag agrees           compared together: see `tags`
//!       if its entry holds the key: return it          a hit needs no second look: see `version`
//!     if versions and candidates are unchanged: return none
//! ```
//!
//! After [`OPTIMISTIC_ATTEMPTS`] failed validations a reader takes the two locks like a writer, so that a storm of
//! displacements cannot starve it.

use std::fmt;

use crossbeam_utils::CachePadded;

use crate::config::{Config, CreateError, Growth, Linear, Search};
use crate::geometry::Geometry;
use crate::hash::{Hashes, mix};
use crate::layout::{Bucket, Buckets, DefaultLayout, Layout, SlotCell};
use crate::slot::{Location, Tag, Word};
use crate::spot::{Sighting, Spot};
use crate::stash::Stash;
use crate::tags::{self, SlotSet};
use crate::version::Version;
use crate::walks::Walks;
use atomics::{AtomicBool, AtomicUsize, Ordering};
#[cfg(not(loom))]
use atomics::{Hold, Within};

/// The limit of tables that were given none: 16 GiB of addresses, for two thousand million entries; where there are not
/// so many, a part of those that there are. (The interpreter of the language has no addresses to claim, and touches all
/// that it is given; a model makes each bucket.)
const FARTHEST: usize = if cfg!(loom) {
    8
} else if cfg!(miri) {
    1 << 12
} else {
    1 << 28
};

/// Misses that fail to validate before a reader takes the locks.
const OPTIMISTIC_ATTEMPTS: usize = 16;

/// Counters of entries, by hash: writers to different keys seldom share one.
pub(crate) const COUNTERS: usize = if cfg!(loom) { 1 } else { 16 };

/// Most slots in a bucket of any layout.
pub(crate) const MOST_SLOTS: usize = 8;

/// No operation locks more words: the two candidates of a key and the bucket an entry is displaced to.
const MOST_LOCKS: usize = 3;

/// What the table asks of the entries that its locations stand for: their hashes, when it grows. A closure will do.
/// Whoever has to number entries in the order in which they come is told when that is.
///
/// The table calls this, and the comparisons that it is given (`eq`), with locations that were given to it and not yet
/// removed, or, in [`Table::find`] and [`Table::find_many`], removed while the call was going on; the owner must keep
/// such entries readable until lookups that began before the removal have ended. [`prefetch`](Entries::prefetch) alone
/// may come for a location that was removed before: it must not read the entry. All of them may be called while buckets
/// are locked: they must not use the table, and a call that would have to wait for buckets of it panics. What answers
/// wrongly makes the table answer wrongly, and nothing worse.
pub trait Entries {
    /// The hash that the entry at `location` was inserted with, as it was given to the table. Called only when a bucket
    /// splits, or a key is refused.
    fn hash(&self, location: Location) -> u64;

    /// Asks for the cache line that `eq` and [`hash`](Entries::hash) will read. The entry may be gone.
    #[inline]
    fn prefetch(&self, location: Location) {
        let _ = location;
    }

    /// The entry at `location` is being inserted and can be found as soon as this has returned: called once, while the
    /// key's buckets are locked, so that of two entries of one key the later one is told of later. Not called by
    /// [`Table::replace`], whose caller has a say there. It must not use the table, and here nobody looks whether it
    /// does.
    #[inline]
    fn enters(&self, location: Location) {
        let _ = location;
    }
}

impl<F: Fn(Location) -> u64> Entries for F {
    #[inline]
    fn hash(&self, location: Location) -> u64 {
        self(location)
    }
}

/// A concurrent cuckoo hash index from keys to locations.
///
/// The keys themselves lie in the entries, outside the table: as with a `HashTable` of hashbrown's, each call is given
/// the key's hash, `eq`, which tells whether the entry at a location is the key's, and, where the table may grow,
/// `hasher`, which tells an entry's hash ([`Entries`]). All operations take `&self`; lookups never wait.
///
/// ```
/// use std::hash::BuildHasher;
///
/// use lookaside_cuckoo::{Config, Insertion, Location, Table};
///
/// let words = ["bucket", "slot", "tag", "slot"];
/// let hashing = std::hash::RandomState::new();
/// let hash = |word: &str| hashing.hash_one(word);
/// let word_at = |at: Location| words[at.get() as usize];
///
/// let table: Table = Table::with_capacity(100, &Config::default())?;
/// for (number, word) in words.iter().enumerate() {
///     let at = Location::new(number as u64).unwrap();
///     let inserted = table.insert_or_get(hash(word), at, |at| word_at(at) == *word, |at| hash(word_at(at)));
///     // The last word is there already.
///     let earlier = matches!(inserted, Ok(Insertion::Occupied(at)) if at.get() == 1);
///     assert_eq!(earlier, number == 3);
/// }
/// assert_eq!(table.find(hash("slot"), |at| word_at(at) == "slot"), Location::new(1));
/// assert_eq!(table.remove(hash("tag"), |at| word_at(at) == "tag"), Location::new(2));
/// assert_eq!(table.len(), 2);
/// # Ok::<(), lookaside_cuckoo::CreateError>(())
/// ```
pub struct Table<L: Layout = DefaultLayout> {
    pub(crate) buckets: Buckets<L::Bucket>,
    stripes: Box<[Version]>,
    /// The geometry, as one word.
    pub(crate) open: CachePadded<AtomicUsize>,
    pub(crate) splitting: CachePadded<AtomicBool>,
    pub(crate) counters: [CachePadded<AtomicUsize>; COUNTERS],
    pub(crate) config: Config,
    /// Whether hashes are mixed.
    mixes: bool,
    pub(crate) stash: Option<Stash>,
    pub(crate) walks: Walks,
    /// Bytes taken from the budget: changed only by who holds `splitting`.
    #[cfg(not(loom))]
    pub(crate) taken: AtomicUsize,
}

/// Where a key is looked for. A batch has one of each key: what all of them share is not in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sought {
    /// Mixed.
    pub(crate) hash: u64,
    pub(crate) tag: Tag,
    /// Its buckets in the geometry of when the look began.
    pub(crate) candidates: (usize, usize),
}

/// What an optimistic search came to.
pub(crate) enum Probe {
    Found(Location),
    /// Nothing was there, and nothing moved meanwhile.
    Absent,
    /// Nothing was seen, but something moved, or the key may be in the stash: look again.
    Disturbed,
}

impl<L: Layout> Table<L> {
    /// Slots in a bucket.
    pub const BUCKET_SLOTS: usize = L::SLOTS;
    /// Bytes of a bucket.
    pub const BUCKET_BYTES: usize = L::BUCKET_BYTES;

    /// A table with room for `keys` keys before it grows; the number of buckets is the next power of two, of which a
    /// table that does not grow makes the best use.
    ///
    /// # Errors
    /// As [`Table::with_buckets`].
    pub fn with_capacity(keys: usize, config: &Config) -> Result<Self, CreateError> {
        let slots = keys.checked_add(keys / 16).ok_or(CreateError::TooMany { buckets: keys })?;
        Self::with_buckets(slots.div_ceil(L::SLOTS).max(1).next_power_of_two(), config)
    }

    /// A table of `buckets` buckets. It fills best where that is a power of two (see the crate's documentation).
    ///
    /// # Errors
    /// [`CreateError`]: no buckets, too many, terms out of range, or memory refused.
    pub fn with_buckets(buckets: usize, config: &Config) -> Result<Self, CreateError> {
        let mut config = config.clone();
        let limit = match &mut config.growth {
            Growth::Fixed => buckets,
            Growth::Linear(linear) => {
                if !(0.1..=0.95).contains(&linear.target_load) {
                    return Err(CreateError::BadTargetLoad(linear.target_load));
                }
                if linear.limit == Linear::UNLIMITED {
                    linear.limit = buckets.max(FARTHEST);
                }
                linear.limit
            }
        };
        if let Search::Walks(walks) = config.search
            && !(1..=8).contains(&walks)
        {
            return Err(CreateError::BadWalks(walks));
        }
        if buckets == 0 || limit < buckets {
            return Err(CreateError::NoRoom);
        }
        if limit > 1 << 40 {
            return Err(CreateError::TooMany { buckets: limit });
        }
        let storage = Self::allocate(buckets, limit, &mut config)?;
        Ok(Table {
            #[cfg(not(loom))]
            taken: AtomicUsize::new(config.take_from_budget(buckets * L::BUCKET_BYTES)?),
            buckets: storage,
            stripes: (0..L::STRIPES).map(|_| Version::default()).collect(),
            open: CachePadded::new(AtomicUsize::new(buckets)),
            splitting: CachePadded::new(AtomicBool::new(false)),
            counters: std::array::from_fn(|_| CachePadded::new(AtomicUsize::new(0))),
            mixes: config.hashes == Hashes::Any,
            walks: Walks::new(),
            stash: (config.stashes && L::STRIPES == 0).then(Stash::new),
            config,
        })
    }

    #[cfg(not(loom))]
    fn allocate(
        buckets: usize,
        limit: usize,
        config: &mut Config,
    ) -> Result<Buckets<L::Bucket>, CreateError> {
        let Growth::Linear(linear) = &mut config.growth else {
            return Ok(Buckets::map(buckets, config.pages)?);
        };
        let mut was_refused = false;
        loop {
            match Buckets::reserve(linear.limit, config.pages) {
                // A limit that nobody asked for: as many as there are.
                Err(_) if limit == FARTHEST && linear.limit > buckets => {
                    was_refused = true;
                    linear.limit = (linear.limit / 2).max(buckets);
                }
                // Which are not this table's alone.
                Ok(_) if was_refused => {
                    was_refused = false;
                    linear.limit = (linear.limit / 8).max(buckets);
                }
                reserved => return Ok(reserved?),
            }
        }
    }

    #[cfg(loom)]
    fn allocate(
        _buckets: usize,
        limit: usize,
        _config: &mut Config,
    ) -> Result<Buckets<L::Bucket>, CreateError> {
        Ok((0..limit).map(|_| L::Bucket::default()).collect())
    }

    /// The entry of a key of this hash for which `eq` is true, if there is one.
    ///
    /// `eq` is called for each entry whose tag agrees (for few that are not the one sought) and must compare the full
    /// key. The entry was in the table at some moment during the call; if there is none, there was none at some moment.
    // Always: what a call saves and restores is a seventh of the instructions, and these are what limits it (see
    // `tags`).
    #[inline(always)]
    pub fn find(&self, hash: u64, eq: impl FnMut(Location) -> bool) -> Option<Location> {
        self.get_mixed(self.mixed(hash), eq)
    }

    /// The hash by which the table goes, of one that it was given.
    #[inline(always)]
    pub(crate) fn mixed(&self, hash: u64) -> u64 {
        if self.mixes { mix(hash) } else { hash }
    }

    /// As [`Table::find`], of a hash that is mixed already.
    #[inline(always)]
    pub(crate) fn get_mixed(&self, hash: u64, mut holds: impl FnMut(Location) -> bool) -> Option<Location> {
        match self.look(hash, &mut holds) {
            Probe::Found(location) => Some(location),
            Probe::Absent => None,
            Probe::Disturbed => self.get_again(hash, holds),
        }
    }

    /// After an optimistic look that was disturbed, or came by a marked bucket.
    #[cold]
    fn get_again(&self, hash: u64, mut holds: impl FnMut(Location) -> bool) -> Option<Location> {
        for _ in 1..OPTIMISTIC_ATTEMPTS {
            if self.may_be_stashed(Self::seek(hash, self.geometry()).candidates) {
                break;
            }
            match self.look(hash, &mut holds) {
                Probe::Found(location) => return Some(location),
                Probe::Absent => return None,
                Probe::Disturbed => {}
            }
        }
        self.get_locked(hash, holds)
    }

    /// Where a key of this hash is to be looked for, in a table of this geometry.
    #[inline(always)]
    pub(crate) fn seek(hash: u64, geometry: Geometry) -> Sought {
        let tag = Tag::of(hash, L::TAG_BITS);
        Sought { hash, tag, candidates: geometry.candidates(hash, tag) }
    }

    /// One optimistic look at the buckets of a key, as they are now.
    #[inline(always)]
    fn look(&self, hash: u64, holds: &mut impl FnMut(Location) -> bool) -> Probe {
        let geometry = self.geometry();
        self.probe(geometry, Self::seek(hash, geometry), holds)
    }

    /// One optimistic look at both buckets of what was sought in this geometry.
    #[inline(always)]
    pub(crate) fn probe(
        &self,
        geometry: Geometry,
        sought: Sought,
        holds: &mut impl FnMut(Location) -> bool,
    ) -> Probe {
        match self.sight(geometry, sought, holds) {
            Sighting::At(spot) => Probe::Found(spot.location()),
            Sighting::Nowhere => Probe::Absent,
            Sighting::Unsettled => Probe::Disturbed,
        }
    }

    /// The same, for who wants to know where it was seen.
    #[inline(always)]
    pub(crate) fn sight(
        &self,
        geometry: Geometry,
        sought: Sought,
        holds: &mut impl FnMut(Location) -> bool,
    ) -> Sighting {
        let Sought { hash, tag, candidates: (first, second) } = sought;
        let buckets = [&self.buckets[first], &self.buckets[second]];
        if L::STRIPES > 0 {
            // With inline versions the snapshots below fetch both lines; here nothing has touched the second one yet.
            self.prefetch_bucket(second);
        }
        // One by one: `map` of an array is a call where the compiler thinks that the whole has become long, of forty
        // instructions.
        let versions = (self.version(first), self.version(second));
        let snapshots = (versions.0.snapshot(), versions.1.snapshot());
        for place in tags::in_both(buckets[0], buckets[1], tag.raw()) {
            let (second_one, slot) = (usize::from(place >= SlotSet::SECOND), place % SlotSet::SECOND);
            let word = buckets[second_one].slots()[slot].load();
            if word.has_tag(tag) && holds(word.location()) {
                let bucket = if second_one == 0 { first } else { second };
                return Sighting::At(Spot { bucket, slot, word });
            }
        }
        let unmoved = Version::are_still(versions, snapshots);
        // pairs with the release in `publish`, as in `geometry`.
        let now = self.open.load(Ordering::Acquire);
        let is_as_it_was = || {
            let now = Geometry::of_word(now);
            geometry.only_grown_to(now) && now.candidates(hash, tag) == (first, second)
        };
        if unmoved && (now == geometry.word() || is_as_it_was()) {
            Sighting::Nowhere
        } else {
            Sighting::Unsettled
        }
    }

    /// Whether keys of which these are the buckets may be in the stash.
    fn may_be_stashed(&self, (first, _): (usize, usize)) -> bool {
        self.version(first).has_stashed()
    }

    #[cold]
    fn get_locked(&self, hash: u64, mut holds: impl FnMut(Location) -> bool) -> Option<Location> {
        let locked = self.lock_candidates(hash, Tag::of(hash, L::TAG_BITS), None);
        self.find_locked(&locked, &mut holds).map(Place::location)
    }

    /// The locations in the two buckets of a key of this hash, whichever keys they belong to: those of which one must
    /// go if the key is to enter a table that is [`TooFull`](crate::TooFull). A snapshot, slot by slot.
    pub fn neighbours(&self, hash: u64) -> impl Iterator<Item = Location> + use<'_, L> {
        let hash = self.mixed(hash);
        let (first, second) = self.geometry().candidates(hash, Tag::of(hash, L::TAG_BITS));
        let buckets = [Some(first), (first != second).then_some(second)];
        buckets
            .into_iter()
            .flatten()
            .flat_map(|bucket| self.buckets[bucket].slots())
            .map(SlotCell::load)
            .filter(|word| !word.is_empty())
            .map(Word::location)
    }

    /// Entries in the table. Exact when nobody is writing.
    #[must_use]
    pub fn len(&self) -> usize {
        let sum = self
            .counters
            .iter()
            .fold(0usize, |sum, counter| sum.wrapping_add(counter.load(Ordering::Relaxed)));
        // A removal may be counted before the insert it undid: never let that look like a huge number.
        if sum > isize::MAX as usize { 0 } else { sum }
    }

    /// Whether the table has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Buckets in use.
    #[must_use]
    pub fn buckets(&self) -> usize {
        self.geometry().open()
    }

    /// Slots in use or free: [`buckets`](Table::buckets) times the layout's slots.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.buckets() * L::SLOTS
    }

    /// Share of the slots that hold an entry.
    #[must_use]
    pub fn load_factor(&self) -> f64 {
        self.len() as f64 / self.slots() as f64
    }

    /// Bytes of the open buckets and the stripes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.buckets() * L::BUCKET_BYTES + self.stripes.len() * size_of::<Version>()
    }

    /// Bytes of index an entry: infinite for an empty table.
    #[must_use]
    pub fn bytes_per_key(&self) -> f64 {
        self.bytes() as f64 / self.len() as f64
    }

    /// The pages that the buckets lie in.
    #[cfg(not(loom))]
    #[must_use]
    pub fn region(&self) -> &pages::Region {
        self.buckets.region()
    }

    /// Asks for the line of a bucket.
    #[inline]
    pub(crate) fn prefetch_bucket(&self, bucket: usize) {
        #[cfg(not(loom))]
        pages::prefetch(&self.buckets[bucket]);
        #[cfg(loom)]
        let _ = bucket;
    }

    #[inline]
    pub(crate) fn geometry(&self) -> Geometry {
        // pairs with the release in `publish`: who sees a bucket open sees what was copied into it.
        Geometry::of_word(self.open.load(Ordering::Acquire))
    }

    #[inline]
    pub(crate) fn publish(&self, geometry: Geometry) {
        // pairs with the acquire in `geometry`.
        self.open.store(geometry.word(), Ordering::Release);
    }

    #[inline]
    pub(crate) fn counter(&self, hash: u64) -> &AtomicUsize {
        // By all bits (Fibonacci hashing): each counter is taken for a fair sample, whichever of them a weak hash
        // leaves alone.
        &self.counters[(hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44) as usize % COUNTERS]
    }

    #[inline]
    pub(crate) fn version(&self, bucket: usize) -> &Version {
        self.version_word(Self::version_index(bucket))
    }

    /// Names the version word of a bucket; locks are taken in the order of these names.
    #[inline]
    fn version_index(bucket: usize) -> usize {
        if L::STRIPES == 0 { bucket } else { bucket & (L::STRIPES - 1) }
    }

    #[inline]
    fn version_word(&self, index: usize) -> &Version {
        if L::STRIPES == 0 {
            self.buckets[index].version().expect("a layout without stripes has a version in its buckets")
        } else {
            &self.stripes[index]
        }
    }

    /// Locks the buckets named, each word once, in ascending order.
    ///
    /// # Panics
    /// If one of them is locked, and this thread has locked others already: it may be waiting for itself.
    #[inline]
    pub(crate) fn lock<const N: usize>(&self, buckets: [usize; N]) -> Locks<'_, L> {
        let mut wanted = [usize::MAX; MOST_LOCKS];
        for (slot, bucket) in wanted.iter_mut().zip(buckets) {
            *slot = Self::version_index(bucket);
        }
        // Three at the most: a general sort is ten times as long as these.
        for (lower, higher) in [(0, 1), (1, 2), (0, 1)] {
            if wanted[lower] > wanted[higher] {
                wanted.swap(lower, higher);
            }
        }
        let mut locks = Locks { table: self, words: [0; MOST_LOCKS], taken: 0 };
        for index in wanted {
            let repeated = locks.taken > 0 && locks.words[locks.taken - 1] == index;
            if index != usize::MAX && !repeated {
                self.lock_word(self.version_word(index));
                locks.words[locks.taken] = index;
                locks.taken += 1;
            }
        }
        locks
    }

    #[inline]
    pub(crate) fn lock_word(&self, word: &Version) {
        if cfg!(loom) || !word.try_lock() {
            self.wait_for(word);
        }
    }

    #[cold]
    fn wait_for(&self, word: &Version) {
        #[cfg(not(loom))]
        assert!(
            atomics::held(&self.buckets).is_none(),
            "a cuckoo table was used by what it had called while buckets were locked, a comparison of keys or a hash: \
             it must not be (see Entries)"
        );
        word.lock();
    }

    /// Calls what is the owner's, while this thread has buckets locked.
    #[inline]
    pub(crate) fn call_out<R>(&self, call: impl FnOnce() -> R) -> R {
        // For `wait_for`. Not where buckets are locked: few of those who lock call anybody.
        #[cfg(not(loom))]
        let _within = Within::enter(&self.buckets, Hold::Exclusive);
        call()
    }

    /// Locks both candidates of a key, and `also` another bucket, as the geometry stands when the locks are held.
    pub(crate) fn lock_candidates(&self, hash: u64, tag: Tag, also: Option<usize>) -> LockedKey<'_, L> {
        loop {
            let candidates = self.geometry().candidates(hash, tag);
            // The locks are taken one after the other; the lines may come together.
            self.prefetch_bucket(candidates.0);
            self.prefetch_bucket(candidates.1);
            let locks = match also {
                None => self.lock([candidates.0, candidates.1]),
                Some(also) => self.lock([candidates.0, candidates.1, also]),
            };
            // A bucket splits and merges only under its lock, so from here on the candidates stay what they are.
            let geometry = self.geometry();
            if geometry.candidates(hash, tag) == candidates {
                return LockedKey { geometry, candidates, hash, tag, _locks: locks };
            }
        }
    }

    /// Where the entry that is sought is, of a key whose candidates are locked.
    pub(crate) fn find_locked(
        &self,
        key: &LockedKey<'_, L>,
        is_it: &mut impl FnMut(Location) -> bool,
    ) -> Option<Place<'_>> {
        let LockedKey { hash, tag, candidates, .. } = *key;
        let buckets = [&self.buckets[candidates.0], &self.buckets[candidates.1]];
        for slot in tags::in_both(buckets[0], buckets[1], tag.raw()) {
            let cell = &buckets[usize::from(slot >= SlotSet::SECOND)].slots()[slot % SlotSet::SECOND];
            let word = cell.load();
            if word.has_tag(tag) && self.call_out(|| is_it(word.location())) {
                return Some(Place::Slot(cell, word));
            }
        }
        let stash = self.stash.as_ref().filter(|_| self.may_be_stashed(candidates))?;
        let stashed = stash.of(hash).into_iter().find(|&location| self.call_out(|| is_it(location)));
        stashed.map(|location| Place::Stash(stash, location))
    }

    /// Puts another location where an entry of a locked key is.
    pub(crate) fn store_at(&self, place: Place<'_>, tag: Tag, new: Location) {
        match place {
            Place::Slot(cell, word) => cell.store(Word::new(tag, word.next(), new)),
            Place::Stash(stash, old) => stash.replace(old, new),
        }
    }
}

/// Where an entry of a locked key is.
#[derive(Clone, Copy)]
pub(crate) enum Place<'t> {
    Slot(&'t SlotCell, Word),
    Stash(&'t Stash, Location),
}

impl Place<'_> {
    pub(crate) fn location(self) -> Location {
        match self {
            Place::Slot(_, word) => word.location(),
            Place::Stash(_, location) => location,
        }
    }
}

/// Version words locked by this thread; given back on drop, also when a caller's comparison panics.
pub(crate) struct Locks<'t, L: Layout> {
    table: &'t Table<L>,
    words: [usize; MOST_LOCKS],
    taken: usize,
}

impl<L: Layout> Drop for Locks<'_, L> {
    fn drop(&mut self) {
        for &index in &self.words[..self.taken] {
            self.table.version_word(index).unlock();
        }
    }
}

/// A key whose two candidates are locked: they are its candidates until this is dropped.
pub(crate) struct LockedKey<'t, L: Layout> {
    pub(crate) geometry: Geometry,
    pub(crate) candidates: (usize, usize),
    /// Mixed.
    pub(crate) hash: u64,
    pub(crate) tag: Tag,
    _locks: Locks<'t, L>,
}

impl<L: Layout> fmt::Debug for Table<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("layout", &L::NAME)
            .field("len", &self.len())
            .field("buckets", &self.buckets())
            .finish_non_exhaustive()
    }
}

#[cfg(not(loom))]
impl<L: Layout> Drop for Table<L> {
    fn drop(&mut self) {
        if let Some(budget) = self.config.budget() {
            budget.give_back(self.taken.load(Ordering::Relaxed));
        }
    }
}
