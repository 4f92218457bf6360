//! How experiments are asked for on the command line, and what comes of one: the same for those that are measured and
//! those that are simulated.

use std::path::{Path, PathBuf};

use lab::allocator::Malloc;
use lab::experiment::{Definition, Scale};
use lab::report::Report;
use lab::results::Results;
use lookaside_cli::output::{print, tell};
use sim_lab::configuration::Guest;

use crate::definitions::named;

const MEASUREMENTS: &str = "Measurements";
const SIMULATIONS: &str = "Simulations";

// How they are run, and what becomes of it; the simulator's figures are asked for in the same way.
#[derive(clap::Args)]
pub(crate) struct Asked {
    /// Keep the results (CSV) below this folder, whatever they are, instead of the repository's research/results/, or
    /// outside of it the current directory's; those take simulations only in full, of the experiment's own guests, and
    /// where they lack nothing
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Write a page with pictures as well; of several experiments it is an overview, and each has a page of its own in
    /// a folder beside it
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    #[command(flatten)]
    pub(super) making: Making,
}

/// What came of an experiment.
pub(super) struct Ran {
    /// Whether all of it could be run, and met every expectation.
    pub(super) all_met: bool,
    /// Its reports, where it was asked for JSON.
    pub(super) reports: Vec<serde_json::Value>,
    /// Its results, if they are at hand.
    pub(super) results: Option<Results>,
}

// Of those that are measured on this machine.
#[derive(clap::Args, Default)]
pub(crate) struct Measuring {
    /// Measure everything this often, instead of as often as the definitions say
    #[arg(long, value_name = "NUM", value_parser = clap::value_parser!(u16).range(1..), conflicts_with = "quick",
          help_heading = MEASUREMENTS)]
    pub(super) runs: Option<u16>,
    /// The pages under the C library's allocator, 'huge' or 'plain', instead of those that the definitions ask for
    #[arg(long, value_name = "PAGES", help_heading = MEASUREMENTS)]
    pub(super) malloc: Option<Malloc>,
}

// How runs are made.
#[derive(clap::Args)]
pub(crate) struct Making {
    /// Run them small, once: shows that they work; the numbers mean nothing, but for the signs of what is simulated,
    /// and are kept only where --out says
    #[arg(long)]
    pub(super) quick: bool,
    /// Who runs the programs, where the experiment does not say: in-process or qemu; other guests' results than its own
    /// are kept only where --out says
    #[arg(long, value_name = "NAME", default_value = "in-process", value_parser = named::<Guest>,
          help_heading = SIMULATIONS)]
    pub(super) guest: Guest,
    /// Runs at a time; as many as there are processors if not given
    #[arg(long, value_name = "NUM", value_parser = clap::value_parser!(u16).range(1..), help_heading = SIMULATIONS)]
    pub(super) jobs: Option<u16>,
    /// Seeds, instead of as many as the definitions say
    #[arg(long, value_name = "NUM", value_parser = clap::value_parser!(u16).range(1..), help_heading = SIMULATIONS)]
    pub(super) seeds: Option<u16>,
    /// Keep finished runs in this folder instead of the repository's research/simulations/, or outside of it the
    /// current directory's
    #[arg(long, value_name = "DIR", help_heading = SIMULATIONS)]
    pub(super) store: Option<PathBuf>,
}

impl Making {
    pub(super) fn scale(&self) -> Scale {
        if self.quick { Scale::Quick } else { Scale::Full }
    }
}

impl Asked {
    /// Shows results, whose `all_ran` says whether they lack nothing and could be kept.
    pub(super) fn show(
        &self,
        definition: &Definition,
        results: Results,
        all_ran: bool,
    ) -> Result<Ran, Box<dyn std::error::Error>> {
        let report = Report::of(definition, &results)?;
        if !self.json {
            print(format_args!("{report}\n"))?;
        }
        let (all_met, value) = (all_ran && report.all_met(), report.to_value());
        Ok(Ran { all_met, reports: vec![value], results: Some(results) })
    }

    /// Keeps results below `folder`, and says where, or why not; whether it has. Numbers that took hours are still to
    /// be shown where they cannot be kept.
    pub(super) fn keep(results: &Results, folder: &Path) -> bool {
        match results.write(folder) {
            Ok(path) => tell(format_args!("kept in {}", path.display())),
            Err(error) => {
                tell(format_args!("lookaside-lab: {error}"));
                return false;
            }
        }
        true
    }
}
