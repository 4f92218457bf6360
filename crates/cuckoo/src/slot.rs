//! The slot: one aligned 64-bit word that names an entry.
//!
//! ```text
//!   63        50 49  48 47                                             0
//!  +------------+------+------------------------------------------------+
//!  |    tag     | next |                    location                    |
//!  +------------+------+------------------------------------------------+
//! ```
//!
//! *Tag*: a short summary of the key (paper, section 3.1), 1 byte as in the paper or all 14 bits; never zero, so the
//! empty word, which is zero, matches no key. *Location*: whatever the owner of the entries finds them by, a pointer or
//! an index, below 2^48. The word is read and written whole, so a reader never sees half of a change.
//!
//! *Next* is ours: the one bit of the key's hash that decides where the entry goes when its bucket next splits, or
//! "unknown". The paper's table does not grow. Ours grows bucket by bucket ([`crate::geometry`]), so a displacement may
//! lead from a bucket that has not split to one that has, and which of the two halves it is cannot be told from the
//! short tag. With the bit at hand a displacement never reads a key.
//!
//! Rejected: reading the key for such moves (a cache miss in the middle of every search while the table grows) and a
//! longer tag that holds several of these bits (they still run out, and shorten the tag as they are used up).

use std::fmt;

/// Where an entry is: below 2^48, meaning what the table's owner wants it to mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Location(u64);

impl Location {
    /// Bits in a location.
    pub const BITS: u32 = 48;

    /// The location `raw`, or `None` where it needs more than 48 bits. It is never cut.
    ///
    /// ```
    /// use lookaside_cuckoo::Location;
    /// assert_eq!(Location::new(77).unwrap().get(), 77);
    /// assert!(Location::new(1 << 48).is_none());
    /// ```
    #[inline]
    #[must_use]
    pub const fn new(raw: u64) -> Option<Location> {
        if raw >> Location::BITS == 0 { Some(Location(raw)) } else { None }
    }

    /// The number given to [`Location::new`].
    #[inline]
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// The summary of a key that stands beside its location: 1 to 2^14 - 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tag(u64);

impl Tag {
    const BITS: u32 = 14;
    const SHIFT: u32 = 64 - Tag::BITS;

    /// The tag of `bits` bits for a key of this hash: its highest bits, which no bucket index uses.
    #[inline]
    pub(crate) fn of(hash: u64, bits: u32) -> Tag {
        debug_assert!((1..=Tag::BITS).contains(&bits));
        Tag((hash >> (64 - bits)).max(1))
    }

    /// Its number, never zero.
    #[inline]
    pub(crate) fn raw(self) -> u64 {
        self.0
    }

    /// hash(tag) of the paper: what the index of a key's one bucket is combined with to get the other.
    ///
    /// A fixed mix to 64 bits, masked where it is used, so that both candidates of a key keep their low bits when the
    /// table doubles, and a bucket splits into itself and one new bucket only.
    #[inline]
    pub(crate) fn hash(self) -> u64 {
        let mixed = self.0.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed ^ (mixed >> 32)
    }
}

/// What is known of the hash bit that the next split of the entry's bucket will look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    Unknown,
    Bit(u64),
}

impl Next {
    /// The bit as seen from the key's other bucket, whose hash differs by `mix` at that place.
    #[inline]
    pub(crate) fn mixed(self, mix_bit: u64) -> Next {
        match self {
            Next::Unknown => Next::Unknown,
            Next::Bit(bit) => Next::Bit(bit ^ mix_bit),
        }
    }
}

/// The content of a slot.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word(pub(crate) u64);

impl Word {
    pub(crate) const EMPTY: Word = Word(0);
    const KNOWN: u64 = 1 << 49;
    const BIT: u64 = 1 << 48;

    #[inline]
    pub(crate) fn new(tag: Tag, next: Next, location: Location) -> Word {
        let next = match next {
            Next::Unknown => 0,
            Next::Bit(bit) => Word::KNOWN | bit << 48,
        };
        Word(tag.0 << Tag::SHIFT | next | location.0)
    }

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[inline]
    pub(crate) fn has_tag(self, tag: Tag) -> bool {
        (self.0 ^ tag.0 << Tag::SHIFT) >> Tag::SHIFT == 0
    }

    /// The tag's number; zero for the empty word, which has none.
    #[inline]
    pub(crate) fn raw_tag(self) -> u64 {
        self.0 >> Tag::SHIFT
    }

    #[inline]
    pub(crate) fn tag(self) -> Tag {
        Tag(self.0 >> Tag::SHIFT)
    }

    #[inline]
    pub(crate) fn next(self) -> Next {
        if self.0 & Word::KNOWN == 0 { Next::Unknown } else { Next::Bit((self.0 & Word::BIT) >> 48) }
    }

    #[inline]
    pub(crate) fn location(self) -> Location {
        Location(self.0 & ((1 << Location::BITS) - 1))
    }

    /// The same key's, elsewhere.
    #[inline]
    pub(crate) fn with_location(self, location: Location) -> Word {
        Word(self.0 >> Location::BITS << Location::BITS | location.0)
    }

    #[inline]
    pub(crate) fn with_next(self, next: Next) -> Word {
        Word::new(self.tag(), next, self.location())
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}:{:?}:{:x}", self.tag().0, self.next(), self.location().0)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_word_gives_back_its_parts(
            hash: u64, bits in 1u32..=14, raw in 0u64..1 << 48, known: bool, bit in 0u64..2,
        ) {
            let next = if known { Next::Bit(bit) } else { Next::Unknown };
            let tag = Tag::of(hash, bits);
            let word = Word::new(tag, next, Location::new(raw).unwrap());
            prop_assert_eq!((word.tag(), word.next(), word.location().get()), (tag, next, raw));
            prop_assert!(word.has_tag(tag) && !word.is_empty() && !Word::EMPTY.has_tag(tag));
            let other = Tag::of(!hash, bits);
            prop_assert_eq!(word.has_tag(other), other == tag);
            prop_assert_eq!(word.with_next(Next::Unknown).next(), Next::Unknown);
            let elsewhere = Location::new(raw ^ 0x5555).unwrap();
            prop_assert_eq!(word.with_location(elsewhere), Word::new(tag, next, elsewhere));
            prop_assert!(tag.0 >= 1 && tag.0 < 1 << bits);
        }
    }
}
