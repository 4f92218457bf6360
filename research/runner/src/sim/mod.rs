//! `lookaside-lab sim`: one subcommand, one file.

use std::fmt::Display;

use clap::Subcommand;
use lab::experiment::{Catalogue, Definition, ExperimentError};
use lookaside_cli::output::Outcome;

use crate::definitions::Definitions;

mod figure;
mod run;

/// The definitions' folder, below that of the laboratory's.
const FOLDER: &str = "sim";

/// Run programs on simulated processors that have a search translation lookaside table (STLT, HPCA 2021)
///
/// Nobody can buy that hardware. Here it is simulated, with caches, TLBs, page walks and a core's window, under
/// programs that are made in this process (--guest in-process, exact and repeatable) or compiled and run under
/// QEMU's user mode (--guest qemu, Debian's package qemu-user).
///
/// 'lookaside-lab sim figure 13' makes every run that the paper's Figure 13 needs, several at a time, and shows our
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
    /// Make what a figure of the STLT paper needs, and show it beside the paper's numbers
    Figure(Box<figure::Figure>),
    /// The same for a table: I or V
    Table(Box<figure::Table>),
}

pub(crate) fn run(arguments: Arguments) -> Outcome {
    let Arguments { command, definitions } = arguments;
    match command {
        Command::Run(arguments) => run::run(&arguments, &definitions),
        Command::Figure(arguments) => figure::figure(&arguments, &definitions),
        Command::Table(arguments) => figure::table(&arguments, &definitions),
    }
}

/// The simulator's experiments.
fn catalogue(definitions: &Definitions) -> Result<Catalogue, ExperimentError> {
    definitions.catalogue()?.below(FOLDER)
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
