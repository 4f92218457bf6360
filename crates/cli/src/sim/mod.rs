//! `lookaside sim`: one subcommand, one file.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use lab::experiment::{Catalogue, Definition, ExperimentError};
use serde::de::DeserializeOwned;
use sim_lab::store::Store;

mod export;
mod report;
mod run;
mod study;

/// The definitions' folder, below that of the laboratory's.
const FOLDER: &str = "sim";
/// Where finished runs are kept, beside the definitions.
const STORE: &str = "simulations";

/// Run programs on simulated processors that have a search translation lookaside table (STLT, HPCA 2021)
///
/// Nobody can buy that hardware. Here it is simulated, with caches, TLBs, page walks and a core's window, under
/// programs that are made in this process (--guest in-process, exact and repeatable) or compiled and run under
/// QEMU's user mode (--guest qemu, Debian's package qemu-user).
///
/// 'lookaside sim figure 13' makes every run that the paper's Figure 13 needs, several at a time, and shows our
/// numbers beside the paper's. Finished runs are kept: what was interrupted goes on where it was.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run one program with one table on one machine, and say what it took
    Run(Box<run::Arguments>),
    /// Make all runs of some experiments, and show nothing
    Sweep(study::Sweep),
    /// Make what a figure of the STLT paper needs, and show it beside the paper's numbers
    Figure(study::Figure),
    /// The same for a table: I or V
    Table(study::Table),
    /// The same for an experiment by its name, or the path of its definition; --list names them
    Study(study::Study),
    /// Show the newest results that are kept, without running anything
    Report(report::Arguments),
    /// Write the instructions of a run as a trace for ChampSim
    Export(Box<export::Arguments>),
}

pub(crate) fn run(arguments: Arguments) -> ExitCode {
    let outcome = match arguments.command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Sweep(arguments) => study::sweep(&arguments),
        Command::Figure(arguments) => study::figure(&arguments),
        Command::Table(arguments) => study::table(&arguments),
        Command::Study(arguments) => study::study(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("lookaside: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whatever went wrong, said.
type Outcome = Result<ExitCode, Box<dyn std::error::Error>>;

/// The simulator's experiments.
fn catalogue() -> Result<Catalogue, ExperimentError> {
    let all = Catalogue::find(&here())?;
    Catalogue::read(&all.folder().join(FOLDER))
}

fn here() -> PathBuf {
    std::env::current_dir().unwrap_or_default()
}

/// Where results are kept: beside all experiments', wherever their definitions lie.
fn results_folder(catalogue: &Catalogue) -> PathBuf {
    beside(catalogue, "results")
}

fn beside(catalogue: &Catalogue, name: &str) -> PathBuf {
    let experiments = catalogue.folder().parent().unwrap_or(Path::new("."));
    experiments.with_file_name(name)
}

/// The folder of finished runs: the one that was named, or the repository's.
fn store(named: Option<&Path>, catalogue: &Catalogue) -> Result<Store, Box<dyn std::error::Error>> {
    let folder = named.map_or_else(|| beside(catalogue, STORE), Path::to_owned);
    Ok(Store::open(&folder)?)
}

/// A value by its name in definitions.
fn named<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let value = serde_json::Value::String(text.to_owned());
    serde_json::from_value(value).map_err(|error| error.to_string())
}

fn error(text: impl Display) -> Box<dyn std::error::Error> {
    text.to_string().into()
}

/// Those definitions whose name is `name`, or begins with it and a hyphen.
fn family<'c>(catalogue: &'c Catalogue, name: &str) -> Vec<&'c Definition> {
    let prefix = format!("{name}-");
    let belongs = |definition: &&Definition| definition.name == name || definition.name.starts_with(&prefix);
    catalogue.definitions().iter().filter(belongs).collect()
}
