//! Kind `cache-policies`: eviction policies on recorded requests.
//!
//! A key is looked up and, where it is not there, stored. Values have one size, so that what is compared is who is
//! evicted, or those of a published distribution, each key its own. The policies of the cache under test run in it, in
//! caches of the same limit. Those of [`eviction`](super::eviction) are simulated, with as many bytes of keys and
//! values as the first policy's cache held at the end, so that layout and index count for nobody. (A cache keeps a few
//! chunks free ahead of their use: that is its price for never making anyone wait, and it is paid here. Values of many
//! sizes lie in slab classes, each with its own hand, which a simulated policy does not have.)

use std::collections::HashMap;

use cache::engine::{
    Cache, Chunks, Clock, Config, CountingClock, Entry, Look, Policy, Position, Recency, Verb,
};
use serde::Deserialize;
use workload::cachelib::Workload;
use workload::sizes::Sizes;
use workload::stand_in::recorded_or_generated;
use workload::trace::Trace;

use super::cuckoo_clock::limit_for;
use super::eviction::{Eviction, Lru, S3Fifo, Sieve, WTinyLfu};
use crate::experiment::{ExperimentError, Session};
use crate::index::Key;

/// Published sizes are cut to so many bytes: a small cache takes no item as large as the largest of them.
const LARGEST: u64 = 100_000;
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
    /// Bytes of a value, where the trace has no sizes.
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
    /// Where its values get their sizes.
    sizes: Option<Published>,
}

/// Sizes of values as published.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Published {
    /// The workload, such as `kvcache_reg`.
    workload: String,
    /// Times the published size: a cache has many pages then, as a large one has.
    times: u64,
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

/// What is asked for.
struct Asked {
    /// Keys, numbered as they first occur.
    requests: Vec<u32>,
    /// Bytes of key and value, for each key.
    sizes: Vec<u32>,
}

/// What a replay came to.
struct Replayed {
    hits: Vec<bool>,
    items: usize,
    /// Keys and values that were there at the end; of the cache under test only.
    bytes: u64,
}

type Simulated = for<'s> fn(&'s [u32], u64) -> Box<dyn Eviction + 's>;

const SIMULATED: [(&str, Simulated); 4] = [
    ("strict LRU", |sizes, bytes| Box::new(Lru::new(sizes, bytes))),
    ("SIEVE", |sizes, bytes| Box::new(Sieve::new(sizes, bytes))),
    ("S3-FIFO", |sizes, bytes| Box::new(S3Fifo::new(sizes, bytes))),
    ("W-TinyLFU", |sizes, bytes| Box::new(WTinyLfu::new(sizes, bytes))),
];

type Replay = fn(&Asked, usize) -> Result<Replayed, ExperimentError>;

const OWN: [(&str, Replay); 3] = [
    (Clock::NAME, replay::<Clock>),
    (CountingClock::NAME, replay::<CountingClock>),
    (ClockThatSparesNewcomers::NAME, replay::<ClockThatSparesNewcomers>),
];

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let names: Vec<_> =
        OWN.map(|(name, _)| name).into_iter().chain(SIMULATED.map(|(name, _)| name)).collect();
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
        let asked = read(records, parameters.requests, &values(traced, parameters.value)?)?;
        let footprint: u64 = asked.sizes.iter().map(|&size| u64::from(size)).sum();
        let mean = footprint as usize / asked.sizes.len().max(1);
        for one_in in &traced.one_in {
            let point = format!("{}, 1/{one_in}", traced.name);
            let limit = limit_for(footprint as usize / one_in, KEY, mean - KEY)?;
            let record = |name: &str, session: &mut Session, replayed: &Replayed| {
                let weight = |&(key, _): &(&u32, &bool)| u64::from(asked.sizes[*key as usize]);
                let all = || asked.requests.iter().zip(&replayed.hits);
                let hit = || all().filter(|&(_, &hit)| hit);
                let ratio = 100.0 * hit().count() as f64 / asked.requests.len() as f64;
                let bytes = hit().map(|pair| weight(&pair)).sum::<u64>() as f64;
                let bytes = 100.0 * bytes / all().map(|pair| weight(&pair)).sum::<u64>() as f64;
                session.record(name, &point, "hit ratio", "%", ratio);
                session.record(name, &point, "byte hit ratio", "%", bytes);
                session.record(name, &point, "items", "", replayed.items as f64);
            };
            let mut held = None;
            for (name, replay) in OWN {
                session.begin(format!("{name}, {point}"));
                let replayed = replay(&asked, limit)?;
                record(name, session, &replayed);
                held.get_or_insert(replayed.bytes);
                session.end();
            }
            for (name, make) in SIMULATED {
                session.begin(format!("{name}, {point}"));
                let mut cache = make(&asked.sizes, held.unwrap_or(0));
                let hits = asked.requests.iter().map(|&key| cache.request(key)).collect();
                record(name, session, &Replayed { hits, items: cache.items(), bytes: 0 });
                session.end();
            }
        }
    }
    Ok(())
}

/// The bytes of the values of a trace, by key.
fn values(traced: &Traced, otherwise: usize) -> Result<impl Fn(&Key) -> u64 + use<>, ExperimentError> {
    let published = match &traced.sizes {
        Some(Published { workload, times }) => {
            let Some(known) = Workload::published(workload) else {
                return Err(ExperimentError::Machine(format!("{workload}: no workload of this name")));
            };
            Some((known, *times))
        }
        None => None,
    };
    Ok(move |key: &Key| match &published {
        Some((workload, times)) => (workload.value_sizes().for_key(&key.0) * times).min(LARGEST),
        None => otherwise as u64,
    })
}

/// The requests of a trace.
fn read(records: Trace, most: usize, value: &dyn Fn(&Key) -> u64) -> Result<Asked, ExperimentError> {
    let mut numbers = HashMap::new();
    let mut requests = Vec::new();
    for record in records.take(most) {
        let next = numbers.len() as u32;
        requests.push(*numbers.entry(record?.key).or_insert(next));
    }
    let sizes = (0..numbers.len() as u64).map(|number| KEY as u32 + value(&Key::of(number)) as u32).collect();
    Ok(Asked { requests, sizes })
}

fn replay<P: Policy>(asked: &Asked, limit: usize) -> Result<Replayed, ExperimentError> {
    let cache = Cache::<P>::new(Config::with_limit(limit))?;
    let mut session = cache.session();
    let value = vec![1; asked.sizes.iter().copied().max().unwrap_or(0) as usize];
    let mut hits = Vec::with_capacity(asked.requests.len());
    for &number in &asked.requests {
        let key = Key::of(u64::from(number)).0;
        let hit = session.pin().get(&key).is_some();
        hits.push(hit);
        if !hit {
            let value = &value[..asked.sizes[number as usize] as usize - KEY];
            if let Err(error) = session.store(Verb::Set, Entry::new(&key), value) {
                return Err(ExperimentError::wrong(P::NAME, error.to_string()));
            }
        }
    }
    let pinned = session.pin();
    let held = (0u64..).zip(&asked.sizes).filter(|&(number, _)| pinned.peek(&Key::of(number).0).is_some());
    Ok(Replayed { hits, items: cache.len(), bytes: held.map(|(_, &size)| u64::from(size)).sum() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_never_evicted() {
        let asked = Asked {
            requests: (0..10).flat_map(|_| 0..500).collect(),
            sizes: (0..500).map(|key| 900 + key % 200).collect(),
        };
        let limit = limit_for(2 << 20, KEY, 1000).unwrap();
        for (name, replay) in OWN {
            let Replayed { hits, items, bytes } = replay(&asked, limit).unwrap();
            let found = hits.iter().filter(|&&hit| hit).count();
            let all = asked.sizes.iter().map(|&size| u64::from(size)).sum();
            assert_eq!((found, items, bytes), (4500, 500, all), "{name}");
        }
    }

    #[test]
    fn a_key_keeps_its_published_size() {
        let sizes = Some(Published { workload: "kvcache_reg".into(), times: 8 });
        let traced = Traced { file: String::new(), name: String::new(), one_in: Vec::new(), sizes };
        let value = values(&traced, 1).unwrap();
        let drawn: Vec<_> = (0..1000).map(|number| value(&Key::of(number))).collect();
        assert_eq!(drawn, (0..1000).map(|number| value(&Key::of(number))).collect::<Vec<_>>());
        let mean = drawn.iter().sum::<u64>() as f64 / 8000.0;
        let published = Workload::published("kvcache_reg").unwrap().value_sizes().mean();
        // What is cut is missing.
        assert!((0.5..1.25).contains(&(mean / published)), "{mean}, not {published}");
        assert!(drawn.iter().all(|size| size % 8 == 0));
    }
}
