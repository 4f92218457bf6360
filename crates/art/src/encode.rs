//! Keys whose bytes are in the order of what they encode.
//!
//! The tree compares bytes, the first ones first. Big-endian integers are in their order as they are; signed ones once the
//! sign is flipped; strings as they are. A pair is its parts one after the other, where the first part has a known
//! length or says where it ends.
//!
//! ```
//! use lookaside_art::encode;
//!
//! assert!(encode::i64(-1) < encode::i64(0));
//! assert!(encode::pair(&encode::u32(7), &encode::i64(-3)) < encode::pair(&encode::u32(8), &encode::i64(-9)));
//! // A first part of any length ends itself, so that ("a", "z") comes before ("ab", "a").
//! assert!(encode::text_pair("a", b"z") < encode::text_pair("ab", b"a"));
//! ```

/// A number of 32 bits.
#[must_use]
pub const fn u32(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// A number of 64 bits.
#[must_use]
pub const fn u64(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// A signed number of 64 bits: negative ones come first.
#[must_use]
pub const fn i64(number: i64) -> [u8; 8] {
    (number.cast_unsigned() ^ 1 << 63).to_be_bytes()
}

/// The number of 32 bits that was encoded.
#[must_use]
pub const fn to_u32(key: [u8; 4]) -> u32 {
    u32::from_be_bytes(key)
}

/// The number of 64 bits that was encoded.
#[must_use]
pub const fn to_u64(key: [u8; 8]) -> u64 {
    u64::from_be_bytes(key)
}

/// The signed number of 64 bits that was encoded.
#[must_use]
pub const fn to_i64(key: [u8; 8]) -> i64 {
    (u64::from_be_bytes(key) ^ 1 << 63).cast_signed()
}

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
    for &byte in first {
        key.push(byte);
        if byte == 0 {
            key.push(255);
        }
    }
    key.extend([0, 0]);
    key.extend(second);
    key
}

/// The parts that [`text_pair`] made a key of; `None` if it did not.
#[must_use]
pub fn to_text_pair(key: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut first = Vec::new();
    let mut rest = key;
    loop {
        match rest {
            [0, 0, second @ ..] => return Some((first, second)),
            [0, 255, more @ ..] => {
                first.push(0);
                rest = more;
            }
            [0, ..] | [] => return None,
            [byte, more @ ..] => {
                first.push(*byte);
                rest = more;
            }
        }
    }
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
        fn numbers_keep_their_order(a: i64, b: i64, c: u64, d: u64, e: u32, f: u32) {
            prop_assert_eq!(i64(a).cmp(&i64(b)), a.cmp(&b));
            prop_assert_eq!(u64(c).cmp(&u64(d)), c.cmp(&d));
            prop_assert_eq!(u32(e).cmp(&u32(f)), e.cmp(&f));
            prop_assert_eq!((to_i64(i64(a)), to_u64(u64(c)), to_u32(u32(e))), (a, c, e));
            let near = a.wrapping_add(1);
            prop_assert_eq!(i64(a).cmp(&i64(near)), a.cmp(&near));
            let (one, two) = ((e, f), (c as u32, d as u32));
            prop_assert_eq!(u32_pair(one.0, one.1).cmp(&u32_pair(two.0, two.1)), one.cmp(&two));
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
