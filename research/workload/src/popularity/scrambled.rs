//! YCSB's scrambled Zipfian distribution: hot records anywhere, the same ones for every number of records.
//!
//! A rank is drawn over 10^10 items, whatever the number n of records, and its FNV-1a-64 hash modulo n is the
//! record. So the shape does not change when records are added, the sum over 10^10 items is a constant, and the
//! hottest record gets 1 / 26.469 = 3.78 % for every n. The price: ranks collide, some records share the heat of
//! two, others are never asked for. [`Permuted`](super::Permuted) strews without collisions.
//!
//! YCSB's Java takes the absolute value of the signed hash before the remainder. Here the hash is unsigned; other
//! records are hot, as hot as YCSB's.

use rand::Rng;
use rand::distr::Distribution;

use super::{YCSB_THETA, Zipfian, check_records};
use crate::DistributionError;

/// Over how many items the rank is drawn.
const ITEMS: u64 = 10_000_000_000;

/// The sum over [`ITEMS`] items for YCSB's exponent, as its source has it.
const ZETA: f64 = 26.46902820178302;

const FNV_OFFSET: u64 = 0xCBF2_9CE4_8422_2325;
const FNV_PRIME: u64 = 1_099_511_628_211;

/// The FNV-1a-64 hash of the eight bytes of `value`, the lowest first.
#[inline]
fn fnv(value: u64) -> u64 {
    value
        .to_le_bytes()
        .iter()
        .fold(FNV_OFFSET, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME))
}

/// YCSB's scrambled Zipfian records.
///
/// ```
/// use lookaside_workload::{generator, popularity::ScrambledZipfian};
/// use rand::distr::Distribution;
///
/// let scrambled = ScrambledZipfian::new(1_000_000)?;
/// assert!(scrambled.sample(&mut generator::seeded(1)) < 1_000_000);
/// # Ok::<(), lookaside_workload::DistributionError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ScrambledZipfian {
    ranks: Zipfian,
    records: u64,
}

impl ScrambledZipfian {
    /// `records` records, with YCSB's exponent of 0.99 and its constant for the sum.
    ///
    /// # Errors
    ///
    /// [`DistributionError::Empty`] without records, [`DistributionError::TooManyRecords`] above 2^53.
    pub fn new(records: u64) -> Result<ScrambledZipfian, DistributionError> {
        check_records(records)?;
        Ok(ScrambledZipfian { ranks: Zipfian::with_zeta(ITEMS, YCSB_THETA, ZETA), records })
    }

    /// `records` records with exponent `theta`.
    ///
    /// # Errors
    ///
    /// As [`new`](ScrambledZipfian::new), and [`DistributionError::Theta`] where `theta` is not from 0 to 3.
    pub fn with_theta(records: u64, theta: f64) -> Result<ScrambledZipfian, DistributionError> {
        if theta == YCSB_THETA {
            return ScrambledZipfian::new(records);
        }
        check_records(records)?;
        Ok(ScrambledZipfian { ranks: Zipfian::new(ITEMS, theta)?, records })
    }

    /// The record that the rank `rank` falls on.
    #[inline]
    pub fn record(&self, rank: u64) -> u64 {
        fnv(rank) % self.records
    }

    /// The number of records.
    pub fn records(&self) -> u64 {
        self.records
    }
}

impl Distribution<u64> for ScrambledZipfian {
    #[inline]
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> u64 {
        self.record(self.ranks.sample(rng))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed by hand from the definition for one byte: (offset xor byte) times prime, then seven zero bytes.
    #[test]
    fn fnv_follows_its_definition() {
        let zeros = |hash: u64, count| (0..count).fold(hash, |hash, _| hash.wrapping_mul(FNV_PRIME));
        assert_eq!(fnv(0), zeros(FNV_OFFSET, 8));
        assert_eq!(fnv(1), zeros((FNV_OFFSET ^ 1).wrapping_mul(FNV_PRIME), 7));
        // The published vector for the text "foobar" begins with these bytes, so check the folding over several.
        let text = b"foobar";
        let hash =
            text.iter().fold(FNV_OFFSET, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME));
        assert_eq!(hash, 0x8594_4171_f739_67e8);
        let mut bytes = [0; 8];
        bytes[..6].copy_from_slice(text);
        assert_eq!(fnv(u64::from_le_bytes(bytes)), zeros(hash, 2));
    }
}
