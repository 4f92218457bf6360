//! The two of Facebook's memcached pools that were published as formulas: ETC and USR (Atikoglu, Xu, Frachtenberg,
//! Jiang and Paleczny, "Workload analysis of a large-scale key-value store", SIGMETRICS 2012).
//!
//! **ETC** is the largest and most general pool. Its key sizes follow a generalised extreme value distribution
//! (location 30.7984, scale 8.20449, shape 0.078688). Of its values, 44.155 % have 0 to 14 bytes with a frequency
//! for each, the others follow a generalised Pareto distribution from 15 bytes on (scale 214.476, shape 0.348238).
//! 30 GETs come on one UPDATE.
//!
//! **USR** keeps account status: keys of 16 or 21 bytes, values of 2, and more than 99.8 % GETs.
//!
//! What is ours: sizes are cut to whole bytes, keys to what memcached carries, values to 1,000,000 bytes, below its
//! default limit of 1 MiB for an item. USR's two key sizes get one half each, for no share was published, and its
//! writes the 0.2 % that are left. How popular the keys are was published as plots alone; it is the caller's choice.
//! The pools APP, VAR and SYS have no closed form, and none is invented here.

use crate::discrete::Discrete;
use crate::model::{CacheModel, LONGEST_KEY};
use crate::operation::CacheOperation;
use crate::sizes::{Fixed, GeneralisedExtremeValue, GeneralisedPareto, Histogram, Sizes};

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

/// The pool ETC.
pub fn etc() -> CacheModel {
    CacheModel {
        key_sizes: Box::new(EtcKeySizes),
        value_sizes: Box::new(EtcValueSizes),
        operations: reads_and_writes(30.0, 1.0),
    }
}

/// The pool USR.
pub fn usr() -> CacheModel {
    let key_sizes = Histogram::new(&[16, 21], &[0.5, 0.5]).expect("two sizes with positive weights");
    CacheModel {
        key_sizes: Box::new(key_sizes),
        value_sizes: Box::new(Fixed(2)),
        operations: reads_and_writes(0.998, 0.002),
    }
}

fn reads_and_writes(reads: f64, writes: f64) -> Discrete<CacheOperation> {
    Discrete::new([(CacheOperation::Get, reads), (CacheOperation::Set, writes)]).expect("positive weights")
}
