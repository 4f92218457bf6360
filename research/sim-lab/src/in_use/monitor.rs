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
//! Each workload is run alone, with the table, and with the monitor. A request's cycles are those between the
//! retirement of the last instruction before it and of its own last: what the counter of cycles shows the monitor.
//! Reading that counter, and the monitor's own branch, are not simulated.

use serde::Deserialize;
use sim::stlt::{Monitor, MonitorShape};

use super::{Bench, Guests, Kind, Row, cycles_of};
use crate::error::RunError;
use crate::guest::{Container, Distribution, Variant};

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
pub(super) struct Workload {
    name: String,
    distribution: Distribution,
    table_bytes: u64,
    /// What is asked for in turn with the first distribution.
    then: Option<Distribution>,
    /// Requests of a turn.
    every: Option<u64>,
}

/// How the table is used: nobody asks it, everybody does, or the monitor says whether.
const WAYS: [&str; 3] = ["alone", "always on", "monitored"];

impl Kind for Parameters {
    type Case = Workload;

    fn cases(&self) -> Result<Vec<Workload>, &'static str> {
        if self.trial_settle >= self.trial {
            return Err("nothing of a trial would be counted: 'trial_settle' is as long as 'trial'");
        }
        let is_half = |of: &Workload| of.then.is_some() != of.every.is_some() || of.every == Some(0);
        if self.workloads.iter().any(is_half) {
            return Err(
                "'then' says what is asked for in turn, 'every' how many requests a turn has: give both, or none",
            );
        }
        Ok(self.workloads.clone())
    }

    fn measure(&self, bench: &Bench, workload: &Workload, seed: u64) -> Result<Vec<Row>, RunError> {
        let [alone, always, monitored] = WAYS.map(|way| self.run(bench, workload, way, seed));
        let (alone, always, monitored) = (alone?, always?, monitored?);
        let requests = self.requests as f64;
        let row = |way: &str, counted: &Counted, compared: bool| {
            let mut numbers = vec![("cycles", "per request", counted.cycles as f64 / requests)];
            if compared {
                let share = counted.with_table as f64 / requests;
                numbers.extend([
                    ("speed-up", "x", (alone.cycles as f64 / requests) / (counted.cycles as f64 / requests)),
                    ("requests with the table", "%", 100.0 * share),
                    ("decisions that changed", "", counted.switches as f64),
                ]);
            }
            Row { configuration: way.into(), point: workload.name.clone(), numbers }
        };
        let [first, second, third] = WAYS;
        Ok(vec![row(first, &alone, false), row(second, &always, true), row(third, &monitored, true)])
    }
}

/// What a run counted.
struct Counted {
    cycles: u64,
    with_table: u64,
    switches: u64,
}

impl Parameters {
    fn run(&self, bench: &Bench, workload: &Workload, way: &str, seed: u64) -> Result<Counted, RunError> {
        let [alone, always, monitored] = WAYS.map(|known| known == way);
        let variant = if alone { Variant::Alone } else { Variant::Stlt };
        let guests = Guests::new(self.container, variant, workload.table_bytes);
        let (mut program, mut core) =
            bench.warm(Guests { distribution: workload.distribution, ..guests }, seed)?;
        let Parameters { period, trial, trial_settle: settle, .. } = *self;
        let mut monitor = Monitor::new(MonitorShape { period, trial, settle });
        let mut counted = Counted { cycles: 0, with_table: 0, switches: 0 };
        for request in 0..self.requests {
            if let (Some(then), Some(every)) = (workload.then, workload.every)
                && request.is_multiple_of(every)
            {
                let turn = request / every;
                let distribution = if turn.is_multiple_of(2) { workload.distribution } else { then };
                // Other requests than in the turns before.
                program.ask_for(distribution, seed + (turn + 1) * 1_000_003)?;
            }
            let uses = always || (monitored && monitor.uses_table());
            program.use_table(uses);
            counted.with_table += u64::from(uses);
            let cycles = cycles_of(&mut core, |core| program.run(core, 1));
            monitor.took(cycles);
            counted.cycles += cycles;
        }
        counted.switches = if monitored { monitor.switches() } else { 0 };
        Ok(counted)
    }
}
