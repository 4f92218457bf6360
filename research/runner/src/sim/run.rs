//! `lookaside-lab sim run`: one configuration.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lookaside_cli::output::{Outcome, OutputError, print};
use sim::{Estimate, Window};
use sim_lab::configuration::{Configuration, FUNCTIONAL, Guest, Lengths, Table};
use sim_lab::guest::{Container, Distribution, Hash, Variant};
use sim_lab::machine::profile;
use sim_lab::run::{Run, run as simulate};
use sim_lab::store::Store;

use super::error;
use crate::definitions::{Definitions, named};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The program: redis, unordered_map, dense_hash_map, map or btree; under QEMU also cuckoo, art or
    /// art-reorganised
    #[arg(long, value_name = "NAME", default_value = "unordered_map", value_parser = named::<Container>)]
    container: Container,
    /// How keys are looked up: alone, slb, stlt-sw, stlt-va or stlt; in this process also slb-batches and stlt-batches
    /// (sixteen keys at a time, but for redis) and known (nobody has to look)
    #[arg(long, value_name = "NAME", default_value = "stlt", value_parser = named::<Variant>)]
    variant: Variant,
    /// The machine: a profile of the folder research/profiles/ (gainestown: the STLT paper's; server: a core of today),
    /// one that is built in (stlt_paper and current_server, the same two by another name; sandy_bridge), or a path that
    /// ends with .toml
    #[arg(long, value_name = "NAME|PATH", default_value = "gainestown")]
    machine: String,
    /// Change the machine: a piece of TOML, like "paging.pages = '2MiB'"; may be given again
    #[arg(long, value_name = "TOML")]
    change: Vec<String>,
    /// Records
    #[arg(long, value_name = "NUM", default_value_t = 1_000_000)]
    keys: u32,
    /// Bytes of a value; keys have 24
    #[arg(long, value_name = "NUM", default_value_t = 64)]
    value_bytes: u64,
    /// What is asked for: zipf (as YCSB strews it), plain (one rank a record), latest or uniform
    #[arg(long, value_name = "NAME", default_value = "zipf", value_parser = named::<Distribution>)]
    distribution: Distribution,
    /// Bytes of the table in front: an STLT's rows (a power of two), or both tables of an SLB, of which the cache table
    /// is a fifth; if not given 48 a key, rounded up to a power of two for an STLT
    #[arg(long, value_name = "NUM")]
    table_bytes: Option<u64>,
    /// Rows of a set of the STLT: 1, 2, 4 or 8
    #[arg(long, value_name = "NUM", default_value_t = 4)]
    ways: u32,
    /// The hash of the table in front: xxh3, xxh64, murmur, djb2 or sip
    #[arg(long, value_name = "NAME", default_value = "xxh3", value_parser = named::<Hash>)]
    hash: Hash,
    /// Requests before anything is counted; eight for each key if not given, as in the STLT paper
    #[arg(long, value_name = "NUM")]
    warm_up: Option<u64>,
    /// The last requests of the warm-up that caches and TLBs hear of; those before only warm the table in front
    #[arg(long, value_name = "NUM", default_value_t = FUNCTIONAL)]
    functional: u64,
    /// Windows that are measured
    #[arg(long, value_name = "NUM", default_value_t = 4)]
    windows: u32,
    /// Requests of each window
    #[arg(long, value_name = "NUM", default_value_t = 32_000)]
    window: u64,
    /// Another seed, other keys, requests and frames
    #[arg(long, value_name = "NUM", default_value_t = 1)]
    seed: u64,
    /// Who runs the program: in-process or qemu
    #[arg(long, value_name = "NAME", default_value = "in-process", value_parser = named::<Guest>)]
    guest: Guest,
    /// Run the configuration in this file (JSON, as --json prints it) instead of the one that the options describe
    #[arg(long, value_name = "FILE")]
    configuration: Option<PathBuf>,
    /// Keep the run in this folder, and do not run it again if it is there
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Print everything that was counted, as JSON
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// The configuration that was asked for.
    fn asked(&self, definitions: &Definitions) -> Result<Configuration, Box<dyn std::error::Error>> {
        let mut machine = profile(&self.machine, &definitions.folder())?;
        for change in &self.change {
            let changes = toml::from_str(change).map_err(error)?;
            machine = machine.with_changes(&changes)?;
            machine.name = format!("{}, {change}", machine.name);
        }
        let wanted = u64::from(self.keys) * 48;
        let usual = if self.variant.is_slb() { wanted } else { wanted.next_power_of_two() };
        let table =
            Table { bytes: self.table_bytes.unwrap_or(usual.max(1 << 10)), ways: self.ways, hash: self.hash };
        let lengths = Lengths {
            warm_up: self.warm_up.unwrap_or(u64::from(self.keys) * 8),
            functional: self.functional,
            settle: 2_000,
            windows: self.windows,
            window: self.window,
        };
        let asked = (self.keys, self.value_bytes, self.distribution);
        let (container, variant) = (self.container, self.variant);
        Ok(Configuration::new(self.guest, container, variant, asked, table, lengths, self.seed, &machine)?)
    }
}

pub(crate) fn run(arguments: &Arguments, definitions: &Definitions) -> Outcome {
    let store = arguments.store.as_deref().map(Store::open).transpose()?;
    let configuration = match &arguments.configuration {
        Some(path) => read(path)?,
        None => arguments.asked(definitions)?,
    };
    let finished = match store.as_ref().and_then(|store| store.get(&configuration)) {
        Some(kept) => kept,
        None => {
            let run = simulate(&configuration)?;
            if let Some(store) = &store {
                store.put(&run)?;
            }
            run
        }
    };
    if arguments.json {
        print(format_args!("{}\n", serde_json::to_string_pretty(&finished)?))?;
    } else {
        show(&finished)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<Configuration, Box<dyn std::error::Error>> {
    let wrong = |why: &dyn std::fmt::Display| error(format!("{}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|why| wrong(&why))?;
    let configuration: Configuration = serde_json::from_str(&text).map_err(|why| wrong(&why))?;
    configuration.check().map_err(|why| wrong(&why))?;
    Ok(configuration)
}

fn show(run: &Run) -> Result<(), OutputError> {
    let measurement = &run.measurement;
    print(format_args!("{}\n", run.configuration.describe()))?;
    let line = |name: &str, quantity: &dyn Fn(&Window) -> f64| {
        let Estimate { mean, half_width, .. } = measurement.estimate(quantity);
        let spread = half_width.map(|half_width| format!(" ± {half_width:.2}")).unwrap_or_default();
        print(format_args!("{name:>28} {mean:12.2}{spread}\n"))
    };
    print(format_args!("of a request (95 % confidence over {} windows):\n", measurement.windows.len()))?;
    line("cycles", &Window::cycles)?;
    line("instructions", &Window::instructions)?;
    line("loads and stores", &Window::memory_accesses)?;
    line("first TLB misses", &Window::first_tlb_misses)?;
    line("page walks", &Window::walks)?;
    line("first cache's misses", &|window| window.misses(|counts| counts.l1d))?;
    line("third cache's misses", &|window| window.misses(|counts| counts.l3))?;
    line("reads of memory", &Window::memory_reads)?;
    if measurement.windows.iter().any(|window| window.fast_path.is_some()) {
        line("table misses, %", &|window| 100.0 * window.table_miss_rate().unwrap_or(0.0))?;
    }
    print(format_args!("cycles of a request by what was waited for:\n"))?;
    for (name, part) in sim_lab::STACK {
        line(name, &|window| part(&window.core.stack) as f64 / window.operations as f64)?;
    }
    print(format_args!("{:.1} s\n", run.seconds))
}
