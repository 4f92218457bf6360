//! Which records are asked for: Zipfian ranks, a random permutation telling which record a rank is, so that keys which
//! are popular together are none that lie together. Skew 0 is uniform.

use rand::distr::Distribution;
use workload::generator::{self, Xoshiro256PlusPlus};
use workload::popularity::Popularity;

use crate::experiment::ExperimentError;

/// Which permutation: any, but not the order of insertion.
const PLACES: u64 = 17;

/// Keys as they are asked for, without end.
pub(crate) struct Draws<'k, const N: usize> {
    keys: &'k [[u8; N]],
    records: Popularity,
    random: Xoshiro256PlusPlus,
}

/// Keys to be looked up, their records, and what these sum up to.
pub(crate) struct Asked<const N: usize> {
    pub(crate) keys: Vec<[u8; N]>,
    pub(crate) records: Vec<u32>,
    pub(crate) expected: u64,
}

impl<'k, const N: usize> Draws<'k, N> {
    pub(crate) fn new(keys: &'k [[u8; N]], skew: f64) -> Result<Self, ExperimentError> {
        let records = Popularity::permuted(keys.len() as u64, skew, PLACES)?;
        Ok(Draws { keys, records, random: generator::seeded(PLACES) })
    }

    /// The next keys.
    pub(crate) fn next(&mut self, count: usize) -> Asked<N> {
        let records: Vec<u32> = (0..count).map(|_| self.records.sample(&mut self.random) as u32).collect();
        Asked {
            keys: records.iter().map(|&record| self.keys[record as usize]).collect(),
            expected: records.iter().copied().map(u64::from).sum(),
            records,
        }
    }
}

/// A skew in words: a point in results.
pub(crate) fn name_skew(skew: f64) -> String {
    format!("zipf {skew}")
}
