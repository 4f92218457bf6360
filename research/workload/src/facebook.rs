//! The sizes of keys and values in the largest of Facebook's memcached pools, ETC, as they were published (Atikoglu,
//! Xu, Frachtenberg, Jiang and Paleczny, "Workload analysis of a large-scale key-value store", SIGMETRICS 2012).
//!
//! Key sizes follow a generalised extreme value distribution (location 30.7984, scale 8.20449, shape 0.078688). Of the
//! values, 44.155 % have 0 to 14 bytes with a frequency for each, the others follow a generalised Pareto distribution
//! from 15 bytes on (scale 214.476, shape 0.348238).
//!
//! What is ours: sizes are cut to whole bytes, keys to what memcached carries, values to 1,000,000 bytes, below its
//! default limit of 1 MiB for an item.

use crate::key::LONGEST_KEY;
use crate::sizes::{GeneralisedExtremeValue, GeneralisedPareto, Sizes};

/// The largest value that ETC draws, in bytes.
pub const LARGEST_VALUE: u64 = 1_000_000;

/// The shares of ETC's values of 0 to 14 bytes.
const SMALL_VALUES: [f64; 15] = [
    0.00536, 0.00047, 0.17820, 0.09239, 0.00018, 0.02740, 0.00065, 0.00606, 0.00023, 0.00837, 0.00837,
    0.08989, 0.00092, 0.00326, 0.01980,
];

/// The share of ETC's values that the table covers.
const SMALL: f64 = 0.44155;

const LARGE_VALUES: GeneralisedPareto = GeneralisedPareto { location: 15.0, scale: 214.476, shape: 0.348238 };

/// The sizes of ETC's keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EtcKeySizes;

impl Sizes for EtcKeySizes {
    fn quantile(&self, fraction: f64) -> u64 {
        let fitted = GeneralisedExtremeValue { location: 30.7984, scale: 8.20449, shape: 0.078688 };
        fitted.quantile(fraction).clamp(1, LONGEST_KEY as u64)
    }
}

/// The sizes of ETC's values.
///
/// ```
/// use lookaside_workload::{facebook::EtcValueSizes, sizes::Sizes};
///
/// assert_eq!(EtcValueSizes.quantile(0.10), 2);
/// assert_eq!(EtcValueSizes.quantile(0.45), 18);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EtcValueSizes;

impl Sizes for EtcValueSizes {
    fn quantile(&self, fraction: f64) -> u64 {
        if fraction >= SMALL {
            return LARGE_VALUES.quantile((fraction - SMALL) / (1.0 - SMALL)).min(LARGEST_VALUE);
        }
        let mut end = 0.0;
        let within = SMALL_VALUES.iter().position(|share| {
            end += share;
            fraction < end
        });
        // The shares add up to `SMALL` only as far as floating point does.
        within.unwrap_or(SMALL_VALUES.len() - 1) as u64
    }
}
