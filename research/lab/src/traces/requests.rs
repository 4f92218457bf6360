//! The requests of a trace, drawn or read before any clock starts.
//!
//! **Stand-ins.** The hottest share of the keys and the share of the accesses that it gets, as printed, determine the
//! exponent of a Zipf distribution over the keys; it is found by bisection. Ranks are permuted to records. Operations
//! are drawn independently of keys. **Recorded** requests keep their order and what was asked; their keys' text is
//! replaced by a key of 24 bytes made from a number, and a value has 64 bytes.
//!
//! All records are there at the beginning.

use std::collections::HashMap;

use rand::RngExt;
use rand::distr::Distribution;
use serde::Deserialize;
use workload::data::DataError;
use workload::generator;
use workload::operation::CacheOperation;
use workload::popularity::{LARGEST_THETA, Permutation, Permuted, Zipfian};
use workload::stand_in::{StandIn as StandInOf, recorded_or_generated};

use crate::drive::{SizesOf, sizes};
use crate::experiment::ExperimentError;

const SEED: u64 = 15;
/// Bytes of a recorded value: traces tell none, or none that is kept.
const UNKNOWN_SIZE: u32 = 64;
/// Larger values are cut: they would fill the machine's memory, and no lookup reads them.
const LARGEST_VALUE: u64 = 16 << 10;

/// A key.
pub(super) type Key = crate::lookaside::Key<24>;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// Look up; what is not there is then set, as an application does that has it from elsewhere.
    Get,
    Set,
    Delete,
}

/// One request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) key: Key,
    pub(super) record: u32,
    /// Bytes of the value.
    pub(super) size: u32,
    pub(super) operation: Operation,
}

/// A trace in memory.
#[derive(Debug)]
pub(super) struct Trace {
    pub(super) name: String,
    /// The bytes of every record's value.
    pub(super) values: Vec<u32>,
    pub(super) requests: Vec<Request>,
}

impl Request {
    fn new(record: u32, operation: Operation, values: &[u32]) -> Request {
        Request { key: Key::of(u64::from(record)), record, size: values[record as usize], operation }
    }

    pub(super) fn set(record: u32, trace: &Trace) -> Request {
        Request::new(record, Operation::Set, &trace.values)
    }
}

/// What a stand-in is drawn from.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StandIn {
    /// Its name, in which it says that it is one.
    pub(super) name: String,
    /// Different keys.
    records: u32,
    /// This share of the keys, the hottest,
    hottest: f64,
    /// gets this share of the accesses.
    accesses: f64,
    /// The share of updates among the requests.
    updates: f64,
    /// The share of deletes.
    deletes: f64,
    /// The values' sizes, by name.
    values: String,
}

impl StandIn {
    fn wrong(&self, reason: impl ToString) -> ExperimentError {
        ExperimentError::Machine(format!("the stand-in '{}': {}", self.name, reason.to_string()))
    }

    /// Draws so many requests.
    pub(super) fn draw(&self, requests: usize) -> Result<Trace, ExperimentError> {
        if !self.name.contains("stand-in") {
            return Err(self.wrong("a stand-in is named one"));
        }
        if !(self.updates >= 0.0 && self.deletes >= 0.0 && self.updates + self.deletes <= 1.0) {
            return Err(self.wrong("shares of requests are from 0 to 1"));
        }
        let sizes = sizes(&self.values, SizesOf::Values, 1.0).map_err(|error| self.wrong(error))?;
        let size = |record: u32| sizes.for_record(u64::from(record)).min(LARGEST_VALUE) as u32;
        let values: Vec<_> = (0..self.records).map(size).collect();
        let permutation =
            Permutation::new(u64::from(self.records), SEED).map_err(|error| self.wrong(error))?;
        let popularity = Permuted::new(self.popularity()?, permutation);
        let mut rng = generator::seeded(SEED);
        let requests = (0..requests).map(|_| {
            let record = popularity.sample(&mut rng) as u32;
            let operation = match rng.random::<f64>() {
                low if low < self.deletes => Operation::Delete,
                low if low < self.deletes + self.updates => Operation::Set,
                _ => Operation::Get,
            };
            Request::new(record, operation, &values)
        });
        Ok(Trace { name: self.name.clone(), requests: requests.collect(), values })
    }

    /// The Zipf distribution whose hottest keys get the share that they should.
    fn popularity(&self) -> Result<Zipfian, ExperimentError> {
        let zipfian =
            |theta| Zipfian::exact(u64::from(self.records), theta).map_err(|error| self.wrong(error));
        let hottest = (self.hottest * f64::from(self.records)) as u64;
        let (mut flat, mut steep) = (0.0, LARGEST_THETA);
        let reached = zipfian(steep)?.share_of_hottest(hottest);
        if !(self.hottest..=reached).contains(&self.accesses) {
            return Err(self.wrong("no Zipf distribution is so skewed"));
        }
        // Each step halves the distance: after these, it is less than a float tells.
        for _ in 0..40 {
            let middle = (flat + steep) / 2.0;
            if zipfian(middle)?.share_of_hottest(hottest) < self.accesses {
                flat = middle;
            } else {
                steep = middle;
            }
        }
        zipfian(steep)
    }
}

/// A recorded trace.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Recorded {
    /// Its name in the results.
    pub(super) name: String,
    /// Its file in the data folder.
    pub(super) file: String,
}

impl Recorded {
    /// Reads at most so many requests, of the generated trace in its place where the data is not; or says where nothing
    /// was found.
    pub(super) fn read(
        &self,
        most: usize,
    ) -> Result<Result<(Trace, Option<StandInOf>), DataError>, ExperimentError> {
        let (records, instead) = match recorded_or_generated(&self.file)? {
            Ok(found) => found,
            Err(absent) => return Ok(Err(absent)),
        };
        let (mut numbers, mut asked) = (HashMap::new(), Vec::new());
        'reading: for record in records {
            let record = record?;
            let next = numbers.len() as u32;
            let number = *numbers.entry(record.key).or_insert(next);
            let operation = match record.operation {
                read if read.is_read() => Operation::Get,
                CacheOperation::Delete => Operation::Delete,
                _ => Operation::Set,
            };
            for _ in 0..record.count {
                if asked.len() == most {
                    break 'reading;
                }
                asked.push((number, operation));
            }
        }
        let values = vec![UNKNOWN_SIZE; numbers.len()];
        let requests = asked.iter().map(|&(record, operation)| Request::new(record, operation, &values));
        Ok(Ok((Trace { name: self.name.clone(), requests: requests.collect(), values }, instead)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stand_in(hottest: f64, accesses: f64) -> StandIn {
        StandIn {
            name: "S stand-in".into(),
            records: 20_000,
            hottest,
            accesses,
            updates: 0.1,
            deletes: 0.2,
            values: "etc".into(),
        }
    }

    /// What was asked for comes out: of the skew that the paper prints for USR, APP and ETC, and of the operations.
    #[test]
    fn a_stand_in_has_the_printed_properties() {
        for (hottest, accesses) in [(0.20, 0.85), (0.10, 0.95), (0.05, 0.98)] {
            let trace = stand_in(hottest, accesses).draw(200_000).unwrap();
            let mut asked = vec![0; 20_000];
            trace.requests.iter().for_each(|request| asked[request.record as usize] += 1);
            asked.sort_unstable_by(|one, other| other.cmp(one));
            let hot: i32 = asked[..(20_000.0 * hottest) as usize].iter().sum();
            let share = f64::from(hot) / 200_000.0;
            // The hottest of a sample are hotter than the hottest of the distribution.
            assert!((accesses - 0.005..accesses + 0.05).contains(&share), "{share} for {accesses}");
            let deletes = trace.requests.iter().filter(|request| request.operation == Operation::Delete);
            assert!((38_500..41_500).contains(&deletes.count()));
        }
    }

    #[test]
    fn what_cannot_be_drawn_is_refused() {
        for (stand_in, reason) in [
            (StandIn { name: "USR".into(), ..stand_in(0.2, 0.85) }, "named one"),
            (stand_in(0.2, 0.1), "so skewed"),
            (stand_in(0.2, 1.5), "so skewed"),
            (StandIn { deletes: 0.95, ..stand_in(0.2, 0.85) }, "shares"),
            (StandIn { values: "many".into(), ..stand_in(0.2, 0.85) }, "many"),
            (StandIn { records: 0, ..stand_in(0.2, 0.85) }, "stand-in"),
        ] {
            let error = stand_in.draw(10).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
