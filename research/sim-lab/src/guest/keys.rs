//! Keys as YCSB spells them: "user" and the number of the record, strewn over 64 bits, in twenty digits.
//!
//! 24 bytes, all of one length, so their order is that of the numbers. The strewing is a permutation
//! (splitmix64's finaliser, Steele, Lea and Flood, OOPSLA 2014) rather than YCSB's FNV: no two records share a
//! key, and another seed gives other keys.

/// Bytes of a key.
pub(super) const BYTES: usize = 24;

/// A permutation of 64-bit numbers.
#[must_use]
pub(crate) fn mix(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

/// The keys of a seed.
#[derive(Debug, Clone, Copy)]
pub struct Keys {
    strewn: u64,
}

/// A key: its number stands for its digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(u64);

impl Keys {
    /// The keys of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Keys {
        Keys { strewn: mix(seed.wrapping_add(0x9e37_79b9_7f4a_7c15)) }
    }

    /// The key of a record.
    #[inline]
    #[must_use]
    pub fn key(&self, record: u32) -> Key {
        Key(mix(u64::from(record) ^ self.strewn))
    }
}

impl Key {
    /// As it is spelt.
    #[must_use]
    pub fn bytes(self) -> [u8; BYTES] {
        const EIGHT: u64 = 100_000_000;
        let (first, second, third) = (self.0 / EIGHT / EIGHT, self.0 / EIGHT % EIGHT, self.0 % EIGHT);
        let mut bytes = *b"user00000000000000000000";
        bytes[4..8].copy_from_slice(&eight_digits(first)[4..]);
        bytes[8..16].copy_from_slice(&eight_digits(second));
        bytes[16..].copy_from_slice(&eight_digits(third));
        bytes
    }

    /// How many of the three words of eight bytes, from the first, both keys share.
    #[inline]
    #[must_use]
    pub fn shared_words(self, other: Key) -> u32 {
        const LAST: u64 = 100_000_000;
        if self.0 == other.0 {
            3
        } else if self.0 / LAST == other.0 / LAST {
            2
        } else {
            u32::from(self.0 / (LAST * LAST) == other.0 / (LAST * LAST))
        }
    }
}

/// A number below 10^8 in eight digits: halves, then halves of halves, all lanes of a word at once. (A division a
/// digit takes longer than the hash of the key, and warm-ups spell eighty million.)
fn eight_digits(number: u64) -> [u8; 8] {
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    // Below 10^4, times 10486 / 2^20 is a hundredth, rounded down; below 10^2, times 103 / 2^10 is a tenth.
    let hundreds = ((fours * 10_486) >> 20) & 0x7f_0000_007f;
    let twos = hundreds | ((fours - hundreds * 100) << 16);
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    let ones = tens | ((twos - tens * 10) << 8);
    (ones + 0x3030_3030_3030_3030).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_stand_for_bytes(a: u64, b: u64, near in 0..200_000_000_u64) {
            for (a, b) in [(a, b), (a, a.wrapping_add(near)), (a, a)] {
                let (a, b) = (Key(a), Key(b));
                let (left, right) = (a.bytes(), b.bytes());
                let spelt = format!("user{:020}", a.0);
                prop_assert_eq!(&left[..], spelt.as_bytes());
                prop_assert_eq!(a.cmp(&b), left.cmp(&right));
                let shared = (0..3).take_while(|word| left[8 * word..8 * word + 8] == right[8 * word..8 * word + 8]);
                prop_assert_eq!(a.shared_words(b) as usize, shared.count());
            }
        }
    }

    #[test]
    fn every_record_has_its_own_key_and_every_seed_its_own_keys() {
        let keys = Keys::new(1);
        let mut seen: Vec<_> = (0..10_000).map(|record| keys.key(record)).collect();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 10_000);
        assert_ne!(keys.key(7), Keys::new(2).key(7));
        assert_eq!(&Key(1042).bytes(), b"user00000000000000001042");
    }
}
