//! Kind `index-space`: how many keys a table takes before it first refuses one, how many bytes it needs for each, and
//! how fast it takes them (the paper's Table 2); or what an insert costs at every load (Figure 4).
//!
//! One thread puts records into an empty table until one is refused. The chaining table never refuses; as in the paper
//! it is called full with 1.5 entries a bucket. The time includes the page faults of a table that nobody has touched
//! yet.
//!
//! Where loads are named, a window of inserts is timed shortly before each of them: its time by its number of inserts
//! is the reciprocal throughput that the paper plots as latency. A table that refuses a record before it reaches a load
//! has no number there.

use serde::Deserialize;

use super::engine::Filling;
use super::records::Records;
use super::tables::TableChoice;
use crate::experiment::{ExperimentError, Session, timed};
use crate::measure::Stopwatch;
use crate::subject::Call;

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    /// Bytes of each table: see `tables`.
    bytes: usize,
    /// The tables; those with the call `batch` are filled by `insert_many`.
    tables: Vec<TableChoice>,
    /// Loads at which an insert's cost is measured, rising, in percent of the slots: of tables that have some.
    #[serde(default)]
    loads: Vec<f64>,
    /// How much of the load before each of them is timed, in percent of the slots.
    #[serde(default)]
    window: f64,
}

/// What was timed at one load.
struct Window {
    load: f64,
    filling: Filling,
    seconds: f64,
}

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let Parameters { bytes, tables, loads, window } = parameters;
    let within = |load| *window > 0.0 && (*window..=100.0).contains(load);
    if !loads.is_sorted() || !loads.iter().all(within) {
        let reason = "loads must rise, from the window, which is positive, to 100 percent";
        return Err(ExperimentError::machine(reason));
    }
    let capacity = |choice: &TableChoice| choice.table.capacity(*bytes);
    session.announce(session.runs() * tables.len());
    // One more than any table has room for.
    let records = Records::new(tables.iter().map(capacity).max().unwrap_or(0) + 1)?;
    session.take_turns(tables.len(), &[()], |session, table, (), _| {
        let choice = &tables[table];
        session.begin(choice.name.clone());
        let index = choice.table.make(*bytes, &records)?;
        let insert = |range| match choice.call {
            Call::Single => index.insert_each(range),
            Call::Batch => index.insert_batched(range),
        };
        let name = &choice.name;
        if !loads.is_empty() {
            let at = |percent: f64| (capacity(choice) as f64 * percent / 100.0) as u64;
            let filled = timed(1, |_| fill(insert, loads, |load| at(load - window), at))?;
            for Window { load, filling, seconds } in &filled[0].0 {
                let (point, inserts) = (format!("{load} %"), filling.inserted as f64);
                session.record(name, &point, "time per insert", "ns", seconds * 1e9 / inserts);
                let displaced = filling.displaced as f64 / inserts;
                session.record(name, &point, "displacements per insert", "", displaced);
            }
            let anatomy = index.anatomy();
            if let Some(load) = anatomy.load {
                session.record(name, "", "load at the end", "%", 100.0 * load);
            }
            session.record_pages(name, anatomy.pages);
            return Ok(());
        }
        let refuses = index.anatomy().load.is_some();
        let end = if refuses { records.len() } else { capacity(choice) } as u64;
        let (filling, seconds) = timed(1, |_| insert(0..end))?[0];
        let anatomy = index.anatomy();
        if filling.refused != refuses || filling.inserted != anatomy.entries as u64 {
            return Err(ExperimentError::wrong(name, format!("{filling:?}, but {anatomy:?}")));
        }
        let keys = anatomy.entries as f64;
        session.record(name, "", "keys", "M", keys / 1e6);
        session.record(name, "", "size", "MiB", anatomy.bytes as f64 / f64::from(1 << 20));
        session.record(name, "", "bytes per key", "B", anatomy.bytes as f64 / keys);
        session.record(name, "", "construction", "M keys/s", keys / seconds / 1e6);
        if let Some(load) = anatomy.load {
            session.record(name, "", "load factor", "%", 100.0 * load);
        }
        if let Some(fullest) = anatomy.fullest {
            session.record(name, "", "fullest bucket", "entries", fullest as f64);
        }
        session.record_pages(name, anatomy.pages);
        Ok(())
    })
}

/// Fills a table, and times the inserts from `start` to `end` of each load.
fn fill(
    insert: impl Fn(std::ops::Range<u64>) -> Filling,
    loads: &[f64],
    start: impl Fn(f64) -> u64,
    end: impl Fn(f64) -> u64,
) -> Vec<Window> {
    let (mut windows, mut next) = (Vec::new(), 0);
    for &load in loads {
        let begin = start(load).max(next);
        if insert(next..begin).refused {
            break;
        }
        let watch = Stopwatch::start();
        let filling = insert(begin..end(load));
        let seconds = watch.elapsed().as_secs_f64();
        if filling.refused {
            break;
        }
        windows.push(Window { load, filling, seconds });
        next = end(load);
    }
    windows
}
