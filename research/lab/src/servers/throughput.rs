//! Kind `server-throughput`: the whole server over the network, by its number of threads (the paper's section 5.4).
//!
//! Gets in large multi-gets and sets among them, from a client that is not to be the bottleneck. A sharded server is as
//! many single-threaded processes as there are threads; a client then sends every process its part of a multi-get and
//! waits for all of them, as memcached's client libraries do, so the process with the hottest keys holds the others up.
//!
//! With one server thread, server and client have a core each. With more, on a machine with no more cores than that,
//! they share them all, and throughput is that of both together: the processor time of an operation is what can be
//! compared then.

use indicatif::ProgressBar;
use serde::Deserialize;
use workload::popularity::Popularity;

use super::contender::{Contender, Running};
use super::cores::Cores;
use super::failed;
use crate::drive::{Amount, Demand, DriveError, Items, Load, LoadReport};
use crate::experiment::{ExperimentError, Session};
use crate::measure::name_threads;

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    servers: Vec<Contender>,
    /// The servers' numbers of threads.
    threads: Vec<usize>,
    /// Memory of each server in MiB; the processes of a sharded one share it.
    memory: u64,
    keys: u64,
    /// Bytes of keys.
    key_size: u64,
    /// Bytes of values.
    value_size: u64,
    /// The exponent of YCSB's scrambled Zipfian distribution.
    theta: f64,
    /// The share of gets among the operations; the others are sets.
    gets: f64,
    /// Clients.
    connections: usize,
    keys_per_get: usize,
    /// Keys asked for and sets, in a measurement.
    operations: u64,
    /// The same before.
    warm_up: u64,
}

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let names = parameters.servers.iter().map(|server| server.name.as_str());
    let Some(cores) = Cores::find(session, names)? else { return Ok(()) };
    let steps = parameters.servers.len() * (1 + session.runs());
    session.announce(parameters.threads.len() * steps);
    for &threads in &parameters.threads {
        let point = name_threads(threads);
        let (server_core, client_cores) =
            if threads == 1 { (Some(cores.server), vec![cores.client]) } else { (None, Vec::new()) };
        let mut running = Vec::new();
        for server in &parameters.servers {
            session.begin(format!("filling {}, {point}", server.name));
            let memory = parameters.memory / server.processes(threads) as u64;
            let memory = ["-m".to_owned(), memory.to_string()];
            if let Some(server) = server.start(threads, &memory, server_core, session)? {
                let load = load(parameters, &server, &client_cores)?;
                load.fill(&ProgressBar::hidden()).map_err(|error| failed(&server.name, error))?;
                running.push((server, load));
            }
            session.end();
        }
        session.take_turns(running.len(), &[()], |session, turn, (), run| {
            let (server, load) = &mut running[turn];
            session.begin(format!("{}, {point}, run {}", server.name, run + 1));
            load.seed = run as u64;
            let (report, busiest) = measure(server, load).map_err(|error| failed(&server.name, error))?;
            record(session, &server.name, &point, &report, busiest);
            Ok(())
        })?;
    }
    Ok(())
}

fn load(parameters: &Parameters, server: &Running, cores: &[usize]) -> Result<Load, ExperimentError> {
    let popularity = Popularity::scrambled(parameters.keys, parameters.theta)?;
    let items = Items::fixed(parameters.key_size, parameters.value_size);
    let demand = Demand { popularity, gets: parameters.gets };
    Ok(Load {
        connections: parameters.connections,
        keys_per_get: parameters.keys_per_get,
        cores: cores.to_vec(),
        warm_up: Amount::Operations(parameters.warm_up),
        measured: Amount::Operations(parameters.operations),
        ..Load::new(server.endpoints(), parameters.keys, items, demand)
    })
}

/// The report, and the share of the busiest process in the time of all.
fn measure(server: &Running, load: &Load) -> Result<(LoadReport, f64), DriveError> {
    let times =
        || server.processes.iter().map(|process| process.clock()?.now()).collect::<Result<Vec<_>, _>>();
    let before = times()?;
    let report = server.run(load)?;
    let spent: Vec<_> =
        times()?.iter().zip(before).map(|(after, before)| (*after - before).as_secs_f64()).collect();
    let busiest = spent.iter().copied().fold(0.0, f64::max) / spent.iter().sum::<f64>();
    Ok((report, busiest))
}

fn record(session: &mut Session, server: &str, point: &str, report: &LoadReport, busiest: f64) {
    let mut record = |metric, unit, value| session.record(server, point, metric, unit, value);
    record("throughput", "M/s", report.operations_per_second / 1e6);
    if let Some(server_cpu) = report.server_cpu {
        record("server CPU per operation", "us", server_cpu);
    }
    record("client CPU per operation", "us", report.client_cpu);
    if let Some(hit_ratio) = report.hit_ratio {
        record("hit ratio", "%", 100.0 * hit_ratio);
    }
    record("busiest process", "% of the time", 100.0 * busiest);
    record("request latency, p50", "us", report.latency.p50);
    record("request latency, p99", "us", report.latency.p99);
}
