//! Records: keys of 24 bytes, as `research/sim-qemu/guests/record.hpp` has them, and values of 64.

use twox_hash::XxHash3_64;

pub(crate) type Key = [u8; 24];

pub(crate) struct Record {
    pub(crate) key: Key,
    pub(crate) value: [u64; 8],
}

impl Record {
    pub(crate) fn new(number: u64) -> Record {
        Record { key: key(number), value: [number; 8] }
    }

    /// What who asked for it reads.
    pub(crate) fn sum(&self) -> u64 {
        self.value.iter().fold(0, |sum: u64, word| sum.wrapping_add(*word))
    }
}

/// "user0000" and sixteen digits that look random.
pub(crate) fn key(number: u64) -> Key {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    let mut key = *b"user00000000000000000000";
    key[8..16].copy_from_slice(&digits(mixed as u32));
    key[16..].copy_from_slice(&digits((mixed >> 32) as u32));
    key
}

/// Eight hexadecimal digits, all at once: each nibble in a byte of its own, then the letters moved up.
fn digits(word: u32) -> [u8; 8] {
    let mut word = u64::from(word);
    word = (word | word << 16) & 0x0000_ffff_0000_ffff;
    word = (word | word << 8) & 0x00ff_00ff_00ff_00ff;
    word = (word | word << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    let letters = (word + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
    (word + 0x3030_3030_3030_3030 + letters * 39).to_le_bytes()
}

#[inline]
pub(crate) fn hash(key: &Key) -> u64 {
    XxHash3_64::oneshot(key)
}
