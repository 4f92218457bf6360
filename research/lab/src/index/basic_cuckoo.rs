//! A baseline: cuckoo hashing before the paper's optimisations, with buckets of four (section 3, "Basic cuckoo
//! hashing").
//!
//! *Without tags*, a slot holds the entry's number and nothing else. A lookup fetches the full key of every entry in
//! both buckets until one is the key sought; a displacement fetches the key of the entry it moves, to compute its other
//! bucket, which a second hash function gives. *With tags* (section 3.1), a slot also holds one byte of the hash: only
//! entries whose byte agrees are fetched, and the other bucket follows from the byte.
//!
//! Inserts are serialised, as in the paper. A path is searched first, by one random walk of at most 500 displacements,
//! and then followed backwards, each move under the locks of its two buckets, so that a lookup under both locks of its
//! key never misses it. As in the other baseline, an insert does not look for another entry with its key.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use pages::{Array, MapError, PageKind};
use rand::Rng;
use workload::generator::{Xoshiro256PlusPlus, seeded};

use super::comparison::{Comparison, Integers};
use super::engine::{Anatomy, Index, Insertion, Inspected, describe_pages};
use super::locking::{Locking, acquire};
use super::records::{Key, Records};

/// Slots in a bucket.
const SLOTS: usize = 4;
/// Displacements before an insert is refused: the paper's number.
const MOST_STEPS: usize = 500;

/// The table: whether slots have tags, and what keeps threads apart.
pub(crate) struct BasicCuckoo<'r, const TAGS: bool, L> {
    buckets: Array<[AtomicU64; SLOTS]>,
    records: &'r Records,
    comparison: Integers,
    locking: L,
    writer: Mutex<Xoshiro256PlusPlus>,
}

/// The number of the entry in a slot that is not empty.
#[inline]
fn record_in(word: u64) -> u64 {
    (word & ((1 << 56) - 1)) - 1
}

impl<'r, const TAGS: bool, L: Locking> BasicCuckoo<'r, TAGS, L> {
    /// A table of `buckets` buckets, a power of two, over `records`, in pages of `kind`.
    pub(crate) fn new(buckets: usize, records: &'r Records, kind: PageKind) -> Result<Self, MapError> {
        assert!(buckets.is_power_of_two() && buckets <= 1 << 32, "{buckets} buckets");
        Ok(BasicCuckoo {
            buckets: Array::map(buckets, kind)?,
            records,
            comparison: Integers,
            locking: L::default(),
            writer: Mutex::new(seeded(1)),
        })
    }

    /// The tag of a hash, in the highest byte of the slot; nothing where there are no tags.
    #[inline]
    fn tag(hash: u64) -> u64 {
        // Never zero, so that no tag agrees with an empty slot.
        if TAGS { (hash >> 56).max(1) << 56 } else { 0 }
    }

    /// Whether a slot may hold the entry of a key with this tag.
    #[inline]
    fn may_hold(word: u64, tag: u64) -> bool {
        if TAGS { (word ^ tag) >> 56 == 0 } else { word != 0 }
    }

    /// The other bucket of the key with this tag and hash, one of whose buckets is `bucket`.
    #[inline]
    fn other_of(&self, bucket: usize, tag: u64, hash: impl FnOnce() -> u64) -> usize {
        let mask = self.buckets.len() - 1;
        if TAGS {
            let tag = tag >> 56;
            return (bucket ^ (tag.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 24) as usize) & mask;
        }
        // The second hash function: the upper half of the first one's 64 bits, which the first bucket does not use.
        let hash = hash();
        let (first, second) = (hash as usize & mask, (hash >> 32) as usize & mask);
        if bucket == first { second } else { first }
    }

    #[inline]
    fn candidates(&self, hash: u64, tag: u64) -> (usize, usize) {
        let first = hash as usize & (self.buckets.len() - 1);
        (first, self.other_of(first, tag, || hash))
    }

    fn other(&self, bucket: usize, word: u64) -> usize {
        self.other_of(bucket, word, || self.records.key(record_in(word)).hash())
    }

    fn free_slot(&self, bucket: usize) -> Option<usize> {
        self.buckets[bucket].iter().position(|slot| slot.load(Ordering::Relaxed) == 0)
    }

    /// Empties a slot in `start` by displacing entries along a random walk; says which slot, and after how many moves.
    fn make_room(&self, start: usize, random: &mut Xoshiro256PlusPlus) -> Option<(usize, usize)> {
        let (mut steps, mut moves) = (0, 0);
        loop {
            if let Some(slot) = self.free_slot(start) {
                return Some((slot, moves));
            }
            let mut path = Vec::new();
            let mut bucket = start;
            while self.free_slot(bucket).is_none() {
                if steps == MOST_STEPS {
                    return None;
                }
                steps += 1;
                let slot = random.next_u64() as usize % SLOTS;
                path.push((bucket, slot));
                bucket = self.other(bucket, self.buckets[bucket][slot].load(Ordering::Relaxed));
            }
            for &(from, slot) in path.iter().rev() {
                let word = self.buckets[from][slot].load(Ordering::Relaxed);
                // A walk may have crossed itself: then its later part has moved this entry already, or has used up the
                // slot that this entry was to have. What is done is sound; another walk does the rest.
                if word == 0 {
                    continue;
                }
                let to = self.other(from, word);
                let Some(free) = self.free_slot(to) else { break };
                let _locked = self.locking.lock_both(from, to);
                self.buckets[to][free].store(word, Ordering::Relaxed);
                self.buckets[from][slot].store(0, Ordering::Relaxed);
                moves += 1;
            }
        }
    }
}

impl<const TAGS: bool, L: Locking> Index for BasicCuckoo<'_, TAGS, L> {
    #[inline(always)]
    fn get(&self, key: &Key) -> Option<u64> {
        let hash = key.hash();
        let tag = Self::tag(hash);
        let (first, second) = self.candidates(hash, tag);
        let _locked = self.locking.lock_both(first, second);
        for bucket in [first, second] {
            for slot in &self.buckets[bucket] {
                let word = slot.load(Ordering::Relaxed);
                if Self::may_hold(word, tag) && self.comparison.same(self.records.key(record_in(word)), key) {
                    return Some(record_in(word));
                }
            }
        }
        None
    }

    fn insert(&self, record: u64) -> Insertion {
        let hash = self.records.key(record).hash();
        let word = Self::tag(hash) | (record + 1);
        let (first, second) = self.candidates(hash, word);
        let mut random = acquire(&self.writer);
        let free = [first, second].into_iter().find_map(|bucket| Some((bucket, self.free_slot(bucket)?, 0)));
        let found = free.or_else(|| {
            let start = if random.next_u64().is_multiple_of(2) { first } else { second };
            let (slot, displaced) = self.make_room(start, &mut random)?;
            Some((start, slot, displaced))
        });
        let Some((bucket, slot, displaced)) = found else { return Insertion::TooFull };
        let _locked = self.locking.lock(bucket);
        self.buckets[bucket][slot].store(word, Ordering::Relaxed);
        Insertion::Done { displaced }
    }

    fn remove(&self, record: u64) -> bool {
        let hash = self.records.key(record).hash();
        let word = Self::tag(hash) | (record + 1);
        let (first, second) = self.candidates(hash, word);
        let _writer = acquire(&self.writer);
        let _locked = self.locking.lock_both(first, second);
        let mut slots = [first, second].into_iter().flat_map(|bucket| &self.buckets[bucket]);
        match slots.find(|slot| slot.load(Ordering::Relaxed) == word) {
            Some(slot) => {
                slot.store(0, Ordering::Relaxed);
                true
            }
            None => false,
        }
    }
}

impl<const TAGS: bool, L: Locking> Inspected for BasicCuckoo<'_, TAGS, L> {
    fn anatomy(&self) -> Anatomy {
        let used = |bucket: &[AtomicU64; SLOTS]| {
            bucket.iter().filter(|slot| slot.load(Ordering::Relaxed) != 0).count()
        };
        let entries: usize = self.buckets.iter().map(used).sum();
        Anatomy {
            bytes: size_of_val::<[_]>(&self.buckets),
            entries,
            load: Some(entries as f64 / (self.buckets.len() * SLOTS) as f64),
            fullest: self.buckets.iter().map(used).max(),
            pages: describe_pages(self.buckets.region()),
        }
    }
}
