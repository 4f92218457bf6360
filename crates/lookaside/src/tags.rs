//! Comparing the tags of a bucket, all at once.
//!
//! ```text
//!   load       two words each, twice for a line
//!   shuffle    with the next two: the high halves of four words, twice
//!   compare    all their 16-bit parts with the tag sought
//!   pack       both to bytes; the signs of the odd ones are the set
//! ```
//!
//! Of each word two parts are compared, of which the higher is the tag: the other's outcome is taken out, and so is the
//! eighth word, which holds the counters. The set is a hint: whoever follows it loads the slot by itself and looks at
//! the tag again.
//!
//! The loads race with writers, who store words whole. In the language that is for atomic loads only, and it knows none
//! of a vector; so they are made in assembly, where they are what the machine makes of them: of each aligned 8-byte
//! half the value of one store, and, as every load on this machine, an acquire load.
//!
//! Rejected: eight comparisons of words one after another, with a branch each: twice the time of a hit that is in the
//! first-level cache.

#![allow(unsafe_code)]

use atomics::AtomicU64;

#[cfg(any(test, loom, miri, lookaside_portable, not(target_arch = "x86_64")))]
use crate::word::Pointer;
use crate::word::SLOTS;

/// Slots of a bucket: of slot n, bit 2n + 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotSet(u32);

impl SlotSet {
    /// Without the first slot of the bucket.
    #[inline(always)]
    pub(crate) fn behind_first(self) -> SlotSet {
        SlotSet(self.0 & !2)
    }
}

impl Iterator for SlotSet {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        let first = (self.0 != 0).then(|| self.0.trailing_zeros() as usize / 2);
        self.0 &= self.0.wrapping_sub(1);
        first
    }
}

/// The slots whose tag is that of this hash, and perhaps others. A bucket is an aligned line, and begins with its
/// slots.
#[inline(always)]
pub(crate) fn in_bucket<B>(bucket: &B, slots: &[AtomicU64; SLOTS], hash: u64) -> SlotSet {
    let _ = (bucket, slots);
    #[cfg(all(target_arch = "x86_64", not(any(loom, miri, lookaside_portable))))]
    return sse2(bucket, hash);
    #[cfg(any(loom, miri, lookaside_portable, not(target_arch = "x86_64")))]
    portable(slots, hash)
}

#[cfg(any(test, loom, miri, lookaside_portable, not(target_arch = "x86_64")))]
pub(crate) fn portable(slots: &[AtomicU64; SLOTS], hash: u64) -> SlotSet {
    let has_tag = |cell: &AtomicU64| (cell.load(atomics::Ordering::Relaxed) ^ hash) >> Pointer::BITS == 0;
    let slots = slots.iter().enumerate();
    SlotSet(slots.fold(0, |set, (slot, cell)| set | u32::from(has_tag(cell)) << (2 * slot + 1)))
}

#[cfg(all(target_arch = "x86_64", not(any(loom, miri, lookaside_portable))))]
#[inline(always)]
fn sse2<B>(bucket: &B, hash: u64) -> SlotSet {
    const { assert!(size_of::<B>() == 64 && align_of::<B>() == 64) };
    use std::arch::asm;
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi16, _mm_cvtsi64_si128, _mm_movemask_epi8, _mm_packs_epi16, _mm_shuffle_epi32,
        _mm_shufflelo_epi16,
    };
    let start = std::ptr::from_ref(bucket);
    let (low, high): (__m128i, __m128i);
    // SAFETY: reads the 64 bytes of the bucket, and writes the registers that it says it does.
    #[cfg(not(target_feature = "avx"))]
    unsafe {
        asm!("movaps {low}, [{start}]", "movaps {high}, [{start} + 32]",
            "shufps {low}, [{start} + 16], 0xdd", "shufps {high}, [{start} + 48], 0xdd",
            start = in(reg) start, low = out(xmm_reg) low, high = out(xmm_reg) high,
            options(nostack, preserves_flags, readonly));
    }
    // The same, for a program that is compiled for AVX: there the upper halves of registers may be in use, and an
    // instruction that knows nothing of them waits for them. SAFETY: as above; the program is for machines that have
    // these instructions.
    #[cfg(target_feature = "avx")]
    unsafe {
        asm!("vmovaps {low}, [{start}]", "vmovaps {high}, [{start} + 32]",
            "vshufps {low}, {low}, [{start} + 16], 0xdd", "vshufps {high}, {high}, [{start} + 48], 0xdd",
            start = in(reg) start, low = out(xmm_reg) low, high = out(xmm_reg) high,
            options(nostack, preserves_flags, readonly));
    }
    // SAFETY: these instructions belong to every x86-64.
    let set = unsafe {
        let tag = _mm_shuffle_epi32::<0>(_mm_shufflelo_epi16::<0xff>(_mm_cvtsi64_si128(hash.cast_signed())));
        _mm_movemask_epi8(_mm_packs_epi16(_mm_cmpeq_epi16(low, tag), _mm_cmpeq_epi16(high, tag)))
    };
    SlotSet(set as u32 & 0x2aaa)
}
