//! Kind `cache-policies`: eviction policies on recorded requests.
//!
//! A key is looked up and, where it is not there, stored, with values of one size, so that what is compared is who is
//! evicted. Each policy of the cache under test runs in a cache of the same limit; strict LRU, the baseline's, gets as
//! many items as the first policy's cache held at the end. (A cache keeps a few chunks free ahead of their use: that is
//! its price for never making anyone wait, and it is paid here.)

use std::collections::HashMap;

use cache::engine::{
    Cache, Chunks, Clock, Config, CountingClock, Entry, Look, Policy, Position, Recency, Verb,
};
use pages::PageKind;
use serde::Deserialize;
use workload::generated::recorded_or_generated;
use workload::trace::Trace;

use super::chaining_lru::{self, ChainingLru};
use super::contestant::{Contestant, Value};
use super::cuckoo_clock::limit_for;
use crate::experiment::{ExperimentError, Session};
use crate::index::Key;

/// Bytes of a key.
const KEY: usize = size_of::<Key>();

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    /// The traces.
    traces: Vec<Traced>,
    /// Requests of a trace that are replayed, at the most.
    requests: usize,
    /// Bytes of a value.
    value: usize,
}

/// A trace, and the sizes it is replayed at.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Traced {
    /// Its file in the data folder.
    file: String,
    /// The name of its points in the results.
    name: String,
    /// Sizes of the cache: one item in so many of the trace's keys.
    one_in: Vec<usize>,
}

/// CLOCK with the other choice for newcomers: they are spared once.
#[derive(Debug, Default)]
struct ClockThatSparesNewcomers {
    hand: Position,
}

impl Policy for ClockThatSparesNewcomers {
    const NAME: &'static str = "clock, newcomers spared";
    const NEWCOMER: Recency = Recency::new(1);

    fn hit(_recency: Recency) -> Recency {
        Recency::new(1)
    }

    fn victim(&mut self, chunks: &Chunks<'_>) -> Option<Position> {
        // Two turns: what is spared in the first goes in the second.
        for _ in 0..2 * chunks.len() {
            let here = self.hand;
            self.hand = chunks.after(here);
            match chunks.look(here) {
                Look::Vacant => {}
                Look::Dead | Look::Live(Recency::NONE) => return Some(here),
                Look::Live(_) => chunks.set_recency(here, Recency::NONE),
            }
        }
        None
    }
}

/// What a replay came to.
struct Replayed {
    hits: usize,
    items: usize,
}

/// The name of the baseline in the results.
const STRICT_LRU: &str = "strict LRU";

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let names = [Clock::NAME, CountingClock::NAME, ClockThatSparesNewcomers::NAME, STRICT_LRU];
    for traced in &parameters.traces {
        session.announce(traced.one_in.len() * names.len());
        let records = match recorded_or_generated(&traced.file)? {
            Ok((records, instead)) => {
                if let Some(stand_in) = instead {
                    session.skip(&traced.name, stand_in.to_string());
                }
                records
            }
            Err(absent) => {
                names.iter().for_each(|name| session.skip(name, absent.to_string()));
                continue;
            }
        };
        let trace = read(records, parameters.requests)?;
        let keys = trace.iter().max().map_or(0, |&last| last as usize + 1);
        for one_in in &traced.one_in {
            let point = format!("{}, 1/{one_in}", traced.name);
            let space = keys / one_in * (KEY + parameters.value);
            let limit = limit_for(space, KEY, parameters.value)?;
            let mut measured: Vec<Replayed> = Vec::new();
            for (at, name) in names.into_iter().enumerate() {
                session.begin(format!("{name}, {point}"));
                measured.push(match at {
                    0 => replay::<Clock>(&trace, limit, parameters.value)?,
                    1 => replay::<CountingClock>(&trace, limit, parameters.value)?,
                    2 => replay::<ClockThatSparesNewcomers>(&trace, limit, parameters.value)?,
                    _ => replay_strictly(&trace, measured[0].items)?,
                });
                session.end();
            }
            for (name, Replayed { hits, items }) in names.into_iter().zip(measured) {
                let ratio = 100.0 * hits as f64 / trace.len() as f64;
                session.record(name, &point, "hit ratio", "%", ratio);
                session.record(name, &point, "items", "", items as f64);
            }
        }
    }
    Ok(())
}

/// The keys of a trace's requests, numbered as they first occur.
fn read(records: Trace, most: usize) -> Result<Vec<u64>, ExperimentError> {
    let mut numbers = HashMap::new();
    let mut requests = Vec::new();
    for record in records {
        let next = numbers.len() as u64;
        requests.push(*numbers.entry(record?.key).or_insert(next));
        if requests.len() == most {
            break;
        }
    }
    Ok(requests)
}

fn replay<P: Policy>(trace: &[u64], limit: usize, value: usize) -> Result<Replayed, ExperimentError> {
    let cache = Cache::<P>::new(Config::with_limit(limit))?;
    let mut session = cache.session();
    let mut hits = 0;
    let value = vec![1; value];
    for &record in trace {
        let key = Key::of(record).0;
        if session.pin().get(&key).is_some() {
            hits += 1;
        } else if let Err(error) = session.store(Verb::Set, Entry::new(&key), &value) {
            return Err(ExperimentError::wrong(P::NAME, error.to_string()));
        }
    }
    Ok(Replayed { hits, items: cache.len() })
}

fn replay_strictly(trace: &[u64], items: usize) -> Result<Replayed, ExperimentError> {
    let cache = ChainingLru::new(items, chaining_lru::LAYOUT.bytes(), PageKind::Base)?;
    let mut visitor = cache.enter();
    let mut hits = 0;
    for &record in trace {
        let key = Key::of(record);
        if visitor.get(&key).is_some() {
            hits += 1;
        } else {
            visitor.set(&key, &Value::of(&key));
        }
    }
    Ok(Replayed { hits, items: cache.holding().items })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loop over more keys than there is room for never hits under LRU; over fewer, it always does but for the first
    /// time.
    #[test]
    fn strict_lru_loses_every_loop_that_it_cannot_hold() {
        let rounds = |keys: u64| (0..10).flat_map(move |_| 0..keys).collect::<Vec<_>>();
        assert_eq!(replay_strictly(&rounds(101), 100).unwrap().hits, 0);
        assert_eq!(replay_strictly(&rounds(100), 100).unwrap().hits, 900);
    }

    #[test]
    fn what_fits_is_never_evicted() {
        let trace: Vec<_> = (0..10).flat_map(|_| 0..500).collect();
        let limit = limit_for(1 << 20, KEY, 1000).unwrap();
        for replayed in [
            replay::<Clock>(&trace, limit, 1000).unwrap(),
            replay::<CountingClock>(&trace, limit, 1000).unwrap(),
            replay::<ClockThatSparesNewcomers>(&trace, limit, 1000).unwrap(),
        ] {
            assert_eq!((replayed.hits, replayed.items), (4500, 500));
        }
    }
}
