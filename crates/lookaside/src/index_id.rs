//! The number of an index among those that share a table.
//!
//! It replaces the highest bits of its hashes, and so of their tags (HPCA 2021, Figure 10). Tags are compared exactly,
//! so equal keys of two indexes never meet.

use std::error::Error;
use std::fmt;

/// Most bits of a hash that may be an index's number: others have to be left for tags.
pub(crate) const MOST_ID_BITS: u32 = 8;

/// The number of an index among those that share a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexId {
    /// In the highest bits.
    number: u64,
    /// The other bits.
    others: u64,
}

impl IndexId {
    /// Number `number` of 2^`bits`.
    pub(crate) fn new(number: usize, bits: u32) -> IndexId {
        // Shifted in two steps: with no bits, by 64.
        IndexId { number: (number as u64) << 1 << (63 - bits), others: u64::MAX >> bits }
    }

    /// Whether it changes no hash: of the only index of a buffer.
    pub(crate) fn is_alone(self) -> bool {
        self.others == u64::MAX
    }

    /// Whether a hash, or the highest bits of one, are this index's.
    pub(crate) fn is_on(self, hash: u64) -> bool {
        hash & !self.others == self.number
    }

    /// The hash as this index's.
    #[inline(always)]
    #[must_use]
    pub fn on(self, hash: u64) -> u64 {
        hash & self.others | self.number
    }
}

/// Why an index got no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoIdLeft(pub(crate) usize);

impl fmt::Display for NoIdLeft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "all {} numbers of this buffer are given away, and none comes back: make it with room for more indexes, or \
             another",
            self.0
        )
    }
}

impl Error for NoIdLeft {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_replaces_the_highest_bits_and_no_others() {
        for (indexes, bits) in [(1, 0), (2, 1), (16, 4), (256, 8)] {
            for number in 0..indexes {
                let id = IndexId::new(number, bits);
                for hash in [0, u64::MAX, 0x0123_4567_89ab_cdef, 1 << 63] {
                    let numbered = u128::from(id.on(hash));
                    assert_eq!(numbered >> (64 - bits), number as u128);
                    assert_eq!(
                        numbered as u64 & ((1u128 << (64 - bits)) - 1) as u64,
                        hash & ((1u128 << (64 - bits)) - 1) as u64
                    );
                }
            }
        }
    }
}
