//! Which records are asked for.
//!
//! Ranks are drawn from a Zipfian distribution over the first `range` ranks, by YCSB's formula, or uniformly; a random
//! permutation of all records says which record a rank is. So records that are popular together are none that lie
//! together, and a small range is strewn over all records.

use rand::distr::Distribution;
use workload::generator::{self, Xoshiro256PlusPlus};
use workload::popularity::{Permutation, Popularity};

use super::contestant::Request;
use super::record::{Key, Tally, Value};
use crate::experiment::ExperimentError;

/// The exponent of all Zipfian distributions here: YCSB's, and the paper's.
const THETA: f64 = 0.99;
/// Which permutation: any.
const PLACES: u64 = 17;

/// The distribution.
#[derive(Debug, Clone)]
pub(crate) struct Draws {
    ranks: Popularity,
    places: Permutation,
    partitions: u64,
}

/// Keys to be looked up, and what that must come to.
pub(crate) struct Lookups<const N: usize> {
    pub(crate) keys: Vec<Key<N>>,
    pub(crate) expected: Tally,
}

/// Requests, and what their lookups must come to.
pub(crate) struct Mixed<const N: usize> {
    pub(crate) requests: Vec<Request<N>>,
    pub(crate) expected: Tally,
}

impl Draws {
    /// Of `range` of the `records` records.
    pub(crate) fn new(
        records: u64,
        range: u64,
        uniform: bool,
        partitions: usize,
    ) -> Result<Draws, ExperimentError> {
        if range > records {
            return Err(ExperimentError::Machine(format!(
                "{range} of {records} records cannot be asked for"
            )));
        }
        let wrong = |error: workload::DistributionError| ExperimentError::Machine(error.to_string());
        let ranks = if uniform { Popularity::uniform(range) } else { Popularity::zipfian(range, THETA) };
        Ok(Draws {
            ranks: ranks.map_err(wrong)?,
            places: Permutation::new(records, PLACES).map_err(wrong)?,
            partitions: partitions.max(1) as u64,
        })
    }

    /// The generators of the threads of one part of an experiment.
    pub(crate) fn generators(part: u64) -> impl Iterator<Item = Xoshiro256PlusPlus> {
        generator::streams(part)
    }

    /// A record for this thread: with partitions, one of its own.
    #[inline]
    pub(crate) fn record(&self, thread: usize, random: &mut Xoshiro256PlusPlus) -> u64 {
        loop {
            let record = self.places.record(self.ranks.sample(random));
            if record % self.partitions == thread as u64 % self.partitions {
                return record;
            }
        }
    }

    /// So many lookups for this thread.
    pub(crate) fn lookups<const N: usize>(
        &self,
        thread: usize,
        lookups: usize,
        random: &mut Xoshiro256PlusPlus,
    ) -> Lookups<N> {
        let mut expected = Tally::default();
        let draw = |_| {
            let record = self.record(thread, random);
            expected.count(Some(Value::expected(record)));
            Key::of(record)
        };
        let keys = (0..lookups).map(draw).collect();
        Lookups { keys, expected }
    }

    /// So many requests for this thread, `sets` in a hundred of them writes.
    pub(crate) fn requests<const N: usize>(
        &self,
        thread: usize,
        requests: usize,
        sets: u32,
        random: &mut Xoshiro256PlusPlus,
    ) -> Mixed<N> {
        let mut expected = Tally::default();
        let coin = lookaside::Random::new(requests as u64);
        let draw = |_| {
            let record = self.record(thread, random);
            let set = coin.below(100) < sets;
            if !set {
                expected.count(Some(Value::expected(record)));
            }
            Request { key: Key::of(record), record, set }
        };
        let requests = (0..requests).map(draw).collect();
        Mixed { requests, expected }
    }
}
