//! Where the definitions of experiments come from, for the commands that need them.

use std::path::PathBuf;

use lab::experiment::{Catalogue, ExperimentError, folder_for};
use serde::de::DeserializeOwned;

#[derive(clap::Args)]
pub(crate) struct Definitions {
    /// A folder of definitions, as the repository's research/experiments/; without it the one of the repository that is
    /// around the current directory, and elsewhere the one that is built in
    #[arg(long, value_name = "DIR", global = true)]
    definitions: Option<PathBuf>,
}

impl Definitions {
    /// The folder.
    pub(crate) fn folder(&self) -> PathBuf {
        self.definitions.clone().unwrap_or_else(|| folder_for(&here()))
    }

    /// All of them.
    pub(crate) fn catalogue(&self) -> Result<Catalogue, ExperimentError> {
        match &self.definitions {
            Some(folder) => Catalogue::named(folder, &here()),
            None => Catalogue::find(&here()),
        }
    }
}

/// A value by its name in definitions.
pub(crate) fn named<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let value = serde_json::Value::String(text.to_owned());
    serde_json::from_value(value).map_err(|error| error.to_string())
}

fn here() -> PathBuf {
    std::env::current_dir().unwrap_or_default()
}
