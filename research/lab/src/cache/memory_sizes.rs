//! Kind `memory-sizes`: whether memory goes to whatever size is stored.
//!
//! ```text
//! freed:    fill a cache with items of one size; delete, flush or let expire all of them, or begin to overwrite them;
//!           store items of another size, 70 % of the limit counted in chunks: how many of these can be read?
//! changed:  fill a cache with items of one size; store as many bytes of another size as the limit has:
//!           how many of these can be read, of those that a fresh cache holds after the same?
//! ```
//!
//! No housekeeper runs: what is asked of the cache it does while it stores. Where nothing may be evicted, and old items
//! are overwritten that outnumber the new ones, only as many are stored before as fit beside these.

use cache::engine::{Cache, Config, Entry, Eviction, Expiry, StoreError, Verb};
use serde::Deserialize;

use crate::experiment::{ExperimentError, Session};

/// Share of the limit that a new live set takes.
const LIVE: f64 = 0.7;
/// What is filled with more than fits: so many times the limit.
const FILLED: f64 = 1.25;
/// Share of the limit that old items may still take beside the new ones, where nothing may be evicted.
const LEFT: f64 = 0.2;

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    /// Limits of the caches, in MiB.
    limits: Vec<usize>,
    /// Bytes of the values: from each to each other one.
    sizes: Vec<usize>,
    /// Caches that are filled side by side.
    threads: usize,
}

/// How the memory of the old items comes free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Delete,
    Flush,
    Expiry,
    Overwrite,
    /// Not at all: the sizes of the load change.
    Change,
}

/// One cell of the matrix.
#[derive(Debug, Clone, Copy)]
struct Case {
    limit: usize,
    from: usize,
    to: usize,
    way: Way,
    eviction: Eviction,
}

impl Case {
    fn configuration(&self) -> &'static str {
        match (self.way, self.eviction) {
            (Way::Delete, Eviction::ByPolicy) => "delete",
            (Way::Delete, Eviction::Never) => "delete, no evictions",
            (Way::Flush, Eviction::ByPolicy) => "flush_all",
            (Way::Flush, Eviction::Never) => "flush_all, no evictions",
            (Way::Expiry, Eviction::ByPolicy) => "expiry",
            (Way::Expiry, Eviction::Never) => "expiry, no evictions",
            (Way::Overwrite, Eviction::ByPolicy) => "overwrite",
            (Way::Overwrite, Eviction::Never) => "overwrite, no evictions",
            (Way::Change, _) => "live items, sizes change",
        }
    }
}

/// A cache that is filled with numbered items.
struct Subject {
    cache: Cache,
    session: cache::engine::Session,
}

impl Subject {
    fn new(limit: usize, eviction: Eviction) -> Result<Subject, ExperimentError> {
        let cache: Cache = Cache::new(Config { eviction, ..Config::with_limit(limit) })?;
        cache.set_time(100);
        Ok(Subject { session: cache.session(), cache })
    }

    fn set(&mut self, number: usize, value: &mut [u8], expiry: Expiry) -> Result<(), StoreError> {
        let key = (number as u64).to_be_bytes();
        if let Some(first) = value.first_mut() {
            *first = number as u8;
        }
        self.session.store(Verb::Set, Entry::new(&key).with_expiry(expiry), value).map(drop)
    }

    fn has(&mut self, number: usize, len: usize) -> bool {
        let pinned = self.session.pin();
        let hit = pinned.get(&(number as u64).to_be_bytes());
        hit.is_some_and(|hit| {
            hit.value_len() == len && hit.pieces().next().is_none_or(|piece| piece[0] == number as u8)
        })
    }
}

/// Bytes of the chunks that an item with a value of `len` bytes lies in.
fn footprint(len: usize) -> Result<usize, ExperimentError> {
    let mut subject = Subject::new(8 << 20, Eviction::ByPolicy)?;
    subject.set(0, &mut vec![0; len], Expiry::Never).map_err(failed)?;
    Ok(subject.cache.classes().iter().map(|(_, class)| class.used_chunks * class.chunk_size).sum())
}

fn failed(error: StoreError) -> ExperimentError {
    ExperimentError::wrong("a store", error.to_string())
}

/// Percent of the new live set that can be read.
fn refill(case: Case) -> Result<f64, ExperimentError> {
    let Case { limit, from, to, way, eviction } = case;
    let mut subject = Subject::new(limit, eviction)?;
    let (old_bytes, new_bytes) = (footprint(from)?, footprint(to)?);
    let share = |of: f64, bytes: usize| (limit as f64 * of) as usize / bytes;
    let new = share(LIVE, new_bytes);
    let wanted = match (way, eviction) {
        (Way::Overwrite, Eviction::Never) => share(LIVE, old_bytes).min(new + share(LEFT, old_bytes)),
        _ => share(FILLED, old_bytes),
    };
    let (mut old, mut value) = (0, vec![1; from]);
    while old < wanted {
        match subject.set(old, &mut value, Expiry::At(200)) {
            Ok(()) => old += 1,
            Err(StoreError::OutOfMemory) if eviction == Eviction::Never => break,
            Err(error) => return Err(failed(error)),
        }
    }
    match way {
        Way::Delete => (0..old).for_each(|number| {
            subject.session.delete(&(number as u64).to_be_bytes());
        }),
        Way::Flush => subject.cache.flush(),
        Way::Expiry => subject.cache.set_time(200),
        Way::Overwrite | Way::Change => {}
    }
    // The newest of the old items are overwritten first; and then there are others.
    let name = |item: usize| if way == Way::Overwrite && item < old { old - 1 - item } else { old + item };
    value.resize(to, 1);
    for item in 0..new {
        // A refusal is an item that is not there.
        let _ = subject.set(name(item), &mut value, Expiry::Never);
    }
    let found = (0..new).filter(|&item| subject.has(name(item), to)).count();
    Ok(100.0 * found as f64 / new as f64)
}

/// Of as many items as have the limit's bytes of keys and values, how many are held by a cache that was full before.
fn held(limit: usize, from: Option<usize>, to: usize) -> Result<usize, ExperimentError> {
    let mut subject = Subject::new(limit, Eviction::ByPolicy)?;
    let mut old = 0;
    if let Some(from) = from {
        old = limit * 3 / 2 / from;
        let mut value = vec![1; from];
        for number in 0..old {
            subject.set(number, &mut value, Expiry::Never).map_err(failed)?;
        }
    }
    let new = limit / (to + size_of::<u64>());
    let mut value = vec![1; to];
    for item in 0..new {
        subject.set(old + item, &mut value, Expiry::Never).map_err(failed)?;
    }
    Ok((0..new).filter(|&item| subject.has(old + item, to)).count())
}

fn measure(case: Case) -> Result<f64, ExperimentError> {
    if case.way != Way::Change {
        return refill(case);
    }
    let fresh = held(case.limit, None, case.to)?;
    Ok(100.0 * held(case.limit, Some(case.from), case.to)? as f64 / fresh as f64)
}

/// All cells, those of the smallest caches first.
fn cases(parameters: &Parameters) -> Vec<Case> {
    let ways = [Way::Delete, Way::Flush, Way::Expiry, Way::Overwrite, Way::Change];
    let mut cases = Vec::new();
    for limit in parameters.limits.iter().map(|limit| limit << 20) {
        for (&from, &to) in
            parameters.sizes.iter().flat_map(|from| parameters.sizes.iter().map(move |to| (from, to)))
        {
            for (way, eviction) in ways
                .into_iter()
                .flat_map(|way| [Eviction::ByPolicy, Eviction::Never].map(|eviction| (way, eviction)))
            {
                if from != to && (way, eviction) != (Way::Change, Eviction::Never) {
                    cases.push(Case { limit, from, to, way, eviction });
                }
            }
        }
    }
    cases
}

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let cases = cases(parameters);
    session.announce(session.runs() * cases.len());
    for _ in 0..session.runs() {
        session.begin("the matrix");
        let measured = session.on_all_cores(parameters.threads, &cases, |&case| measure(case))?;
        for (case, percent) in cases.iter().zip(measured) {
            let point = format!("-m {}, {} to {} B", case.limit >> 20, case.from, case.to);
            let metric =
                if case.way == Way::Change { "held of a fresh cache's" } else { "new items readable" };
            session.record(case.configuration(), &point, metric, "%", percent);
        }
    }
    Ok(())
}
