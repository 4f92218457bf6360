//! Experiments of simulated runs: definitions as the laboratory has them (`research/experiments/sim/*.toml`), of the
//! kind `simulation`.
//!
//! ```toml
//! [parameters]
//! guests = ["qemu"]                                # only where nobody else can run its programs
//! keys = 10_000_000
//! containers = ["map", "btree"]                    # the runs are the product of these lists
//! variants = ["slb", "stlt"]
//! distributions = ["zipf"]
//! value_bytes = [64]
//! tables = [{ name = "512 MB", stlt_bytes = 536_870_912, slb_bytes = 1_342_177_280 }]
//! ways = [4]
//! hashes = ["xxh3"]
//! machines = [{ name = "", profile = "gainestown" },
//!             { name = "2 MiB pages", profile = "gainestown", changes = { paging = { pages = "2MiB" } } }]
//! lengths = { warm_up = 80_000_000, settle = 2_000, windows = 4, window = 32_000 }
//! over = { variant = "alone" }                     # what metrics compare with: the same run, but for this
//! configuration = ["container", "variant"]         # what makes up a row's name ...
//! point = ["table"]                                # ... and its point
//! metrics = ["speed-up", "table-misses"]
//! means = [{ name = "trees, STLT", containers = ["map", "btree"], variants = ["stlt"] }]
//! ```
//!
//! `runs` in the definition is the number of seeds: each is another set of keys, another sequence of requests and
//! another layout of frames, so a row's extremes are a band over what the paper leaves open.
//!
//! All runs that a study needs are made first ([`crate::sweep`]), then its rows are computed from what is kept.

use indicatif::ProgressBar;
use lab::experiment::{Definition, Scale, Session};
use lab::machine::Provenance;
use lab::results::Results;
use serde::{Deserialize, Serialize};
use sim::Profile;

use crate::configuration::{Configuration, Guest, Lengths, Table};
use crate::error::StudyError;
use crate::guest::{Container, Distribution, Hash, Variant};
use crate::in_use;
use crate::metric::Metric;
use crate::options::Options;
use crate::run::Run;
use crate::storage;
use crate::store::Store;
use crate::sweep::{Swept, sweep};

/// The kind of definitions that are studies.
pub const KIND: &str = "simulation";

/// Whether definitions of this kind are the simulator's.
#[must_use]
pub fn is(kind: &str) -> bool {
    [KIND, storage::KIND].contains(&kind) || in_use::is(kind)
}

/// A size of the tables in front.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableSize {
    name: String,
    stlt_bytes: u64,
    slb_bytes: u64,
}

/// A machine, by its file, with changes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct MachineShape {
    name: String,
    profile: String,
    #[serde(default)]
    changes: toml::Table,
}

/// What runs differ in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Axis {
    Container,
    Variant,
    Distribution,
    Value,
    Table,
    Ways,
    Hash,
    Machine,
}

/// What is compared with: the fields that are there replace the run's own.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Over {
    variant: Option<Variant>,
    machine: Option<String>,
}

/// A mean over several runs.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mean {
    name: String,
    #[serde(default)]
    containers: Vec<Container>,
    #[serde(default)]
    variants: Vec<Variant>,
    #[serde(default)]
    distributions: Vec<Distribution>,
    #[serde(default)]
    machines: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// Who runs its programs, if not whoever was asked to: our own indexes are compiled programs.
    #[serde(default)]
    guests: Vec<Guest>,
    keys: u32,
    containers: Vec<Container>,
    variants: Vec<Variant>,
    distributions: Vec<Distribution>,
    value_bytes: Vec<u64>,
    tables: Vec<TableSize>,
    #[serde(default = "four_ways")]
    ways: Vec<u32>,
    #[serde(default = "xxh3")]
    hashes: Vec<Hash>,
    machines: Vec<MachineShape>,
    lengths: Lengths,
    #[serde(default)]
    over: Over,
    configuration: Vec<Axis>,
    #[serde(default)]
    point: Vec<Axis>,
    metrics: Vec<Metric>,
    #[serde(default)]
    means: Vec<Mean>,
}

fn four_ways() -> Vec<u32> {
    vec![4]
}

fn xxh3() -> Vec<Hash> {
    vec![Hash::Xxh3]
}

/// A place in the product of a study's lists.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Cell<'s> {
    guest: Guest,
    container: Container,
    variant: Variant,
    distribution: Distribution,
    value_bytes: u64,
    table: &'s TableSize,
    ways: u32,
    hash: Hash,
    machine: &'s (MachineShape, Profile),
}

impl Cell<'_> {
    fn part(&self, axis: Axis) -> String {
        match axis {
            Axis::Container => self.container.name().into(),
            Axis::Variant => self.variant.title().into(),
            Axis::Distribution => self.distribution.title().into(),
            Axis::Value => format!("{} B", self.value_bytes),
            Axis::Table => self.table.name.clone(),
            Axis::Ways => format!("{}-way", self.ways),
            Axis::Hash => self.hash.title().into(),
            Axis::Machine => self.machine.0.name.clone(),
        }
    }

    fn named(&self, axes: &[Axis]) -> String {
        let parts = axes.iter().map(|&axis| self.part(axis)).filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join(", ")
    }
}

/// A study: its definition, read.
#[derive(Debug)]
pub struct Study<'d> {
    definition: &'d Definition,
    parameters: Parameters,
    machines: Vec<(MachineShape, Profile)>,
}

impl<'d> Study<'d> {
    /// Reads the study of a definition; its machines lie in the folder `profiles` above the definition's.
    ///
    /// # Errors
    /// If it is none, or one of its machines cannot be built.
    pub fn new(definition: &'d Definition, scale: Scale) -> Result<Study<'d>, StudyError> {
        if definition.kind != KIND {
            let (experiment, kind) = (definition.name.clone(), definition.kind.clone());
            return Err(StudyError::Kind { experiment, kind });
        }
        let wrong = |reason: String| StudyError::parameters(definition, reason);
        let parameters: Parameters = definition
            .parameters_for(scale)
            .try_into()
            .map_err(|error: toml::de::Error| wrong(error.to_string()))?;
        let known = |name: &String| parameters.machines.iter().any(|machine| machine.name == *name);
        let named =
            parameters.over.machine.iter().chain(parameters.means.iter().flat_map(|mean| &mean.machines));
        if let Some(unknown) = named.into_iter().find(|name| !known(name)) {
            return Err(wrong(format!("there is no machine '{unknown}' among its machines")));
        }
        if let Some(twice) = parameters.configuration.iter().find(|axis| parameters.point.contains(axis)) {
            return Err(wrong(format!("{twice:?} is both in the configuration and in the point")));
        }
        let machines = parameters.machines.iter().map(|shape| {
            let machine = StudyError::machine(definition, &shape.profile)?
                .with_changes(&shape.changes)
                .map_err(|error| StudyError::no_machine(definition, &shape.profile, error))?;
            let name = match shape.name.as_str() {
                "" => shape.profile.clone(),
                name => format!("{}, {name}", shape.profile),
            };
            Ok((shape.clone(), Profile { name, ..machine }))
        });
        let machines = machines.collect::<Result<_, StudyError>>()?;
        Ok(Study { definition, parameters, machines })
    }

    fn cells(&self, asked: Guest) -> Vec<Cell<'_>> {
        let of = &self.parameters;
        let mut cells = Vec::new();
        for guest in self.guests(asked) {
            for (&container, &variant) in product(&of.containers, &of.variants) {
                for (machine, &distribution) in product(&self.machines, &of.distributions) {
                    for (&value_bytes, table) in product(&of.value_bytes, &of.tables) {
                        let last = product(&of.ways, &of.hashes).map(|(&ways, &hash)| Cell {
                            guest,
                            container,
                            variant,
                            distribution,
                            value_bytes,
                            table,
                            ways,
                            hash,
                            machine,
                        });
                        cells.extend(last);
                    }
                }
            }
        }
        cells
    }

    /// What a cell is compared with.
    fn other<'s>(&'s self, cell: &Cell<'s>) -> Cell<'s> {
        let over = &self.parameters.over;
        let named = |name: &String| self.machines.iter().find(|machine| machine.0.name == *name);
        let machine = over.machine.as_ref().and_then(named);
        Cell {
            variant: over.variant.unwrap_or(cell.variant),
            machine: machine.unwrap_or(cell.machine),
            ..*cell
        }
    }

    /// Who runs its programs, where `asked` does unless the definition names others: our own indexes are compiled ones.
    #[must_use]
    pub fn guests(&self, asked: Guest) -> Vec<Guest> {
        let named = &self.parameters.guests;
        if named.is_empty() { vec![asked] } else { named.clone() }
    }

    fn configured(&self, cell: &Cell<'_>, seed: u64) -> Result<Configuration, StudyError> {
        let bytes = match cell.variant {
            variant if variant.is_slb() => cell.table.slb_bytes,
            _ => cell.table.stlt_bytes,
        };
        let table = Table { bytes, ways: cell.ways, hash: cell.hash };
        let asked = (self.parameters.keys, cell.value_bytes, cell.distribution);
        let (container, variant, lengths) = (cell.container, cell.variant, self.parameters.lengths);
        Configuration::new(cell.guest, container, variant, asked, table, lengths, seed, &cell.machine.1)
            .map_err(StudyError::configuration(self.definition))
    }

    fn compares(&self) -> bool {
        self.parameters.metrics.iter().any(|metric| metric.compares())
    }

    /// All runs that it needs, with `seeds` seeds, those that others are compared with first.
    ///
    /// # Errors
    /// If one is impossible.
    pub fn configurations(&self, guest: Guest, seeds: usize) -> Result<Vec<Configuration>, StudyError> {
        let mut configurations: Vec<Configuration> = Vec::new();
        for seed in 1..=seeds as u64 {
            for cell in self.cells(guest) {
                let others = if self.compares() { vec![self.other(&cell)] } else { Vec::new() };
                for cell in others.iter().chain([&cell]) {
                    let configuration = self.configured(cell, seed)?;
                    if !configurations.contains(&configuration) {
                        configurations.push(configuration);
                    }
                }
            }
        }
        Ok(configurations)
    }

    /// Records the rows of `seeds` seeds from the runs that are kept; a run that failed is skipped, with `reason`.
    fn record(
        &self,
        (guest, seeds): (Guest, usize),
        store: &Store,
        reason: impl Fn(&Configuration) -> String,
        session: &mut Session,
    ) -> Result<(), StudyError> {
        let parameters = &self.parameters;
        for seed in 1..=seeds as u64 {
            let mut recorded = Vec::new();
            for cell in self.cells(guest) {
                let configuration = self.configured(&cell, seed)?;
                let beside = self.configured(&self.other(&cell), seed)?;
                let name = cell.named(&parameters.configuration);
                let run = |wanted: &Configuration| store.get(wanted).ok_or_else(|| reason(wanted));
                let runs = run(&configuration).and_then(|ours| {
                    // Where nothing compares, the other was not made.
                    let other = if self.compares() { run(&beside)? } else { ours.clone() };
                    Ok((ours, other))
                });
                match runs {
                    Ok((ours, other)) => {
                        let same = configuration == beside;
                        let samples = self.samples(&ours, &other, same);
                        for sample in &samples {
                            let point = cell.named(&parameters.point);
                            session.record(&name, &point, sample.metric.clone(), sample.unit, sample.value);
                        }
                        recorded.push((cell, samples));
                    }
                    Err(reason) => session.skip(&name, reason),
                }
            }
            for mean in &parameters.means {
                let of = recorded.iter().filter(|(cell, _)| mean.covers(cell));
                let samples: Vec<_> = of.flat_map(|(_, samples)| samples).collect();
                if samples.is_empty() {
                    session.skip(&mean.name, "nothing of it was measured");
                }
                let mut done: Vec<&str> = Vec::new();
                for sample in &samples {
                    if done.contains(&sample.metric.as_str()) {
                        continue;
                    }
                    done.push(&sample.metric);
                    let same = samples.iter().filter(|other| other.metric == sample.metric);
                    let values: Vec<f64> = same.map(|sample| sample.value).collect();
                    let value = values.iter().sum::<f64>() / values.len() as f64;
                    session.record(&mean.name, "", sample.metric.clone(), sample.unit, value);
                }
            }
        }
        Ok(())
    }

    fn samples(&self, ours: &Run, other: &Run, same: bool) -> Vec<crate::metric::Sample> {
        let metrics = self.parameters.metrics.iter();
        // Beside itself, a run has nothing to say.
        metrics
            .filter(|metric| !(same && metric.compares()))
            .flat_map(|metric| metric.of(ours, other))
            .collect()
    }
}

/// Each of the ones with each of the others.
fn product<'a, A, B>(ones: &'a [A], others: &'a [B]) -> impl Iterator<Item = (&'a A, &'a B)> {
    ones.iter().flat_map(move |one| others.iter().map(move |other| (one, other)))
}

impl Mean {
    fn covers(&self, cell: &Cell<'_>) -> bool {
        fn has<T: PartialEq>(list: &[T], one: &T) -> bool {
            list.is_empty() || list.contains(one)
        }
        has(&self.containers, &cell.container)
            && has(&self.variants, &cell.variant)
            && has(&self.distributions, &cell.distribution)
            && has(&self.machines, &cell.machine.0.name)
    }
}

/// Who runs the programs of a definition of any kind, where `asked` does unless it names others; nobody, if nothing is
/// run.
///
/// # Errors
/// If its parameters cannot be read.
pub fn guests(definition: &Definition, asked: Guest, scale: Scale) -> Result<Vec<Guest>, StudyError> {
    Ok(match definition.kind.as_str() {
        storage::KIND => Vec::new(),
        kind if in_use::is(kind) => vec![Guest::InProcess],
        _ => Study::new(definition, scale)?.guests(asked),
    })
}

/// Makes the runs of a definition that are missing, and its results. What is done to tables in use ([`in_use`]) is
/// made anew whenever it is asked for.
///
/// # Errors
/// If the definition is no study, or the store cannot be had. Runs that fail are skipped in the results, with
/// what they said.
pub fn results(
    definition: &Definition,
    store: &Store,
    options: &Options,
    provenance: Provenance,
    progress: ProgressBar,
) -> Result<(Results, Swept), StudyError> {
    let seeds = options.seeds.unwrap_or_else(|| definition.runs_for(options.scale));
    let mut session = Session::new(seeds, progress.clone());
    let mut swept = Swept::default();
    if definition.kind == storage::KIND {
        storage::record(definition, options.scale, &mut session)?;
    } else if in_use::is(&definition.kind) {
        in_use::record(definition, options, &progress, &mut session)?;
    } else {
        let study = Study::new(definition, options.scale)?;
        let configurations = study.configurations(options.guest, seeds)?;
        swept = sweep(&configurations, store, &options.place, options.jobs, &progress);
        let reason = |wanted: &Configuration| {
            let failed = swept.failed.iter().find(|(configuration, _)| configuration == wanted);
            failed.map_or_else(|| "it was not run".to_owned(), |(_, reason)| reason.clone())
        };
        study.record((options.guest, seeds), store, reason, &mut session)?;
    }
    Ok((session.into_results(definition, options.scale, provenance)?, swept))
}
