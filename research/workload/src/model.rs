//! A cache's sizes and operations together.
//!
//! What publications tell of a cache is mostly this: how large keys and values are and which operations come how
//! often. Which keys are asked for is seldom told in the same place, so it is the caller's to choose, and to name
//! when a figure is shown.

use std::fmt;

use rand::Rng;
use rand::distr::Distribution;

use crate::discrete::Discrete;
use crate::operation::{CacheOperation, CacheRequest};
use crate::sizes::Sizes;

/// A distribution of sizes, whichever.
pub type AnySizes = Box<dyn Sizes + Send + Sync>;

/// A cache's sizes and operations.
///
/// ```
/// use lookaside_workload::{facebook, generator, popularity::Zipfian};
///
/// let etc = facebook::etc();
/// let popularity = Zipfian::new(1_000_000, 0.99)?;
/// let request = etc.draw(&popularity, &mut generator::seeded(1));
///
/// let mut key = Vec::new();
/// etc.key(request.record, &mut key);
/// let value_size = etc.value_sizes.for_key(&key);
/// # Ok::<(), lookaside_workload::DistributionError>(())
/// ```
pub struct CacheModel {
    /// Bytes of keys.
    pub key_sizes: AnySizes,
    /// Bytes of values.
    pub value_sizes: AnySizes,
    /// Which operation comes how often.
    pub operations: Discrete<CacheOperation>,
}

impl CacheModel {
    /// Draws an operation and, from `popularity`, the record that it is about.
    pub fn draw<R: Rng + ?Sized>(&self, popularity: &impl Distribution<u64>, rng: &mut R) -> CacheRequest {
        CacheRequest { operation: self.operations.sample(rng), record: popularity.sample(rng) }
    }

    /// Appends the key of the record number `record` to `out`, of the size that belongs to that record, and longer
    /// where its digits need it.
    pub fn key(&self, record: u64, out: &mut Vec<u8>) {
        let size = usize::try_from(self.key_sizes.for_record(record)).unwrap_or(usize::MAX);
        crate::key::spell(record, size.min(LONGEST_KEY), out);
    }
}

/// The longest key that memcached's protocol carries, in bytes.
pub const LONGEST_KEY: usize = 250;

impl fmt::Debug for CacheModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheModel").field("operations", &self.operations).finish_non_exhaustive()
    }
}
