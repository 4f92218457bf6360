//! `lookaside-lab constant`.

use std::process::ExitCode;

use lab::Constants;
use lookaside_cli::output::Outcome;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The TCP port to listen on, on loopback
    #[arg(short)]
    port: u16,
    /// Threads, of which there is one: as servers are told it
    #[arg(short, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=1))]
    threads: u8,
    /// Bytes of the key in the answer to a get
    #[arg(long, default_value_t = 16)]
    key_size: usize,
    /// Bytes of the value in it
    #[arg(long, default_value_t = 32)]
    value_size: usize,
    /// Connections that are received from before the first of them is answered
    #[arg(long, default_value_t = 1)]
    ahead: usize,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let &Arguments { port, threads: _, key_size, value_size, ahead } = arguments;
    Constants { key_size, value_size, ahead }.serve(port)?;
    Ok(ExitCode::SUCCESS)
}
