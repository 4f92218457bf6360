//! What an index can lend: references, kept in a slot's pointer, or in that and a second word ([`crate::wide`]).
//!
//! | lent | pointer | word |
//! |---|---|---|
//! | `&E` | the entry's | none |
//! | `&[E]`, `&str` | the first element's | the length |
//! | `(u64, &V)`, or another integer | the value's | the key itself: a hit does not touch the index's |
//! | `(&K, &V)` | the key's | the value's address |
//! | `(&[u8], &[u8])` | the key's | both lengths, and how far it is from the key to the value |
//!
//! The last is for keys and values that lie in one piece of memory, as in a mapped file: keys below 4 KiB, values below
//! 1 MiB, 2 GiB between them at most. What does not fit, or has an address of more than 48 bits, is not kept, and found
//! in the index each time.
//!
//! References become addresses here, and references again. Their lifetime is in the type alone: [`crate::Front`] keeps
//! it.

#![allow(unsafe_code)]

use std::ptr::{from_ref, with_exposed_provenance};

use crate::pointer::Pointer;

/// What a [`Front`](crate::Front) can keep: `&E`, `&[E]`, `&str`; and with a key that lies elsewhere `(u64, &V)` or any
/// other integer of up to 64 bits, `(&K, &V)`, and `(&[u8], &[u8])` for keys and values in one mapped file.
///
/// Of the last, pairs are not kept that have a key of 4 KiB or more, a value of 1 MiB or more, or more than 2 GiB
/// between them. For strings in places of their own, keep `(&String, &String)`.
///
/// Sealed: a front reads memory by what they say.
pub trait Lent: sealed::Lent {}

impl<T: sealed::Lent> Lent for T {}

/// A pointer to this, if it has 48 bits. [`at`] may follow it.
fn pointer<E>(to: *const E) -> Option<Pointer> {
    Pointer::new(to.expose_provenance() as u64)
}

/// What lies at an address.
///
/// # Safety
/// It is that of an `&'a E`, exposed, or such a one's equal.
#[inline(always)]
unsafe fn at<'a, E>(address: u64) -> &'a E {
    // SAFETY: the caller's promise.
    unsafe { &*with_exposed_provenance::<E>(address as usize) }
}

/// # Safety
/// As [`at`], of the elements of an `&'a [E]` of this length.
#[inline(always)]
unsafe fn slice<'a, E>(address: u64, len: usize) -> &'a [E] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(with_exposed_provenance::<E>(address as usize), len) }
}

pub(crate) mod sealed {
    use super::{Pointer, at, from_ref, pointer, slice};

    /// How references are kept.
    ///
    /// # Safety
    /// What [`Lent::decode`] makes of what [`Lent::encode`] gave is what that was given.
    pub unsafe trait Lent: Copy {
        /// Whether it needs the word.
        const WIDE: bool;

        /// A pointer and a word, if they can tell it.
        fn encode(self) -> Option<(Pointer, u64)>;

        /// What was encoded.
        ///
        /// # Safety
        /// As this pointer and this word, from a value of this very type, lifetimes included.
        unsafe fn decode(pointer: Pointer, word: u64) -> Self;

        /// Asks for the lines that are read first.
        fn prefetch(self);
    }

    // SAFETY: the reference's own address.
    unsafe impl<E> Lent for &E {
        const WIDE: bool = false;

        #[inline]
        fn encode(self) -> Option<(Pointer, u64)> {
            Some((pointer(from_ref(self))?, 0))
        }

        #[inline(always)]
        unsafe fn decode(pointer: Pointer, _: u64) -> Self {
            // SAFETY: exposed by `encode`, and the caller's promise.
            unsafe { at(pointer.address()) }
        }

        #[inline(always)]
        fn prefetch(self) {
            pages::prefetch(self);
        }
    }

    // SAFETY: the slice's own address and length.
    unsafe impl<E> Lent for &[E] {
        const WIDE: bool = true;

        #[inline]
        fn encode(self) -> Option<(Pointer, u64)> {
            Some((pointer(self.as_ptr())?, self.len() as u64))
        }

        #[inline(always)]
        unsafe fn decode(pointer: Pointer, word: u64) -> Self {
            // SAFETY: exposed by `encode`, and the caller's promise.
            unsafe { slice(pointer.address(), word as usize) }
        }

        #[inline(always)]
        fn prefetch(self) {
            pages::prefetch(self);
        }
    }

    // SAFETY: as of the bytes.
    unsafe impl Lent for &str {
        const WIDE: bool = true;

        #[inline]
        fn encode(self) -> Option<(Pointer, u64)> {
            self.as_bytes().encode()
        }

        #[inline(always)]
        unsafe fn decode(pointer: Pointer, word: u64) -> Self {
            // SAFETY: the bytes of a string, as `encode` told them.
            unsafe { std::str::from_utf8_unchecked(<&[u8]>::decode(pointer, word)) }
        }

        #[inline(always)]
        fn prefetch(self) {
            pages::prefetch(self);
        }
    }

    // SAFETY: both references' own addresses.
    unsafe impl<K, V> Lent for (&K, &V) {
        const WIDE: bool = true;

        #[inline]
        fn encode(self) -> Option<(Pointer, u64)> {
            Some((pointer(from_ref(self.0))?, from_ref(self.1).expose_provenance() as u64))
        }

        #[inline(always)]
        unsafe fn decode(pointer: Pointer, word: u64) -> Self {
            // SAFETY: exposed by `encode`, and the caller's promise.
            unsafe { (at(pointer.address()), at(word)) }
        }

        #[inline(always)]
        fn prefetch(self) {
            pages::prefetch(self.0);
            pages::prefetch(self.1);
        }
    }

    macro_rules! keys_in_the_word {
        ($($key:ty),*) => { $(
            // SAFETY: the key is cut to the bits that it has, and the reference's own address.
            unsafe impl<V> Lent for ($key, &V) {
                const WIDE: bool = true;

                #[inline]
                fn encode(self) -> Option<(Pointer, u64)> {
                    Some((pointer(from_ref(self.1))?, self.0 as u64))
                }

                #[inline(always)]
                unsafe fn decode(pointer: Pointer, word: u64) -> Self {
                    // SAFETY: exposed by `encode`, and the caller's promise.
                    (word as $key, unsafe { at(pointer.address()) })
                }

                #[inline(always)]
                fn prefetch(self) {
                    pages::prefetch(self.1);
                }
            }
        )* };
    }
    keys_in_the_word!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize);

    /// Bits of a key's length.
    const KEY: u32 = 12;
    /// Bits of a value's length.
    const VALUE: u32 = 20;

    // SAFETY: the key's own address, from which the distance leads to the value's own; both lengths, if they have as
    // many bits.
    unsafe impl Lent for (&[u8], &[u8]) {
        const WIDE: bool = true;

        #[inline]
        fn encode(self) -> Option<(Pointer, u64)> {
            let (key, value) = self;
            let from = pointer(key.as_ptr())?;
            let to = value.as_ptr().expose_provenance() as u64;
            let distance = i32::try_from(to.wrapping_sub(from.address()).cast_signed()).ok()?;
            let lengths = (key.len() as u64, value.len() as u64);
            let fit = lengths.0 >> KEY == 0 && lengths.1 >> VALUE == 0;
            let word = u64::from(distance.cast_unsigned()) << (KEY + VALUE) | lengths.1 << KEY | lengths.0;
            fit.then_some((from, word))
        }

        #[inline(always)]
        unsafe fn decode(pointer: Pointer, word: u64) -> Self {
            let distance = i64::from((word >> (KEY + VALUE)) as u32 as i32);
            let to = pointer.address().wrapping_add_signed(distance);
            let key = (word & ((1 << KEY) - 1)) as usize;
            let value = (word >> KEY & ((1 << VALUE) - 1)) as usize;
            // SAFETY: exposed by `encode`, and the caller's promise.
            unsafe { (slice(pointer.address(), key), slice(to, value)) }
        }

        #[inline(always)]
        fn prefetch(self) {
            pages::prefetch(self.0);
            pages::prefetch(self.1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::sealed::Lent;
    use proptest::prelude::*;

    /// What is kept of this, read again.
    fn again<T: Lent>(lent: T) -> Option<T> {
        let (pointer, word) = lent.encode()?;
        // SAFETY: just encoded.
        Some(unsafe { T::decode(pointer, word) })
    }

    #[test]
    fn what_is_lent_is_read_again() {
        let number = Box::new(7u64);
        let name = "Ångström".to_owned();
        let row = [1u32, 2, 3];
        assert!(again(&*number).is_some_and(|again| std::ptr::eq(again, &raw const *number)));
        assert_eq!(again(name.as_str()), Some("Ångström"));
        assert_eq!(again(&row[1..]), Some(&row[1..]));
        assert_eq!(again((&name, &*number)), Some((&name, &7)));
        // What has no bytes has an address, which nobody follows.
        assert_eq!(again(&()), Some(&()));
        assert_eq!(again::<&[u64]>(&[]), Some(&[][..]));
        assert_eq!(again(&[(); usize::MAX][..]).map(<[()]>::len), Some(usize::MAX));
        assert_eq!(again(""), Some(""));
    }

    #[test]
    fn keys_are_kept_in_the_word_whatever_their_sign() {
        let value = 'v';
        assert_eq!(again((u64::MAX, &value)), Some((u64::MAX, &'v')));
        assert_eq!(again((i64::MIN, &value)), Some((i64::MIN, &'v')));
        assert_eq!(again((-1i8, &value)), Some((-1, &'v')));
        assert_eq!(again((-7i32, &value)), Some((-7, &'v')));
        assert_eq!(again((200u8, &value)), Some((200, &'v')));
    }

    #[test]
    fn what_does_not_fit_is_not_kept() {
        let memory = vec![0u8; (1 << 20) + 4096];
        let (short, long) = memory.split_at(4095);
        assert!(again((short, &long[..(1 << 20) - 1])).is_some());
        assert!(again((&memory[..4096], short)).is_none(), "a key of 4 KiB");
        assert!(again((short, &long[..1 << 20])).is_none(), "a value of 1 MiB");
        assert!(again((short, &[][..])).is_none(), "a value that is somewhere else");
    }

    proptest! {
        #[test]
        fn pairs_of_bytes_are_read_again(
            memory in prop::collection::vec(any::<u8>(), 1..5000),
            [from, to, start, end] in prop::array::uniform4(any::<prop::sample::Index>()),
        ) {
            let part = |from: prop::sample::Index, to: prop::sample::Index| {
                let (from, to) = (from.index(memory.len()), to.index(memory.len()));
                &memory[from.min(to)..from.max(to)]
            };
            let (key, value) = (part(from, to), part(start, end));
            let again = again((key, value));
            prop_assert_eq!(again.is_some(), key.len() < 4096);
            if let Some((key_again, value_again)) = again {
                prop_assert!(std::ptr::eq(key, key_again) && std::ptr::eq(value, value_again));
            }
        }
    }
}
