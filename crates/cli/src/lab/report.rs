//! `lookaside lab report`: the newest results that are kept, beside the papers' numbers.

use std::fmt::Arguments as Text;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use lab::experiment::{Catalogue, ExperimentError};
use lab::report::{Report, to_json};
use lab::results::Results;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The experiment; all that have results, if none is named
    #[arg(value_name = "NAME|PATH")]
    experiment: Option<String>,
    /// Where the results are kept, if not in the repository's results/
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
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

fn try_run(arguments: &Arguments) -> Result<ExitCode, ExperimentError> {
    let catalogue = Catalogue::find(&std::env::current_dir().unwrap_or_default())?;
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
    Ok(ExitCode::SUCCESS)
}

/// Prints, and does not mind a reader who has seen enough.
pub(super) fn print(text: Text<'_>) {
    let _ = std::io::stdout().lock().write_fmt(text);
}
