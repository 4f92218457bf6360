//! Why a run failed, here or under QEMU, and why an experiment cannot be made.

use std::path::{Path, PathBuf};

use lab::experiment::{Definition, ExperimentError};
use sim::stlt::TableError;
use sim::{MeasurementError, Profile, ProfileError};
use sim_qemu::GuestError as CompiledError;

use crate::configuration::ConfigurationError;
use crate::guest::GuestError;
use crate::machine::profile;

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// There is no such run.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// The guest cannot be made.
    #[error(transparent)]
    Guest(#[from] GuestError),
    /// The machine cannot be.
    #[error(transparent)]
    Machine(#[from] ProfileError),
    /// The table cannot be.
    #[error(transparent)]
    Table(#[from] TableError),
    /// Of a compiled program, something is missing, or does not compile.
    #[error(transparent)]
    Compiled(#[from] CompiledError),
    /// No compiled program knows such a variant.
    #[error("there is no variant {0} for QEMU: run it with --guest in-process")]
    Unknown(&'static str),
    /// A compiled program does only this.
    #[error("{0} has values of 64 bytes, and xxh3 for the table in front")]
    Fixed(&'static str),
    /// A compiled program ended badly.
    #[error("the guest failed ({status}): {said}")]
    Failed {
        /// How it ended.
        status: String,
        /// What it said.
        said: String,
    },
    /// What was measured cannot be written or read.
    #[error(transparent)]
    Measurement(#[from] MeasurementError),
    /// A file could not be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        error: std::io::Error,
    },
}

impl RunError {
    /// What the system answered about a file.
    pub(crate) fn io(path: impl AsRef<Path>) -> impl FnOnce(std::io::Error) -> RunError {
        let path = path.as_ref().to_owned();
        |error| RunError::Io { path, error }
    }
}

/// Why a study cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StudyError {
    /// The definition is of another kind.
    #[error(
        "'{experiment}' is of the kind '{kind}', which is no simulation: 'lookaside-lab run {experiment}' runs it"
    )]
    Kind {
        /// The experiment.
        experiment: String,
        /// Its kind.
        kind: String,
    },
    /// A machine cannot be read or built.
    #[error("'{experiment}', machine '{machine}': {error}")]
    Machine {
        /// The experiment.
        experiment: String,
        /// The machine.
        machine: String,
        /// Why.
        error: ProfileError,
    },
    /// A run is impossible.
    #[error("'{experiment}' asks for {error}")]
    Configuration {
        /// The experiment.
        experiment: String,
        /// Why.
        error: ConfigurationError,
    },
    /// Not even the folder of runs can be had.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The laboratory refuses.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
}

impl StudyError {
    /// The parameters of a definition are not those of its kind.
    pub(crate) fn parameters(definition: &Definition, reason: impl ToString) -> StudyError {
        let (experiment, reason) = (definition.name.clone(), reason.to_string());
        ExperimentError::Parameters { experiment, reason }.into()
    }

    /// The machine that a definition names; the folder `profiles` may lie above the definition's.
    pub(crate) fn machine(definition: &Definition, name: &str) -> Result<Profile, StudyError> {
        profile(name, &definition.path).map_err(|error| StudyError::no_machine(definition, name, error))
    }

    /// A machine that a definition names cannot be.
    pub(crate) fn no_machine(definition: &Definition, name: &str, error: ProfileError) -> StudyError {
        StudyError::Machine { experiment: definition.name.clone(), machine: name.to_owned(), error }
    }

    /// A definition asks for an impossible run.
    pub(crate) fn configuration(definition: &Definition) -> impl Fn(ConfigurationError) -> StudyError {
        move |error| StudyError::Configuration { experiment: definition.name.clone(), error }
    }
}
