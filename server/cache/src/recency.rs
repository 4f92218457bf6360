//! What an eviction policy remembers of an item: two bits, which lie in its mark.

use std::fmt;

/// What a policy remembers of an item: 0 to 3.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Recency(u8);

impl Recency {
    /// Not used since the hand passed.
    pub const NONE: Recency = Recency(0);
    /// As much as two bits hold.
    pub const MOST: Recency = Recency(3);

    /// A recency of `value`, or the greatest if that is more than two bits hold.
    #[must_use]
    pub const fn new(value: u8) -> Recency {
        if value > 3 { Recency::MOST } else { Recency(value) }
    }

    /// Its number, 0 to 3.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl fmt::Debug for Recency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
