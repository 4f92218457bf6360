//! What can go wrong with an experiment.

use std::path::PathBuf;

use crate::results::ResultsError;

/// Why an experiment was not run, or its results not believed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExperimentError {
    /// A file or folder could not be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        error: std::io::Error,
    },
    /// A definition is not what a definition has to be.
    #[error("{}: {reason}", path.display())]
    Definition {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// No definition has this name.
    #[error("no experiment '{name}': there are {}", known.join(", "))]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// This program could not be started anew with other pages under its heap.
    #[error("this program, started anew for a heap in {malloc} pages: {reason}")]
    Again {
        /// The pages.
        malloc: &'static str,
        /// What was wrong.
        reason: String,
    },
    /// A definition names a kind of experiment that this program does not have.
    #[error(
        "experiment '{experiment}' is of the kind '{kind}', which this program does not have: it has {}",
        known.join(", ")
    )]
    UnknownKind {
        /// The experiment.
        experiment: String,
        /// The kind it names.
        kind: String,
        /// The kinds there are.
        known: Vec<&'static str>,
    },
    /// The parameters are not those of the kind.
    #[error("experiment '{experiment}': its parameters do not fit its kind: {reason}")]
    Parameters {
        /// The experiment.
        experiment: String,
        /// What is wrong with them.
        reason: String,
    },
    /// The experiment did not measure what its definition promises.
    #[error("experiment '{experiment}' promises other rows than it measured: {}", differences.join("; "))]
    Promise {
        /// The experiment.
        experiment: String,
        /// Every row that is missing or too many.
        differences: Vec<String>,
    },
    /// A reference to a paper's numbers leads nowhere.
    #[error("{}: {reason}", path.display())]
    Reference {
        /// The CSV file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The machine cannot do what the experiment needs.
    #[error("{0}")]
    Machine(String),
    /// What was measured answered wrongly, so that its speed means nothing.
    #[error("{what} answered wrongly: {found}")]
    WrongAnswer {
        /// What was measured.
        what: String,
        /// What it said, and what it should have said.
        found: String,
    },
    /// Results could not be written or read.
    #[error(transparent)]
    Results(#[from] ResultsError),
}

impl ExperimentError {
    /// What was measured answered wrongly.
    #[must_use]
    pub fn wrong(what: impl Into<String>, found: impl Into<String>) -> ExperimentError {
        ExperimentError::WrongAnswer { what: what.into(), found: found.into() }
    }

    /// The machine, or something on it, cannot do what the experiment needs.
    #[must_use]
    pub fn machine(error: impl std::fmt::Display) -> ExperimentError {
        ExperimentError::Machine(error.to_string())
    }
}

/// What refuses an experiment by itself: its words are enough.
macro_rules! refusals {
    ($($error:ty),* $(,)?) => {
        $(impl From<$error> for ExperimentError {
            fn from(error: $error) -> ExperimentError {
                ExperimentError::machine(error)
            }
        })*
    };
}

refusals!(
    crate::measure::CoreError,
    art::CreateError,
    cache::CreateError,
    cuckoo::CreateError,
    lookaside::CreateError,
    pages::MapError,
    sim::ProfileError,
    workload::DistributionError,
    workload::trace::TraceError,
);

impl<V> From<art::NotStored<V>> for ExperimentError {
    fn from(error: art::NotStored<V>) -> ExperimentError {
        ExperimentError::machine(error)
    }
}
