//! Kind `cache-throughput`: how many requests a second, by cache, mix and number of threads (the paper's Figure 8).
//!
//! All caches are made and filled first, and then take turns as tables do in `index-throughput`. Filled means either
//! that every record is in it, so that no get misses, or that it is full of the hottest records, and warmed by half as
//! many requests as it has items: about what it would hold in the long run, without the hundreds of millions of
//! requests that the workload itself would take to fill it. Requests are drawn before the clock starts.

use serde::Deserialize;
use workload::popularity::{Permutation, Zipfian};

use super::choice::CacheChoice;
use super::contestant::{Contestant, Request, Tally, Value};
use super::requests::{popularity, streams};
use crate::experiment::{ExperimentError, Session, rate, warmed};
use crate::index::Key;
use crate::measure::name_threads;
use crate::subject::Call;

/// Requests drawn at once where time is not taken.
const BLOCK: usize = 1 << 14;

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    /// The space for items, in bytes.
    bytes: usize,
    /// Records that are asked for.
    records: u64,
    /// How the caches are filled.
    fill: Fill,
    /// The caches.
    caches: Vec<CacheChoice>,
    /// The mixes.
    mixes: Vec<Mix>,
    /// Numbers of threads.
    threads: Vec<usize>,
    /// Requests of one thread in one timed part.
    requests: usize,
}

/// What is in a cache when the clock starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Fill {
    /// Every record.
    AllRecords,
    /// The hottest ones, as many as there is room for.
    HottestRecords,
}

/// A mix of requests; what is left to a hundred are gets, each followed by a set where it misses.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mix {
    /// The name of the metric in the results.
    name: String,
    /// Sets in a hundred requests.
    sets: u32,
}

/// A cache that takes part.
struct Entrant<'p> {
    choice: &'p CacheChoice,
    cache: Box<dyn Contestant>,
}

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let threads = session.threads(&parameters.threads)?;
    let parts = session.runs() * parameters.mixes.len() * threads.len();
    session.announce(parameters.caches.len() * (1 + parts));
    let popularity = popularity(parameters.records)?;
    let mut entrants = Vec::new();
    for choice in &parameters.caches {
        session.begin(format!("filling {}", choice.name));
        let entrant = Entrant { choice, cache: choice.cache.make(parameters.bytes)? };
        match parameters.fill {
            Fill::AllRecords => fill_with_all(&entrant, parameters.records)?,
            Fill::HottestRecords => fill_with_the_hottest(&entrant, parameters, &popularity)?,
        }
        let holding = entrant.cache.holding();
        let items = holding.items as f64;
        session.record(&choice.name, "", "items stored", "M", items / 1e6);
        session.record(&choice.name, "", "index per item", "B", holding.index as f64 / items);
        if entrant.cache.has_evicted() {
            let space = parameters.bytes as f64 / items;
            session.record(&choice.name, "", "cache space per item", "B", space);
        }
        session.record_pages(&choice.name, holding.pages);
        entrants.push(entrant);
        session.end();
    }
    let mixes = parameters.mixes.iter().enumerate();
    let points: Vec<_> = mixes.flat_map(|mix| threads.iter().map(move |&threads| (mix, threads))).collect();
    session.take_turns(entrants.len(), &points, |session, entrant, &((number, mix), threads), run| {
        let entrant = &entrants[entrant];
        let (name, point) = (&entrant.choice.name, name_threads(threads));
        session.begin(format!("{name}: {}, {point}", mix.name));
        // The same requests for all caches, other ones in each run.
        let seed = 1 + (run * parameters.mixes.len() + number) as u64;
        let (rate, tally) = measure(parameters, entrant, &popularity, mix, threads, seed)?;
        session.record(name, &point, mix.name.clone(), "M requests/s", rate / 1e6);
        session.record(name, &point, format!("{}: gets that miss", mix.name), "%", tally.miss_ratio());
        Ok(())
    })
}

/// Puts every record in.
fn fill_with_all(entrant: &Entrant<'_>, records: u64) -> Result<(), ExperimentError> {
    set_all(entrant, records, Until::AllAreIn)?;
    if entrant.cache.has_evicted() {
        return Err(ExperimentError::Machine(format!(
            "{records} records do not fit {}: ask for fewer, or a larger cache",
            entrant.choice.name
        )));
    }
    Ok(())
}

/// Fills the cache as full as it gets, first with whatever there is room for, to learn how much that is, and then with
/// the hottest of so many records; and lets the workload, its first mix, warm it.
fn fill_with_the_hottest(
    entrant: &Entrant<'_>,
    parameters: &Parameters,
    popularity: &Zipfian,
) -> Result<(), ExperimentError> {
    set_all(entrant, parameters.records, Until::Full)?;
    if !entrant.cache.has_evicted() {
        return Err(ExperimentError::Machine(format!(
            "{} is never full: ask for more records, or a smaller cache",
            entrant.choice.name
        )));
    }
    let room = entrant.cache.holding().items;
    set_all(entrant, room as u64, Until::AllAreIn)?;
    let sets = parameters.mixes.first().map_or(0, |mix| mix.sets);
    let mut stream = streams(popularity, sets, 0).next().expect("streams do not end");
    let mut visitor = entrant.cache.enter();
    let mut requests = Vec::new();
    for start in (0..room / 2).step_by(BLOCK) {
        stream.draw(BLOCK.min(room / 2 - start), &mut requests);
        entrant.check(visitor.perform(&requests))?;
    }
    Ok(())
}

/// When to stop putting records in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    AllAreIn,
    /// Or none is left.
    Full,
}

/// Puts the `hottest` records in, in an order that has nothing to do with how often they are asked for.
fn set_all(entrant: &Entrant<'_>, hottest: u64, until: Until) -> Result<(), ExperimentError> {
    let order = Permutation::new(hottest, 1)?;
    let mut visitor = entrant.cache.enter();
    for at in 0..hottest {
        let key = Key::of(order.record(at));
        if !visitor.set(&key, &Value::of(&key)) {
            return Err(entrant.wrong(format!("it refused a set after {at}")));
        }
        if until == Until::Full && at.is_multiple_of(BLOCK as u64) && entrant.cache.has_evicted() {
            break;
        }
    }
    Ok(())
}

impl Entrant<'_> {
    fn wrong(&self, found: String) -> ExperimentError {
        ExperimentError::wrong(&self.choice.name, found)
    }

    /// Nothing may be wrong. A set may be refused while another thread has lost its core in the middle of a request:
    /// what is evicted meanwhile waits for it. Where more than a few are, the cache does not do its work.
    fn check(&self, tally: Tally) -> Result<(), ExperimentError> {
        if tally.wrong > 0 || tally.refused > tally.gets / 100 {
            Err(self.wrong(format!("{tally:?}")))
        } else {
            Ok(())
        }
    }
}

/// Requests a second of all threads together, and what they came to.
fn measure(
    parameters: &Parameters,
    entrant: &Entrant<'_>,
    popularity: &Zipfian,
    mix: &Mix,
    threads: usize,
    seed: u64,
) -> Result<(f64, Tally), ExperimentError> {
    let mut streams: Vec<_> = streams(popularity, mix.sets, seed).take(threads).collect();
    let mut requests: Vec<Vec<Request>> = vec![Vec::new(); threads];
    warmed(parameters.requests, |count| {
        for (stream, requests) in streams.iter_mut().zip(&mut requests) {
            stream.draw(count, requests);
        }
        let ask = |requests: &Vec<Request>| {
            let mut visitor = entrant.cache.enter();
            match entrant.choice.call {
                Call::Single => visitor.perform(requests),
                Call::Batch => visitor.perform_batched(requests),
            }
        };
        let mut sum = Tally::default();
        let rate = rate(&requests, count, ask, |_, tally| {
            sum += tally;
            Ok(())
        })?;
        entrant.check(sum)?;
        if parameters.fill == Fill::AllRecords && sum.misses > 0 {
            return Err(entrant.wrong(format!("every record is in it, and {} gets missed", sum.misses)));
        }
        Ok((rate, sum))
    })
}
