//! `lookaside sim`: one subcommand, one file.

use std::fmt::Display;
use std::path::Path;

use clap::Subcommand;
use lab::experiment::{Catalogue, Definition, ExperimentError};
use serde::de::DeserializeOwned;
use sim_lab::store::Store;

use crate::definitions::Definitions;
use crate::output::Outcome;

mod export;
mod report;
mod run;
mod study;

/// The definitions' folder, below that of the laboratory's.
const FOLDER: &str = "sim";
/// Where finished runs are kept, beside results.
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
    #[command(flatten)]
    definitions: Definitions,
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

pub(crate) fn run(arguments: Arguments) -> Outcome {
    let Arguments { command, definitions } = arguments;
    match command {
        Command::Run(arguments) => run::run(&arguments, &definitions),
        Command::Sweep(arguments) => study::sweep(&arguments, &definitions),
        Command::Figure(arguments) => study::figure(&arguments, &definitions),
        Command::Table(arguments) => study::table(&arguments, &definitions),
        Command::Study(arguments) => study::study(&arguments, &definitions),
        Command::Report(arguments) => report::run(&arguments, &definitions),
        Command::Export(arguments) => export::run(&arguments, &definitions),
    }
}

/// The simulator's experiments.
fn catalogue(definitions: &Definitions) -> Result<Catalogue, ExperimentError> {
    definitions.catalogue()?.below(FOLDER)
}

/// The folder of finished runs: the one that was named, or the repository's, or the current directory's outside of it.
fn store(named: Option<&Path>, catalogue: &Catalogue) -> Result<Store, Box<dyn std::error::Error>> {
    let folder = named.map_or_else(|| catalogue.home().join(STORE), Path::to_owned);
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
