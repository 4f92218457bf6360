//! What happens to a table in use: it does not pay, it is resized, it is attacked, other processes run, records and pages
//! move.
//!
//! A [study](crate::study) is a product of programs and machines, each left alone while it is measured. Here something is
//! done to it meanwhile, so each question is a kind of experiment of its own, with a module of its own:
//!
//! | kind | module | question |
//! |---|---|---|
//! | `stlt-monitor` | `monitor` | does switching it off save what a useless table costs (section III-F)? |
//! | `stlt-resize` | `resize` | what does STLTresize cost, and how long does the table take to be warm again? |
//! | `stlt-flood` | `flood` | what do keys that collide do to everybody else (III-H)? |
//! | `stlt-switches` | `switches` | what do other processes cost, by time slice (III-D1)? |
//! | `stlt-moves` | `moves` | what is left of the gain when records and pages move (III-F, III-D1)? |
//!
//! All run guests in this process, on the machine and with the timing of all other experiments; a run takes seconds, so it
//! is not kept ([`crate::store`]), and definitions have no `tables` and `machines` to multiply. Common to all is
//!
//! ```toml
//! [parameters.setting]
//! machine = "gainestown"
//! keys = 1_000_000
//! value_bytes = 64
//! warm_up = 8_000_000            # requests without a clock, of which the last `functional` concern more than the table
//! functional = 500_000
//! settle = 2_000                 # requests with the clock that are not counted
//! ```

mod flood;
mod monitor;
mod moves;
mod resize;
mod switches;

use std::collections::VecDeque;
use std::sync::Mutex;

use indicatif::ProgressBar;
use lab::experiment::{Definition, Session};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sim::{Core, Profile};

use crate::configuration::{Configuration, Guest, Lengths, Table};
use crate::guest::{Container, Distribution, Hash, Program, Variant};
use crate::machine::profile;
use crate::run::{self, RunError};
use crate::study::{Options, StudyError};

/// Rows of a set, everywhere here.
const WAYS: u32 = 4;
/// Cycles in a million.
const MILLION: f64 = 1e6;

/// Whether definitions of this kind are for this module.
#[must_use]
pub fn is(kind: &str) -> bool {
    maker(kind).is_some()
}

/// A number that was measured.
struct Sample {
    configuration: String,
    point: String,
    metric: &'static str,
    unit: &'static str,
    value: f64,
}

/// One thing to measure, with a seed.
type Job = Box<dyn Fn(&Bench, u64) -> Result<Vec<Sample>, RunError> + Send + Sync>;
/// Reads parameters: the setting, and what to measure in it.
type Maker = fn(toml::Table) -> Result<(Setting, Vec<Job>), toml::de::Error>;

fn maker(kind: &str) -> Option<Maker> {
    Some(match kind {
        "stlt-monitor" => |table| jobs(table, monitor::jobs),
        "stlt-resize" => |table| jobs(table, resize::jobs),
        "stlt-flood" => |table| jobs(table, flood::jobs),
        "stlt-switches" => |table| jobs(table, switches::jobs),
        "stlt-moves" => |table| jobs(table, moves::jobs),
        _ => return None,
    })
}

fn jobs<P: DeserializeOwned>(
    mut table: toml::Table,
    of: impl Fn(P) -> Result<Vec<Job>, &'static str>,
) -> Result<(Setting, Vec<Job>), toml::de::Error> {
    let missing = || serde::de::Error::missing_field("setting");
    let setting = table.remove("setting").ok_or_else(missing)?.try_into()?;
    Ok((setting, of(table.try_into()?).map_err(serde::de::Error::custom)?))
}

/// What is common to all kinds.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Setting {
    machine: String,
    keys: u32,
    value_bytes: u64,
    warm_up: u64,
    functional: u64,
    settle: u64,
}

/// A setting and its machine.
struct Bench {
    setting: Setting,
    machine: Profile,
}

/// What is looked up, and how.
#[derive(Debug, Clone, Copy)]
struct Guests {
    container: Container,
    variant: Variant,
    distribution: Distribution,
    table_bytes: u64,
    hash: Hash,
}

impl Guests {
    fn new(container: Container, variant: Variant, table_bytes: u64) -> Guests {
        Guests { container, variant, distribution: Distribution::Zipf, table_bytes, hash: Hash::Xxh3 }
    }
}

impl Bench {
    fn lengths(&self) -> Lengths {
        let Setting { warm_up, functional, settle, .. } = self.setting;
        // How long it is measured, the kinds say.
        Lengths { warm_up, functional, settle, windows: 1, window: 1 }
    }

    fn configuration(&self, of: Guests, seed: u64) -> Result<Configuration, RunError> {
        let asked = (self.setting.keys, self.setting.value_bytes, of.distribution);
        let table = Table { bytes: of.table_bytes, ways: WAYS, hash: of.hash };
        let (guest, lengths) = (Guest::InProcess, self.lengths());
        Ok(Configuration::new(guest, of.container, of.variant, asked, table, lengths, seed, &self.machine)?)
    }

    /// A program that is loaded and warm, on a core that has done its first requests.
    fn warm(&self, of: Guests, seed: u64) -> Result<(Program, Core), RunError> {
        let (mut program, mut machine) = run::load(&self.configuration(of, seed)?)?;
        run::warm_up(&mut program, &mut machine, self.lengths());
        let mut core = Core::with_machine(machine);
        core.resume();
        program.run(&mut core, self.setting.settle);
        Ok((program, core))
    }

    /// Millions of cycles as milliseconds.
    fn milliseconds(&self, cycles: f64) -> f64 {
        cycles / (self.machine.gigahertz * MILLION)
    }
}

/// The cycles of what is done to a core.
fn cycles_of(core: &mut Core, act: impl FnOnce(&mut Core)) -> u64 {
    let before = core.statistics().cycles;
    act(core);
    core.statistics().cycles - before
}

/// Records the rows of a definition.
pub(crate) fn record(
    definition: &Definition,
    options: &Options,
    progress: &ProgressBar,
    session: &mut Session,
) -> Result<(), StudyError> {
    let experiment = || definition.name.clone();
    if options.guest != Guest::InProcess {
        let reason =
            "what is done to a table in use is done to programs in this process: leave out --guest".into();
        return Err(StudyError::Parameters { experiment: experiment(), reason });
    }
    let wrong = |reason: toml::de::Error| StudyError::Parameters {
        experiment: experiment(),
        reason: reason.to_string(),
    };
    let Some(maker) = maker(&definition.kind) else {
        return Err(StudyError::Kind { experiment: experiment(), kind: definition.kind.clone() });
    };
    let (setting, jobs) = maker(definition.parameters_for(options.scale)).map_err(wrong)?;
    let machine = profile(&setting.machine, &definition.path).map_err(|error| StudyError::Machine {
        experiment: experiment(),
        machine: setting.machine.clone(),
        error,
    })?;
    let bench = Bench { setting, machine };
    let seeds = 1..=session.runs() as u64;
    let all: Vec<(u64, &Job)> = seeds.flat_map(|seed| jobs.iter().map(move |job| (seed, job))).collect();
    progress.inc_length(all.len() as u64);
    for samples in side_by_side(&all, options.jobs, |&(seed, job)| {
        let samples = job(&bench, seed);
        progress.inc(1);
        samples
    }) {
        for sample in samples? {
            session.record(&sample.configuration, &sample.point, sample.metric, sample.unit, sample.value);
        }
    }
    Ok(())
}

/// What comes of each, in their order, so many at a time.
fn side_by_side<T: Sync, R: Send>(all: &[T], at_a_time: usize, act: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let queue: Mutex<VecDeque<usize>> = Mutex::new((0..all.len()).collect());
    let next = || queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop_front();
    let work = || {
        let mut done = Vec::new();
        while let Some(place) = next() {
            done.push((place, act(&all[place])));
        }
        done
    };
    let mut done = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..at_a_time.clamp(1, all.len().max(1))).map(|_| scope.spawn(work)).collect();
        let joined = workers.into_iter().map(|worker| worker.join());
        joined
            .flat_map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect::<Vec<_>>()
    });
    done.sort_by_key(|of| of.0);
    done.into_iter().map(|of| of.1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_side_by_side_comes_back_in_order() {
        for at_a_time in [0, 1, 3, 100] {
            assert_eq!(side_by_side(&[3, 1, 2], at_a_time, |number| 10 * number), [30, 10, 20]);
            assert_eq!(side_by_side(&[], at_a_time, |number: &u64| *number), [0; 0]);
        }
    }

    #[test]
    fn kinds_are_known_and_unknown_fields_refused() {
        assert!(is("stlt-flood") && !is("simulation") && !is("stlt-storage"));
        let setting = "[setting]\nmachine = 'gainestown'\nkeys = 10\nvalue_bytes = 8\nwarm_up = 1\nfunctional = 1\nsettle = 1\n";
        let sound = "containers = ['map']\ntable_bytes = 1024\nto = ['half']\nafter = [10]\nwindow = 5\n";
        let read = |text: &str| {
            let table: toml::Table = toml::from_str(text).expect("TOML");
            maker("stlt-resize").expect("a kind")(table).map(|(_, jobs)| jobs.len())
        };
        assert_eq!(read(&format!("{sound}{setting}")), Ok(1));
        for wrong in [format!("widow = 3\n{sound}{setting}"), sound.to_owned(), setting.to_owned()] {
            assert!(read(&wrong).is_err(), "{wrong}");
        }
    }
}
