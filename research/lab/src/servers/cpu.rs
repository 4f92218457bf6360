//! Kind `server-cpu`: what requests cost a server, in processor time.
//!
//! Throughput depends on the client as much as on the server; the time that the server's process spends on processors
//! for a key (user and system) does not, and it is what an operator pays. All servers are filled with the same keys and
//! stay up; they take turns, pattern by pattern. Before anything is measured each of them answers a round of checked
//! requests: a fast wrong answer counts for nothing. The client's own time stands beside the server's. What resident
//! memory a server gains while it is filled can be measured, too.
//!
//! What answers a constant stores nothing, so it is neither filled nor checked: it is the floor below a server's cost
//! for requests that come one at a time.

use serde::Deserialize;
use workload::popularity::Popularity;

use super::constant::Constants;
use super::contender::{Contender, Running};
use super::cores::Cores;
use super::failed;
use super::filling::{expect_all, fill};
use crate::drive::{Amount, Demand, Items, Load, LoadReport};
use crate::experiment::{ExperimentError, Session};
use crate::measure::turns;

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    servers: Vec<Contender>,
    /// The servers' threads.
    threads: usize,
    /// Records, all of which the servers must be able to hold.
    keys: u64,
    /// Bytes of keys.
    key_size: u64,
    /// Bytes of values.
    value_size: u64,
    patterns: Vec<Pattern>,
    /// Checked requests before the first measurement.
    checked: u64,
    /// Whether the memory of the servers is measured, once they are filled.
    #[serde(default)]
    memory: bool,
}

/// How requests come.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pattern {
    name: String,
    connections: usize,
    depth: usize,
    keys_per_get: usize,
    /// The share of gets among the operations; the others are sets.
    #[serde(default = "all")]
    gets: f64,
    /// Keys asked for and sets, in a measurement.
    operations: u64,
    /// The same before.
    warm_up: u64,
}

fn all() -> f64 {
    1.0
}

impl Pattern {
    /// Whether a loop that parses nothing knows how many answers are wanted: requests of one kind have one size.
    fn suits_a_constant(&self) -> bool {
        self.depth <= Constants::MOST && self.keys_per_get == 1 && (self.gets == 0.0 || self.gets == 1.0)
    }
}

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let names = parameters.servers.iter().map(|server| server.name.as_str());
    let Some(cores) = Cores::find(session, names)? else { return Ok(()) };
    if let Some(constant) = parameters.servers.iter().find(|server| !server.stores())
        && !parameters.patterns.iter().all(Pattern::suits_a_constant)
    {
        let reason = format!("{}: a constant answers requests of one kind, one key each", constant.name);
        return Err(ExperimentError::Machine(reason));
    }
    session.announce(parameters.servers.len() + session.runs() * parameters.patterns.len());
    let mut running = Vec::new();
    for server in &parameters.servers {
        session.begin(format!("filling {}", server.name));
        if let Some(started) = server.start(parameters.threads, &[], Some(cores.server), session)? {
            if let Some(pattern) = parameters.patterns.first().filter(|_| server.stores()) {
                let load =
                    load(&started, parameters, &Pattern { gets: 1.0, ..pattern.clone() }, cores, u64::MAX)?;
                fill(&server.name, load, parameters.checked)?;
            }
            running.push(started);
        }
        session.end();
    }
    for server in running.iter().filter(|_| parameters.memory) {
        session.record(&server.name, "filled", "resident memory", "MB", server.grown() as f64 / 1e6);
    }
    for run in 0..session.runs() {
        for pattern in &parameters.patterns {
            session.begin(format!("{}, run {}", pattern.name, run + 1));
            for turn in turns(running.len(), run) {
                let server = &running[turn];
                let load = load(server, parameters, pattern, cores, run as u64)?;
                let report = server.run(&load).map_err(|error| failed(&server.name, error))?;
                expect_all(&server.name, &report)?;
                record(session, &server.name, &pattern.name, &report);
            }
            session.end();
        }
    }
    Ok(())
}

/// Records what a run came to.
fn record(session: &mut Session, server: &str, point: &str, report: &LoadReport) {
    let mut record = |metric, unit, value| session.record(server, point, metric, unit, value);
    if let Some(server_cpu) = report.server_cpu {
        record("server CPU per key", "us", server_cpu);
        record("client CPU / server CPU", "", report.client_cpu / server_cpu);
    }
    record("client CPU per key", "us", report.client_cpu);
    record("throughput", "M keys/s", report.operations_per_second / 1e6);
    record("request latency, p50", "us", report.latency.p50);
    record("request latency, p99", "us", report.latency.p99);
}

fn load(
    server: &Running,
    parameters: &Parameters,
    pattern: &Pattern,
    cores: Cores,
    seed: u64,
) -> Result<Load, ExperimentError> {
    let items = Items::fixed(parameters.key_size, parameters.value_size);
    let demand = Demand { popularity: Popularity::uniform(parameters.keys)?, gets: pattern.gets };
    Ok(Load {
        dialect: server.dialect,
        connections: pattern.connections,
        depth: pattern.depth,
        keys_per_get: pattern.keys_per_get,
        cores: vec![cores.client],
        seed,
        warm_up: Amount::Operations(pattern.warm_up),
        measured: Amount::Operations(pattern.operations),
        ..Load::new(server.endpoints(), parameters.keys, items, demand)
    })
}
