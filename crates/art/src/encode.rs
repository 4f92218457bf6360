//! Keys whose bytes are in the order of what they encode.
//!
//! The tree compares bytes, the first ones first. Big-endian integers are in their order as they are; signed ones once
//! the sign is flipped; floating-point numbers once those with a sign are turned round; strings as they are. A tuple is
//! its parts one after the other, where each part has a known length or says where it ends.
//!
//! ```
//! use lookaside_art::encode;
//!
//! assert!(encode::i64(-1) < encode::i64(0));
//! assert!(encode::f64(-0.5) < encode::f64(0.25));
//! // Parts of a known length make a key of a known length; others a slice.
//! assert!(encode::tuple_array::<12, _>(&(7u32, -3i64)) < encode::tuple_array::<12, _>(&(8u32, -9i64)));
//! assert!(encode::tuple(&("a", 7u8)) < encode::tuple(&("ab", 1u8)));
//! assert!(encode::pair(&encode::u32(7), &encode::i64(-3)) < encode::pair(&encode::u32(8), &encode::i64(-9)));
//! // A first part of any length ends itself, so that ("a", "z") comes before ("ab", "a").
//! assert!(encode::text_pair("a", b"z") < encode::text_pair("ab", b"a"));
//! ```

mod number;
mod tuple;

pub use self::number::*;
pub use self::tuple::{FixedPart, Part, TakePart, to_tuple, tuple, tuple_array};

/// A string, in the order of its code points. The bytes are as they are: one string may be the beginning of another.
#[must_use]
pub const fn text(text: &str) -> &[u8] {
    text.as_bytes()
}

/// Two parts, of which the first always has the same length: ordered by the first, then by the second.
#[must_use]
pub fn pair(first: &[u8], second: &[u8]) -> Vec<u8> {
    [first, second].concat()
}

/// Two numbers of 32 bits in a key of a known length: ordered by the first, then by the second.
#[must_use]
pub const fn u32_pair(first: u32, second: u32) -> [u8; 8] {
    ((first as u64) << 32 | second as u64).to_be_bytes()
}

/// Two parts, of which the first may have any length: ordered by the first, then by the second.
///
/// The first is ended by two zero bytes, and each zero byte of its own becomes a zero byte and 255.
#[must_use]
pub fn text_pair(first: impl AsRef<[u8]>, second: &[u8]) -> Vec<u8> {
    let first = first.as_ref();
    let mut key = Vec::with_capacity(first.len() + second.len() + 2);
    tuple::put_ended(first, &mut key);
    key.extend(second);
    key
}

/// The parts that [`text_pair`] made a key of; `None` if it did not.
#[must_use]
pub fn to_text_pair(key: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut rest = key;
    let first = tuple::take_ended(&mut rest)?;
    Some((first, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop_oneof![Just(0), Just(1), Just(255), any::<u8>()], 0..6)
    }

    proptest! {
        #[test]
        fn pairs_of_numbers_keep_their_order(a: (u32, u32), b: (u32, u32)) {
            prop_assert_eq!(u32_pair(a.0, a.1).cmp(&u32_pair(b.0, b.1)), a.cmp(&b));
        }

        #[test]
        fn pairs_keep_their_order(a in bytes(), b in bytes(), c in bytes(), d in bytes()) {
            let (one, two) = ((a, b), (c, d));
            let (first, second) = (text_pair(&one.0, &one.1), text_pair(&two.0, &two.1));
            prop_assert_eq!(first.cmp(&second), one.cmp(&two));
            prop_assert_eq!(to_text_pair(&first), Some((one.0, &one.1[..])));
        }
    }
}
