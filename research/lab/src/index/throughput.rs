//! Kind `index-throughput`: how many operations a second, by table, mix of requests and number of threads.
//!
//! All tables are made and filled first and then take turns: in each run, each mix and each number of threads is asked
//! of every table in turn, after a warm-up with other draws. Threads are pinned; a thread's rate is its operations by
//! its time on a core or asleep on a lock (`measure`), and the rates of all threads are added.

use serde::Deserialize;
use workload::generator;

use super::engine::{Index, Inspected};
use super::records::Records;
use super::requests::{Division, Mix, Requests};
use super::tables::TableChoice;
use crate::experiment::{ExperimentError, Session, rate, warmed};
use crate::measure::{Stopwatch, name_threads};
use crate::subject::Call;

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    /// Bytes of each table: see `tables`.
    bytes: usize,
    /// Records in each table: as many as this share of a table's capacity, or the same number in all of them.
    fill: Fill,
    /// The tables.
    tables: Vec<TableChoice>,
    /// The mixes.
    mixes: Vec<Mix>,
    /// Numbers of threads.
    threads: Vec<usize>,
    /// Requests of one thread in one timed part.
    operations: usize,
}

/// How full the tables are.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Fill {
    /// So many records in all of them.
    Records(usize),
    /// This share of what a table can hold.
    Load(f64),
}

/// A table that takes part.
struct Contestant<'r> {
    choice: &'r TableChoice,
    index: Box<dyn Inspected + 'r>,
    division: Division,
}

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let threads = session.threads(&parameters.threads)?;
    let most_threads = threads.iter().copied().max().unwrap_or(1);
    let division_of = |choice: &TableChoice| {
        let filled = match parameters.fill {
            Fill::Records(records) => records,
            Fill::Load(load) => (choice.table.capacity(parameters.bytes) as f64 * load) as usize,
        };
        Division::new(filled, &parameters.mixes, parameters.operations, most_threads)
    };
    let divisions = parameters.tables.iter().map(division_of).collect::<Result<Vec<_>, _>>()?;
    let most_records = divisions.iter().map(Division::records).max().unwrap_or(1);
    let records = Records::new(most_records)?;

    session.announce(parameters.tables.len() * (1 + session.runs() * parameters.mixes.len() * threads.len()));
    let mut contestants = Vec::new();
    for (choice, division) in parameters.tables.iter().zip(divisions) {
        session.begin(format!("filling {}", choice.name));
        let index = choice.table.make(parameters.bytes, &records)?;
        let watch = Stopwatch::start();
        let fillings: Vec<_> = division.filled().map(|range| index.insert_each(range)).collect();
        let seconds = watch.elapsed().as_secs_f64();
        if fillings.iter().any(|filling| filling.refused) {
            return Err(ExperimentError::Machine(format!(
                "{} is full before it is filled: ask for less",
                choice.name
            )));
        }
        let anatomy = index.anatomy();
        let name = &choice.name;
        session.record(name, "", "construction", "M keys/s", anatomy.entries as f64 / seconds / 1e6);
        session.record(name, "", "bytes per key", "B", anatomy.bytes as f64 / anatomy.entries as f64);
        if let Some(load) = anatomy.load {
            session.record(name, "", "load factor", "%", 100.0 * load);
        }
        session.record_pages(name, anatomy.pages);
        contestants.push(Contestant { choice, index, division });
        session.end();
    }

    let mixes = parameters.mixes.iter().enumerate();
    let points: Vec<_> = mixes.flat_map(|mix| threads.iter().map(move |&threads| (mix, threads))).collect();
    session.take_turns(contestants.len(), &points, |session, contestant, &((number, mix), threads), run| {
        let contestant = &contestants[contestant];
        let (TableChoice { name, table, .. }, point) = (contestant.choice, name_threads(threads));
        session.begin(format!("{name}: {}, {point}", mix.name));
        if threads == 1 || !mix.writes() || table.is_shareable() {
            // The same requests for tables with the same records, other ones in each run.
            let seed = (run * parameters.mixes.len() + number) as u64;
            let Contestant { choice, index, division } = contestant;
            let whom = (&**name, &**index as &dyn Index, choice.call);
            let rate = rate_of(whom, mix, division, parameters.operations, threads, seed)?;
            session.record(name, &point, mix.name.clone(), "M operations/s", rate / 1e6);
        }
        Ok(())
    })
}

/// Operations a second of all threads together, asked so, of a table with its share of records. What came of them is
/// checked, and undone.
///
/// # Errors
/// [`ExperimentError::WrongAnswer`], or that there are fewer cores.
pub fn rate_of(
    (name, index, call): (&str, &dyn Index, Call),
    mix: &Mix,
    division: &Division,
    operations: usize,
    threads: usize,
    seed: u64,
) -> Result<f64, ExperimentError> {
    let mut randoms: Vec<_> = generator::streams(seed).take(threads).collect();
    warmed(operations, |operations| {
        let randoms = randoms.iter_mut().enumerate();
        let requests: Vec<_> = randoms
            .map(|(thread, random)| Requests::draw(mix, operations, division, thread, random))
            .collect();
        let ask = |requests: &Requests| requests.ask(index, call);
        rate(&requests, operations, ask, |requests, tally| requests.settle(index, name, tally))
    })
}
