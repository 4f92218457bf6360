//! Finding a byte among the four or sixteen of a small node.
//!
//! The answer is the first position that has the byte, or none. Bytes that have not been assigned read as zero and come
//! after the assigned ones, so the first position is the right one if there is one; see [`crate::lock`].
//!
//! Four bytes are compared inside one word; sixteen by SSE2, where there is, which x86-64 has had from the start. Both are
//! loaded as atomic words, so that there is no data race to excuse.

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
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        sse2::in_sixteen(bytes, byte)
    }
    #[cfg(any(miri, not(target_arch = "x86_64")))]
    {
        portable(bytes, byte)
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[allow(unsafe_code)]
mod sse2 {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8};

    #[inline(always)]
    pub(super) fn in_sixteen(bytes: [u64; 2], byte: u8) -> usize {
        // SAFETY: SSE2 is part of x86-64, and these instructions touch no memory.
        let equal = unsafe {
            let bytes = _mm_set_epi64x(bytes[1].cast_signed(), bytes[0].cast_signed());
            _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte.cast_signed())))
        };
        equal.trailing_zeros() as usize
    }
}

/// As [`in_sixteen`], for every processor.
#[cfg_attr(all(target_arch = "x86_64", not(miri), not(test)), expect(dead_code))]
#[inline(always)]
pub(crate) fn portable(bytes: [u64; 2], byte: u8) -> usize {
    let halves = [bytes[0] as u32, (bytes[0] >> 32) as u32, bytes[1] as u32, (bytes[1] >> 32) as u32];
    let found = halves.iter().enumerate().map(|(i, &half)| (i, in_four(half, byte)));
    found.filter(|&(_, at)| at < 4).map(|(i, at)| 4 * i + at).next().unwrap_or(16)
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
    }
}
