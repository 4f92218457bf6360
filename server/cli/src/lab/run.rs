//! `lookaside lab run`: runs experiments, keeps their results, and shows them beside the papers' numbers.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lab::allocator::{self, Again, Flags, Malloc, end_with_who_started_anew};
use lab::experiment::{Catalogue, Definition, ExperimentError, Laboratory, Scale, Session};
use lab::machine::Provenance;
use lab::report::{Report, to_json};
use lab::results::Results;

use crate::definitions::Definitions;
use crate::output::{Outcome, print, tell};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Names of experiments, or paths of their definitions. Those on indexes of other crates and on containers of C++ are run
    /// by a program of their own, 'cargo run --release -p lookaside-peers -- lookaside', and those of the simulator by
    /// 'lookaside sim study'
    #[arg(value_name = "NAME|PATH", required_unless_present_any = ["list", "all"], conflicts_with_all = ["list", "all"])]
    experiments: Vec<String>,
    /// List the experiments there are, and those of the other programs with the commands that run them
    #[arg(long, conflicts_with = "all")]
    list: bool,
    /// Run all of them
    #[arg(long)]
    all: bool,
    /// Run them small, once: shows that they work; the numbers mean nothing and are kept only where --out says
    #[arg(long)]
    quick: bool,
    /// Measure everything this often, instead of as often as the definitions say
    #[arg(long, value_name = "NUM", value_parser = clap::value_parser!(u16).range(1..), conflicts_with = "quick")]
    runs: Option<u16>,
    /// The pages under the C library's allocator, 'huge' or 'plain', instead of those that the definitions ask for
    #[arg(long, value_name = "PAGES")]
    malloc: Option<Malloc>,
    /// Keep the results below this folder instead of the repository's research/results/, or outside of it the current
    /// directory's
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Fails where an experiment could not be run, or an expectation of it was not met.
pub(crate) fn run(arguments: &Arguments, definitions: &Definitions) -> Outcome {
    let catalogue = definitions.catalogue()?;
    if arguments.list {
        for definition in catalogue.definitions() {
            print(format_args!("{:<20} {}\n", definition.name, definition.title))?;
        }
        for definition in catalogue.others()? {
            let (name, title, command) = (&definition.name, &definition.title, command_of(&definition));
            print(format_args!("{name:<20} {title}; by '{command}'\n"))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let definitions = if arguments.all {
        catalogue.definitions().to_vec()
    } else {
        arguments.experiments.iter().map(|name| find(&catalogue, name)).collect::<Result<_, _>>()?
    };
    let scale = if arguments.quick { Scale::Quick } else { Scale::Full };
    let kept = (scale == Scale::Full).then(|| catalogue.results_folder());
    let out = arguments.out.clone().or(kept);
    let flags = Flags {
        quick: arguments.quick,
        runs: arguments.runs,
        out: arguments.out.as_deref(),
        json: arguments.json,
    };
    end_with_who_started_anew();
    let mut all_met = true;
    let mut reports = Vec::new();
    for definition in &definitions {
        let runs = arguments.runs.map_or_else(|| definition.runs_for(scale), usize::from);
        let malloc = arguments.malloc.or(definition.heap);
        let mut shown = Ok(());
        let ran = match malloc.filter(|malloc| !malloc.is_here()) {
            Some(malloc) => malloc.run_again(&["lab", "run"], &definition.path, &flags),
            None => measure(definition, scale, runs, &catalogue, out.as_deref()).and_then(|results| {
                let report = Report::of(definition, &results)?;
                shown = if arguments.json { Ok(()) } else { print(format_args!("{report}\n")) };
                Ok(Again { all_met: report.all_met(), reports: vec![report.to_value()] })
            }),
        };
        shown?;
        match ran {
            Ok(ran) => {
                all_met &= ran.all_met;
                reports.extend(ran.reports);
            }
            // The others may still work.
            Err(error) => {
                tell(format_args!("lookaside: {error}"));
                all_met = false;
            }
        }
    }
    if arguments.json {
        print(format_args!("{}\n", to_json(&reports)))?;
    }
    Ok(if all_met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// An experiment of this program, by its name or the path of its definition, which ends in its name.
fn find(catalogue: &Catalogue, name: &str) -> Result<Definition, ExperimentError> {
    let stem = Path::new(name).file_stem().unwrap_or_default();
    match catalogue.others()?.iter().find(|other| stem == other.name.as_str()) {
        Some(other) => {
            Err(ExperimentError::Elsewhere { name: other.name.clone(), command: command_of(other) })
        }
        None => catalogue.get(name),
    }
}

/// What runs an experiment of another program: the folder says which program, the kind which part of it.
fn command_of(other: &Definition) -> String {
    let is_simulated = other.path.parent().is_some_and(|folder| folder.ends_with("sim"));
    let program = match other.kind.as_str() {
        _ if is_simulated => "lookaside sim study",
        "peers-index" => "cargo run --release -p lookaside-peers -- index",
        "art-peers" | "art-peers-slb" => "cargo run --release -p lookaside-peers -- art",
        _ => "cargo run --release -p lookaside-peers -- lookaside",
    };
    format!("{program} {}", other.name)
}

fn measure(
    definition: &Definition,
    scale: Scale,
    runs: usize,
    catalogue: &Catalogue,
    out: Option<&Path>,
) -> Result<Results, ExperimentError> {
    let provenance = Provenance::collect(catalogue.folder(), &allocator::describe());
    let session = Session::new(runs, Session::progress_bar(&definition.name));
    let results = Laboratory::new().run(definition, scale, provenance, session)?;
    if let Some(folder) = out {
        let path = results.write(folder)?;
        tell(format_args!("kept in {}", path.display()));
    }
    Ok(results)
}
