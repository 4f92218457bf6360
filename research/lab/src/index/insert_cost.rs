//! Kind `index-insert-cost`: what an insert costs at every load (the paper's Figure 4).
//!
//! One thread fills a table. Shortly before each load asked for, a window of inserts is timed: its time by its number
//! of inserts is the reciprocal throughput that the paper plots as latency. A table that refuses a record before it
//! reaches a load has no number there.

use serde::Deserialize;

use super::engine::{Filling, Index};
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
    /// The tables: those with slots, which have a load.
    tables: Vec<TableChoice>,
    /// Loads at which the cost is measured, rising, in percent of the slots.
    loads: Vec<f64>,
    /// How much of the load before each of them is timed, in percent of the slots.
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
    if !loads.is_sorted() || loads.iter().any(|load| !(*window..=100.0).contains(load)) || *window <= 0.0 {
        return Err(ExperimentError::Machine(
            "loads must rise, from the window, which is positive, to 100 percent".into(),
        ));
    }
    let most = tables.iter().map(|choice| choice.table.capacity(*bytes)).max().unwrap_or(0);
    let records = Records::new(most.max(1))?;
    session.announce(session.runs() * tables.len());
    session.take_turns(tables.len(), &[()], |session, table, (), _| {
        let choice = &tables[table];
        let name = &choice.name;
        session.begin(name.clone());
        let index = choice.table.make(*bytes, &records)?;
        let slots = choice.table.capacity(*bytes) as f64;
        let filled = timed(1, |_| fill(&*index, choice.call, loads, *window, slots))?;
        for Window { load, filling, seconds } in &filled[0].0 {
            let point = format!("{load} %");
            let inserts = filling.inserted as f64;
            session.record(name, &point, "time per insert", "ns", seconds * 1e9 / inserts);
            let displaced = filling.displaced as f64 / inserts;
            session.record(name, &point, "displacements per insert", "", displaced);
        }
        let anatomy = index.anatomy();
        if let Some(load) = anatomy.load {
            session.record(name, "", "load at the end", "%", 100.0 * load);
        }
        session.record_pages(name, anatomy.pages);
        Ok(())
    })
}

fn fill(index: &dyn Index, call: Call, loads: &[f64], window: f64, slots: f64) -> Vec<Window> {
    let at = |percent: f64| (slots * percent / 100.0) as u64;
    let insert = |range| match call {
        Call::Single => index.insert_each(range),
        Call::Batch => index.insert_batched(range),
    };
    let mut windows = Vec::new();
    let mut next = 0;
    for &load in loads {
        let (start, end) = (at(load - window).max(next), at(load));
        if insert(next..start).refused {
            break;
        }
        let watch = Stopwatch::start();
        let filling = insert(start..end);
        let seconds = watch.elapsed().as_secs_f64();
        if filling.refused {
            break;
        }
        windows.push(Window { load, filling, seconds });
        next = end;
    }
    windows
}
