//! Kind `server-drift`: whether the hit ratio follows a load whose values change their sizes.
//!
//! ```text
//!   drifted   phase 1 ---> phase 2 ---> phase 3     one server; no key of a phase is asked for in another
//!   fresh                  phase 2                  a server that was empty before, and gets the same requests
//!   fresh                               phase 3
//!
//!   a phase   | one turnover: keys and values stored come to the limit | half a turnover: the hits are compared |
//! ```
//!
//! A load is cut into parts of equally many requests, one for each phase. That the keys of a phase are its own is the
//! sternest form: all that was stored before is worthless when the sizes change, and looks as good as what comes.
//! Requests are gets, and a miss is followed by a set. A phase ends with what is compared. The fresh server is asked
//! for the same, to the last request, and has been filled by the time that counts: it misses more before it.

use indicatif::ProgressBar;
use rand::distr::Distribution;
use serde::Deserialize;
use workload::generator::seeded;
use workload::popularity::Popularity;
use workload::sizes::Fixed;
use workload::stand_in::recorded_or_generated;

use super::contender::{Contender, Running};
use super::cores::Cores;
use super::failed;
use super::replay::on_core;
use crate::drive::{DriveError, Items, Progress, RecordedTrace, Replay, ReplayReport, SizesOf, sizes};
use crate::experiment::{ExperimentError, Session};

/// Larger values are cut, in bytes: below what the servers take by default for an item.
const LARGEST_VALUE: u64 = 1_000_000;
/// Turnovers after which the hits are compared, and when a phase ends.
const COMPARED: [f64; 2] = [1.0, 1.5];
/// What the requests are drawn from.
const SEED: u64 = 11;

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    servers: Vec<Contender>,
    /// The servers' threads.
    threads: usize,
    /// Requests in a window.
    depth: usize,
    drifts: Vec<Drift>,
}

/// A load whose values change their sizes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Drift {
    name: String,
    /// Memory of a server in MiB.
    memory: u64,
    load: Source,
    /// Requests of a phase at the most.
    requests: usize,
    phases: Vec<Phase>,
}

/// What is asked for.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Source {
    /// So many records, with YCSB's exponent and keys of sixteen bytes.
    Zipfian(u64),
    /// A trace, by its name in the data folder.
    Trace(String),
}

/// The values of a phase.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Phase {
    name: String,
    /// The distribution of their sizes, by name.
    values: String,
    /// Every size times this.
    #[serde(default = "unscaled")]
    scale: f64,
}

fn unscaled() -> f64 {
    1.0
}

impl Phase {
    fn items(&self) -> Result<Items, DriveError> {
        let values = sizes(&self.values, SizesOf::Values, self.scale)?;
        // Keys are those of the load.
        Ok(Items::new(Box::new(Fixed(0)), values).cut_values_at(LARGEST_VALUE))
    }
}

impl Source {
    fn read(&self, requests: usize, session: &mut Session) -> Result<RecordedTrace, DriveError> {
        match self {
            Source::Zipfian(records) => {
                let mut random = seeded(SEED);
                let popularity = Popularity::zipfian(*records, workload::popularity::YCSB_THETA)?;
                let drawn = (0..requests).map(|_| popularity.sample(&mut random));
                Ok(RecordedTrace::of_records(drawn, &Items::fixed(16, 0)))
            }
            Source::Trace(name) => {
                let found = recorded_or_generated(name)?;
                let (trace, stand_in) = found.map_err(|absent| DriveError::Settings(absent.to_string()))?;
                if let Some(stand_in) = stand_in {
                    session.skip(name, stand_in.to_string());
                }
                RecordedTrace::of(trace, requests)
            }
        }
    }
}

/// How a server was asked for a phase.
struct Played {
    report: ReplayReport,
    /// How far it was after each window.
    course: Vec<Progress>,
}

impl Played {
    /// Plays `replay` until a phase's stores come to so many bytes, or for exactly so many windows.
    fn play(
        server: &Running,
        replay: &Replay<'_>,
        until: Until,
        cores: Cores,
    ) -> Result<Played, ExperimentError> {
        let process = &server.processes[0];
        let mut course = Vec::new();
        let report = on_core(cores.client, || {
            let clock = process.clock()?;
            let bar = ProgressBar::hidden();
            replay.play_while(&server.name, process.endpoint(), Some(clock), &bar, |progress| {
                course.push(progress);
                match until {
                    Until::Refilled(bytes) => progress.refilled < bytes,
                    Until::Windows(windows) => course.len() < windows,
                }
            })
        });
        let report = report.map_err(|error| failed(&server.name, error))?;
        Ok(Played { report, course })
    }

    /// Percent of the gets from window `from` on that found their value.
    fn hit_ratio(&self, from: usize) -> f64 {
        let (before, after) = (self.course[from], self.course[self.course.len() - 1]);
        100.0 * (after.hits - before.hits) as f64 / (after.gets - before.gets).max(1) as f64
    }
}

/// When a phase ends.
#[derive(Debug, Clone, Copy)]
enum Until {
    Refilled(u64),
    Windows(usize),
}

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let names = || parameters.servers.iter().map(|server| server.name.as_str());
    let Some(cores) = Cores::find(session, names())? else { return Ok(()) };
    let phases: usize = parameters.drifts.iter().map(|drift| drift.phases.len()).sum();
    session.announce(session.runs() * phases * parameters.servers.len());
    for drift in &parameters.drifts {
        let wrong = |error| failed(&drift.name, error);
        let load = drift.load.read(drift.requests * drift.phases.len(), session).map_err(wrong)?;
        let items = drift.phases.iter().map(Phase::items).collect::<Result<Vec<_>, _>>().map_err(wrong)?;
        let replays: Vec<_> = items
            .iter()
            .enumerate()
            .map(|(part, items)| Replay::new(&load.part(part, drift.phases.len()), items, parameters.depth))
            .collect();
        drop(load);
        for _ in 0..session.runs() {
            for server in &parameters.servers {
                follow(server, drift, &replays, parameters.threads, cores, session)?;
            }
        }
    }
    Ok(())
}

/// Plays all phases against one server, and each but the first against a fresh one, too.
fn follow(
    server: &Contender,
    drift: &Drift,
    replays: &[Replay<'_>],
    threads: usize,
    cores: Cores,
    session: &mut Session,
) -> Result<(), ExperimentError> {
    let memory = ["-m".to_owned(), drift.memory.to_string()];
    let start = |session: &mut Session| server.start(threads, &memory, Some(cores.server), session);
    let turnovers = |count: f64| ((drift.memory << 20) as f64 * count) as u64;
    let Some(drifted) = start(session)? else { return Ok(()) };
    for (number, (phase, replay)) in drift.phases.iter().zip(replays).enumerate() {
        session.begin(format!("{}, {}, {}", server.name, drift.name, phase.name));
        let played = Played::play(&drifted, replay, Until::Refilled(turnovers(COMPARED[1])), cores)?;
        let turned = played.course.iter().position(|at| at.refilled >= turnovers(COMPARED[0]));
        let windows = played.course.len();
        let from = turned.filter(|&from| from + 1 < windows).ok_or_else(|| {
            let found = format!("{}: too few requests for a turnover and what is compared", phase.name);
            ExperimentError::Machine(found)
        })?;
        if number > 0 {
            let Some(fresh) = start(session)? else { return Ok(()) };
            let fresh = Played::play(&fresh, replay, Until::Windows(windows), cores)?;
            let point = format!("{}, {}", drift.name, phase.name);
            let mut record = |metric, unit, value| session.record(&server.name, &point, metric, unit, value);
            let (own, anew) = (played.hit_ratio(from), fresh.hit_ratio(from));
            record("hit ratio", "%", own);
            record("hit ratio of a fresh server", "%", anew);
            record("behind a fresh server", "points", anew - own);
            record("duration of the phase", "s", played.report.seconds);
            record("refused", "requests", played.report.refused as f64);
        }
        session.end();
    }
    Ok(())
}
