//! Kind `server-replay`: hit ratios on a real trace, at several sizes of memory.
//!
//! Every server is started anew for each size, with the same `-m`: a part of what all items of the trace take in
//! memcached without its index. Every value that comes back is checked. See `drive::trace` for how the trace is played.

use indicatif::ProgressBar;
use serde::Deserialize;
use workload::sizes::Fixed;
use workload::stand_in::recorded_or_generated;

use super::contender::Contender;
use super::cores::Cores;
use super::failed;
use crate::drive::{DriveError, Items, RecordedTrace, Replay, ReplayReport, SizesOf, sizes};
use crate::experiment::{ExperimentError, Session};
use crate::measure::{pin, turns};

/// Larger values are cut, in bytes: below what the servers take by default for an item.
const LARGEST_VALUE: u64 = 1_000_000;

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    servers: Vec<Contender>,
    /// The servers' threads.
    threads: usize,
    /// The trace, by its name in the data folder.
    trace: String,
    /// Requests that are played at most.
    requests: usize,
    /// The distribution of the values' sizes, by name.
    value_sizes: String,
    /// Every value's size times this.
    value_scale: f64,
    /// The memory: one part in so many of what all items take.
    one_part_in: Vec<u64>,
    /// Requests in a window.
    depth: usize,
}

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let names = || parameters.servers.iter().map(|server| server.name.as_str());
    let Some(cores) = Cores::find(session, names())? else { return Ok(()) };
    session.begin("reading the trace");
    let (trace, items) = match read(parameters, session) {
        Ok(read) => read,
        // The data is not part of this repository.
        Err(DriveError::Settings(reason)) => {
            names().for_each(|name| session.skip(name, reason.clone()));
            return Ok(());
        }
        Err(error) => return Err(failed(&parameters.trace, error)),
    };
    let replay = Replay::new(&trace, &items, parameters.depth);
    session.announce(session.runs() * parameters.one_part_in.len() * parameters.servers.len());
    for run in 0..session.runs() {
        for &part in &parameters.one_part_in {
            let mebibytes = replay.working_set().mebibytes(1, part);
            let point = format!("1/{part}");
            for turn in turns(parameters.servers.len(), run) {
                let server = &parameters.servers[turn];
                session.begin(format!("{} with -m {mebibytes}, run {}", server.name, run + 1));
                let memory = ["-m".to_owned(), mebibytes.to_string()];
                let started = server.start(parameters.threads, &memory, Some(cores.server), session)?;
                if let Some([process]) = started.as_ref().map(|server| &server.processes[..]) {
                    let play = || {
                        let clock = process.clock()?;
                        replay.play(&server.name, process.endpoint(), Some(clock), &ProgressBar::hidden())
                    };
                    let report = on_core(cores.client, play).map_err(|error| failed(&server.name, error))?;
                    record(session, &server.name, &point, mebibytes, &report);
                }
                session.end();
            }
        }
    }
    Ok(())
}

/// Runs `play` on a thread of its own that is pinned to `core`, and leaves the others where they are.
pub(super) fn on_core(
    core: usize,
    play: impl FnOnce() -> Result<ReplayReport, DriveError> + Send,
) -> Result<ReplayReport, DriveError> {
    std::thread::scope(|scope| {
        let player = scope.spawn(|| pin(core).map_err(DriveError::from).and_then(|()| play()));
        player.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn read(parameters: &Parameters, session: &mut Session) -> Result<(RecordedTrace, Items), DriveError> {
    let values = sizes(&parameters.value_sizes, SizesOf::Values, parameters.value_scale)?;
    let found = recorded_or_generated(&parameters.trace)?;
    let (trace, stand_in) = found.map_err(|absent| DriveError::Settings(absent.to_string()))?;
    if let Some(stand_in) = stand_in {
        session.skip(&parameters.trace, stand_in.to_string());
    }
    let trace = RecordedTrace::of(trace, parameters.requests)?;
    // Keys are those of the trace. Larger values than the servers take would only be refused, and definitions say the
    // cut.
    Ok((trace, Items::new(Box::new(Fixed(0)), values).cut_values_at(LARGEST_VALUE)))
}

fn record(session: &mut Session, server: &str, point: &str, mebibytes: u64, report: &ReplayReport) {
    let mut record = |metric, unit, value| session.record(server, point, metric, unit, value);
    record("memory, -m", "MiB", mebibytes as f64);
    record("hit ratio", "%", 100.0 * report.hit_ratio);
    if let Some(evictions) = report.evictions {
        record("evictions", "items", evictions as f64);
    }
    record("refused", "requests", report.refused as f64);
    record("throughput", "k requests/s", report.requests_per_second / 1e3);
    if let Some(server_cpu) = report.server_cpu {
        record("server CPU per request", "us", server_cpu);
    }
    record("client CPU per request", "us", report.client_cpu);
    record("window latency, p50", "us", report.latency.p50);
    record("window latency, p99", "us", report.latency.p99);
}
