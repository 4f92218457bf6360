//! Eight words at a time.
//!
//! ```text
//!   load       two words each, four times for a line
//!   shuffle    the high halves of four words, where the tags are
//!   shift      tags alone
//!   compare    with the tag sought
//!   pack       to a byte each; the bytes' signs are the set
//! ```
//!
//! A whole bucket is loaded, its version too where it has one; that word's bit is taken out of the set, and the others
//! moved down by one.
//!
//! The loads race with writers, who store words whole. In the language that is for atomic loads only, and it knows none
//! of a vector; so they are made in assembly, where they are what the machine makes of them: of each aligned 8-byte
//! half the value of one store, since no half lies across a line, and, as every load on this machine, an acquire load.
//! The compiler takes the assembly to read and write any memory, and so moves no access across it.

#![allow(unsafe_code)]

use std::arch::asm;
use std::arch::x86_64::{
    __m128i, _mm_castps_si128, _mm_castsi128_ps, _mm_cmpeq_epi32, _mm_movemask_epi8, _mm_packs_epi16,
    _mm_packs_epi32, _mm_set1_epi32, _mm_shuffle_ps, _mm_srli_epi32,
};

use super::portable;
use super::set::SlotSet;
use crate::layout::Bucket;

/// Bits of a word's high half below the tag.
const BELOW_TAG: i32 = 18;

/// The bits of a bucket's words that are those of its slots, or zero for a bucket that is none of the three layouts.
const fn slots_among_words<B: Bucket>() -> u32 {
    match (size_of::<B>(), B::SLOTS) {
        (32, 4) => 0b0000_1111,
        (64, 7) => 0b1111_1110,
        (64, 8) => 0b1111_1111,
        _ => 0,
    }
}

/// The slots whose word has the tag of this number; for zero, which is no tag, the empty ones.
#[inline(always)]
pub(crate) fn in_one<B: Bucket>(bucket: &B, tag: u64) -> SlotSet {
    if const { slots_among_words::<B>() == 0 } {
        return portable::in_one(bucket, tag);
    }
    let words = compare(bucket, tag);
    set::<B>(words, words, const { slots_among_words::<B>() })
}

/// The same of two buckets.
#[inline(always)]
pub(crate) fn in_both<B: Bucket>(first: &B, second: &B, tag: u64) -> SlotSet {
    if const { slots_among_words::<B>() == 0 } {
        return portable::in_both(first, second, tag);
    }
    set::<B>(compare(first, tag), compare(second, tag), const { slots_among_words::<B>() * 0x0101 })
}

/// In a program that is compiled for AVX the upper halves of registers may be in use, and a load that knows nothing of
/// them waits.
#[cfg(target_feature = "avx")]
macro_rules! load {
    ($operands:literal) => {
        concat!("vmovdqu ", $operands)
    };
}
#[cfg(not(target_feature = "avx"))]
macro_rules! load {
    ($operands:literal) => {
        concat!("movdqu ", $operands)
    };
}

/// For each of a bucket's words, 16 bits of ones if it has the tag. Of a bucket of four words, all of them twice.
#[inline(always)]
fn compare<B: Bucket>(bucket: &B, tag: u64) -> __m128i {
    let start = std::ptr::from_ref(bucket);
    let (a, b, c, d): (__m128i, __m128i, __m128i, __m128i);
    if size_of::<B>() == 64 {
        // SAFETY: reads the 64 bytes of the bucket, and writes the registers that it says it does.
        unsafe {
            asm!(load!("{a}, [{start}]"), load!("{b}, [{start} + 16]"),
                load!("{c}, [{start} + 32]"), load!("{d}, [{start} + 48]"),
                start = in(reg) start, a = out(xmm_reg) a, b = out(xmm_reg) b, c = out(xmm_reg) c, d = out(xmm_reg) d,
                options(nostack, preserves_flags));
        }
    } else {
        assert!(size_of::<B>() == 32, "the loads stay within the bucket");
        // SAFETY: reads the 32 bytes of the bucket, and writes the registers that it says it does.
        unsafe {
            asm!(load!("{a}, [{start}]"), load!("{b}, [{start} + 16]"),
                start = in(reg) start, a = out(xmm_reg) a, b = out(xmm_reg) b,
                options(nostack, preserves_flags));
        }
        (c, d) = (a, b);
    }
    // SAFETY: these instructions belong to every x86-64.
    unsafe { _mm_packs_epi32(compare_four(a, b, tag), compare_four(c, d, tag)) }
}

/// For each of four words, 32 bits of ones if it has the tag.
#[inline(always)]
fn compare_four(a: __m128i, b: __m128i, tag: u64) -> __m128i {
    // SAFETY: these instructions belong to every x86-64.
    unsafe {
        let high = _mm_shuffle_ps::<0b11_01_11_01>(_mm_castsi128_ps(a), _mm_castsi128_ps(b));
        let tags = _mm_srli_epi32::<BELOW_TAG>(_mm_castps_si128(high));
        _mm_cmpeq_epi32(tags, _mm_set1_epi32(tag as i32))
    }
}

/// The set of those among the words of two buckets that are in `slots`.
#[inline(always)]
fn set<B: Bucket>(first: __m128i, second: __m128i, slots: u32) -> SlotSet {
    // SAFETY: these instructions belong to every x86-64.
    let words = unsafe { _mm_movemask_epi8(_mm_packs_epi16(first, second)) } as u32;
    // Behind a version, the first slot is the second word.
    SlotSet((words & slots) >> const { slots_among_words::<B>().trailing_zeros() })
}
