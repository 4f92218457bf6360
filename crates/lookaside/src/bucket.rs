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
//! stored whole: the coldest slot is found in a register. This layout is frozen: the C header's inlined hit path knows it.
//!
//! # Counters (section 3.3.1)
//!
//! A hit raises its slot's counter ([`Bucket::raise`]). At 255 another, random, non-zero counter of the bucket is lowered
//! instead, so that the slots' temperatures stay comparable without anything outside the bucket. Counters are
//! statistics: they are loaded and stored with no lock and no read-modify-write, and two hits at once may count as one, or a
//! newcomer may inherit its victim's warmth. A wrong counter costs a hit ratio, never an answer.
//!
//! [`CounterPolicy::Falling`] raises a counter of value x with probability 2^-x, up to fifteen, as STLT does: hot lines
//! are then hardly ever written, and stay shared in the caches of all cores that read them. Since such a counter never
//! comes down by overflow, admitting a newcomer cools the bucket: the victim's count is taken from everyone.
//!
//! # Who writes slots
//!
//! Emissions and invalidations, which change a slot only by compare and swap: whatever they meet there, nobody's change is
//! lost. That keys of one hash are not written by two at once is the stripe's affair ([`crate::stripes`]).

use atomics::{AtomicU64, Ordering};

use crate::random::Random;
use crate::tags::{self, SlotSet};
use crate::word::{Pointer, Word};

/// Slots in a bucket.
pub(crate) const SLOTS: usize = 7;

/// How a hit warms its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum CounterPolicy {
    /// The paper's: every hit, to 255, then another counter is lowered.
    EveryHit,
    /// STLT's: ever more rarely, to 15.
    #[default]
    Falling,
    /// Never: slots are replaced at random, and a hit writes nothing.
    Never,
}

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
    /// The pointer in the first slot that has the tag of this hash and that `accept` takes; its slot is warmed.
    #[inline(always)]
    pub(crate) fn find(
        &self,
        hash: u64,
        policy: CounterPolicy,
        random: &Random,
        mut accept: impl FnMut(Pointer) -> bool,
    ) -> Option<Pointer> {
        for slot in self.tagged(hash) {
            let word = self.load(slot);
            if let Some(pointer) = word.pointer()
                && word.has_tag_of(hash)
                && accept(pointer)
            {
                self.raise(slot, policy, random);
                return Some(pointer);
            }
        }
        None
    }

    /// The first pointer that has the tag of this hash: for prefetching, warms nothing.
    #[inline(always)]
    pub(crate) fn peek(&self, hash: u64) -> Option<Pointer> {
        self.tagged(hash).find_map(|slot| self.load(slot).pointer())
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

    /// Warms a slot that was hit.
    #[inline(always)]
    pub(crate) fn raise(&self, slot: usize, policy: CounterPolicy, random: &Random) {
        /// Where the falling probability ends: 2^-14 is seldom enough.
        const MOST: u64 = 15;
        if policy == CounterPolicy::Never {
            return;
        }
        let counters = self.counters.load(Ordering::Relaxed);
        let temperature = counters >> (8 * slot) & 0xff;
        let one = 1 << (8 * slot);
        match policy {
            CounterPolicy::EveryHit if temperature < 255 => {
                self.counters.store(counters + one, Ordering::Relaxed);
            }
            CounterPolicy::EveryHit => self.lower_another(slot, random),
            CounterPolicy::Falling if temperature < MOST => {
                if temperature == 0 || random.next() >> (64 - temperature) == 0 {
                    self.counters.store(counters + one, Ordering::Relaxed);
                }
            }
            CounterPolicy::Falling | CounterPolicy::Never => {}
        }
    }

    /// The overflow rule: one other slot that is not cold gets colder.
    #[cold]
    fn lower_another(&self, hit: usize, random: &Random) {
        let mut temperatures = self.temperatures();
        let start = random.below(SLOTS as u32) as usize;
        let others = (0..SLOTS).map(|step| (start + step) % SLOTS);
        if let Some(other) = others.filter(|&slot| slot != hit).find(|&slot| temperatures[slot] > 0) {
            temperatures[other] -= 1;
            self.set_temperatures(temperatures);
        }
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

    /// Gives a newcomer's slot its first count.
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
