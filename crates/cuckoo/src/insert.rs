//! Inserting: a free slot if there is one, else a cuckoo path.
//!
//! ```text
//! insert_or_get(key, location):
//!   lock both candidates
//!     if the key is there: occupied
//!     if one of them has a free slot: put it into the emptier one; done
//!   unlock
//!   search a path of entries, each displaced by the one before it, that ends at a free slot
//!   from its end backwards, under the locks of the two buckets concerned, move each entry to its other bucket
//!   the last move and the new entry under the locks of all three buckets
//! ```
//!
//! Nothing is moved before a whole path is known, and moving backwards means that every entry moves into a slot that
//! is already free: none is ever "in the air" (paper, section 3.2). The search reads without locks, so the path may be
//! out of date when it is followed; each step checks that its entry is still where the search saw it, and a path that
//! is out of date is given up, having done no harm, for a new search.
//!
//! Optimisations:
//! 1. Both buckets are looked at for the emptier one, which keeps loads even and makes displacements rarer.
//! 2. Breadth-first search asks for the next few lines before it looks at the first of them. (A whole level is up to
//!    fourteen lines, of which it seldom needs three: a third slower in a full table.)
//! 3. The uniqueness check and the insert share one lock acquisition, as do the last move and the insert after it.
//! 4. A batch asks for the first lines of the searches of all its keys together ([`crate::batch`]).
//!
//! Rejected: locking the whole path (long paths would stop everyone, and it is not known in advance); moving
//! forwards as the classical algorithm does (an entry in the air is missed by readers).

use crate::config::Search;
use crate::geometry::Geometry;
use crate::layout::{Bucket, Layout};
use crate::outcome::{Insertion, TooFull, Upsertion, Work};
use crate::slot::{Location, Tag, Word};
use crate::stash::Stash;
use crate::table::{Entries, LockedKey, MOST_SLOTS, Table};
use crate::tags;
use atomics::Ordering;

/// Searches an insert makes before it gives up; each but the last failed because others were writing.
const ATTEMPTS: usize = 64;
/// Displacements tried in one search by walks, all of them together: the paper's bound.
const MOST_STEPS: usize = 500;
/// The number of no tag: that of an empty slot.
const EMPTY: u64 = 0;
/// Buckets that a breadth-first search asks for before it looks at them: more would mostly be fetched for nothing,
/// since one of the first few has a free slot unless the table is nearly full.
const AHEAD: usize = 6;
/// Buckets looked at in one breadth-first search.
const MOST_BUCKETS: usize = 512;

/// What is to happen to a key that is already there.
#[derive(Clone, Copy)]
enum Incumbent {
    Stays,
    Goes,
}

/// How a try to place a key under its locks ended.
enum Placement {
    Placed,
    There(Location),
    NoSlot,
}

/// A displacement to be made: the entry of `word` leaves this slot of `bucket`.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    pub(crate) bucket: usize,
    pub(crate) slot: usize,
    pub(crate) word: Word,
}

/// Displacements that lead to a free slot: the first vacates a slot in a candidate of the new key, each next one makes
/// room for the one before it.
struct CuckooPath {
    steps: Vec<Step>,
    /// The bucket with a free slot, where the last step's entry goes.
    free: usize,
}

/// What a search came to.
enum Found {
    /// One displacement will do.
    Move(Move),
    Path(CuckooPath),
    /// A candidate has had a slot freed by another writer: no path is needed.
    FreeNow,
    Nothing,
}

impl<L: Layout> Table<L> {
    /// Puts `location` into the table for a key of this hash, of which the caller knows that it is not there: `eq` need
    /// not be asked, and no entry is read. Who is wrong has the key twice, and removes it once.
    ///
    /// `hasher` tells the hashes of entries when the table grows: see [`Entries`]. Returns what it took.
    ///
    /// # Errors
    /// As [`Table::insert_or_get`].
    ///
    /// # Panics
    /// As [`Table::insert_or_get`].
    pub fn insert_unique(
        &self,
        hash: u64,
        location: Location,
        hasher: impl Entries,
    ) -> Result<Work, TooFull> {
        let placed = self.place(hash, location, &mut |_| false, &hasher, Incumbent::Stays);
        placed.map(|(_, work)| work)
    }

    /// Puts `location` into the table for a key of this hash, unless the key is there: an entry for which `eq` is true.
    ///
    /// `eq` and `hasher` are called while buckets are locked: they must not use the table. It is as if this had
    /// happened at one moment: of several who insert the same key, one succeeds, and the others get its location.
    ///
    /// # Errors
    /// [`TooFull`]: the table is as it was, but for entries moved to their other bucket, and buckets split.
    ///
    /// # Panics
    /// If `eq` or `hasher` does. The table is sound then, but it is unknown whether the location is in it: it grows,
    /// and calls `hasher`, after the location was put in. Remove the key before its entry is freed.
    pub fn insert_or_get(
        &self,
        hash: u64,
        location: Location,
        mut eq: impl FnMut(Location) -> bool,
        hasher: impl Entries,
    ) -> Result<Insertion, TooFull> {
        self.insert_with(hash, location, &mut eq, &hasher)
    }

    /// [`Table::insert_or_get`] for batches, too, which have the owner's closures for many keys.
    pub(crate) fn insert_with(
        &self,
        hash: u64,
        location: Location,
        eq: &mut impl FnMut(Location) -> bool,
        hasher: &impl Entries,
    ) -> Result<Insertion, TooFull> {
        self.place(hash, location, eq, hasher, Incumbent::Stays).map(|(old, work)| match old {
            Some(old) => Insertion::Occupied(old),
            None => Insertion::Inserted(work),
        })
    }

    /// Puts `location` into the table for a key of this hash, in the place of the one that is there, for which `eq` is
    /// true, if any. A concurrent reader finds the one or the other.
    ///
    /// # Errors
    /// [`TooFull`], as [`Table::insert_or_get`]; never for a key that is there.
    ///
    /// # Panics
    /// As [`Table::insert_or_get`].
    pub fn insert_or_replace(
        &self,
        hash: u64,
        location: Location,
        mut eq: impl FnMut(Location) -> bool,
        hasher: impl Entries,
    ) -> Result<Upsertion, TooFull> {
        self.place(hash, location, &mut eq, &hasher, Incumbent::Goes).map(|(old, work)| match old {
            Some(old) => Upsertion::Replaced(old),
            None => Upsertion::Inserted(work),
        })
    }

    fn place(
        &self,
        hash: u64,
        location: Location,
        eq: &mut impl FnMut(Location) -> bool,
        entries: &impl Entries,
        incumbent: Incumbent,
    ) -> Result<(Option<Location>, Work), TooFull> {
        let hash = self.mixed(hash);
        let tag = Tag::of(hash, L::TAG_BITS);
        match self.place_at_home(hash, tag, location, eq, entries, incumbent) {
            Placement::Placed => Ok((None, self.count_in(hash, entries, Work::default()))),
            Placement::There(old) => Ok((Some(old), Work::default())),
            Placement::NoSlot => self.place_anywhere((hash, tag), location, eq, entries, incumbent),
        }
    }

    /// Counts an entry that has been placed, and grows.
    #[inline]
    fn count_in(&self, hash: u64, entries: &impl Entries, mut work: Work) -> Work {
        let before = self.counter(hash).fetch_add(1, Ordering::Relaxed);
        self.grow_if_loaded(entries, before.wrapping_add(1), &mut work);
        work
    }

    /// Places a key in its first bucket, if no key of that is elsewhere, and it has room or the key itself: then no
    /// other bucket need be locked, or looked at ([`crate::home`]).
    #[inline]
    fn place_at_home(
        &self,
        hash: u64,
        tag: Tag,
        location: Location,
        eq: &mut impl FnMut(Location) -> bool,
        entries: &impl Entries,
        incumbent: Incumbent,
    ) -> Placement {
        let Some(home) = self.lock_first(hash) else { return Placement::NoSlot };
        if let Some((cell, word)) = self.find_at_home(&home, tag, eq) {
            if let Incumbent::Goes = incumbent {
                entries.enters(location);
                cell.store(Word::new(tag, word.next(), location));
            }
            return Placement::There(word.location());
        }
        let Some(slot) = self.free_slot(home.bucket) else { return Placement::NoSlot };
        let next = home.geometry.next_for_first(home.bucket, hash);
        entries.enters(location);
        self.buckets[home.bucket].slots()[slot].store(Word::new(tag, next, location));
        Placement::Placed
    }

    fn place_anywhere(
        &self,
        (hash, tag): (u64, Tag),
        location: Location,
        eq: &mut impl FnMut(Location) -> bool,
        entries: &impl Entries,
        incumbent: Incumbent,
    ) -> Result<(Option<Location>, Work), TooFull> {
        let mut work = Work::default();
        let mut refusal = None;
        for attempt in 0..ATTEMPTS {
            let locked = self.lock_candidates(hash, tag, None);
            let mut placement = self.place_locked(&locked, location, eq, entries, incumbent);
            let (geometry, candidates) = (locked.geometry, locked.candidates);
            drop(locked);
            if matches!(placement, Placement::NoSlot) {
                match self.search(geometry, candidates, hash ^ attempt as u64) {
                    found @ (Found::Move(_) | Found::Path(_)) => {
                        let last = match found {
                            Found::Move(only) => Some(only),
                            Found::Path(path) => self.follow(&path, &mut work),
                            Found::FreeNow | Found::Nothing => None,
                        };
                        if let Some(last) = last {
                            let locked = self.lock_candidates(hash, tag, Some(last.to));
                            // The path starts in a candidate as of its search: one that has split since is not locked.
                            if locked.candidates == candidates && self.displace(last.from, last.to) {
                                work.displaced += 1;
                                placement = self.place_locked(&locked, location, eq, entries, incumbent);
                            }
                        }
                    }
                    Found::FreeNow => {}
                    // No table has room for it: to grow would be in vain.
                    Found::Nothing if self.is_crowded_by_equals(entries, hash, tag) => {
                        refusal = Some(TooFull::Hashes);
                    }
                    Found::Nothing if self.make_room(entries, &mut work) => {}
                    Found::Nothing => refusal = Some(self.refusal()),
                }
            }
            if attempt + 1 == ATTEMPTS {
                refusal = refusal.or_else(|| Some(self.refusal()));
            }
            if let (Placement::NoSlot, Some(refusal)) = (&placement, refusal) {
                let stash = self.stash.as_ref().ok_or(refusal)?;
                placement = self.place_in_stash(stash, (hash, tag), location, eq, entries, incumbent);
            }
            match placement {
                Placement::Placed => {
                    return Ok((None, self.count_in(hash, entries, work)));
                }
                Placement::There(old) => return Ok((Some(old), work)),
                Placement::NoSlot => {}
            }
        }
        unreachable!("the last attempt ends in one way or the other")
    }

    /// Puts a key for which no slot was found into the stash, or into a slot, if there is one by now.
    #[cold]
    fn place_in_stash(
        &self,
        stash: &Stash,
        (hash, tag): (u64, Tag),
        location: Location,
        eq: &mut impl FnMut(Location) -> bool,
        entries: &impl Entries,
        incumbent: Incumbent,
    ) -> Placement {
        let locked = self.lock_candidates(hash, tag, None);
        let placement = self.place_locked(&locked, location, eq, entries, incumbent);
        if matches!(placement, Placement::NoSlot) {
            self.version(locked.candidates.0).mark_stashed();
            entries.enters(location);
            stash.push(hash, location);
            return Placement::Placed;
        }
        placement
    }

    /// Whether every slot of the key's two buckets has a key of this very hash.
    #[cold]
    fn is_crowded_by_equals(&self, entries: &impl Entries, hash: u64, tag: Tag) -> bool {
        let of_one_tag = |(first, second): (usize, usize)| {
            let full = |bucket| tags::in_one(&self.buckets[bucket], tag.raw()).len() == L::SLOTS;
            first != second && full(first) && full(second)
        };
        // By the tags alone, which is nearly always enough; keys can be read under the locks only.
        if !of_one_tag(self.geometry().candidates(hash, tag)) {
            return false;
        }
        let locked = self.lock_candidates(hash, tag, None);
        let (first, second) = locked.candidates;
        of_one_tag(locked.candidates)
            && [first, second]
                .into_iter()
                .flat_map(|bucket| self.buckets[bucket].slots())
                .all(|cell| self.call_out(|| self.mixed(entries.hash(cell.load().location()))) == hash)
    }

    /// Why no slot was found. Hashes that are even fill a table beyond half.
    #[cold]
    fn refusal(&self) -> TooFull {
        if self.len() < self.slots() / 2 { TooFull::Hashes } else { TooFull::Table }
    }

    /// Under the key's locks: the uniqueness check, and the insert if there is a free slot.
    fn place_locked(
        &self,
        locked: &LockedKey<'_, L>,
        location: Location,
        eq: &mut impl FnMut(Location) -> bool,
        entries: &impl Entries,
        incumbent: Incumbent,
    ) -> Placement {
        let LockedKey { hash, tag, .. } = *locked;
        if let Some(found) = self.find_locked(locked, eq) {
            if let Incumbent::Goes = incumbent {
                entries.enters(location);
                self.store_at(found, tag, location);
            }
            return Placement::There(found.location());
        }
        let (first, second) = locked.candidates;
        let chosen = match (self.config.prefers_first, self.free_slots(first)) {
            (true, 0) => second,
            (false, free) if self.free_slots(second) > free => second,
            _ => first,
        };
        match self.free_slot(chosen) {
            Some(slot) => {
                let next = locked.geometry.next_for(chosen, hash, tag);
                if chosen != first {
                    self.version(first).mark_elsewhere();
                }
                entries.enters(location);
                self.buckets[chosen].slots()[slot].store(Word::new(tag, next, location));
                Placement::Placed
            }
            None => Placement::NoSlot,
        }
    }

    /// Asks for the buckets that a search for this key would look at first, if it will need one.
    #[cfg_attr(loom, allow(dead_code, reason = "batches of inserts are in no model"))]
    pub(crate) fn prefetch_ways_out(&self, hash: u64) {
        let hash = self.mixed(hash);
        let geometry = self.geometry();
        let (first, second) = geometry.candidates(hash, Tag::of(hash, L::TAG_BITS));
        if self.free_slot(first).is_some() || self.free_slot(second).is_some() {
            return;
        }
        for cell in &self.buckets[first].slots()[..AHEAD.min(L::SLOTS)] {
            if let Some((to, _)) = geometry.alternate(first, cell.load()) {
                self.prefetch_bucket(to);
            }
        }
    }

    fn free_slots(&self, bucket: usize) -> usize {
        tags::in_one(&self.buckets[bucket], EMPTY).len()
    }

    pub(crate) fn free_slot(&self, bucket: usize) -> Option<usize> {
        tags::in_one(&self.buckets[bucket], EMPTY).next()
    }

    /// Makes all moves of a path but that of its first step, which the caller makes together with its insert. `None` if
    /// the path turned out to be out of date.
    fn follow(&self, path: &CuckooPath, work: &mut Work) -> Option<Move> {
        let mut to = path.free;
        for (index, &from) in path.steps.iter().enumerate().rev() {
            if index == 0 {
                return Some(Move { from, to });
            }
            let locks = self.lock([from.bucket, to]);
            if !self.displace(from, to) {
                return None;
            }
            drop(locks);
            work.displaced += 1;
            to = from.bucket;
        }
        unreachable!("a path has at least one step")
    }

    /// Moves an entry to its other bucket, both being locked; false if it is no longer where the search saw it, its
    /// other bucket is not `to`, or that is full.
    pub(crate) fn displace(&self, from: Step, to: usize) -> bool {
        debug_assert!(self.version(from.bucket).is_locked() && self.version(to).is_locked());
        let cell = &self.buckets[from.bucket].slots()[from.slot];
        let word = cell.load();
        if word != from.word || word.is_empty() {
            return false;
        }
        // Loaded under the locks: neither bucket can split now.
        let Some((alternate, moved)) = self.geometry().alternate(from.bucket, word) else { return false };
        if alternate != to {
            return false;
        }
        let Some(free) = self.free_slot(to) else { return false };
        // Copy, raise, clear: the order that readers rely on, see `version`.
        self.walks.moves(word.location(), from.bucket, to);
        self.buckets[to].slots()[free].store(moved);
        self.version(from.bucket).raise();
        cell.store(Word::EMPTY);
        true
    }

    /// Looks for a path without moving anything.
    fn search(&self, geometry: Geometry, candidates: (usize, usize), seed: u64) -> Found {
        match self.config.search {
            Search::BreadthFirst => self.search_breadth_first(geometry, candidates),
            Search::Walks(walks) => self.search_by_walks(geometry, candidates, walks, seed),
        }
    }

    /// The first level of a breadth-first search: one displacement out of a candidate. It nearly always is enough, and
    /// needs no list of buckets.
    fn search_next_door(&self, geometry: Geometry, candidates: (usize, usize)) -> Option<Found> {
        let (first, second) = candidates;
        if self.free_slot(first).is_some() || self.free_slot(second).is_some() {
            return Some(Found::FreeNow);
        }
        let mut moves = [None; 2 * MOST_SLOTS];
        for (which, bucket) in [first, second].into_iter().enumerate() {
            for (slot, cell) in self.buckets[bucket].slots().iter().enumerate() {
                let word = cell.load();
                let to = if word.is_empty() { None } else { geometry.alternate(bucket, word) };
                let to = to.map(|(to, _)| to).filter(|&to| to != bucket);
                moves[which * L::SLOTS + slot] = to.map(|to| Move { from: Step { bucket, slot, word }, to });
            }
        }
        let prefetch = |step: Option<Move>| step.iter().for_each(|step| self.prefetch_bucket(step.to));
        moves[..AHEAD].iter().copied().for_each(prefetch);
        for (number, step) in moves.iter().enumerate() {
            prefetch(moves.get(number + AHEAD).copied().flatten());
            if let Some(step) = step
                && self.free_slot(step.to).is_some()
            {
                return Some(Found::Move(*step));
            }
        }
        None
    }

    fn search_breadth_first(&self, geometry: Geometry, candidates: (usize, usize)) -> Found {
        if let Some(found) = self.search_next_door(geometry, candidates) {
            return found;
        }
        /// A bucket reached, and from where.
        struct Node {
            bucket: usize,
            /// The node whose entry would be displaced to here, and that entry; none for a candidate.
            parent: Option<(usize, Step)>,
        }
        let path_to = |nodes: &[Node], mut at: usize| {
            let free = nodes[at].bucket;
            let mut steps = Vec::new();
            while let Some((parent, step)) = nodes[at].parent {
                steps.push(step);
                at = parent;
            }
            steps.reverse();
            CuckooPath { steps, free }
        };
        let mut nodes = Vec::with_capacity(64);
        nodes.push(Node { bucket: candidates.0, parent: None });
        nodes.push(Node { bucket: candidates.1, parent: None });
        let (mut at, mut fetched) = (0, 0);
        while at < nodes.len() {
            let ahead = nodes.len().min(at + 1 + AHEAD);
            nodes[fetched..ahead].iter().for_each(|node| self.prefetch_bucket(node.bucket));
            fetched = ahead;
            let bucket = nodes[at].bucket;
            if self.free_slot(bucket).is_some() {
                return match nodes[at].parent {
                    Some(_) => Found::Path(path_to(&nodes, at)),
                    None => Found::FreeNow,
                };
            }
            if nodes.len() < MOST_BUCKETS {
                for (slot, cell) in self.buckets[bucket].slots().iter().enumerate() {
                    let word = cell.load();
                    if word.is_empty() {
                        continue;
                    }
                    let Some((to, _)) = geometry.alternate(bucket, word) else { continue };
                    if to == bucket {
                        continue;
                    }
                    nodes.push(Node { bucket: to, parent: Some((at, Step { bucket, slot, word })) });
                }
            }
            at += 1;
        }
        Found::Nothing
    }

    fn search_by_walks(
        &self,
        geometry: Geometry,
        candidates: (usize, usize),
        walks: usize,
        seed: u64,
    ) -> Found {
        let mut random = Xorshift::new(seed);
        let mut walks: Vec<_> = (0..walks)
            .map(|walk| {
                let start = if walk % 2 == 0 { candidates.0 } else { candidates.1 };
                CuckooPath { steps: Vec::with_capacity(16), free: start }
            })
            .collect();
        let mut steps = 0;
        while steps < MOST_STEPS {
            for walk in &mut walks {
                steps += 1;
                let Some((step, to)) = self.random_victim(geometry, walk.free, &mut random) else { continue };
                self.prefetch_bucket(to);
                walk.steps.push(step);
                walk.free = to;
            }
            if let Some(walk) = walks.iter().position(|walk| self.free_slot(walk.free).is_some()) {
                let path = walks.swap_remove(walk);
                return if path.steps.is_empty() { Found::FreeNow } else { Found::Path(path) };
            }
        }
        Found::Nothing
    }

    /// An entry of `bucket` that can be displaced, chosen at random, and where it would go.
    fn random_victim(
        &self,
        geometry: Geometry,
        bucket: usize,
        random: &mut Xorshift,
    ) -> Option<(Step, usize)> {
        let slots = self.buckets[bucket].slots();
        let start = random.next() as usize;
        (0..L::SLOTS).map(|offset| start.wrapping_add(offset) % L::SLOTS).find_map(|slot| {
            let word = slots[slot].load();
            let (to, _) = if word.is_empty() { None } else { geometry.alternate(bucket, word) }?;
            (to != bucket).then_some((Step { bucket, slot, word }, to))
        })
    }
}

/// One displacement of a path.
#[derive(Clone, Copy)]
struct Move {
    from: Step,
    to: usize,
}

/// Marsaglia's xorshift64: which entry a walk displaces is to be arbitrary, not unpredictable.
struct Xorshift(u64);

impl Xorshift {
    fn new(seed: u64) -> Self {
        Xorshift(seed | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 16
    }
}
