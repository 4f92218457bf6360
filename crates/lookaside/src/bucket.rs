//! The Cache Table's bucket: seven slots and their counters in one line.
//!
//! ```text
//!   0        8                                      56        63  64
//!  +--------+--------+-- . . . --+--------+--------+-----------+--+
//!  | slot 0 | slot 1 |           | slot 5 | slot 6 | counters  |  |
//!  +--------+--------+-- . . . --+--------+--------+-----------+--+
//! ```
//!
//! Section 3.2 and Figure 5 of the paper. This layout is frozen: the C header's inlined hit path knows it.
//!
//! A slot is one word, read and written whole, so that a hit needs no lock: a short tag of the key, the higher 16 bits
//! of its 64-bit hash, over a pointer to its entry.
//!
//! ```text
//!   63                48 47                                             0
//!  +--------------------+------------------------------------------------+
//!  |        tag         |                    pointer                     |
//!  +--------------------+------------------------------------------------+
//! ```
//!
//! An empty slot is the zero word. Its tag may be that of a key; its pointer, zero, is never that of an entry.
//!
//! Which bucket a hash means, its low half says ([`line`]); which slots in it, the tag.
//!
//! A lookup looks at one slot after the other, and ends at the first that is the key's. That is nearly always the first
//! where lines are not crowded; and where they are, each slot costs four instructions.
//!
//! # Counters (section 3.3.1)
//!
//! A hit raises its slot's counter ([`Bucket::raise`]). At 255 another, random, non-zero counter of the bucket is
//! lowered instead, so that the slots' temperatures stay comparable without anything outside the bucket. Counters are
//! statistics: each is a byte, loaded and stored with no lock and no read-modify-write, and two hits at once may count
//! as one, or a newcomer may inherit its victim's warmth. A wrong counter costs a hit ratio, never an answer.
//!
//! [`CounterPolicy::Falling`] raises a counter to fifteen, and leaves it there: hot lines are then no longer written,
//! and stay shared in the caches of all cores that read them. Since such a counter never comes down by overflow,
//! admitting a newcomer cools the bucket: the victim's count is taken from everyone.
//!
//! # Who writes slots
//!
//! Offers and invalidations, which change a slot only by compare and swap: whatever they meet there, nobody's change
//! is lost. That keys of one hash are not written by two at once is the stripe's affair ([`crate::stripes`]). An owner
//! who is alone stores plainly ([`Bucket::store`]).
//!
//! # Rejected
//!
//! *Comparing the tags of all slots at once*, by SIMD, behind the first slot, and *raising the counter of one hit in
//! eight*: an owner's hit was 81 instructions and is 60, and the fewer there are the more lookups wait for memory at
//! once. Over 0.1 million keys it had 0.81 of the throughput of a table of twenty lines, and has 0.98.
//! *Counters as one word*, loaded and stored whole: four instructions more a hit.

use atomics::{AtomicU8, AtomicU64, Ordering};

use crate::config::CounterPolicy;
use crate::pointer::Pointer;
use crate::random::Random;

/// Slots in a bucket: a line of words, but for that of the counters.
pub(crate) const SLOTS: usize = 7;

/// The line of a hash among `lines`: its low 32 bits, scaled. So tables may have any number of lines, up to 2^32, not
/// only powers of two; and the high bits are left for tags.
#[inline(always)]
pub(crate) fn index(hash: u64, lines: usize) -> usize {
    (((hash & 0xffff_ffff) * lines as u64) >> 32) as usize
}

/// The line of a hash.
///
/// # Panics
/// In debug builds, if there is none: tables have at least one.
#[inline(always)]
#[allow(unsafe_code)]
pub(crate) fn line<L>(lines: &[L], hash: u64) -> &L {
    debug_assert!(!lines.is_empty());
    // SAFETY: 32 bits of the product's upper half, of a number below 2^32 and that of the lines: less than the latter.
    // Tables have at least one line: see `crate::config::lines_of`.
    unsafe { lines.get_unchecked(index(hash, lines.len())) }
}

/// What a slot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word(pub(crate) u64);

impl Word {
    pub(crate) const EMPTY: Word = Word(0);

    /// The word of a key of this hash whose entry is there.
    #[inline]
    pub(crate) fn new(hash: u64, pointer: Pointer) -> Word {
        Word(hash >> Pointer::BITS << Pointer::BITS | pointer.address())
    }

    #[inline(always)]
    pub(crate) fn pointer(self) -> Option<Pointer> {
        Pointer::new(self.0 & ((1 << Pointer::BITS) - 1))
    }

    /// The pointer, if the tag is that of a key of this hash.
    #[inline(always)]
    pub(crate) fn pointer_for(self, hash: u64) -> Option<Pointer> {
        // Without its own tag, what is left of the word is the pointer; with another, it has more than 48 bits.
        Pointer::new(self.0 ^ hash >> Pointer::BITS << Pointer::BITS)
    }

    /// Whether the tag is that of a key of this hash. True of the empty word for some hashes.
    #[inline(always)]
    pub(crate) fn has_tag_of(self, hash: u64) -> bool {
        (self.0 ^ hash) >> Pointer::BITS == 0
    }
}

/// Seven slots and seven counters.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Bucket {
    slots: [AtomicU64; SLOTS],
    /// The last is of no slot.
    counters: [AtomicU8; 8],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Bucket>() == 64 && align_of::<Bucket>() == 64);

// SAFETY: atomic integers, for all of which zero is a value: empty slots, cold counters.
#[cfg(not(loom))]
#[allow(unsafe_code)]
unsafe impl pages::Zeroed for Bucket {}

impl Bucket {
    /// The first slot that has the tag of this hash and whose pointer `accept` takes. One slot after the other: where
    /// lines are not crowded it is the first, and a guess that it is waits for no comparison of all.
    #[inline(always)]
    pub(crate) fn find(
        &self,
        hash: u64,
        mut accept: impl FnMut(Pointer) -> bool,
    ) -> Option<(usize, Pointer)> {
        for slot in 0..SLOTS {
            if let Some(pointer) = self.load(slot).pointer_for(hash)
                && accept(pointer)
            {
                return Some((slot, pointer));
            }
        }
        None
    }

    #[inline(always)]
    pub(crate) fn load(&self, slot: usize) -> Word {
        // pairs with the release in `exchange`: who sees a pointer sees the entry that was there when it was admitted.
        Word(self.slots[slot].load(Ordering::Acquire))
    }

    /// Puts a word in: for who is the only one to write.
    #[inline]
    pub(crate) fn store(&self, slot: usize, word: Word) {
        // release pairs with the acquire in `load`.
        self.slots[slot].store(word.0, Ordering::Release);
    }

    /// Puts `new` where `old` is, unless it no longer is there.
    #[inline]
    pub(crate) fn exchange(&self, slot: usize, old: Word, new: Word) -> bool {
        // release pairs with the acquire in `load`; a failure tells nothing that anyone relies on.
        self.slots[slot].compare_exchange(old.0, new.0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Empties it: for who has the table for himself.
    pub(crate) fn reset(&self) {
        self.slots.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        self.set_temperatures([0; SLOTS]);
    }

    /// Every slot's word.
    pub(crate) fn words(&self) -> impl Iterator<Item = (usize, Word)> {
        (0..SLOTS).map(|slot| (slot, self.load(slot)))
    }

    /// How warm each slot is.
    pub(crate) fn temperatures(&self) -> [u8; SLOTS] {
        std::array::from_fn(|slot| self.counters[slot].load(Ordering::Relaxed))
    }

    fn set_temperatures(&self, temperatures: [u8; SLOTS]) {
        for (counter, temperature) in self.counters.iter().zip(temperatures) {
            counter.store(temperature, Ordering::Relaxed);
        }
    }

    /// What [`Bucket::find`] would ask about first, with the counter that [`raise`] is to be told of if it is a hit.
    #[inline(always)]
    pub(crate) fn peek(&self, hash: u64) -> Option<(Pointer, &AtomicU8)> {
        for slot in 0..SLOTS {
            if let Some(pointer) = self.load(slot).pointer_for(hash) {
                return Some((pointer, &self.counters[slot]));
            }
        }
        None
    }

    /// As [`Bucket::find`], and counts the hit as [`Bucket::raise`] does.
    #[inline(always)]
    pub(crate) fn hit(
        &self,
        hash: u64,
        warmest: u32,
        random: &Random,
        mut accept: impl FnMut(Pointer) -> bool,
    ) -> Option<Pointer> {
        for slot in 0..SLOTS {
            if let Some(pointer) = self.load(slot).pointer_for(hash)
                && accept(pointer)
            {
                self.raise(slot, warmest, random);
                return Some(pointer);
            }
        }
        None
    }

    /// Counts a hit, in a counter that is less than `warmest`. What is as warm as that is no longer written; where it
    /// is 256, as no counter can be, a full one lowers another.
    #[inline(always)]
    pub(crate) fn raise(&self, slot: usize, warmest: u32, random: &Random) {
        let counter = &self.counters[slot];
        let temperature = counter.load(Ordering::Relaxed);
        if u32::from(temperature) < warmest {
            if temperature < u8::MAX {
                counter.store(temperature + 1, Ordering::Relaxed);
            } else {
                self.lower_another(slot, random);
            }
        }
    }

    /// As [`Bucket::raise`], of a counter that [`Bucket::peek`] gave and [`raise`] did not raise, for it is full.
    #[cold]
    #[inline(never)]
    pub(crate) fn overflow(&self, counter: &AtomicU8, random: &Random) {
        let hit = self.counters.iter().position(|other| std::ptr::eq(other, counter));
        self.lower_another(hit.unwrap_or(SLOTS), random);
    }

    /// The overflow rule: one other slot that is not cold gets colder, the first from a random one on.
    #[cold]
    #[inline(never)]
    fn lower_another(&self, hit: usize, random: &Random) {
        let start = random.below(SLOTS as u32) as usize;
        let others = (0..SLOTS).map(|step| (start + step) % SLOTS).filter(|&slot| slot != hit);
        let warm =
            others.map(|slot| &self.counters[slot]).find(|counter| counter.load(Ordering::Relaxed) > 0);
        if let Some(counter) = warm {
            counter.store(counter.load(Ordering::Relaxed).saturating_sub(1), Ordering::Relaxed);
        }
    }

    /// The coldest slot; of several one at random.
    #[inline(always)]
    pub(crate) fn coldest(&self, policy: CounterPolicy, random: &Random) -> usize {
        if policy == CounterPolicy::Never {
            return random.below(SLOTS as u32) as usize;
        }
        // Behind a counter, how far its slot is from a random one: no two are equal, and the least is found by
        // comparisons that no branch hangs on, for nobody can foresee them. The last place has no slot.
        let start = random.below(8) as usize;
        let rank = |slot: usize| {
            usize::from(self.counters[slot].load(Ordering::Relaxed)) << 3 | (slot.wrapping_sub(start) & 7)
        };
        let coldest = (1..SLOTS).map(rank).fold(rank(0), usize::min);
        (coldest + start) & 7
    }

    /// Gives a newcomer its first count, in a slot that was free.
    #[inline(always)]
    pub(crate) fn welcome(&self, slot: usize, newcomer: u8, policy: CounterPolicy) {
        if policy != CounterPolicy::Never {
            self.counters[slot].store(newcomer, Ordering::Relaxed);
        }
    }

    /// Gives a newcomer its first count, in the slot of its victim.
    #[inline(always)]
    pub(crate) fn settle(&self, slot: usize, newcomer: u8, policy: CounterPolicy) {
        if policy == CounterPolicy::Falling {
            let victim = self.counters[slot].load(Ordering::Relaxed);
            // Most victims are as cold as newcomers begin by default.
            if victim > 0 {
                self.cool(victim);
            }
        }
        self.welcome(slot, newcomer, policy);
    }

    /// Takes so much from all counters.
    fn cool(&self, by: u8) {
        for counter in &self.counters[..SLOTS] {
            counter.store(counter.load(Ordering::Relaxed).saturating_sub(by), Ordering::Relaxed);
        }
    }
}

/// Raises a counter that is less than `warmest`; whether it could, or need not: a full one is to lower another instead.
#[inline(always)]
pub(crate) fn raise(counter: &AtomicU8, warmest: u32) -> bool {
    let temperature = counter.load(Ordering::Relaxed);
    if u32::from(temperature) < warmest {
        if temperature == u8::MAX {
            return false;
        }
        counter.store(temperature + 1, Ordering::Relaxed);
    }
    true
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    use CounterPolicy::{EveryHit, Falling, Never};

    fn filled(temperatures: [u8; SLOTS]) -> Bucket {
        let bucket = Bucket::default();
        for slot in 0..SLOTS {
            assert!(bucket.exchange(slot, Word::EMPTY, Word::new(hash(slot), pointer(slot))));
        }
        bucket.set_temperatures(temperatures);
        bucket
    }

    /// Tags unlike each other.
    fn hash(slot: usize) -> u64 {
        (slot as u64 + 1) << Pointer::BITS
    }

    fn pointer(slot: usize) -> Pointer {
        Pointer::new(0x1000 + slot as u64).unwrap()
    }

    fn hit(bucket: &Bucket, slot: usize, policy: CounterPolicy, random: &Random) {
        assert_eq!(bucket.find(hash(slot), |_| true), Some((slot, pointer(slot))));
        assert_eq!(bucket.hit(hash(slot), policy.warmest(), random, |_| true), Some(pointer(slot)));
    }

    #[test]
    fn every_hit_counts_until_a_counter_is_full() {
        let (bucket, random) = (filled([0; SLOTS]), Random::new(1));
        for times in 1..=255 {
            hit(&bucket, 3, EveryHit, &random);
            assert_eq!(bucket.temperatures(), [0, 0, 0, times, 0, 0, 0]);
        }
        hit(&bucket, 3, EveryHit, &random);
        assert_eq!(bucket.temperatures(), [0, 0, 0, 255, 0, 0, 0], "nobody else is warm");
    }

    #[test]
    fn a_full_counter_lowers_another_that_is_not_zero() {
        let random = Random::new(1);
        let mut lowered = [0u32; SLOTS];
        for _ in 0..3000 {
            let before = [255, 9, 0, 255, 1, 0, 200];
            let bucket = filled(before);
            hit(&bucket, 0, EveryHit, &random);
            let after = bucket.temperatures();
            let changed: Vec<usize> = (0..SLOTS).filter(|&slot| after[slot] != before[slot]).collect();
            assert_eq!(changed.len(), 1, "{after:?}");
            assert_eq!(after[changed[0]], before[changed[0]] - 1);
            lowered[changed[0]] += 1;
        }
        assert_eq!((lowered[0], lowered[2], lowered[5]), (0, 0, 0), "the hit one, and those at zero");
        assert!(
            [1, 3, 4, 6].iter().all(|&slot| lowered[slot] > 100),
            "each of the others in turn: {lowered:?}"
        );
    }

    #[test]
    fn the_only_other_that_is_warm_is_lowered_wherever_it_is() {
        let random = Random::new(1);
        for (hit_slot, other) in (0..SLOTS).flat_map(|slot| (0..SLOTS).map(move |other| (slot, other))) {
            for warmth in [0, 1, 127, 128, 255] {
                let mut temperatures = [0; SLOTS];
                temperatures[other] = warmth;
                temperatures[hit_slot] = 255;
                for _ in 0..30 {
                    let bucket = filled(temperatures);
                    hit(&bucket, hit_slot, EveryHit, &random);
                    let mut expected = temperatures;
                    if other != hit_slot {
                        expected[other] = warmth.saturating_sub(1);
                    }
                    assert_eq!(bucket.temperatures(), expected);
                }
            }
        }
    }

    #[test]
    fn falling_counters_rise_to_fifteen_and_stay() {
        let (bucket, random) = (filled([0, 0, 7, 0, 0, 15, 0]), Random::new(1));
        for times in 1..=40 {
            hit(&bucket, 0, Falling, &random);
            hit(&bucket, 5, Falling, &random);
            assert_eq!(bucket.temperatures(), [times.min(15), 0, 7, 0, 0, 15, 0]);
        }
        // A newcomer may begin warmer than any can become.
        bucket.welcome(1, 200, Falling);
        hit(&bucket, 1, Falling, &random);
        assert_eq!(bucket.temperatures()[1], 200);
    }

    #[test]
    fn never_writes_nothing() {
        let (bucket, random) = (filled([3; SLOTS]), Random::new(1));
        for slot in (0..SLOTS).cycle().take(1000) {
            hit(&bucket, slot, Never, &random);
        }
        bucket.settle(2, 9, Never);
        bucket.welcome(2, 9, Never);
        assert_eq!(bucket.temperatures(), [3; SLOTS]);
    }

    #[test]
    fn a_pointer_that_is_not_accepted_is_not_found() {
        let bucket = filled([0; SLOTS]);
        let mut asked = Vec::new();
        let found = bucket.find(hash(4), |pointer| {
            asked.push(pointer);
            false
        });
        assert_eq!((found, asked), (None, vec![pointer(4)]));
        assert_eq!(bucket.hit(hash(4), 15, &Random::new(1), |_| false), None);
        assert_eq!(bucket.temperatures(), [0; SLOTS], "no hit");
        assert_eq!(bucket.find(0, |_| true), None, "an empty tag");
        assert_eq!(Bucket::default().find(0, |_| panic!("empty slots point nowhere")), None);
    }

    #[test]
    fn the_coldest_slot_is_the_victim_and_of_several_each_may_be() {
        let random = Random::new(1);
        for policy in [EveryHit, Falling] {
            assert_eq!(filled([9, 8, 7, 6, 5, 4, 10]).coldest(policy, &random), 5);
            let bucket = filled([2, 1, 1, 3, 1, 2, 255]);
            let mut victims = [0; SLOTS];
            (0..1000).for_each(|_| victims[bucket.coldest(policy, &random)] += 1);
            assert_eq!([0, 3, 5, 6].map(|slot| victims[slot]), [0; 4]);
            assert!([1, 2, 4].iter().all(|&slot| victims[slot] > 50), "{victims:?}");
        }
        let bucket = filled([2, 1, 1, 3, 1, 2, 255]);
        let mut victims = [0; SLOTS];
        (0..1000).for_each(|_| victims[bucket.coldest(Never, &random)] += 1);
        assert!(victims.iter().all(|&times| times > 50), "whatever the counters say: {victims:?}");
    }

    #[test]
    fn a_newcomer_begins_anew_and_takes_its_victims_warmth_from_the_others_where_counters_only_rise() {
        let before = [9, 8, 2, 6, 5, 1, 15];
        let bucket = filled(before);
        bucket.settle(2, 1, EveryHit);
        assert_eq!(bucket.temperatures(), [9, 8, 1, 6, 5, 1, 15]);
        let bucket = filled(before);
        bucket.settle(2, 1, Falling);
        assert_eq!(bucket.temperatures(), [7, 6, 1, 4, 3, 0, 13]);
        // In a free slot there is no victim, but perhaps the count of one who has been removed.
        let bucket = filled([9, 8, 15, 6, 5, 1, 15]);
        bucket.welcome(2, 1, Falling);
        assert_eq!(bucket.temperatures(), [9, 8, 1, 6, 5, 1, 15]);
    }

    proptest! {
        /// What lies beside a tag must not matter, and the first that is taken is the answer.
        #[test]
        fn the_first_slot_with_the_tag_that_is_accepted_is_found(
            tags in prop::array::uniform7(prop_oneof![0u64..3, 0x7ffe_u64..0x8002, 0..1u64 << 16]),
            sought in prop_oneof![0u64..3, 0x7ffe_u64..0x8002, 0..1u64 << 16],
            passed in 0..3usize,
        ) {
            let bucket = Bucket::default();
            // All ones beside the tag, but for the slot's number.
            let pointer = |slot: usize| Pointer::new((1 << Pointer::BITS) - 1 - slot as u64).unwrap();
            for (slot, tag) in tags.iter().enumerate() {
                prop_assert!(bucket.exchange(slot, Word::EMPTY, Word::new(tag << Pointer::BITS, pointer(slot))));
            }
            bucket.settle(6, 0xff, EveryHit);
            let expected: Vec<_> = (0..SLOTS).filter(|&slot| tags[slot] == sought).collect();
            let hash = sought << Pointer::BITS | 0x1234_5678;
            let mut asked = Vec::new();
            let found = bucket.find(hash, |found| {
                asked.push(found);
                asked.len() > passed
            });
            prop_assert_eq!(found, expected.get(passed).map(|&slot| (slot, pointer(slot))));
            let until = expected.iter().take(passed + 1).map(|&slot| pointer(slot));
            prop_assert_eq!(asked, until.collect::<Vec<_>>());
        }
    }
}
