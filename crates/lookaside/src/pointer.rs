//! An address of 48 bits: what user-space pointers need on today's machines, so that a table's slot has room for a tag
//! above it ([`crate::bucket`]).

use std::fmt;
use std::num::NonZeroU64;

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
        // One comparison for both: zero, less one, is the greatest number.
        if address.wrapping_sub(1) < (1 << Pointer::BITS) - 1
            && let Some(address) = NonZeroU64::new(address)
        {
            Some(Pointer(address))
        } else {
            None
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
