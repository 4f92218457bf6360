//! `lookaside-lab sim export`: a run's instructions, for another simulator.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use lookaside_cli::output::{Outcome, print};
use sim_lab::configuration::Guest;
use sim_lab::guest::Recorder;
use sim_lab::run::{load, warm_up};

use super::error;
use super::run::Asked;
use crate::definitions::Definitions;

/// The trace has no header and no compression: 64 bytes an instruction. ChampSim reads it as it is, or through
/// xz. Its machine has no STLT: loadVA and insertSTLT are answered, but leave no instruction in the trace.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    asked: Asked,
    /// Write the trace to this file
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Requests to write, after the warm-up
    #[arg(long, value_name = "NUM", default_value_t = 10_000)]
    requests: u64,
}

pub(crate) fn run(arguments: &Arguments, definitions: &Definitions) -> Outcome {
    let configuration = arguments.asked.configuration(definitions)?;
    if configuration.guest != Guest::InProcess {
        return Err(error(
            "only guests in this process are exported: for QEMU's use 'lookaside-lab sim run --guest qemu \
             --champsim FILE'",
        ));
    }
    let (mut program, mut machine) = load(&configuration)?;
    warm_up(&mut program, &mut machine, configuration.lengths);
    let path = &arguments.out;
    let said = |why: std::io::Error| error(format!("{}: {why}", path.display()));
    let file = BufWriter::new(File::create(path).map_err(said)?);
    let mut recorder = Recorder::new(file, machine);
    program.run(&mut recorder, arguments.requests);
    let instructions = recorder.instructions();
    recorder.finish().and_then(|mut file| file.flush()).map_err(said)?;
    print(format_args!(
        "{instructions} instructions of {} requests, {} MB, in {}\n",
        arguments.requests,
        instructions * sim::champsim::RECORD as u64 / 1_000_000,
        path.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}
