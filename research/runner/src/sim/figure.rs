//! `lookaside-lab sim figure` and `table`: the experiments of simulated runs, by the STLT paper's numbers.

use lab::experiment::Definition;
use lookaside_cli::output::Outcome;

use super::{catalogue, error, family};
use crate::definitions::Definitions;
use crate::run::{self, Asked, Measuring};

#[derive(clap::Args)]
pub(crate) struct Figure {
    /// The figure's number: 1, 11 to 19
    number: u16,
    #[command(flatten)]
    asked: Asked,
}

#[derive(clap::Args)]
pub(crate) struct Table {
    /// The table's number: I or V
    number: String,
    #[command(flatten)]
    asked: Asked,
}

pub(crate) fn figure(arguments: &Figure, definitions: &Definitions) -> Outcome {
    exhibit(&format!("stlt-figure{}", arguments.number), &arguments.asked, definitions)
}

pub(crate) fn table(arguments: &Table, definitions: &Definitions) -> Outcome {
    let number = match arguments.number.to_uppercase().as_str() {
        "1" | "I" => 1,
        "5" | "V" => 5,
        other => return Err(error(format!("there is no experiment for Table {other}: there are I and V"))),
    };
    exhibit(&format!("stlt-table{number}"), &arguments.asked, definitions)
}

fn exhibit(name: &str, asked: &Asked, definitions: &Definitions) -> Outcome {
    let catalogue = catalogue(definitions)?;
    let definitions: Vec<Definition> = family(&catalogue, name).into_iter().cloned().collect();
    if definitions.is_empty() {
        let known: Vec<_> = catalogue.definitions().iter().map(|known| known.name.as_str()).collect();
        return Err(error(format!("there is no experiment '{name}': there are {}", known.join(", "))));
    }
    run::run_all(&catalogue, definitions, asked, &Measuring::default())
}
