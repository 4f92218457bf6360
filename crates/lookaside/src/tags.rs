//! Comparing the tags of a bucket, all at once.
//!
//! ```text
//!   load       two words each, four times for a line
//!   shuffle    the high halves of four words
//!   shift      their high 16 bits alone, with sign
//!   pack       all eight in one register
//!   compare    with the tag sought; the bytes' signs are the set
//! ```
//!
//! The eighth word holds the counters and is taken out. The set is a hint: whoever follows it loads the slot by itself and
//! looks at the tag again.
//!
//! The loads race with writers, who store words whole. In the language that is for atomic loads only, and it knows none of
//! a vector; so they are made in assembly, where they are what the machine makes of them: of each aligned 8-byte half the
//! value of one store, and, as every load on this machine, an acquire load.
//!
//! Rejected: eight comparisons of words one after another, with a branch each: twice the time of a hit that is in the
//! first-level cache.

#![allow(unsafe_code)]

use atomics::AtomicU64;

use crate::bucket::{Bucket, SLOTS};
use crate::word::Pointer;

/// Slots of a bucket: of slot n, bits 2n and 2n + 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotSet(u32);

impl Iterator for SlotSet {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        let first = (self.0 != 0).then(|| self.0.trailing_zeros() as usize / 2);
        self.0 &= self.0.wrapping_sub(1);
        self.0 &= self.0.wrapping_sub(1);
        first
    }
}

/// The slots whose tag is that of this hash, and perhaps others.
#[inline(always)]
pub(crate) fn in_bucket(bucket: &Bucket, slots: &[AtomicU64; SLOTS], hash: u64) -> SlotSet {
    let _ = (bucket, slots);
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    return sse2(bucket, hash);
    #[cfg(any(loom, miri, not(target_arch = "x86_64")))]
    portable(slots, hash)
}

#[cfg(any(test, loom, miri, not(target_arch = "x86_64")))]
pub(crate) fn portable(slots: &[AtomicU64; SLOTS], hash: u64) -> SlotSet {
    let has_tag = |cell: &AtomicU64| (cell.load(atomics::Ordering::Relaxed) ^ hash) >> Pointer::BITS == 0;
    let slots = slots.iter().enumerate();
    SlotSet(slots.fold(0, |set, (slot, cell)| set | (u32::from(has_tag(cell)) * 0b11) << (2 * slot)))
}

#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
#[inline(always)]
fn sse2(bucket: &Bucket, hash: u64) -> SlotSet {
    use std::arch::asm;
    use std::arch::x86_64::{
        __m128i, _mm_castps_si128, _mm_castsi128_ps, _mm_cmpeq_epi16, _mm_movemask_epi8, _mm_packs_epi32,
        _mm_set1_epi16, _mm_shuffle_ps, _mm_srai_epi32,
    };
    let start = std::ptr::from_ref(bucket);
    let (a, b, c, d): (__m128i, __m128i, __m128i, __m128i);
    // SAFETY: reads the 64 bytes of the bucket, and writes the registers that it says it does.
    unsafe {
        asm!("movdqa {a}, [{start}]", "movdqa {b}, [{start} + 16]", "movdqa {c}, [{start} + 32]", "movdqa {d}, [{start} + 48]",
            start = in(reg) start, a = out(xmm_reg) a, b = out(xmm_reg) b, c = out(xmm_reg) c, d = out(xmm_reg) d,
            options(nostack, preserves_flags));
    }
    // SAFETY: these instructions belong to every x86-64.
    let set = unsafe {
        let high = |a, b| {
            let halves = _mm_shuffle_ps::<0b11_01_11_01>(_mm_castsi128_ps(a), _mm_castsi128_ps(b));
            _mm_srai_epi32::<16>(_mm_castps_si128(halves))
        };
        let tags = _mm_packs_epi32(high(a, b), high(c, d));
        _mm_movemask_epi8(_mm_cmpeq_epi16(tags, _mm_set1_epi16((hash >> Pointer::BITS) as i16)))
    };
    SlotSet(set as u32 & 0x3fff)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::word::{Pointer, Word};
    use proptest::prelude::*;

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
            lines[0].settle(6, 0xff, crate::bucket::CounterPolicy::EveryHit);
            let expected: Vec<_> = (0..SLOTS).filter(|&slot| tags[slot] == sought).collect();
            let hash = sought << Pointer::BITS | 0x1234_5678;
            prop_assert_eq!(lines[0].tagged(hash).collect::<Vec<_>>(), expected.clone());
            prop_assert_eq!(lines[0].tagged_one_by_one(hash).collect::<Vec<_>>(), expected);
        }
    }
}
