//! Kind `server-latency`: how long requests take at rates that a server can keep.
//!
//! memcached's highest rate comes first: what the reference server answers to clients that wait for their replies.
//! Then every server is asked at parts of that rate. Requests have times at which they are due, whether or not the
//! server keeps up, and latencies count from there: a pause delays all that was due in it (Tene's *coordinated
//! omission* is what counting from the sending would leave out). All servers are up and take turns, level by level.
//!
//! All threads of a server are on the first core, and the client on the second. The client does not sleep while
//! something is about to be due, so with a core in common it would be measured instead of the server.
//!
//! A thread that wakes up may wait for the scheduler's next tick, of which there are 250 a second, while another one
//! goes on. So whatever else runs on the first core, at a low priority too, for one part in a hundred of the time, is
//! in the p99 of any server. How long the server's threads were ready to run and had no core, warm-up included, stands
//! beside each latency. Where one thread serves, those beside it had the core meanwhile, or strangers.

use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use serde::Deserialize;
use workload::popularity::Popularity;
use workload::sizes::Fixed;

use super::contender::{Contender, Running};
use super::cores::Cores;
use super::failed;
use crate::drive::{Amount, Demand, DriveError, Items, Load, LoadReport, SizesOf, sizes};
use crate::experiment::{ExperimentError, Session};
use crate::measure::{name_threads, turns};

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    servers: Vec<Contender>,
    /// The server whose highest rate the levels are parts of.
    reference: String,
    /// The servers' numbers of threads.
    threads: Vec<usize>,
    patterns: Vec<Pattern>,
    /// Parts of the highest rate, in per cent.
    levels: Vec<u64>,
    /// How long the highest rate is looked for, and how long requests come before a measurement.
    warm_up_ms: u64,
    /// How long a level is measured.
    measured_ms: u64,
}

/// How requests come.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pattern {
    name: String,
    connections: usize,
    /// Requests that are due together on a connection.
    depth: usize,
    /// Records: asked for by YCSB's scrambled Zipfian distribution of exponent `theta`.
    records: u64,
    theta: f64,
    /// The share of gets among the requests; the others are sets.
    gets: f64,
    /// The distribution of the values' sizes, by name.
    value_sizes: String,
    /// Memory of each server in MiB.
    memory: u64,
}

/// Bytes of keys.
const KEY: u64 = 16;

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let names = || parameters.servers.iter().map(|server| server.name.as_str());
    let Some(cores) = Cores::find(session, names())? else { return Ok(()) };
    session.announce(
        parameters.threads.len() * parameters.patterns.len() * (1 + session.runs() * parameters.levels.len()),
    );
    for &threads in &parameters.threads {
        for pattern in &parameters.patterns {
            let point = format!("{}, {}", pattern.name, name_threads(threads));
            session.begin(format!("filling, {point}"));
            let mut running = Vec::new();
            for server in &parameters.servers {
                let memory = ["-m".to_owned(), pattern.memory.to_string()];
                if let Some(server) = server.start(threads, &memory, Some(cores.server), session)? {
                    let load = load(&server, parameters, pattern, cores)?;
                    load.fill(&ProgressBar::hidden()).map_err(|error| failed(&server.name, error))?;
                    running.push((server, load));
                }
            }
            session.end();
            if running.is_empty() {
                return Ok(());
            }
            // Where the reference is not installed, the first server sets the rates, and the results say so.
            let reference = running.iter().position(|(server, _)| server.name == parameters.reference);
            let reference = reference.unwrap_or_else(|| {
                session.skip(
                    &parameters.reference,
                    format!("the rates are parts of {}'s highest", running[0].0.name),
                );
                0
            });
            for run in 0..session.runs() {
                let (server, load) = &mut running[reference];
                load.seed = run as u64;
                let highest = highest_rate(load).map_err(|error| failed(&server.name, error))?;
                session.record(&server.name, &point, "highest rate", "k/s", highest / 1e3);
                for &level in &parameters.levels {
                    session.begin(format!("{point}, {level} %, run {}", run + 1));
                    for turn in turns(running.len(), run) {
                        let (server, load) = &mut running[turn];
                        load.seed = run as u64;
                        load.rate = Some(highest * level as f64 / 100.0);
                        let (began, waited) = (Instant::now(), server.waited_for_core());
                        let report = server.run(load).map_err(|error| failed(&server.name, error))?;
                        let waited = server.waited_for_core().saturating_sub(waited);
                        load.rate = None;
                        let waited = waited.as_secs_f64() / began.elapsed().as_secs_f64();
                        record(session, &server.name, &format!("{point}, {level} %"), &report, waited);
                    }
                    session.end();
                }
            }
        }
    }
    Ok(())
}

/// Operations a second that clients get who wait for their replies.
fn highest_rate(load: &mut Load) -> Result<f64, DriveError> {
    let measured = std::mem::replace(&mut load.measured, load.warm_up);
    let report = load.run(&[], &ProgressBar::hidden());
    load.measured = measured;
    Ok(report?.operations_per_second)
}

fn record(session: &mut Session, server: &str, point: &str, report: &LoadReport, waited: f64) {
    let mut record = |metric, unit, value| session.record(server, point, metric, unit, value);
    record("request latency, p50", "us", report.latency.p50);
    record("request latency, p99", "us", report.latency.p99);
    record("request latency, p99.9", "us", report.latency.p99_9);
    record("overdue", "requests", report.overdue as f64);
    record("waited for its core", "%", 100.0 * waited);
    if let Some(hit_ratio) = report.hit_ratio {
        record("hit ratio", "%", 100.0 * hit_ratio);
    }
}

fn load(
    server: &Running,
    parameters: &Parameters,
    pattern: &Pattern,
    cores: Cores,
) -> Result<Load, ExperimentError> {
    let values =
        sizes(&pattern.value_sizes, SizesOf::Values, 1.0).map_err(|error| failed(&server.name, error))?;
    // Larger ones would only be refused.
    let items = Items::new(Box::new(Fixed(KEY)), values).cut_values_at(1_000_000);
    let demand =
        Demand { popularity: Popularity::scrambled(pattern.records, pattern.theta)?, gets: pattern.gets };
    let time = |milliseconds| Amount::Time(Duration::from_millis(milliseconds));
    Ok(Load {
        connections: pattern.connections,
        depth: pattern.depth,
        cores: vec![cores.client],
        warm_up: time(parameters.warm_up_ms),
        measured: time(parameters.measured_ms),
        ..Load::new(server.endpoints(), pattern.records, items, demand)
    })
}
