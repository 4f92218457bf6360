//! Which records are asked for.
//!
//! Ranks are drawn from a Zipfian distribution over the first `range` ranks, by YCSB's formula, or uniformly; a random
//! permutation of all records says which record a rank is. So records that are popular together are none that lie
//! together, and a small range is strewn over all records.

use rand::distr::Distribution;
use serde::Deserialize;
use workload::generator::{self, Xoshiro256PlusPlus};
use workload::popularity::{Permutation, Popularity, YCSB_THETA};

use super::record::{Key, Value};
use super::visit::{Lot, Request};
use crate::experiment::ExperimentError;
use crate::subject::{Call, Tally};

/// Which permutation: any.
const PLACES: u64 = 17;

/// The distribution.
#[derive(Debug, Clone)]
pub(super) struct Draws {
    ranks: Popularity,
    places: Permutation,
    partitions: u64,
}

/// A place on the axis of a figure.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Point {
    /// In words.
    pub(super) name: String,
    /// How many of the records are asked for.
    pub(super) range: u64,
    /// Bytes of the table.
    pub(super) bytes: usize,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mix {
    Lookups,
    /// So many writes in a hundred requests.
    Sets(u32),
    /// So many changes of a value in its place.
    Renewals(u32),
}

impl Mix {
    /// The name of what was measured of it, asked for by this call.
    pub(super) fn metric(self, what: &str, call: Call) -> String {
        let call = if call == Call::Batch { " in batches" } else { "" };
        let mix = match self {
            Mix::Lookups => String::new(),
            Mix::Sets(share) => format!(", {share} % SET"),
            Mix::Renewals(share) => format!(", {share} % SET in place"),
        };
        format!("{what}{call}{mix}")
    }
}

/// What one thread asks for, and what its lookups must come to.
pub(super) struct Drawn<const N: usize> {
    mix: Mix,
    keys: Vec<Key<N>>,
    requests: Vec<Request<N>>,
    pub(super) expected: Tally,
}

impl<const N: usize> Drawn<N> {
    pub(super) fn lot(&self) -> Lot<'_, N> {
        match self.mix {
            Mix::Lookups => Lot::Keys(&self.keys),
            Mix::Sets(_) => Lot::Requests(&self.requests),
            Mix::Renewals(_) => Lot::Renewals(&self.requests),
        }
    }
}

impl Draws {
    /// Of `range` of the `records` records.
    pub(super) fn new(
        records: u64,
        range: u64,
        uniform: bool,
        partitions: usize,
    ) -> Result<Draws, ExperimentError> {
        if range > records {
            let reason = format!("{range} of {records} records cannot be asked for");
            return Err(ExperimentError::Machine(reason));
        }
        let ranks = if uniform { Popularity::uniform(range) } else { Popularity::zipfian(range, YCSB_THETA) };
        Ok(Draws {
            ranks: ranks?,
            places: Permutation::new(records, PLACES)?,
            partitions: partitions.max(1) as u64,
        })
    }

    /// The generators of the threads of one part of an experiment.
    pub(super) fn generators(part: u64) -> impl Iterator<Item = Xoshiro256PlusPlus> {
        generator::streams(part)
    }

    /// A record for this thread: with partitions, one of its own.
    #[inline]
    pub(super) fn record(&self, thread: usize, random: &mut Xoshiro256PlusPlus) -> u64 {
        loop {
            let record = self.places.record(self.ranks.sample(random));
            if record % self.partitions == thread as u64 % self.partitions {
                return record;
            }
        }
    }

    /// So many requests for this thread.
    pub(super) fn draw<const N: usize>(
        &self,
        thread: usize,
        count: usize,
        mix: Mix,
        random: &mut Xoshiro256PlusPlus,
    ) -> Drawn<N> {
        let (mut keys, mut requests, mut expected) = (Vec::new(), Vec::new(), Tally::default());
        let coin = lookaside::Random::new(count as u64);
        for _ in 0..count {
            let record = self.record(thread, random);
            let set = match mix {
                Mix::Lookups => {
                    keys.push(Key::of(record));
                    false
                }
                Mix::Sets(sets) | Mix::Renewals(sets) => {
                    let set = coin.below(100) < sets;
                    requests.push(Request { key: Key::of(record), record, set });
                    set
                }
            };
            expected.count((!set).then(|| Value::expected(record)));
        }
        Drawn { mix, keys, requests, expected }
    }
}
