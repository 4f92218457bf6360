//! `lookaside-lab run`: runs experiments, keeps their results, and shows them beside the papers' numbers.
//!
//! One command for all of them, whatever they are about: a definition's kind says who makes its numbers. Most are
//! measured on this machine, by the laboratory and by the comparison with foreign engines ([`measured`]); those of the
//! kinds of the simulator are computed ([`simulated`]), and are as good on any machine.

use std::process::ExitCode;

use lab::allocator::end_with_who_started_anew;
use lab::experiment::{Catalogue, Definition, ExperimentError};
use lab::report::{Report, to_json};
use lookaside_cli::output::{Outcome, OutputError, print, tell};
use sim_lab::study;

use crate::definitions::Definitions;
use crate::report::write_page;

mod measured;
mod options;
mod simulated;

pub(crate) use options::{Asked, Measuring};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Names of experiments, or paths of their definitions
    #[arg(value_name = "NAME|PATH", required_unless_present_any = ["list", "all"],
          conflicts_with_all = ["list", "all"])]
    experiments: Vec<String>,
    /// List the experiments there are
    #[arg(long, conflicts_with = "all")]
    list: bool,
    /// Run all of them
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    measuring: Measuring,
    #[command(flatten)]
    definitions: Definitions,
}

/// Fails where an experiment could not be run, or an expectation of it was not met.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let catalogue = arguments.definitions.catalogue()?;
    if arguments.list {
        for definition in catalogue.all()? {
            print(format_args!("{:<24} {}\n", definition.name, definition.title))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let definitions = if arguments.all {
        catalogue.all()?
    } else {
        arguments.experiments.iter().map(|name| catalogue.get(name)).collect::<Result<_, _>>()?
    };
    run_all(&catalogue, definitions, &arguments.asked, &arguments.measuring)
}

/// Runs these, one after the other.
pub(crate) fn run_all(
    catalogue: &Catalogue,
    mut definitions: Vec<Definition>,
    asked: &Asked,
    measuring: &Measuring,
) -> Outcome {
    let mut all_met = asked.making.leave_out_impossible(&mut definitions)?;
    end_with_who_started_anew();
    let mut reports = Vec::new();
    let mut paged = Vec::new();
    for definition in &definitions {
        let ran = if study::is(&definition.kind) {
            simulated::run(definition, catalogue, asked)
        } else {
            measured::run(definition, catalogue, asked, measuring)
        };
        match ran {
            Ok(ran) => {
                all_met &= ran.all_met;
                reports.extend(ran.reports);
                match ran.results {
                    Some(results) => paged.push((definition, results)),
                    None if asked.html.is_some() => tell(format_args!(
                        "{}: not on the page: give --out to keep its results, of which that is made",
                        definition.name
                    )),
                    None => {}
                }
            }
            // What cannot be written is the end. After anything else, the others may still work.
            Err(error) if error.is::<OutputError>() => return Err(error),
            Err(error) => {
                tell(format_args!("lookaside-lab: {error}"));
                all_met = false;
            }
        }
    }
    if let Some(path) = &asked.html {
        let reports =
            paged.iter().map(|(definition, results)| Ok((*definition, Report::of(definition, results)?)));
        write_page(path, &reports.collect::<Result<Vec<_>, ExperimentError>>()?)?;
    }
    if asked.json {
        print(format_args!("{}\n", to_json(&reports)))?;
    }
    Ok(if all_met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
