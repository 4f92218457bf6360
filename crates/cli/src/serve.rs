//! `lookaside serve`: the options, most of them memcached's own, and the server they start.

use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_arguments: Arguments) -> ExitCode {
    ExitCode::SUCCESS
}
