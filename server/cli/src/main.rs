//! The product's one binary, `lookaside`: a cache server that memcached's clients can talk to.
//!
//! Without a subcommand it serves, so that `lookaside -p 11211 -m 64` means what it means to memcached. What measures
//! and simulates is another program, `lookaside-lab`, of which this one has nothing.

#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use lookaside_cli::{output, serve};

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
}

/// The command line with `serve` put in where no subcommand is named.
fn with_default_command(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let names_a_command = arguments
        .get(1)
        .is_some_and(|first| ["serve", "help", "--help", "-V", "--version"].iter().any(|name| first == name));
    if !names_a_command {
        arguments.insert(1.min(arguments.len()), "serve".into());
    }
    arguments
}

fn main() -> ExitCode {
    output::finish("lookaside", run())
}

fn run() -> output::Outcome {
    let arguments = with_default_command(std::env::args_os().collect());
    match output::parse(arguments)? {
        Some(Arguments { command: Command::Serve(arguments) }) => serve::run(&arguments),
        None => Ok(ExitCode::SUCCESS),
    }
}
