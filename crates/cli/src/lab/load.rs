//! `lookaside lab load`.

use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_arguments: Arguments) -> ExitCode {
    ExitCode::SUCCESS
}
