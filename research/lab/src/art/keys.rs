//! Keys of a known length, as the paper chooses them (section 3), and as Table 4 tells more exactly.
//!
//! *Dense* keys are 0 to n - 1. *Sparse* ones "range from 0 to 2^32 - 1". That they are evenly spaced there is what
//! Table 4 says: a million of them in 22 MiB are 65,536 nodes of fifteen or sixteen children and sixteen bytes a key,
//! four million are as many nodes of 256. *Random* keys are drawn from the same range without repetition, which is what
//! the paper's text may also mean: their nodes are of all kinds, and paths of different lengths.

use serde::Deserialize;
use workload::popularity::Permutation;

use crate::experiment::ExperimentError;

/// Which keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum KeySet {
    /// 0, 1, 2, ...
    Dense,
    /// Evenly spaced over all numbers of their width.
    Sparse,
    /// Drawn from all numbers of their width, none twice.
    Random,
}

/// Which permutations: any two.
const HIGH: u64 = 41;
const LOW: u64 = 43;

impl KeySet {
    pub(crate) fn name(self) -> &'static str {
        match self {
            KeySet::Dense => "dense",
            KeySet::Sparse => "sparse",
            KeySet::Random => "random",
        }
    }

    /// The first `count` keys of `N` bytes; that of record `n` is the `n`-th.
    pub(crate) fn keys<const N: usize>(self, count: u64) -> Result<Vec<[u8; N]>, ExperimentError> {
        const { assert!(N == 4 || N == 8) };
        // Values are numbers of records, and the last one is for those that are not found.
        if count >= u64::from(u32::MAX) {
            return Err(ExperimentError::machine(format!("{count} keys: there are fewer than {}", u32::MAX)));
        }
        let (high, low) = (Permutation::new(1 << 32, HIGH)?, Permutation::new(1 << 32, LOW)?);
        let number = |record: u64| match self {
            KeySet::Dense => record,
            KeySet::Sparse => ((u128::from(record) << (8 * N)) / u128::from(count)) as u64,
            // Different already in the first half, in which no two are alike.
            KeySet::Random if N == 8 => high.record(record) << 32 | low.record(record),
            KeySet::Random => high.record(record),
        };
        let encode = |record| std::array::from_fn(|byte| number(record).to_be_bytes()[8 - N + byte]);
        Ok((0..count).map(encode).collect())
    }
}
