//! Kind `cache-policies`: eviction policies on recorded requests.
//!
//! A key is looked up and, where it is not there, stored. Values have one size, so that what is compared is who is
//! evicted, or those of a published distribution, each key its own. The policies of the cache under test run in it, in
//! caches of the same limit. Those of [`eviction`](super::eviction) are simulated, with as many bytes of keys and
//! values as the first policy's cache held at the end, so that layout and index count for nobody. (A cache keeps a few
//! chunks free ahead of their use: that is its price for never making anyone wait, and it is paid here. Values of many
//! sizes lie in slab classes, each with its own hand, which a simulated policy does not have.)
//!
//! Then hits are timed ([`hit_time`](super::hit_time)): in each run in another part of the trace's end.

use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Range;

use cache::engine::{
    Cache, Chunks, Clock, Config, CountingClock, Entry, Look, Policy, Position, Recency, Verb,
};
use serde::Deserialize;
use workload::cachelib::Workload;
use workload::sizes::Sizes;
use workload::stand_in::recorded_or_generated;
use workload::trace::Trace;

use super::cuckoo_clock::limit_for;
use super::eviction::{Answer, Eviction, Lru, S3Fifo, SegmentedLru, Sieve, WTinyLfu};
use super::hit_time::{Full, Note, Part};
use crate::experiment::{ExperimentError, Session};
use crate::index::Key;
use crate::measure::{cores, on_core, turns};

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
    /// Bytes of a value, where nothing else is said.
    value: usize,
    /// Requests in which hits are timed in each run; of a short trace, as many as it has for each.
    timed: usize,
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
    /// Bytes of its values.
    value: Option<usize>,
    /// Or where its values get their sizes.
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

thread_local! {
    /// Whether a hit has written.
    static WROTE: Cell<bool> = const { Cell::new(false) };
}

/// A policy that tells which hits it writes for.
#[derive(Debug, Default)]
struct Telling<P>(P);

impl<P: Policy> Policy for Telling<P> {
    const NAME: &'static str = P::NAME;
    const NEWCOMER: Recency = P::NEWCOMER;

    fn hit(recency: Recency) -> Recency {
        let after = P::hit(recency);
        WROTE.set(WROTE.get() || after != recency);
        after
    }

    fn victim(&mut self, chunks: &Chunks<'_>) -> Option<Position> {
        self.0.victim(chunks)
    }

    fn came(&mut self, page: usize) {
        self.0.came(page);
    }

    fn went(&mut self, page: usize) {
        self.0.went(page);
    }

    const WANTS_ENTRIES: bool = P::WANTS_ENTRIES;

    fn entered(&mut self, position: Position) {
        self.0.entered(position);
    }
}

/// What is asked for.
struct Asked {
    /// Keys, numbered as they first occur.
    requests: Vec<u32>,
    /// Bytes of key and value, for each key.
    sizes: Vec<u32>,
}

impl Asked {
    /// The bytes of all keys and values.
    fn footprint(&self) -> u64 {
        self.sizes.iter().map(|&size| u64::from(size)).sum()
    }

    /// The requests of the part that is timed in a run.
    fn timed(&self, most: usize, run: usize, runs: usize) -> Range<usize> {
        let long = most.min(self.requests.len() / runs);
        let end = self.requests.len() - long * (runs - 1 - run);
        end - long..end
    }
}

/// What a replay came to.
struct Replayed {
    answers: Vec<Answer>,
    items: usize,
    /// Keys and values that were there at the end; of the cache under test only.
    bytes: u64,
}

type Simulate = for<'s> fn(&'s [u32], u64) -> Box<dyn Eviction + 's>;
type Replay = fn(&Asked, usize) -> Result<Replayed, ExperimentError>;

/// Where a policy runs.
enum Home {
    /// In the cache under test.
    Cache(Replay),
    /// Nowhere: it is simulated. A hit writes the item's mark.
    Marks(Simulate),
    /// The same, and a hit moves the key in a list.
    Lists(Simulate),
}

/// The first one's cache says how many bytes the others have.
const POLICIES: [(&str, Home); 10] = [
    (Clock::NAME, Home::Cache(replay::<Clock>)),
    (CountingClock::NAME, Home::Cache(replay::<CountingClock>)),
    (ClockThatSparesNewcomers::NAME, Home::Cache(replay::<ClockThatSparesNewcomers>)),
    ("strict LRU", Home::Lists(|sizes, bytes| Box::new(Lru::new(sizes, bytes)))),
    ("memcached's lists", Home::Lists(|sizes, bytes| Box::new(SegmentedLru::new(sizes, bytes)))),
    ("SIEVE", Home::Marks(|sizes, bytes| Box::new(Sieve::new(sizes, bytes)))),
    ("S3-FIFO", Home::Marks(|sizes, bytes| Box::new(S3Fifo::new(sizes, bytes)))),
    (
        "S3-FIFO, an eighth of the ghosts",
        Home::Marks(|sizes, bytes| Box::new(S3Fifo::remembering(sizes, bytes, bytes / 9))),
    ),
    ("S3-FIFO, no ghosts", Home::Marks(|sizes, bytes| Box::new(S3Fifo::remembering(sizes, bytes, 0)))),
    ("W-TinyLFU", Home::Lists(|sizes, bytes| Box::new(WTinyLfu::new(sizes, bytes)))),
];

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let core = *cores()?.first().expect("a program runs on a core");
    on_core(core, || of_all(parameters, session))?
}

fn of_all(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    for traced in &parameters.traces {
        session.announce(traced.one_in.len() * POLICIES.len() * (1 + session.runs()));
        let records = match recorded_or_generated(&traced.file)? {
            Ok((records, instead)) => {
                if let Some(stand_in) = instead {
                    session.skip(&traced.name, stand_in.to_string());
                }
                records
            }
            Err(absent) => {
                POLICIES.iter().for_each(|(name, _)| session.skip(name, absent.to_string()));
                continue;
            }
        };
        let asked = read(records, parameters.requests, &values(traced, parameters.value)?)?;
        let mut full = Full::of(&asked.sizes)?;
        for one_in in &traced.one_in {
            let point = format!("{}, 1/{one_in}", traced.name);
            compare(&asked, &point, *one_in, parameters.timed, &mut full, session)?;
        }
    }
    Ok(())
}

/// All policies at one point.
fn compare(
    asked: &Asked,
    point: &str,
    one_in: usize,
    timed: usize,
    full: &mut Full<'_>,
    session: &mut Session,
) -> Result<(), ExperimentError> {
    let mean = asked.footprint() as usize / asked.sizes.len().max(1);
    let limit = limit_for(asked.footprint() as usize / one_in, KEY, mean - KEY)?;
    let mut bytes = None;
    let mut answers = Vec::new();
    for (name, home) in &POLICIES {
        session.begin(format!("{name}, {point}"));
        let replayed = match home {
            Home::Cache(replay) => replay(asked, limit)?,
            Home::Marks(make) | Home::Lists(make) => {
                let mut cache = make(&asked.sizes, bytes.unwrap_or(0));
                let answers = asked.requests.iter().map(|&key| cache.request(key)).collect();
                Replayed { answers, items: cache.items(), bytes: 0 }
            }
        };
        bytes.get_or_insert(replayed.bytes);
        record(session, name, point, asked, &replayed);
        answers.push(replayed.answers);
        session.end();
    }
    let start = asked.timed(timed, 0, session.runs()).start;
    let mut lists: Vec<_> = POLICIES
        .iter()
        .map(|(_, home)| {
            let Home::Lists(make) = home else { return None };
            let mut lists = make(&asked.sizes, bytes.unwrap_or(0));
            for &key in &asked.requests[..start] {
                lists.request(key);
            }
            Some(lists)
        })
        .collect();
    for run in 0..session.runs() {
        let range = asked.timed(timed, run, session.runs());
        for policy in turns(POLICIES.len(), run) {
            let name = POLICIES[policy].0;
            session.begin(format!("{name}, {point}, run {}", run + 1));
            let part =
                Part { requests: &asked.requests[range.clone()], answers: &answers[policy][range.clone()] };
            // Once to warm up, and the note before and after.
            full.time(&part, Note::Nothing)?;
            let note = match &mut lists[policy] {
                Some(lists) => Note::Lists(&mut **lists),
                None => Note::Mark,
            };
            let with = full.time(&part, note)?;
            let without = full.time(&part, Note::Nothing)?;
            session.record(name, point, "a hit", "ns", with);
            session.record(name, point, "its note", "ns", with - without);
            session.end();
        }
    }
    Ok(())
}

/// What a policy's replay came to.
fn record(session: &mut Session, name: &str, point: &str, asked: &Asked, replayed: &Replayed) {
    let all = || asked.requests.iter().zip(&replayed.answers);
    let hits = || all().filter(|&(_, &answer)| answer != Answer::Missed);
    let weight = |(key, _): (&u32, &Answer)| u64::from(asked.sizes[*key as usize]);
    let percent = |part: u64, of: u64| 100.0 * part as f64 / of.max(1) as f64;
    let hit = hits().count() as u64;
    let wrote = hits().filter(|&(_, &answer)| answer == Answer::Noted).count() as u64;
    session.record(name, point, "hit ratio", "%", percent(hit, asked.requests.len() as u64));
    session.record(
        name,
        point,
        "byte hit ratio",
        "%",
        percent(hits().map(weight).sum(), all().map(weight).sum()),
    );
    session.record(name, point, "hits that write", "%", percent(wrote, hit));
    session.record(name, point, "items", "", replayed.items as f64);
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
    let otherwise = traced.value.unwrap_or(otherwise);
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
    let cache = Cache::<Telling<P>>::new(Config::with_limit(limit))?;
    let mut session = cache.session();
    let value = vec![1; asked.sizes.iter().copied().max().unwrap_or(0) as usize];
    let mut answers = Vec::with_capacity(asked.requests.len());
    for &number in &asked.requests {
        let key = Key::of(u64::from(number)).0;
        WROTE.set(false);
        let is_there = session.pin().get(&key).is_some();
        answers.push(match (is_there, WROTE.get()) {
            (false, _) => Answer::Missed,
            (true, false) => Answer::Hit,
            (true, true) => Answer::Noted,
        });
        if !is_there {
            let value = &value[..asked.sizes[number as usize] as usize - KEY];
            if let Err(error) = session.store(Verb::Set, Entry::new(&key), value) {
                return Err(ExperimentError::wrong(P::NAME, error.to_string()));
            }
        }
    }
    let pinned = session.pin();
    let held = (0u64..).zip(&asked.sizes).filter(|&(number, _)| pinned.peek(&Key::of(number).0).is_some());
    Ok(Replayed { answers, items: cache.len(), bytes: held.map(|(_, &size)| u64::from(size)).sum() })
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
        for (name, home) in POLICIES {
            let Home::Cache(replay) = home else { continue };
            let Replayed { answers, items, bytes } = replay(&asked, limit).unwrap();
            let found = answers.iter().filter(|&&answer| answer != Answer::Missed).count();
            let all = asked.sizes.iter().map(|&size| u64::from(size)).sum();
            assert_eq!((found, items, bytes), (4500, 500, all), "{name}");
        }
    }

    #[test]
    fn a_key_keeps_its_published_size() {
        let sizes = Some(Published { workload: "kvcache_reg".into(), times: 8 });
        let traced =
            Traced { file: String::new(), name: String::new(), one_in: Vec::new(), value: None, sizes };
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
