//! How large keys and values are.
//!
//! A distribution of sizes is its quantile function: which size stands at a given fraction when all are sorted. From
//! it follow both ways in which a size is needed. A size is *drawn* at a random fraction. And a size is *kept*: the
//! fraction is a hash of the key, so a key has the same size in every run, in every thread and on every miss,
//! without a table that remembers it; over many keys the sizes still have their distribution, because a good hash
//! spreads keys evenly.
//!
//! Real-valued distributions are cut to whole bytes.

mod extreme_value;
mod histogram;

use rand::{Rng, RngExt};
use twox_hash::XxHash3_64;

use crate::DistributionError;

pub use extreme_value::{GeneralisedExtremeValue, GeneralisedPareto};
pub use histogram::Histogram;

/// Seeds of the hash. They differ, so that a record's key size tells nothing of its value size.
const KEY_SEED: u64 = 0x9e37_79b9_7f4a_7c15;
const RECORD_SEED: u64 = 0xd1b5_4a32_d192_ed03;

/// A distribution of sizes in bytes.
///
/// ```
/// use lookaside_workload::sizes::{Histogram, Sizes};
///
/// // Half of the values have 100 bytes, half 300; ten times as much for a larger experiment.
/// let sizes = Histogram::new(&[100, 300], &[1.0, 1.0])?.scaled(10.0)?;
/// let size = sizes.for_key(b"user:42");
/// assert!(size == 1000 || size == 3000);
/// assert_eq!(sizes.for_key(b"user:42"), size, "a key keeps its size");
/// # Ok::<(), lookaside_workload::DistributionError>(())
/// ```
pub trait Sizes {
    /// The size at `fraction` of all sizes in rising order. `fraction` counts from 0 to just below 1.
    fn quantile(&self, fraction: f64) -> u64;

    /// The size that belongs to the key `key`.
    fn for_key(&self, key: &[u8]) -> u64 {
        self.quantile(fraction(KEY_SEED, key))
    }

    /// The size that belongs to the record number `record`. It tells nothing of the size that belongs to its key:
    /// use this one for the size of the record's key, and [`for_key`](Sizes::for_key) for the value's.
    fn for_record(&self, record: u64) -> u64 {
        self.quantile(fraction(RECORD_SEED, &record.to_le_bytes()))
    }

    /// A size at random.
    fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> u64
    where
        Self: Sized,
    {
        self.quantile(rng.random())
    }

    /// Every size times `factor`, rounded to the nearest byte.
    ///
    /// # Errors
    ///
    /// [`DistributionError::Factor`] where `factor` is negative or not finite.
    fn scaled(self, factor: f64) -> Result<Scaled<Self>, DistributionError>
    where
        Self: Sized,
    {
        if factor.is_finite() && factor >= 0.0 {
            Ok(Scaled { sizes: self, factor })
        } else {
            Err(DistributionError::Factor { factor })
        }
    }
}

/// Where a hash of `bytes` lies among all hashes: 53 bits of it, from 0 to just below 1.
fn fraction(seed: u64, bytes: &[u8]) -> f64 {
    const UNIT: f64 = 1.0 / (1u64 << 53) as f64;
    (XxHash3_64::oneshot_with_seed(seed, bytes) >> 11) as f64 * UNIT
}

impl<S: Sizes + ?Sized> Sizes for Box<S> {
    fn quantile(&self, fraction: f64) -> u64 {
        (**self).quantile(fraction)
    }
}

impl<S: Sizes + ?Sized> Sizes for &S {
    fn quantile(&self, fraction: f64) -> u64 {
        (**self).quantile(fraction)
    }
}

/// One size for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fixed(
    /// The size in bytes.
    pub u64,
);

impl Sizes for Fixed {
    fn quantile(&self, _fraction: f64) -> u64 {
        self.0
    }
}

/// A distribution of sizes, whichever.
pub type AnySizes = Box<dyn Sizes + Send + Sync>;

/// What [`Sizes::scaled`] makes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scaled<S> {
    sizes: S,
    factor: f64,
}

impl<S: Sizes> Sizes for Scaled<S> {
    fn quantile(&self, fraction: f64) -> u64 {
        (self.sizes.quantile(fraction) as f64 * self.factor).round() as u64
    }
}
