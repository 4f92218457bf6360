//! `lookaside sim report`: the newest results of the simulator's experiments.

use std::path::PathBuf;
use std::process::ExitCode;

use lab::report::Report;
use lab::results::Results;

use super::study::finish;
use super::{catalogue, error};
use crate::definitions::Definitions;
use crate::output::{Outcome, print};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The experiment; all that have results, if none is named
    #[arg(value_name = "NAME|PATH")]
    experiment: Option<String>,
    /// Where the results are kept, if not in the repository's research/results/, or outside of it in the current
    /// directory's
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write a page with pictures as well; of several experiments it is an overview, and each has a page of its own in a folder
    /// beside it
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Fails where there is nothing to report.
pub(crate) fn run(arguments: &Arguments, definitions: &Definitions) -> Outcome {
    let catalogue = catalogue(definitions)?;
    let folder = arguments.results.clone().unwrap_or_else(|| catalogue.results_folder());
    let definitions = match &arguments.experiment {
        Some(name) => vec![catalogue.get(name)?],
        None => catalogue.definitions().to_vec(),
    };
    let mut found = Vec::new();
    for definition in &definitions {
        if let Some(results) = Results::newest(&folder, &definition.name)? {
            found.push((definition, results));
        }
    }
    if found.is_empty() {
        let folder = folder.display();
        return Err(error(format_args!("no results in {folder}: get some with 'lookaside sim figure 13'")));
    }
    if !arguments.json {
        for (definition, results) in &found {
            print(format_args!("{}\n", Report::of(definition, results)?))?;
        }
    }
    finish(&found, arguments.json, arguments.html.as_deref())?;
    Ok(ExitCode::SUCCESS)
}
