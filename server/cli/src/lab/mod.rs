//! `lookaside lab`: one subcommand, one file.

use clap::Subcommand;

mod load;
mod replay;
mod report;
mod run;
mod target;

pub(crate) use report::finish;

use crate::definitions::Definitions;
use crate::output::Outcome;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    definitions: Definitions,
}

#[derive(Subcommand)]
enum Command {
    /// Send a server the load described by the options, and say what it answered and what that cost
    Load(Box<load::Arguments>),
    /// Replay a real trace against a server: get, and on a miss set; every value is verified
    Replay(Box<replay::Arguments>),
    /// Run an experiment of the papers or of ours, and write its results as CSV
    Run(run::Arguments),
    /// Show results beside the papers' own numbers
    Report(report::Arguments),
}

pub(crate) fn run(arguments: Arguments) -> Outcome {
    let Arguments { command, definitions } = arguments;
    match command {
        Command::Load(arguments) => load::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Run(arguments) => run::run(&arguments, &definitions),
        Command::Report(arguments) => report::run(&arguments, &definitions),
    }
}
