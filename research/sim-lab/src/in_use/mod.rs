//! What happens to a table in use: it does not pay, it is resized, it is attacked, other processes run, records and
//! pages move.
//!
//! A [study](crate::study) is a product of programs and machines, each left alone while it is measured. Here something
//! is done to it meanwhile:
//!
//! | kind | module | question |
//! |---|---|---|
//! | `stlt-requests` | `requests` | what do a monitor, an attacker, moving records and pages do to each request? |
//! | `stlt-resize` | `resize` | what does STLTresize cost, and how long does the table take to be warm again? |
//! | `stlt-switches` | `switches` | what do other processes cost, by time slice (III-D1)? |
//!
//! Each is a `Kind`: parameters, which give cases, and what is measured of a case. All run guests in this process, on
//! the machine and with the timing of all other experiments; a run takes seconds, so it is not kept ([`crate::store`]),
//! and definitions have no `tables` and `machines` to multiply. Common to all is
//!
//! ```toml
//! [parameters.setting]
//! machine = "gainestown"
//! keys = 1_000_000
//! value_bytes = 64
//! warm_up = 8_000_000            # requests without a clock; the last `functional` of them concern more than the table
//! functional = 500_000
//! settle = 2_000                 # requests with the clock that are not counted
//! ```

mod requests;
mod resize;
mod switches;

use indicatif::ProgressBar;
use lab::experiment::{Definition, Session};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sim::{Core, Profile};

use crate::configuration::{Configuration, Guest, Lengths, Table};
use crate::error::{RunError, StudyError};
use crate::guest::{Container, Distribution, Hash, Program, Variant};
use crate::options::Options;
use crate::run;
use crate::sweep::side_by_side;

/// Rows of a set, everywhere here.
const WAYS: u32 = 4;
/// Cycles in a million.
const MILLION: f64 = 1e6;

/// What an experiment of these asks.
trait Kind: DeserializeOwned + Sync {
    /// One thing to measure.
    type Case: Send + Sync;

    /// All of them, or what is wrong with the parameters.
    fn cases(&self) -> Result<Vec<Self::Case>, String>;

    /// Measures one, with keys, requests and frames of this seed.
    fn measure(&self, bench: &Bench, case: &Self::Case, seed: u64) -> Result<Vec<Row>, RunError>;
}

/// What was measured of a configuration at a point: metric, unit and value of each number.
struct Row {
    configuration: String,
    point: String,
    numbers: Vec<(&'static str, &'static str, f64)>,
}

/// Reads parameters, and measures every case with each seed, some at a time.
type Measure = fn(toml::Table, &Definition, &Options, &ProgressBar, &mut Session) -> Result<(), StudyError>;

fn measure_of(kind: &str) -> Option<Measure> {
    Some(match kind {
        "stlt-requests" => measure::<requests::Parameters>,
        "stlt-resize" => measure::<resize::Parameters>,
        "stlt-switches" => measure::<switches::Parameters>,
        _ => return None,
    })
}

/// Whether definitions of this kind are for this module.
#[must_use]
pub fn is(kind: &str) -> bool {
    measure_of(kind).is_some()
}

/// The setting, the parameters and their cases.
fn read<K: Kind>(mut table: toml::Table) -> Result<(Setting, K, Vec<K::Case>), toml::de::Error> {
    let missing = || serde::de::Error::missing_field("setting");
    let setting = table.remove("setting").ok_or_else(missing)?.try_into()?;
    let kind: K = table.try_into()?;
    let cases = kind.cases().map_err(serde::de::Error::custom)?;
    Ok((setting, kind, cases))
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
    if options.guest != Guest::InProcess {
        let reason = "what is done to a table in use is done to programs in this process: leave out --guest";
        return Err(StudyError::parameters(definition, reason));
    }
    let Some(measure) = measure_of(&definition.kind) else {
        let (experiment, kind) = (definition.name.clone(), definition.kind.clone());
        return Err(StudyError::Kind { experiment, kind });
    };
    measure(definition.parameters_for(options.scale), definition, options, progress, session)
}

fn measure<K: Kind>(
    parameters: toml::Table,
    definition: &Definition,
    options: &Options,
    progress: &ProgressBar,
    session: &mut Session,
) -> Result<(), StudyError> {
    let (setting, kind, cases) =
        read::<K>(parameters).map_err(|error| StudyError::parameters(definition, error))?;
    let machine = StudyError::machine(definition, &setting.machine)?;
    let bench = Bench { setting, machine };
    let seeds = 1..=session.runs() as u64;
    let all: Vec<(u64, &K::Case)> =
        seeds.flat_map(|seed| cases.iter().map(move |case| (seed, case))).collect();
    progress.inc_length(all.len() as u64);
    for rows in side_by_side(&all, options.jobs, |&(seed, case)| {
        let rows = kind.measure(&bench, case, seed);
        progress.inc(1);
        rows
    }) {
        for Row { configuration, point, numbers } in rows? {
            for (metric, unit, value) in numbers {
                session.record(&configuration, &point, metric, unit, value);
            }
        }
    }
    Ok(())
}
