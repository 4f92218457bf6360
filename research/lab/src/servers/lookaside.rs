//! Kind `server-lookaside`: requests over the network in large batches, by how many records they spread over (Figure 14
//! of the SLB paper). Our server without a lookaside buffer before its index, and with buffers of several sizes.
//!
//! All servers of a kind of request are filled with the same records, stay up, and take turns. A Zipfian distribution
//! over some of the records, strewn over all of them, says which are asked for; before its first measurement at a range
//! a server is asked long enough for its buffer to fill. A run's gain is the quotient of two numbers of that run.
//!
//! A server's clock counts what its process spends in the kernel, too, most of which is the network's: what a buffer
//! saves is seen in the difference.

use indicatif::ProgressBar;
use serde::Deserialize;
use workload::popularity::{Permutation, Permuted, Popularity, Zipfian};

use super::contender::{Contender, Running};
use super::cores::Cores;
use super::failed;
use super::filling::{expect_all, fill};
use crate::drive::{Amount, Demand, DriveError, Items, Load, LoadReport, Statistics};
use crate::experiment::{ExperimentError, Session};
use crate::measure::turns;

/// Which permutation strews the ranks over the records: any.
const PLACES: u64 = 17;
/// What the requests before all measurements are drawn from; runs have their own numbers.
const WARM_UP: u64 = u64::MAX - 1;

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    /// The server that the others are compared with, and the others.
    servers: Vec<Contender>,
    /// The servers' threads.
    threads: usize,
    requests: Vec<Requests>,
    /// Records, all of which the servers must be able to hold.
    records: u64,
    /// Bytes of keys.
    key_size: u64,
    points: Vec<Point>,
    /// The exponent of the Zipfian distribution.
    theta: f64,
    /// Clients.
    connections: usize,
    /// Gets that a client sends at once.
    depth: usize,
    keys_per_get: usize,
    /// Keys asked for before a server's first measurement at a point.
    warm_up: u64,
    /// Keys asked for before each measurement, for the processor's caches.
    again: u64,
    /// Keys asked for in a measurement.
    operations: u64,
    /// Checked requests before the first measurement.
    checked: u64,
}

/// A kind of request: what comes back with a key.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Requests {
    name: String,
    /// Bytes of values.
    value_size: u64,
    /// Memory of each server in MiB.
    memory: u64,
}

/// How many of the records are asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Point {
    name: String,
    range: u64,
}

/// What a turn came to.
struct Turn {
    report: LoadReport,
    /// The share of the lookups that the buffer answered, in per cent; none without a buffer.
    known: Option<f64>,
}

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    if let Some(point) = parameters.points.iter().find(|point| point.range > parameters.records) {
        return Err(ExperimentError::Machine(format!("{}: there are fewer records", point.name)));
    }
    let Parameters { servers, requests, points, .. } = parameters;
    let names: Vec<_> = requests
        .iter()
        .flat_map(|requests| servers.iter().map(|server| configuration(requests, server)))
        .collect();
    let Some(cores) = Cores::find(session, names.iter().map(String::as_str))? else { return Ok(()) };
    session.announce(requests.len() * (servers.len() + points.len() * session.runs()));
    for requests in requests {
        let Some(running) = start(parameters, requests, cores, session)? else {
            for server in servers {
                session.skip(&configuration(requests, server), "not all servers could be started");
            }
            continue;
        };
        for point in points {
            for run in 0..session.runs() {
                session.begin(format!("{}, {}, run {}", requests.name, point.name, run + 1));
                let mut measured: Vec<Option<Turn>> = running.iter().map(|_| None).collect();
                for turn in turns(running.len(), run) {
                    let server = &running[turn];
                    measured[turn] = Some(measure(server, parameters, requests, point, cores, run)?);
                }
                let measured: Vec<Turn> = measured.into_iter().flatten().collect();
                for (server, turn) in running.iter().zip(&measured) {
                    record(session, &server.name, &point.name, turn, &measured[0]);
                }
                session.end();
            }
        }
    }
    Ok(())
}

fn configuration(requests: &Requests, server: &Contender) -> String {
    format!("{}, {}", requests.name, server.name)
}

/// Starts and fills all servers; none if one of them cannot be had here.
fn start(
    parameters: &Parameters,
    requests: &Requests,
    cores: Cores,
    session: &mut Session,
) -> Result<Option<Vec<Running>>, ExperimentError> {
    let mut running = Vec::new();
    for server in &parameters.servers {
        let name = configuration(requests, server);
        session.begin(format!("filling {name}"));
        let memory = ["-m".to_owned(), requests.memory.to_string()];
        let started = server.start(parameters.threads, &memory, Some(cores.server), session)?;
        let Some(server) = started.map(|server| Running { name, ..server }) else { return Ok(None) };
        let all = Point { name: String::new(), range: parameters.records };
        fill(&server.name, load(&server, parameters, requests, &all, cores, u64::MAX)?, parameters.checked)?;
        running.push(server);
        session.end();
    }
    Ok(Some(running))
}

fn load(
    server: &Running,
    parameters: &Parameters,
    requests: &Requests,
    point: &Point,
    cores: Cores,
    seed: u64,
) -> Result<Load, ExperimentError> {
    let ranks = Zipfian::new(point.range, parameters.theta)?;
    let places = Permutation::new(parameters.records, PLACES)?;
    let popularity = Popularity::Permuted(Permuted::new(ranks, places));
    let items = Items::fixed(parameters.key_size, requests.value_size);
    let demand = Demand { popularity, gets: 1.0 };
    Ok(Load {
        connections: parameters.connections,
        depth: parameters.depth,
        keys_per_get: parameters.keys_per_get,
        cores: vec![cores.client],
        seed,
        measured: Amount::Operations(parameters.operations),
        ..Load::new(server.endpoints(), parameters.records, items, demand)
    })
}

fn measure(
    server: &Running,
    parameters: &Parameters,
    requests: &Requests,
    point: &Point,
    cores: Cores,
    run: usize,
) -> Result<Turn, ExperimentError> {
    let failed = |error| failed(&server.name, error);
    if run == 0 {
        let measured = Amount::Operations(parameters.warm_up);
        let load = load(server, parameters, requests, point, cores, WARM_UP)?;
        Load { measured, ..load }.run(&[], &ProgressBar::hidden()).map_err(failed)?;
    }
    let warm_up = Amount::Operations(parameters.again);
    let load = Load { warm_up, ..load(server, parameters, requests, point, cores, run as u64)? };
    let before = Known::ask(server).map_err(failed)?;
    let report = server.run(&load).map_err(failed)?;
    let after = Known::ask(server).map_err(failed)?;
    expect_all(&server.name, &report)?;
    Ok(Turn { report, known: Known::share(before, after) })
}

/// What a buffer has been asked so far.
#[derive(Debug, Clone, Copy)]
struct Known {
    hits: u64,
    misses: u64,
}

impl Known {
    /// None where there is no buffer.
    fn ask(server: &Running) -> Result<Option<Known>, DriveError> {
        let statistics = Statistics::of(&server.endpoints()[0])?;
        let number = |name| statistics.number(name);
        Ok(number("lookaside_hits")
            .zip(number("lookaside_misses"))
            .map(|(hits, misses)| Known { hits, misses }))
    }

    /// The hits between two moments, in per cent of the lookups.
    fn share(before: Option<Known>, after: Option<Known>) -> Option<f64> {
        let (before, after) = before.zip(after)?;
        let (hits, misses) = (after.hits - before.hits, after.misses - before.misses);
        Some(100.0 * hits as f64 / (hits + misses).max(1) as f64)
    }
}

fn record(session: &mut Session, server: &str, point: &str, turn: &Turn, alone: &Turn) {
    let Turn { report, known } = turn;
    let mut record = |metric, unit, value| session.record(server, point, metric, unit, value);
    record("throughput", "M/s", report.operations_per_second / 1e6);
    record("client CPU per key", "us", report.client_cpu);
    if let Some(server_cpu) = report.server_cpu {
        record("server CPU per key", "us", server_cpu);
    }
    if let Some(known) = known {
        record("hit ratio of the buffer", "%", *known);
        record("times alone", "", report.operations_per_second / alone.report.operations_per_second);
        if let (Some(with), Some(without)) = (report.server_cpu, alone.report.server_cpu) {
            record("times alone, by server CPU", "", without / with);
        }
    }
}
