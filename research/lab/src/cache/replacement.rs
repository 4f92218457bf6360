//! Kind `cache-replacement`: how many items a cache of a given size holds, and how many gets miss then (the paper's
//! Table 3).
//!
//! A cache is filled by the workload itself, until an item has had to make way, and warmed by half as many requests
//! again; then the gets that miss are counted. (An LRU cache that has just become full is in the state that it will
//! stay in: what it holds are the keys asked for last.) Nothing here is timed, so different caches are measured at the
//! same time, one on each core.

use serde::Deserialize;
use workload::generator;
use workload::popularity::Zipfian;

use super::choice::CacheChoice;
use super::contestant::{Holding, Tally};
use super::requests::{Stream, popularity};
use crate::experiment::{ExperimentError, Session};
use crate::measure::cores;

/// Requests drawn at once.
const BLOCK: usize = 1 << 14;
/// A cache that is not full after as many requests as there are records, times this, will never be.
const MOST_ROUNDS: u64 = 100;

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    /// Records that are asked for.
    records: u64,
    /// Sets in a hundred requests.
    sets: u32,
    /// Requests that are counted.
    requests: usize,
    /// The caches.
    caches: Vec<CacheChoice>,
    /// Their sizes.
    sizes: Vec<Size>,
}

/// The space for items.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Size {
    /// The name of the point in the results.
    name: String,
    /// Bytes.
    bytes: usize,
}

/// One cache at one size in one run.
struct Cell<'p> {
    choice: &'p CacheChoice,
    size: &'p Size,
    run: u64,
}

/// What was measured of it.
struct Measured {
    holding: Holding,
    tally: Tally,
}

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let popularity = popularity(parameters.records)?;
    let mut cells = Vec::new();
    for run in 0..session.runs() as u64 {
        for size in &parameters.sizes {
            cells.extend(parameters.caches.iter().map(|choice| Cell { choice, size, run }));
        }
    }
    // The largest first, so that nobody is left alone with one at the end.
    cells.sort_by_key(|cell| std::cmp::Reverse(cell.size.bytes));
    session.announce(cells.len());
    let measured = session.on_all_cores(cores()?.len(), &cells, |cell| {
        session.begin(format!("{}, {}", cell.choice.name, cell.size.name));
        measure(parameters, &popularity, cell)
    })?;
    let mut all: Vec<_> = cells.iter().zip(measured).collect();
    // As the definition names them.
    let place = |cell: &Cell<'_>| {
        let size = parameters.sizes.iter().position(|size| size.name == cell.size.name);
        (parameters.caches.iter().position(|choice| choice.name == cell.choice.name), size, cell.run)
    };
    all.sort_by_key(|(cell, _)| place(cell));
    for (Cell { choice, size, .. }, Measured { holding, tally }) in all {
        let items = holding.items as f64;
        session.record(&choice.name, &size.name, "items stored", "M", items / 1e6);
        session.record(&choice.name, &size.name, "miss ratio", "%", tally.miss_ratio());
        session.record(&choice.name, &size.name, "cache space per item", "B", size.bytes as f64 / items);
        session.record(&choice.name, &size.name, "index per item", "B", holding.index as f64 / items);
        session.record_pages(&choice.name, holding.pages);
    }
    Ok(())
}

fn measure(
    parameters: &Parameters,
    popularity: &Zipfian,
    cell: &Cell<'_>,
) -> Result<Measured, ExperimentError> {
    let cache = cell.choice.cache.make(cell.size.bytes)?;
    let mut visitor = cache.enter();
    // The same requests for every cache, other ones in each run.
    let mut stream = Stream::new(popularity, parameters.sets, generator::seeded(cell.run));
    let mut requests = Vec::new();
    let mut ask = |count: usize| -> Result<Tally, ExperimentError> {
        let mut sum = Tally::default();
        for start in (0..count).step_by(BLOCK) {
            stream.draw(BLOCK.min(count - start), &mut requests);
            sum += visitor.perform(&requests);
        }
        if sum.wrong + sum.refused > 0 {
            let found = format!("{sum:?}: nothing may be wrong or refused");
            return Err(ExperimentError::wrong(&cell.choice.name, found));
        }
        Ok(sum)
    };
    let mut asked = 0;
    while !cache.has_evicted() {
        ask(BLOCK)?;
        asked += BLOCK;
        if asked as u64 > parameters.records * MOST_ROUNDS {
            return Err(ExperimentError::Machine(format!(
                "{} of {} bytes is never full: ask for more records",
                cell.choice.name, cell.size.bytes
            )));
        }
    }
    ask(asked / 2)?;
    let tally = ask(parameters.requests)?;
    Ok(Measured { holding: cache.holding(), tally })
}
