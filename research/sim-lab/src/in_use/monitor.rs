//! The run-time monitor: periods with the table and without, and the cheaper way until the next trial (section III-F).
//!
//! ```toml
//! container = "unordered_map"
//! period = 50_000                       # of the monitor, in requests
//! trial = 2_000
//! trial_settle = 500
//! requests = 432_000                    # that are measured
//! workloads = [
//!     { name = "pays", distribution = "zipf", table_bytes = 67_108_864 },
//!     { name = "does not", distribution = "uniform", table_bytes = 65_536 },
//!     { name = "in turn", distribution = "zipf", table_bytes = 1_048_576, then = "uniform", every = 108_000 },
//! ]
//! ```
//!
//! Each workload is run alone, with the table, and with the monitor. A request's cycles are those between the retirement
//! of the last instruction before it and of its own last: what the counter of cycles shows the monitor. Reading that
//! counter, and the monitor's own branch, are not simulated.

use serde::Deserialize;
use sim::stlt::{Monitor, MonitorShape};

use super::{Bench, Guests, Job, Sample, cycles_of};
use crate::guest::{Container, Distribution, Variant};
use crate::run::RunError;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
    container: Container,
    period: u64,
    trial: u64,
    trial_settle: u64,
    requests: u64,
    workloads: Vec<Workload>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Workload {
    name: String,
    distribution: Distribution,
    table_bytes: u64,
    /// What is asked for in turn with the first distribution.
    then: Option<Distribution>,
    /// Requests of a turn.
    every: Option<u64>,
}

/// How the table is used.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Alone,
    Always,
    Monitored,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Alone => "alone",
            Way::Always => "always on",
            Way::Monitored => "monitored",
        }
    }
}

/// What a run counted.
struct Counted {
    cycles: u64,
    with_table: u64,
    switches: u64,
}

pub(super) fn jobs(parameters: Parameters) -> Result<Vec<Job>, &'static str> {
    let Parameters { container, period, trial, trial_settle, requests, workloads } = parameters;
    let shape = MonitorShape { period, trial, settle: trial_settle };
    if trial_settle >= trial {
        return Err("nothing of a trial would be counted: 'trial_settle' is as long as 'trial'");
    }
    if workloads
        .iter()
        .any(|workload| workload.then.is_some() != workload.every.is_some() || workload.every == Some(0))
    {
        return Err(
            "'then' says what is asked for in turn, 'every' how many requests a turn has: give both, or none",
        );
    }
    let jobs = workloads
        .into_iter()
        .map(|workload| -> Job {
            Box::new(move |bench, seed| {
                let mut samples = Vec::new();
                let mut alone = f64::NAN;
                for way in [Way::Alone, Way::Always, Way::Monitored] {
                    let counted = run(bench, container, &workload, way, (shape, requests), seed)?;
                    let cycles = counted.cycles as f64 / requests as f64;
                    let mut add = |metric, unit, value| {
                        let (configuration, point) = (way.name().to_owned(), workload.name.clone());
                        samples.push(Sample { configuration, point, metric, unit, value });
                    };
                    add("cycles", "per request", cycles);
                    if way == Way::Alone {
                        alone = cycles;
                        continue;
                    }
                    add("speed-up", "x", alone / cycles);
                    let share = counted.with_table as f64 / requests as f64;
                    add("requests with the table", "%", 100.0 * share);
                    add("decisions that changed", "", counted.switches as f64);
                }
                Ok(samples)
            })
        })
        .collect();
    Ok(jobs)
}

fn run(
    bench: &Bench,
    container: Container,
    workload: &Workload,
    way: Way,
    (shape, requests): (MonitorShape, u64),
    seed: u64,
) -> Result<Counted, RunError> {
    let variant = if way == Way::Alone { Variant::Alone } else { Variant::Stlt };
    let guests = Guests::new(container, variant, workload.table_bytes);
    let (mut program, mut core) =
        bench.warm(Guests { distribution: workload.distribution, ..guests }, seed)?;
    let mut monitor = Monitor::new(shape);
    let mut counted = Counted { cycles: 0, with_table: 0, switches: 0 };
    for request in 0..requests {
        if let (Some(then), Some(every)) = (workload.then, workload.every)
            && request.is_multiple_of(every)
        {
            let turn = request / every;
            let distribution = if turn.is_multiple_of(2) { workload.distribution } else { then };
            // Other requests than in the turns before.
            program.ask_for(distribution, seed + (turn + 1) * 1_000_003)?;
        }
        let uses = way == Way::Always || (way == Way::Monitored && monitor.uses_table());
        program.use_table(uses);
        counted.with_table += u64::from(uses);
        let cycles = cycles_of(&mut core, |core| program.run(core, 1));
        monitor.took(cycles);
        counted.cycles += cycles;
    }
    counted.switches = if way == Way::Monitored { monitor.switches() } else { 0 };
    Ok(counted)
}
