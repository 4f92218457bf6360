//! `lookaside-lab`: everything that is measured and simulated, under one command.
//!
//! It runs the experiments, shows their results beside the papers' numbers, drives servers with load, says of a trace
//! of keys whether a table in front of an index pays, and runs programs on simulated processors. The server itself is
//! `lookaside`, which has nothing of this; what experiments on servers start is this program's own
//! [`lookaside_cli::serve`], so that what is measured is of this build.

#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use lookaside_cli::{output, serve};

mod advise;
mod constant;
mod definitions;
mod load;
mod replay;
mod report;
mod run;
mod sim;
mod table;
mod target;
mod trace;

#[derive(Parser)]
#[command(name = "lookaside-lab", version, about, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run experiments of the papers or of ours, measured or simulated, and write their results as CSV
    Run(Box<run::Arguments>),
    /// Show results beside the papers' own numbers
    Report(report::Arguments),
    /// Send a server the load described by the options, and say what it answered and what that cost
    Load(Box<load::Arguments>),
    /// Replay a real trace against a server: get, and on a miss set; every value is verified
    Replay(Box<replay::Arguments>),
    /// Say whether a table in front of an index pays for the keys of a trace, and how large it should be
    Advise(advise::Arguments),
    /// Run programs on simulated processors that have an STLT
    Sim(sim::Arguments),
    /// Serve, as 'lookaside' does: what experiments on servers start
    #[command(disable_help_flag = true)]
    Serve {
        /// The server's options
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
        words: Vec<OsString>,
    },
    /// Answer a constant: the floor below a server's cost, for experiments on servers
    Constant(constant::Arguments),
}

fn main() -> ExitCode {
    output::finish("lookaside-lab", run())
}

fn run() -> output::Outcome {
    let Some(Arguments { command }) = output::parse(std::env::args_os())? else {
        return Ok(ExitCode::SUCCESS);
    };
    match command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Load(arguments) => load::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Advise(arguments) => advise::run(&arguments),
        Command::Sim(arguments) => sim::run(arguments),
        Command::Constant(arguments) => constant::run(&arguments),
        Command::Serve { words } => serve::run("lookaside".as_ref(), &words),
    }
}
