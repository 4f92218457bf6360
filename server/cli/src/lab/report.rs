//! `lookaside lab report`: the newest results that are kept, beside the papers' numbers: as text, as JSON, as a page.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lab::experiment::{Definition, ExperimentError};
use lab::html;
use lab::report::{Report, to_json};
use lab::results::Results;

use crate::definitions::Definitions;
use crate::output::{Outcome, print, tell};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The experiment; all that have results, if none is named: those of the program `peers`, too
    /// (research/experiments/peers)
    #[arg(value_name = "NAME|PATH")]
    experiment: Option<String>,
    /// Where the results are kept, if not in the repository's research/results/, or outside of it in the current
    /// directory's
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write an HTML page with pictures as well; of several experiments it is an overview, and each has a page of its own in a
    /// folder beside it
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// A name that is none stands beside all that there are.
fn with_further(error: ExperimentError, names: &[String]) -> ExperimentError {
    match error {
        ExperimentError::Unknown { name, mut known } => {
            known.extend_from_slice(names);
            ExperimentError::Unknown { name, known }
        }
        other => other,
    }
}

/// Fails where there is nothing to report.
pub(crate) fn run(arguments: &Arguments, definitions: &Definitions) -> Outcome {
    let catalogue = definitions.catalogue()?;
    let folder = arguments.results.clone().unwrap_or_else(|| catalogue.results_folder());
    let others = catalogue.others()?;
    let names: Vec<_> = others.iter().map(|other| other.name.clone()).collect();
    let definitions = match &arguments.experiment {
        Some(name) => vec![match others.into_iter().find(|other| other.name == *name) {
            Some(other) => other,
            None => catalogue.get(name).map_err(|error| with_further(error, &names))?,
        }],
        None => catalogue.definitions().iter().cloned().chain(others).collect(),
    };
    let mut found = Vec::new();
    for definition in &definitions {
        if let Some(results) = Results::newest(&folder, &definition.name)? {
            found.push((definition, results));
        }
    }
    if found.is_empty() {
        let folder = folder.display();
        return Err(format!("no results in {folder}: get some with 'lookaside lab run'").into());
    }
    let reports =
        found.iter().map(|(definition, results)| Ok((*definition, Report::of(definition, results)?)));
    let reports = reports.collect::<Result<Vec<_>, ExperimentError>>()?;
    if !arguments.json {
        for (_, report) in &reports {
            print(format_args!("{report}\n"))?;
        }
    }
    finish(&reports, arguments.json, arguments.html.as_deref())
}

/// The page and JSON of some reports.
pub(crate) fn finish(reports: &[(&Definition, Report<'_>)], json: bool, page: Option<&Path>) -> Outcome {
    if let Some(path) = page {
        html::write(path, reports)?;
        tell(format_args!("written to {}", path.display()));
    }
    if json {
        let reports: Vec<_> = reports.iter().map(|(_, report)| report).collect();
        print(format_args!("{}\n", to_json(&reports)))?;
    }
    Ok(ExitCode::SUCCESS)
}
