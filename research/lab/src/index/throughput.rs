//! Kind `index-throughput`: how many operations a second, by table, mix of requests and number of threads.
//!
//! All tables are made and filled first and then take turns: in each run, each mix and each number of threads is asked of
//! every table in turn, after a warm-up with other draws. Threads are pinned; a thread's rate is its operations by its
//! time on a core or asleep on a lock (`measure`), and the rates of all threads are added.

use serde::Deserialize;
use workload::generator;

use super::engine::{Index, Inspected, Tally};
use super::requests::{Division, Mix, Requests};
use super::tables::{Call, TableChoice, make_records};
use crate::experiment::{ExperimentError, Session};
use crate::measure::{CoreError, Stopwatch, cores, in_parallel, name_threads, turns};

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

/// The share of the requests that warm-ups make.
const WARM_UP: usize = 10;

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let available = cores().map_err(core_error)?.len();
    let (threads, beyond): (Vec<usize>, Vec<usize>) =
        parameters.threads.iter().partition(|&&threads| threads <= available);
    for threads in beyond {
        session.skip(&name_threads(threads), format!("this program may use {available} cores"));
    }
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
    let records = make_records(most_records)?;

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

    for run in 0..session.runs() {
        for (mix_number, mix) in parameters.mixes.iter().enumerate() {
            for &threads in &threads {
                for turn in turns(contestants.len(), run) {
                    let contestant = &contestants[turn];
                    session.begin(format!(
                        "{}: {}, {}",
                        contestant.choice.name,
                        mix.name,
                        name_threads(threads)
                    ));
                    if threads == 1 || !mix.writes() || contestant.choice.table.is_shareable() {
                        // The same requests for tables with the same records, other ones in each run.
                        let seed = (run * parameters.mixes.len() + mix_number) as u64;
                        let rate = measure(contestant, mix, parameters.operations, threads, seed)?;
                        session.record(
                            &contestant.choice.name,
                            &name_threads(threads),
                            mix.name.clone(),
                            "M operations/s",
                            rate / 1e6,
                        );
                    }
                    session.end();
                }
            }
        }
    }
    Ok(())
}

fn core_error(error: CoreError) -> ExperimentError {
    ExperimentError::Machine(error.to_string())
}

/// Operations a second of all threads together.
fn measure(
    contestant: &Contestant<'_>,
    mix: &Mix,
    operations: usize,
    threads: usize,
    seed: u64,
) -> Result<f64, ExperimentError> {
    let Contestant { choice, index, division } = contestant;
    let mut randoms: Vec<_> = generator::streams(seed).take(threads).collect();
    let mut part = |operations| -> Result<f64, ExperimentError> {
        let randoms = randoms.iter_mut().enumerate();
        let requests: Vec<_> = randoms
            .map(|(thread, random)| Requests::draw(mix, operations, division, thread, random))
            .collect();
        let answers = ask(&**index, choice.call, &requests).map_err(core_error)?;
        let mut rate = 0.0;
        for (requests, (tally, seconds)) in requests.iter().zip(answers) {
            requests.settle(&**index, &choice.name, tally)?;
            rate += requests.len() as f64 / seconds;
        }
        Ok(rate)
    };
    part((operations / WARM_UP).max(1))?;
    part(operations)
}

/// Asks all requests, each thread its own: what they came to, and the seconds it took.
fn ask(index: &dyn Index, call: Call, requests: &[Requests]) -> Result<Vec<(Tally, f64)>, CoreError> {
    in_parallel(requests.len(), |thread| {
        let watch = Stopwatch::start();
        let tally = requests[thread].ask(index, call);
        (tally, watch.elapsed().as_secs_f64())
    })
}
