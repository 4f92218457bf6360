//! `lookaside lab report`: the newest results that are kept, beside the papers' numbers: as text, as JSON, as a page.

use std::fmt::Arguments as Text;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lab::experiment::{Catalogue, Definition, ExperimentError};
use lab::html;
use lab::report::{Report, to_json};
use lab::results::Results;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The experiment; all that have results, if none is named: those of the program `peers`, too (experiments/peers)
    #[arg(value_name = "NAME|PATH")]
    experiment: Option<String>,
    /// Where the results are kept, if not in the repository's results/
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write one HTML page with pictures as well
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Fails where there is nothing to report.
pub(crate) fn run(arguments: Arguments) -> ExitCode {
    match try_run(&arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("lookaside: {error}");
            ExitCode::FAILURE
        }
    }
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

fn try_run(arguments: &Arguments) -> Result<ExitCode, ExperimentError> {
    let catalogue = Catalogue::find(&std::env::current_dir().unwrap_or_default())?;
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
        eprintln!("lookaside: no results in {}: get some with 'lookaside lab run'", folder.display());
        return Ok(ExitCode::FAILURE);
    }
    let reports = found.iter().map(|(definition, results)| Report::of(definition, results));
    let reports = reports.collect::<Result<Vec<_>, _>>()?;
    if arguments.json {
        print(format_args!("{}\n", to_json(&reports)));
    } else {
        reports.iter().for_each(|report| print(format_args!("{report}\n")));
    }
    if let Some(path) = &arguments.html {
        write_page(path, &found)?;
        eprintln!("written to {}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the page of what was found.
fn write_page(path: &Path, found: &[(&Definition, Results)]) -> Result<(), ExperimentError> {
    let reports =
        found.iter().map(|(definition, results)| Ok((*definition, Report::of(definition, results)?)));
    let reports = reports.collect::<Result<Vec<_>, ExperimentError>>()?;
    let page = html::page(&reports).map_err(|error| ExperimentError::Machine(error.to_string()))?;
    std::fs::write(path, page).map_err(|error| ExperimentError::Io { path: path.to_owned(), error })
}

/// Prints, and does not mind a reader who has seen enough.
pub(crate) fn print(text: Text<'_>) {
    let _ = std::io::stdout().lock().write_fmt(text);
}
