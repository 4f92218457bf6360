//! `lookaside-lab report`: the newest results that are kept, beside the papers' numbers: as text, as JSON, as a page.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lab::experiment::{Definition, ExperimentError};
use lab::html;
use lab::report::{Report, to_json};
use lab::results::Results;
use lookaside_cli::output::{Outcome, print, tell};

use crate::definitions::Definitions;
use crate::table::table;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The experiment; all that have results, if none is named
    #[arg(value_name = "NAME|PATH")]
    experiment: Option<String>,
    /// Where the results are kept, if not in the repository's research/results/, or outside of it in the current
    /// directory's
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    /// Print the table of the README and the book that sets the server beside memcached and Redis, in Markdown
    #[arg(long, conflicts_with_all = ["experiment", "json", "html"])]
    table: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write an HTML page with pictures as well; of several experiments it is an overview, and each has a page of its
    /// own in a folder beside it
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the picture of the experiment's definition as well, an SVG for a page of another's
    #[arg(long, value_name = "FILE", requires = "experiment")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    definitions: Definitions,
}

/// Fails where there is nothing to report.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let catalogue = arguments.definitions.catalogue()?;
    let folder = arguments.results.clone().unwrap_or_else(|| catalogue.results_folder());
    if arguments.table {
        print(format_args!("{}", table(&folder)?))?;
        return Ok(ExitCode::SUCCESS);
    }
    let definitions = match &arguments.experiment {
        Some(name) => vec![catalogue.get(name)?],
        None => catalogue.all()?,
    };
    let mut found = Vec::new();
    for definition in &definitions {
        if let Some(results) = Results::newest(&folder, &definition.name)? {
            found.push((definition, results));
        }
    }
    if found.is_empty() {
        let folder = folder.display();
        return Err(format!("no results in {folder}: get some with 'lookaside-lab run'").into());
    }
    let reports =
        found.iter().map(|(definition, results)| Ok((*definition, Report::of(definition, results)?)));
    let reports = reports.collect::<Result<Vec<_>, ExperimentError>>()?;
    if !arguments.json {
        for (_, report) in &reports {
            print(format_args!("{report}\n"))?;
        }
    }
    if let Some(path) = &arguments.html {
        write_page(path, &reports)?;
    }
    if let (Some(path), Some((definition, report))) = (&arguments.svg, reports.first()) {
        let picture = html::figure(definition, report)?;
        let none = || format!("{}: its definition asks for no [picture]", definition.name);
        let written = std::fs::write(path, picture.ok_or_else(none)?);
        written.map_err(|error| ExperimentError::Io { path: path.clone(), error })?;
        tell(format_args!("written to {}", path.display()));
    }
    if arguments.json {
        let reports: Vec<_> = reports.iter().map(|(_, report)| report).collect();
        print(format_args!("{}\n", to_json(&reports)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The page of some reports.
pub(crate) fn write_page(
    path: &Path,
    reports: &[(&Definition, Report<'_>)],
) -> Result<(), Box<dyn std::error::Error>> {
    html::write(path, reports)?;
    tell(format_args!("written to {}", path.display()));
    Ok(())
}
