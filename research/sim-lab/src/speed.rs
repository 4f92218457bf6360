//! What the simulator itself takes: instructions of a program a second, seconds of a run, memory.
//!
//! ```toml
//! [parameters]
//! machine = "gainestown"
//! guests = ["in-process", "qemu"]
//! value_bytes = 64
//! records = [
//!     { name = "1 M keys", keys = 1_000_000, table_bytes = 67_108_864, containers = ["unordered_map", "map"], variants = ["alone", "stlt"], lengths = { warm_up = 8_000_000, settle = 2_000, windows = 4, window = 32_000 } },
//! ]
//! ```
//!
//! Definitions of the kind `simulator-speed`. Every run has a process of its own and nothing of ours beside it, and is
//! made anew whenever it is asked for: what it takes is no property of its configuration, so it is not kept
//! ([`crate::store`]).
//!
//! Seconds are those of the processor that simulates ([`sim_qemu::cost`]). Instructions are counted in the windows,
//! with the clock; without it nobody counts them, and the requests of that phase are taken to need as many each.

use std::slice;

use indicatif::ProgressBar;
use lab::experiment::{Definition, Scale, Session};
use serde::Deserialize;

use crate::configuration::{Configuration, Guest, Lengths, Table};
use crate::error::{RunError, StudyError};
use crate::guest::{Container, Distribution, Hash, Variant};
use crate::run::Run;
use crate::store::Store;
use crate::study::Options;
use crate::sweep::sweep;

/// The kind of these definitions.
pub const KIND: &str = "simulator-speed";
/// Rows of a set.
const WAYS: u32 = 4;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    machine: String,
    guests: Vec<Guest>,
    value_bytes: u64,
    records: Vec<Records>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Records {
    name: String,
    keys: u32,
    table_bytes: u64,
    containers: Vec<Container>,
    variants: Vec<Variant>,
    lengths: Lengths,
}

/// Where a program runs, in words.
const fn place(guest: Guest) -> &'static str {
    match guest {
        Guest::InProcess => "in this process",
        Guest::Qemu => "under QEMU",
    }
}

fn parameters(definition: &Definition, scale: Scale) -> Result<Parameters, StudyError> {
    let parameters = definition.parameters_for(scale).try_into();
    parameters.map_err(|error: toml::de::Error| StudyError::parameters(definition, error))
}

/// Who runs the programs of a definition.
pub(crate) fn guests(definition: &Definition, scale: Scale) -> Result<Vec<Guest>, StudyError> {
    Ok(parameters(definition, scale)?.guests)
}

/// Records the rows of a definition.
pub(crate) fn record(
    definition: &Definition,
    options: &Options,
    progress: &ProgressBar,
    session: &mut Session,
) -> Result<(), StudyError> {
    let parameters = parameters(definition, options.scale)?;
    let machine = StudyError::machine(definition, &parameters.machine)?;
    let folder = tempfile::tempdir().map_err(RunError::io(std::env::temp_dir()))?;
    let mut wanted = Vec::new();
    for seed in 1..=session.runs() as u64 {
        for (records, &guest) in pairs(&parameters.records, &parameters.guests) {
            for (&container, &variant) in pairs(&records.containers, &records.variants) {
                let table = Table { bytes: records.table_bytes, ways: WAYS, hash: Hash::Xxh3 };
                let asked = (records.keys, parameters.value_bytes, Distribution::Zipf);
                let lengths = records.lengths;
                let configuration =
                    Configuration::new(guest, container, variant, asked, table, lengths, seed, &machine);
                wanted.push((&records.name, configuration.map_err(StudyError::configuration(definition))?));
            }
        }
    }
    progress.inc_length(wanted.len() as u64);
    let store = Store::open(folder.path())?;
    for (records, configuration) in &wanted {
        let Configuration { guest, container, variant, .. } = configuration;
        let name = format!("{}, {records}", place(*guest));
        let point = format!("{}, {}", container.name(), variant.title());
        progress.set_message(configuration.describe());
        let hidden = ProgressBar::hidden();
        let swept = sweep(slice::from_ref(configuration), &store, &options.place, 1, &hidden);
        progress.inc(1);
        match (store.get(configuration), swept.failed.into_iter().next()) {
            (Some(run), _) => {
                for (metric, unit, value) in samples(&run) {
                    session.record(&name, &point, metric, unit, value);
                }
            }
            (None, failed) => {
                session.skip(&name, failed.map_or_else(|| "it was not run".to_owned(), |(_, reason)| reason));
            }
        }
    }
    Ok(())
}

/// Each of the ones with each of the others.
fn pairs<'a, A, B>(ones: &'a [A], others: &'a [B]) -> impl Iterator<Item = (&'a A, &'a B)> {
    ones.iter().flat_map(move |one| others.iter().map(move |other| (one, other)))
}

/// Names, units and values of what a run took.
fn samples(run: &Run) -> Vec<(&'static str, &'static str, f64)> {
    let (lengths, cost, windows) = (run.configuration.lengths, run.cost, &run.measurement.windows);
    let counted: u64 = windows.iter().map(|window| window.core.instructions).sum();
    let each = counted as f64 / windows.iter().map(|window| window.operations).sum::<u64>() as f64;
    let unclocked = each * (lengths.warm_up - lengths.replayed()) as f64;
    let millions = |instructions: f64, seconds: f64| instructions / seconds.max(f64::MIN_POSITIVE) / 1e6;
    let mut samples = vec![
        ("without the clock", "M instructions/s", millions(unclocked, cost.functional)),
        ("with the clock", "M instructions/s", millions(counted as f64, cost.measured)),
        ("a run", "s", cost.seconds()),
    ];
    samples.extend(cost.peak_bytes.map(|bytes| ("memory", "GB", bytes as f64 / 1e9)));
    samples
}

#[cfg(test)]
mod tests {
    use sim::{CoreStatistics, FORMAT, Measurement, Profile, Window};
    use sim_qemu::cost::Cost;

    use super::*;

    #[test]
    fn speeds_are_instructions_by_the_seconds_of_their_phase() {
        let lengths = Lengths { warm_up: 9_000, functional: 4_000, settle: 5, windows: 2, window: 100 };
        let table = Table { bytes: 1 << 20, ways: 4, hash: Hash::Xxh3 };
        let (asked, machine) = ((1000, 64, Distribution::Zipf), Profile::stlt_paper());
        let configuration = Configuration::new(
            Guest::InProcess,
            Container::Map,
            Variant::Alone,
            asked,
            table,
            lengths,
            1,
            &machine,
        );
        let window = |instructions| Window {
            operations: 100,
            core: CoreStatistics { instructions, ..CoreStatistics::default() },
            ..Window::default()
        };
        let measurement = Measurement {
            format: FORMAT,
            machine: String::new(),
            guest: String::new(),
            variant: String::new(),
            seed: 1,
            windows: vec![window(40_000), window(60_000)],
        };
        let cost = Cost { load: 1.0, functional: 0.25, detailed: 0.5, measured: 0.125, peak_bytes: None };
        let configuration = configuration.expect("legal");
        let mut run = Run { configuration, programs: None, measurement, seconds: 99.0, cost };
        let without = ("without the clock", "M instructions/s", 8.0);
        let with = ("with the clock", "M instructions/s", 0.8);
        assert_eq!(samples(&run), [without, with, ("a run", "s", 1.875)]);
        run.cost.peak_bytes = Some(3_000_000_000);
        assert_eq!(samples(&run)[3], ("memory", "GB", 3.0));
    }
}
