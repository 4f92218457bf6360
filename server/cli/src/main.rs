//! The one binary, `lookaside`: a cache server that memcached's clients can talk to, the laboratory, advice on
//! whether a table in front of an index pays, and simulated processors.
//!
//! Without a subcommand it serves, so that `lookaside -p 11211 -m 64` means what it means to memcached.

#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod advise;
mod definitions;
mod lab;
mod output;
mod serve;
mod sim;
mod trace;

#[derive(Parser)]
#[command(name = "lookaside", version, about, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve memcached's clients (what happens without a subcommand, too)
    Serve(Box<serve::Arguments>),
    /// Say whether a table in front of an index pays for the keys of a trace, and how large it should be
    Advise(advise::Arguments),
    /// Measure: drive a server with load or a real trace, re-run the papers' experiments
    Lab(lab::Arguments),
    /// Run programs on simulated processors that have an STLT
    Sim(sim::Arguments),
}

/// The command line with `serve` put in where no subcommand is named.
fn with_default_command(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let names_a_command = arguments.get(1).is_some_and(|first| {
        ["serve", "advise", "lab", "sim", "help", "--help", "-V", "--version"]
            .iter()
            .any(|name| first == name)
    });
    if !names_a_command {
        arguments.insert(1.min(arguments.len()), "serve".into());
    }
    arguments
}

fn main() -> ExitCode {
    output::finish(run())
}

fn run() -> output::Outcome {
    let arguments = match Arguments::try_parse_from(with_default_command(std::env::args_os().collect())) {
        Ok(arguments) => arguments,
        // Help and the version are output as any other.
        Err(asked) if !asked.use_stderr() => {
            asked.print().map_err(output::OutputError::from)?;
            return Ok(ExitCode::SUCCESS);
        }
        Err(refused) => refused.exit(),
    };
    match arguments.command {
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Advise(arguments) => advise::run(&arguments),
        Command::Lab(arguments) => lab::run(arguments),
        Command::Sim(arguments) => sim::run(arguments),
    }
}
