//! The Cache Table's bucket: seven slots and their counters in one line.
//!
//! ```text
//!   0        8                                      56        63  64
//!  +--------+--------+-- . . . --+--------+--------+-----------+--+
//!  | slot 0 | slot 1 |           | slot 5 | slot 6 | counters  |  |
//!  +--------+--------+-- . . . --+--------+--------+-----------+--+
//! ```
//!
//! Section 3.2 and Figure 5 of the paper. The seven 1-byte counters are the low bytes of one word, which is loaded and
//! stored whole: the coldest slot is found in a register. This layout is frozen: the C header's inlined hit path knows
//! it.
//!
//! # Counters (section 3.3.1)
//!
//! A hit raises its slot's counter ([`Bucket::raise`]). At 255 another, random, non-zero counter of the bucket is
//! lowered instead, so that the slots' temperatures stay comparable without anything outside the bucket. Counters are
//! statistics: they are loaded and stored with no lock and no read-modify-write, and two hits at once may count as one,
//! or a newcomer may inherit its victim's warmth. A wrong counter costs a hit ratio, never an answer.
//!
//! [`CounterPolicy::Falling`] raises a counter of value x with probability 2^-x, up to fifteen, as STLT does, but never
//! more often than once in eight hits: hot lines are then hardly ever written, and stay shared in the caches of all
//! cores that read them. Since such a counter never comes down by overflow, admitting a newcomer cools the bucket: the
//! victim's count is taken from everyone.
//!
//! # Who writes slots
//!
//! Emissions and invalidations, which change a slot only by compare and swap: whatever they meet there, nobody's change
//! is lost. That keys of one hash are not written by two at once is the stripe's affair ([`crate::stripes`]).

use atomics::{AtomicU64, Ordering};

use crate::config::{CounterPolicy, SELDOM};
use crate::random::Random;
use crate::tags::{self, SlotSet};
use crate::word::{Pointer, SLOTS, Word};

/// Where the falling probability ends: 2^-14 is seldom enough. It begins where one lookup in 2^[`SELDOM`] counts.
const WARMEST: u64 = 15;

/// Seven slots and seven counters.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Bucket {
    slots: [AtomicU64; SLOTS],
    counters: AtomicU64,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Bucket>() == 64 && align_of::<Bucket>() == 64);

// SAFETY: atomic integers, for all of which zero is a value: empty slots, cold counters.
#[cfg(not(loom))]
#[allow(unsafe_code)]
unsafe impl pages::Zeroed for Bucket {}

impl Bucket {
    /// The first slot that has the tag of this hash and whose pointer `accept` takes.
    #[inline(always)]
    pub(crate) fn find(
        &self,
        hash: u64,
        mut accept: impl FnMut(Pointer) -> bool,
    ) -> Option<(usize, Pointer)> {
        // Where lines are not crowded, it is the first; and a guess that it is need not wait for the comparison of all.
        if let Some(pointer) = self.load(0).pointer_for(hash)
            && accept(pointer)
        {
            return Some((0, pointer));
        }
        let mut slots = self.tagged(hash).behind_first();
        let first = slots.next()?;
        if let Some(pointer) = self.load(first).pointer_for(hash)
            && accept(pointer)
        {
            return Some((first, pointer));
        }
        self.find_among(slots, hash, accept)
    }

    /// Seldom: another key with this tag.
    #[cold]
    #[inline(never)]
    fn find_among(
        &self,
        mut slots: SlotSet,
        hash: u64,
        mut accept: impl FnMut(Pointer) -> bool,
    ) -> Option<(usize, Pointer)> {
        slots.find_map(|slot| {
            let pointer = self.load(slot).pointer_for(hash)?;
            accept(pointer).then_some((slot, pointer))
        })
    }

    #[inline(always)]
    pub(crate) fn tagged(&self, hash: u64) -> SlotSet {
        tags::in_bucket(self, &self.slots, hash)
    }

    #[cfg(all(test, not(loom)))]
    pub(crate) fn tagged_one_by_one(&self, hash: u64) -> SlotSet {
        tags::portable(&self.slots, hash)
    }

    #[inline(always)]
    pub(crate) fn load(&self, slot: usize) -> Word {
        // pairs with the release in `exchange`: who sees a pointer sees the entry that was there when it was emitted.
        Word(self.slots[slot].load(Ordering::Acquire))
    }

    /// Puts `new` where `old` is, unless it no longer is there.
    #[inline]
    pub(crate) fn exchange(&self, slot: usize, old: Word, new: Word) -> bool {
        // release pairs with the acquire in `load`; a failure tells nothing that anyone relies on.
        self.slots[slot].compare_exchange(old.0, new.0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Empties it: for who has the table for himself.
    pub(crate) fn reset(&self) {
        self.slots.iter().chain([&self.counters]).for_each(|word| word.store(0, Ordering::Relaxed));
    }

    /// Every slot's word.
    pub(crate) fn words(&self) -> impl Iterator<Item = (usize, Word)> {
        (0..SLOTS).map(|slot| (slot, self.load(slot)))
    }

    /// How warm each slot is.
    #[inline]
    pub(crate) fn temperatures(&self) -> [u8; SLOTS] {
        let counters = self.counters.load(Ordering::Relaxed).to_le_bytes();
        std::array::from_fn(|slot| counters[slot])
    }

    fn set_temperatures(&self, temperatures: [u8; SLOTS]) {
        let mut counters = [0; 8];
        counters[..SLOTS].copy_from_slice(&temperatures);
        self.counters.store(u64::from_le_bytes(counters), Ordering::Relaxed);
    }

    /// Warms a slot at a hit that counts.
    #[inline]
    pub(crate) fn raise(&self, slot: usize, policy: CounterPolicy, random: &Random) {
        match policy {
            CounterPolicy::EveryHit => self.raise_by_one(slot, 255, random),
            CounterPolicy::Falling => {
                // A newcomer may begin warmer than any can become.
                let temperature = u32::from(self.temperatures()[slot]).min(WARMEST as u32);
                // Shifted in two steps: by 64 where the temperature is low.
                if random.next() >> 1 >> (63 - temperature.saturating_sub(SELDOM)) == 0 {
                    self.raise_by_one(slot, WARMEST, random);
                }
            }
            CounterPolicy::Never => {}
        }
    }

    #[inline(always)]
    fn raise_by_one(&self, slot: usize, most: u64, random: &Random) {
        let counters = self.counters.load(Ordering::Relaxed);
        if counters >> (8 * slot) & 0xff < most {
            self.counters.store(counters + (1 << (8 * slot)), Ordering::Relaxed);
        } else if most == 255 {
            self.lower_another(counters, slot, random);
        }
    }

    /// The overflow rule: one other slot that is not cold gets colder. In a register: the hottest entries, whose
    /// counters are full, have a good part of the hits.
    #[inline]
    fn lower_another(&self, counters: u64, hit: usize, random: &Random) {
        const LOW: u64 = 0x007f_7f7f_7f7f_7f7f;
        let others = counters & !(0xff << (8 * hit));
        // The highest bit of each counter that is not zero.
        let warm = (((others & LOW) + LOW) | others) & !LOW & ((1 << (8 * SLOTS)) - 1);
        if warm == 0 {
            return;
        }
        // The first from a random one on, and from there around.
        let start = 8 * random.below(SLOTS as u32);
        let from_start = warm >> start;
        let lowered = match from_start {
            0 => warm.trailing_zeros(),
            _ => start + from_start.trailing_zeros(),
        };
        self.counters.store(counters - (1 << (lowered - 7)), Ordering::Relaxed);
    }

    /// The coldest slot; of several one at random.
    pub(crate) fn coldest(&self, policy: CounterPolicy, random: &Random) -> usize {
        let start = random.below(SLOTS as u32) as usize;
        let slots = (0..SLOTS).map(|step| (start + step) % SLOTS);
        let temperatures = self.temperatures();
        match policy {
            CounterPolicy::Never => start,
            _ => slots.min_by_key(|&slot| temperatures[slot]).unwrap_or(start),
        }
    }

    /// Gives a newcomer its first count, in a slot that was free.
    pub(crate) fn welcome(&self, slot: usize, newcomer: u8, policy: CounterPolicy) {
        if policy != CounterPolicy::Never {
            let mut temperatures = self.temperatures();
            temperatures[slot] = newcomer;
            self.set_temperatures(temperatures);
        }
    }

    /// Gives a newcomer its first count, in the slot of its victim.
    pub(crate) fn settle(&self, slot: usize, newcomer: u8, policy: CounterPolicy) {
        if policy == CounterPolicy::Never {
            return;
        }
        let mut temperatures = self.temperatures();
        if policy == CounterPolicy::Falling {
            let victim = temperatures[slot];
            temperatures = temperatures.map(|temperature| temperature.saturating_sub(victim));
        }
        temperatures[slot] = newcomer;
        self.set_temperatures(temperatures);
    }
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
        bucket.raise(slot, policy, random);
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
    fn falling_counters_rise_ever_more_rarely_and_end_at_fifteen() {
        let (bucket, random) = (filled([0, 0, 7, 0, 0, 15, 0]), Random::new(1));
        // Where each degree was reached, and so how many hits it took.
        let (mut hits, mut reached) = (0u64, vec![0u64]);
        while reached.len() < 16 {
            hit(&bucket, 0, Falling, &random);
            hits += 1;
            assert!(hits < 1 << 20, "{reached:?}");
            if usize::from(bucket.temperatures()[0]) == reached.len() {
                reached.push(hits);
            }
        }
        assert_eq!(bucket.temperatures(), [15, 0, 7, 0, 0, 15, 0], "and nobody else's");
        // Some 2^(x - 3) hits from the first degree on that not every hit raises.
        assert!(reached[4] == 4 && reached[10] > 20 && reached[15] > 500, "{reached:?}");
        for _ in 0..1 << 16 {
            hit(&bucket, 5, Falling, &random);
        }
        assert_eq!(bucket.temperatures()[5], 15);
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
        #[test]
        fn every_variant_finds_the_same_slots(
            tags in prop::array::uniform7(prop_oneof![0u64..3, 0x7ffe_u64..0x8002, 0..1u64 << 16]),
            sought in prop_oneof![0u64..3, 0x7ffe_u64..0x8002, 0..1u64 << 16],
        ) {
            let lines = crate::lines::Lines::<Bucket>::map(1, pages::PageKind::Base).unwrap();
            // All ones beside the tag: what lies there must not matter.
            let pointer = Pointer::new((1 << Pointer::BITS) - 1).unwrap();
            for (slot, tag) in tags.iter().enumerate() {
                prop_assert!(lines[0].exchange(slot, Word::EMPTY, Word::new(tag << Pointer::BITS, pointer)));
            }
            lines[0].settle(6, 0xff, EveryHit);
            let expected: Vec<_> = (0..SLOTS).filter(|&slot| tags[slot] == sought).collect();
            let hash = sought << Pointer::BITS | 0x1234_5678;
            prop_assert_eq!(lines[0].tagged(hash).collect::<Vec<_>>(), expected.clone());
            prop_assert_eq!(lines[0].tagged_one_by_one(hash).collect::<Vec<_>>(), expected);
        }
    }
}
