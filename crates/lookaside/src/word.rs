//! The slot's word: a short tag of the key over a pointer to its entry.
//!
//! ```text
//!   63                48 47                                             0
//!  +--------------------+------------------------------------------------+
//!  |        tag         |                    pointer                     |
//!  +--------------------+------------------------------------------------+
//! ```
//!
//! As section 3.2 of the SLB paper has it: the higher 16 bits of the key's 64-bit hash, and the 48 bits that user-space
//! addresses need on today's machines. One aligned word is read and written whole, so a hit needs no lock.
//!
//! An empty slot is the zero word. Its tag may be that of a key; its pointer, zero, is never that of an entry.

use std::fmt;
use std::num::NonZeroU64;

/// Slots in a bucket: a line of words, but for that of the counters.
pub(crate) const SLOTS: usize = 7;

/// An address of 48 bits that is not zero: what a table remembers of an entry. The tables never follow it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pointer(NonZeroU64);

impl Pointer {
    /// Bits that a pointer may have.
    pub const BITS: u32 = 48;

    /// The pointer of this address, or `None` where it is zero or needs more than 48 bits: it is refused, never cut.
    ///
    /// ```
    /// use lookaside::Pointer;
    /// assert_eq!(Pointer::new(0x7fff_1234_5678).unwrap().address(), 0x7fff_1234_5678);
    /// assert!(Pointer::new(0).is_none() && Pointer::new(1 << 48).is_none());
    /// ```
    #[inline]
    #[must_use]
    pub const fn new(address: u64) -> Option<Pointer> {
        match NonZeroU64::new(address) {
            Some(address) if address.get() >> Pointer::BITS == 0 => Some(Pointer(address)),
            _ => None,
        }
    }

    /// The address given to [`Pointer::new`].
    #[inline]
    #[must_use]
    pub const fn address(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Debug for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pointer({:#x})", self.0)
    }
}

/// What a slot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word(pub(crate) u64);

impl Word {
    pub(crate) const EMPTY: Word = Word(0);

    /// The word of a key of this hash whose entry is there.
    #[inline]
    pub(crate) fn new(hash: u64, pointer: Pointer) -> Word {
        Word(hash >> Pointer::BITS << Pointer::BITS | pointer.address())
    }

    #[inline(always)]
    pub(crate) fn pointer(self) -> Option<Pointer> {
        Pointer::new(self.0 & ((1 << Pointer::BITS) - 1))
    }

    /// The pointer, if the tag is that of a key of this hash.
    #[inline(always)]
    pub(crate) fn pointer_for(self, hash: u64) -> Option<Pointer> {
        // Without its own tag, what is left of the word is the pointer; with another, it has more than 48 bits.
        let rest = self.0 ^ hash >> Pointer::BITS << Pointer::BITS;
        // One comparison for both: zero, less one, is the greatest number.
        if rest.wrapping_sub(1) < (1 << Pointer::BITS) - 1 {
            NonZeroU64::new(rest).map(Pointer)
        } else {
            None
        }
    }

    /// Whether the tag is that of a key of this hash. True of the empty word for some hashes.
    #[inline(always)]
    pub(crate) fn has_tag_of(self, hash: u64) -> bool {
        (self.0 ^ hash) >> Pointer::BITS == 0
    }
}
