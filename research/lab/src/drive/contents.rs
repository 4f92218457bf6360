//! Values that say what they are, so that any of them can be checked without remembering what was stored.
//!
//! A value is a function of its key, its length and a version:
//!
//! ```text
//!   | version, 8 bytes | hash of key, version and length, 8 bytes | a stretch of a fixed block, from the hash on |
//! ```
//!
//! So a value under another's key, of another length, or put together from two versions is found out: the hash does not
//! fit, or the stretch begins elsewhere. What cannot be seen is a whole value that is older than it should be.
//!
//! Taking the body from a block makes both ends a copy and a comparison of memory. Rejected: generating it word by word
//! from the hash. At about a nanosecond for every eight bytes, values of 5 KB would cost more than their system calls.
//! A value of less than sixteen bytes has no room for the header: it is the stretch alone, of version 0.

use rand::Rng;
use twox_hash::XxHash3_64;
use workload::generator::seeded;

/// Bytes before the stretch.
const HEADER: usize = 16;
/// Bytes of the block: it shares the second-level cache with what drives the server.
const BLOCK: usize = 1 << 16;

/// The values of all keys.
#[derive(Debug, Clone)]
pub struct Contents {
    block: Box<[u8]>,
}

/// A value is not what its key says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WrongValue {
    /// The header was not written for this key and this length.
    #[error("it was not stored under this key with this length")]
    Header,
    /// Header and body do not belong together.
    #[error("its byte {0} is not the one that was stored")]
    Body(usize),
}

impl Default for Contents {
    fn default() -> Self {
        Contents::new()
    }
}

impl Contents {
    /// The values. They are the same in every process.
    #[must_use]
    pub fn new() -> Contents {
        let mut block = vec![0; BLOCK].into_boxed_slice();
        seeded(0).fill_bytes(&mut block);
        Contents { block }
    }

    /// Appends the value of `key` of `length` bytes to `out`.
    pub fn append(&self, key: &[u8], version: u64, length: usize, out: &mut Vec<u8>) {
        let hash = if length < HEADER {
            hash(key, 0, length)
        } else {
            let hash = hash(key, version, length);
            out.extend_from_slice(&version.to_le_bytes());
            out.extend_from_slice(&hash.to_le_bytes());
            hash
        };
        let body = if length < HEADER { length } else { length - HEADER };
        self.stretches(hash, body).for_each(|stretch| out.extend_from_slice(stretch));
    }

    /// Checks that `value` is one that was stored for `key`.
    ///
    /// # Errors
    /// [`WrongValue`]
    pub fn check(&self, key: &[u8], value: &[u8]) -> Result<(), WrongValue> {
        let (hash, skipped) = match value.split_first_chunk::<8>() {
            Some((version, rest)) if value.len() >= HEADER => {
                let hash = hash(key, u64::from_le_bytes(*version), value.len());
                if !rest.starts_with(&hash.to_le_bytes()) {
                    return Err(WrongValue::Header);
                }
                (hash, HEADER)
            }
            _ => (hash(key, 0, value.len()), 0),
        };
        let mut body = &value[skipped..];
        for stretch in self.stretches(hash, body.len()) {
            let (found, rest) = body.split_at(stretch.len());
            if found != stretch {
                let same = found.iter().zip(stretch).take_while(|(a, b)| a == b).count();
                return Err(WrongValue::Body(value.len() - body.len() + same));
            }
            body = rest;
        }
        Ok(())
    }

    /// `length` bytes of the block, from where `hash` says, and from its beginning again where it ends.
    fn stretches(&self, hash: u64, length: usize) -> impl Iterator<Item = &[u8]> {
        let mut from = hash as usize % BLOCK;
        let mut left = length;
        std::iter::from_fn(move || {
            let stretch = &self.block[from..][..left.min(BLOCK - from)];
            (from, left) = (0, left - stretch.len());
            (!stretch.is_empty()).then_some(stretch)
        })
    }
}

fn hash(key: &[u8], version: u64, length: usize) -> u64 {
    // An odd multiplier moves the length into other bits than those in which versions differ.
    XxHash3_64::oneshot_with_seed(
        version.wrapping_add((length as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        key,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(key: &[u8], version: u64, length: usize) -> Vec<u8> {
        let mut value = Vec::new();
        Contents::new().append(key, version, length, &mut value);
        value
    }

    proptest! {
        #[test]
        fn what_was_made_for_a_key_is_its_value(
            key in "[a-z]{1,250}", version: u64, length in prop_oneof![0usize..100, 0usize..300_000],
        ) {
            let value = value(key.as_bytes(), version, length);
            prop_assert_eq!(value.len(), length);
            prop_assert_eq!(Contents::new().check(key.as_bytes(), &value), Ok(()));
        }

        /// Any one byte that is changed is noticed, wherever it is.
        #[test]
        fn a_changed_byte_is_noticed(
            key in "[a-z]{1,20}", version: u64, length in 1usize..3000, at: prop::sample::Index, by in 1u8..,
        ) {
            let mut value = value(key.as_bytes(), version, length);
            value[at.index(length)] ^= by;
            prop_assert!(Contents::new().check(key.as_bytes(), &value).is_err());
        }

        /// So is a value that began as one version and went on as another, unless both go on with the same bytes, which
        /// happens to one pair in [`BLOCK`]: the value is then the first one, whole.
        #[test]
        fn a_torn_value_is_noticed(versions: [u64; 2], length in 40usize..3000, at: prop::sample::Index) {
            prop_assume!(versions[0] != versions[1]);
            let [first, second] = versions.map(|version| value(b"key", version, length));
            let at = 16 + 8 + at.index(length - 32);
            let torn = [&first[..at], &second[at..]].concat();
            prop_assert_eq!(Contents::new().check(b"key", &torn).is_err(), torn != first);
        }
    }

    /// A pair of versions whose stretches begin at the same byte.
    #[test]
    fn two_halves_that_make_one_value_are_that_value() {
        let versions = [12_965_621_194_497_622_423, 4_734_813_582_740_773_883];
        let [first, second] = versions.map(|version| value(b"key", version, 810));
        assert_ne!(first[..16], second[..16]);
        assert_eq!(first[16..], second[16..]);
        assert_eq!(Contents::new().check(b"key", &[&first[..16], &second[16..]].concat()), Ok(()));
    }

    #[test]
    fn the_value_of_another_key_or_length_is_not_this_one_s() {
        let contents = Contents::new();
        assert_eq!(contents.check(b"a", &value(b"b", 0, 100)), Err(WrongValue::Header));
        assert_eq!(contents.check(b"a", &value(b"a", 0, 100)[..99]), Err(WrongValue::Header));
        assert_eq!(contents.check(b"a", &value(b"b", 0, 12)), Err(WrongValue::Body(0)));
        // Short values are those of version 0, whatever was asked for.
        assert_eq!(value(b"a", 7, 12), value(b"a", 0, 12));
    }
}
