//! Tuples in the order of their parts, the first part first.
//!
//! For that a part's bytes must not be the beginning of another's. Numbers and arrays have a known length. Strings and
//! slices end with two zero bytes, and each zero byte of their own becomes a zero byte and 255: so a string that is the
//! beginning of another comes before it, whatever follows.

use super::number;

/// What can be a part of a tuple that is a key: numbers, arrays of bytes, strings, slices of bytes, and tuples of up to
/// six of these.
///
/// Its bytes are in the order of what they encode, and never the beginning of another's: who implements it for a type
/// of their own makes it of such parts.
///
/// ```
/// use lookaside_art::encode::{Part, tuple};
///
/// struct Version { major: u16, minor: u16 }
///
/// impl Part for Version {
///     fn put(&self, key: &mut Vec<u8>) {
///         (self.major, self.minor).put(key);
///     }
/// }
///
/// let key = |name, major, minor| tuple(&(name, Version { major, minor }));
/// assert!(key("art", 9, 12) < key("art", 10, 1));
/// assert!(key("art", 10, 1) < key("arts", 0, 1));
/// ```
pub trait Part {
    /// Appends this part's bytes.
    fn put(&self, key: &mut Vec<u8>);
}

/// A part of a known length: numbers, arrays of bytes, and tuples of these.
pub trait FixedPart: Part {
    /// Bytes of it.
    const BYTES: usize;

    /// Writes its bytes.
    ///
    /// # Panics
    /// If `to` has not as many.
    fn write(&self, to: &mut [u8]);
}

/// A part that can be taken from a key again.
pub trait TakePart: Sized {
    /// Takes it from the beginning of `key`; `None` if it is not there.
    fn take(key: &mut &[u8]) -> Option<Self>;
}

/// The key of a tuple whose parts have any length.
///
/// ```
/// use lookaside_art::encode;
///
/// let key = encode::tuple(&("rome", -753i32, 0.5f64));
/// assert!(key < encode::tuple(&("rome", -509i32, 0.25f64)));
/// assert_eq!(encode::to_tuple(&key), Some(("rome".to_string(), -753i32, 0.5f64)));
/// ```
#[must_use]
pub fn tuple(parts: &(impl Part + ?Sized)) -> Vec<u8> {
    let mut key = Vec::new();
    parts.put(&mut key);
    key
}

/// The key of a tuple whose parts have a known length.
///
/// ```
/// use lookaside_art::encode;
///
/// let key: [u8; 12] = encode::tuple_array(&(7u32, -9i64));
/// assert!(key < encode::tuple_array(&(7u32, 1i64)));
/// assert_eq!(encode::to_tuple(&key), Some((7u32, -9i64)));
/// ```
///
/// A length that is not the tuple's does not compile:
///
/// ```compile_fail,E0080
/// let key: [u8; 11] = lookaside_art::encode::tuple_array(&(7u32, -9i64));
/// ```
#[must_use]
#[inline]
pub fn tuple_array<const N: usize, T: FixedPart + ?Sized>(parts: &T) -> [u8; N] {
    const { assert!(N == T::BYTES, "the key has the length of its parts") };
    let mut key = [0; N];
    parts.write(&mut key);
    key
}

/// The tuple that [`tuple()`] or [`tuple_array`] made a key of; `None` if they did not.
#[must_use]
pub fn to_tuple<T: TakePart>(mut key: &[u8]) -> Option<T> {
    T::take(&mut key).filter(|_| key.is_empty())
}

/// Appends bytes that say where they end.
pub(super) fn put_ended(bytes: &[u8], key: &mut Vec<u8>) {
    for &byte in bytes {
        key.push(byte);
        if byte == 0 {
            key.push(255);
        }
    }
    key.extend([0, 0]);
}

/// Takes bytes that say where they end.
pub(super) fn take_ended(key: &mut &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        match **key {
            [0, 0, ref rest @ ..] => {
                *key = rest;
                return Some(bytes);
            }
            [0, 255, ref rest @ ..] => {
                bytes.push(0);
                *key = rest;
            }
            [0, ..] | [] => return None,
            [byte, ref rest @ ..] => {
                bytes.push(byte);
                *key = rest;
            }
        }
    }
}

impl<const N: usize> Part for [u8; N] {
    fn put(&self, key: &mut Vec<u8>) {
        key.extend(self);
    }
}

impl<const N: usize> FixedPart for [u8; N] {
    const BYTES: usize = N;

    #[inline]
    fn write(&self, to: &mut [u8]) {
        to.copy_from_slice(self);
    }
}

impl<const N: usize> TakePart for [u8; N] {
    fn take(key: &mut &[u8]) -> Option<Self> {
        let (part, rest) = key.split_first_chunk()?;
        *key = rest;
        Some(*part)
    }
}

macro_rules! numbers {
    ($($number:ident $to:ident),*) => { $(
        impl Part for $number {
            fn put(&self, key: &mut Vec<u8>) {
                key.extend(number::$number(*self));
            }
        }

        impl FixedPart for $number {
            const BYTES: usize = size_of::<$number>();

            #[inline]
            fn write(&self, to: &mut [u8]) {
                to.copy_from_slice(&number::$number(*self));
            }
        }

        impl TakePart for $number {
            fn take(key: &mut &[u8]) -> Option<Self> {
                TakePart::take(key).map(number::$to)
            }
        }
    )* };
}

numbers!(u8 to_u8, u16 to_u16, u32 to_u32, u64 to_u64, u128 to_u128, usize to_usize);
numbers!(i8 to_i8, i16 to_i16, i32 to_i32, i64 to_i64, i128 to_i128, isize to_isize);
numbers!(f32 to_f32, f64 to_f64);

impl Part for [u8] {
    fn put(&self, key: &mut Vec<u8>) {
        put_ended(self, key);
    }
}

impl Part for str {
    fn put(&self, key: &mut Vec<u8>) {
        put_ended(self.as_bytes(), key);
    }
}

impl Part for Vec<u8> {
    fn put(&self, key: &mut Vec<u8>) {
        put_ended(self, key);
    }
}

impl TakePart for Vec<u8> {
    fn take(key: &mut &[u8]) -> Option<Self> {
        take_ended(key)
    }
}

impl Part for String {
    fn put(&self, key: &mut Vec<u8>) {
        put_ended(self.as_bytes(), key);
    }
}

impl TakePart for String {
    fn take(key: &mut &[u8]) -> Option<Self> {
        String::from_utf8(take_ended(key)?).ok()
    }
}

impl<P: Part + ?Sized> Part for &P {
    fn put(&self, key: &mut Vec<u8>) {
        (**self).put(key);
    }
}

impl<P: FixedPart + ?Sized> FixedPart for &P {
    const BYTES: usize = P::BYTES;

    #[inline]
    fn write(&self, to: &mut [u8]) {
        (**self).write(to);
    }
}

macro_rules! tuples {
    ($(($($part:ident $at:tt),*))*) => { $(
        impl<$($part: Part),*> Part for ($($part,)*) {
            fn put(&self, key: &mut Vec<u8>) {
                $(self.$at.put(key);)*
            }
        }

        impl<$($part: FixedPart),*> FixedPart for ($($part,)*) {
            const BYTES: usize = 0 $(+ $part::BYTES)*;

            #[inline]
            fn write(&self, to: &mut [u8]) {
                $(
                    let (part, to) = to.split_at_mut($part::BYTES);
                    self.$at.write(part);
                )*
                assert!(to.is_empty(), "a tuple has the length of its parts");
            }
        }

        impl<$($part: TakePart),*> TakePart for ($($part,)*) {
            fn take(key: &mut &[u8]) -> Option<Self> {
                Some(($($part::take(key)?,)*))
            }
        }
    )* };
}

tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Fixed = (u8, i32, (u64, i8), [u8; 3], u16, i128);

    fn text() -> impl Strategy<Value = String> {
        prop::collection::vec(
            prop_oneof![Just('\0'), Just('\u{1}'), Just('a'), Just('\u{ff}'), any::<char>()],
            0..4,
        )
        .prop_map(String::from_iter)
    }

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop_oneof![Just(0), Just(1), Just(255), any::<u8>()], 0..4)
    }

    proptest! {
        #[test]
        fn tuples_keep_the_order_of_their_parts(
            a in (text(), -2i16..2, bytes(), any::<[u8; 2]>()),
            b in (text(), -2i16..2, bytes(), any::<[u8; 2]>()),
        ) {
            let (one, two) = (tuple(&a), tuple(&b));
            prop_assert_eq!(one.cmp(&two), a.cmp(&b));
            prop_assert!(!two.starts_with(&one) || a == b);
            // Equal parts before the one that differs.
            let near = (a.0.clone(), a.1, b.2.clone(), b.3);
            prop_assert_eq!(one.cmp(&tuple(&near)), a.cmp(&near));
            prop_assert_eq!(to_tuple(&one), Some(a));
        }

        #[test]
        fn fixed_tuples_are_the_same_in_an_array(a: Fixed, b: Fixed) {
            let (one, two): ([u8; 35], [u8; 35]) = (tuple_array(&a), tuple_array(&b));
            prop_assert_eq!(one.cmp(&two), a.cmp(&b));
            prop_assert_eq!(&one[..], &tuple(&a)[..]);
            prop_assert_eq!(to_tuple(&one), Some(a));
        }

        #[test]
        fn what_is_not_whole_is_no_tuple(a in (text(), any::<f32>()), cut in 1usize..4) {
            let key = tuple(&a);
            prop_assert_eq!(to_tuple::<(String, f32)>(&key[..key.len() - cut]), None);
            prop_assert_eq!(to_tuple::<(String, f32)>(&[&key[..], &[0]].concat()), None);
        }
    }
}
