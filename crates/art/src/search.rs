//! Finding a byte among the four or sixteen of a small node, and what else is asked about sixteen bytes at once.
//!
//! The answer is the first position that has the byte, or none. Bytes that have not been assigned read as zero and come
//! after the assigned ones, so the first position is the right one if there is one; see [`crate::lock`].
//!
//! Four bytes are compared inside one word; sixteen by SSE2, where there is, which x86-64 has had from the start. Both
//! are loaded as atomic words, so that there is no data race to excuse. `--cfg lookaside_portable` does without SSE2 on
//! x86-64, too, so that what runs elsewhere is tested here.

const LOW: u32 = 0x0101_0101;
const HIGH: u32 = 0x8080_8080;

/// The first of four bytes that equals `byte`: its position, or 4.
#[inline(always)]
pub(crate) fn in_four(bytes: u32, byte: u8) -> usize {
    let difference = bytes ^ u32::from(byte).wrapping_mul(LOW);
    // The lowest bit set marks the lowest byte that is zero; what lies above it may be wrong.
    let zeros = difference.wrapping_sub(LOW) & !difference & HIGH;
    zeros.trailing_zeros() as usize / 8
}

/// The first of sixteen bytes that equals `byte`: its position, or 16 and more.
#[inline(always)]
pub(crate) fn in_sixteen(bytes: [u64; 2], byte: u8) -> usize {
    #[cfg(all(target_arch = "x86_64", not(any(miri, lookaside_portable))))]
    {
        sse2::in_sixteen(bytes, byte)
    }
    #[cfg(any(miri, lookaside_portable, not(target_arch = "x86_64")))]
    {
        portable(bytes, byte)
    }
}

/// For each of sixteen bytes, how many of them are less.
#[inline(always)]
pub(crate) fn ranks(bytes: [u64; 2]) -> [u8; 16] {
    #[cfg(all(target_arch = "x86_64", not(any(miri, lookaside_portable))))]
    {
        sse2::ranks(bytes)
    }
    #[cfg(any(miri, lookaside_portable, not(target_arch = "x86_64")))]
    {
        portable_ranks(bytes)
    }
}

/// Which of sixteen bytes are not zero, the first by the lowest bit.
#[inline(always)]
pub(crate) fn taken(bytes: [u64; 2]) -> u16 {
    #[cfg(all(target_arch = "x86_64", not(any(miri, lookaside_portable))))]
    {
        sse2::taken(bytes)
    }
    #[cfg(any(miri, lookaside_portable, not(target_arch = "x86_64")))]
    {
        portable_taken(bytes)
    }
}

#[cfg(all(target_arch = "x86_64", not(any(miri, lookaside_portable))))]
#[allow(unsafe_code)]
mod sse2 {
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_cmpgt_epi8, _mm_cvtsi128_si64, _mm_movemask_epi8, _mm_set_epi64x,
        _mm_set1_epi8, _mm_setzero_si128, _mm_shuffle_epi32, _mm_shufflehi_epi16, _mm_shufflelo_epi16,
        _mm_sub_epi8, _mm_unpackhi_epi8, _mm_unpackhi_epi64, _mm_unpacklo_epi8, _mm_xor_si128,
    };

    #[inline(always)]
    pub(super) fn in_sixteen(bytes: [u64; 2], byte: u8) -> usize {
        // SAFETY: SSE2 is part of x86-64, and these instructions touch no memory.
        let equal = unsafe {
            let bytes = _mm_set_epi64x(bytes[1].cast_signed(), bytes[0].cast_signed());
            _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte.cast_signed())))
        };
        equal.trailing_zeros() as usize
    }

    #[inline(always)]
    pub(super) fn ranks(bytes: [u64; 2]) -> [u8; 16] {
        // SAFETY: SSE2 is part of x86-64, and these instructions touch no memory.
        let [first, second] = unsafe {
            let bytes = _mm_set_epi64x(bytes[1].cast_signed(), bytes[0].cast_signed());
            // Signed bytes are what can be compared.
            let bytes = _mm_xor_si128(bytes, _mm_set1_epi8(i8::MIN));
            // Each byte twice, so that it can be spread over all places as one of eight words.
            let halves = [_mm_unpacklo_epi8(bytes, bytes), _mm_unpackhi_epi8(bytes, bytes)];
            let mut ranks = _mm_setzero_si128();
            for half in halves {
                let [a, b] = [spread_of_low::<0x00>(half), spread_of_low::<0x55>(half)];
                let [c, d] = [spread_of_low::<0xAA>(half), spread_of_low::<0xFF>(half)];
                let [e, f] = [spread_of_high::<0x00>(half), spread_of_high::<0x55>(half)];
                let [g, h] = [spread_of_high::<0xAA>(half), spread_of_high::<0xFF>(half)];
                for byte in [a, b, c, d, e, f, g, h] {
                    // What is greater has all bits set, which is minus one.
                    ranks = _mm_sub_epi8(ranks, _mm_cmpgt_epi8(bytes, byte));
                }
            }
            [_mm_cvtsi128_si64(ranks), _mm_cvtsi128_si64(_mm_unpackhi_epi64(ranks, ranks))]
        };
        let mut ranks = [0; 16];
        ranks[..8].copy_from_slice(&first.to_le_bytes());
        ranks[8..].copy_from_slice(&second.to_le_bytes());
        ranks
    }

    /// One of the four low words, in all places.
    #[inline(always)]
    fn spread_of_low<const WORD: i32>(words: __m128i) -> __m128i {
        // SAFETY: as above.
        unsafe { _mm_shuffle_epi32::<0x00>(_mm_shufflelo_epi16::<WORD>(words)) }
    }

    /// One of the four high words, in all places.
    #[inline(always)]
    fn spread_of_high<const WORD: i32>(words: __m128i) -> __m128i {
        // SAFETY: as above.
        unsafe { _mm_shuffle_epi32::<0xAA>(_mm_shufflehi_epi16::<WORD>(words)) }
    }

    #[inline(always)]
    pub(super) fn taken(bytes: [u64; 2]) -> u16 {
        // SAFETY: as above.
        let zero = unsafe {
            let bytes = _mm_set_epi64x(bytes[1].cast_signed(), bytes[0].cast_signed());
            _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_setzero_si128()))
        };
        !(zero as u16)
    }
}

/// As [`in_sixteen`], for every processor.
#[cfg_attr(all(target_arch = "x86_64", not(any(miri, lookaside_portable, test))), expect(dead_code))]
#[inline(always)]
pub(crate) fn portable(bytes: [u64; 2], byte: u8) -> usize {
    let halves = [bytes[0] as u32, (bytes[0] >> 32) as u32, bytes[1] as u32, (bytes[1] >> 32) as u32];
    let found = halves.iter().enumerate().map(|(i, &half)| (i, in_four(half, byte)));
    found.filter(|&(_, at)| at < 4).map(|(i, at)| 4 * i + at).next().unwrap_or(16)
}

/// As [`ranks`], for every processor.
#[cfg_attr(all(target_arch = "x86_64", not(any(miri, lookaside_portable, test))), expect(dead_code))]
#[inline(always)]
pub(crate) fn portable_ranks(bytes: [u64; 2]) -> [u8; 16] {
    let bytes: [u8; 16] = std::array::from_fn(|at| bytes[at / 8].to_le_bytes()[at % 8]);
    let mut ranks = [0; 16];
    for other in bytes {
        ranks.iter_mut().zip(bytes).for_each(|(rank, byte)| *rank += u8::from(other < byte));
    }
    ranks
}

/// As [`taken`], for every processor.
#[cfg_attr(all(target_arch = "x86_64", not(any(miri, lookaside_portable, test))), expect(dead_code))]
#[inline(always)]
pub(crate) fn portable_taken(bytes: [u64; 2]) -> u16 {
    const LOW: u64 = 0x7F7F_7F7F_7F7F_7F7F;
    let [first, second] = bytes.map(|word| {
        // The highest bit of each byte that is not zero, and then these eight bits together.
        let there = (((word & LOW) + LOW) | word) & !LOW;
        (there >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
    });
    (first | second << 8) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_variant_finds_the_first(
            bytes in prop::array::uniform16(prop_oneof![0u8..3, 254u8.., any::<u8>()]),
            byte in prop_oneof![0u8..3, 254u8.., any::<u8>()],
        ) {
            let first = bytes.iter().position(|&b| b == byte);
            let words = [0, 8].map(|at| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()));
            prop_assert_eq!(in_sixteen(words, byte).min(16), first.unwrap_or(16));
            prop_assert_eq!(portable(words, byte), first.unwrap_or(16));
            let four = bytes[..4].iter().position(|&b| b == byte);
            prop_assert_eq!(in_four(words[0] as u32, byte), four.unwrap_or(4));
        }

        #[test]
        fn every_variant_counts_and_marks_the_same(
            bytes in prop::array::uniform16(prop_oneof![0u8..3, 126u8..130, 254u8.., any::<u8>()]),
        ) {
            let words = [0, 8].map(|at| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()));
            let less = bytes.map(|byte| bytes.iter().filter(|&&other| other < byte).count() as u8);
            prop_assert_eq!(ranks(words), less);
            prop_assert_eq!(portable_ranks(words), less);
            let taken_bytes = (0..16).filter(|&at| bytes[at] != 0).fold(0, |set, at| set | 1u16 << at);
            prop_assert_eq!(taken(words), taken_bytes);
            prop_assert_eq!(portable_taken(words), taken_bytes);
        }
    }
}
