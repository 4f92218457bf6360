//! Finished runs, one file each, under the digest of their configuration.
//!
//! Whoever wants a run looks here first; so a sweep that was interrupted goes on where it was, and figures that
//! show the same runs share them. A file that cannot be read, or holds another configuration (two digests may
//! meet), counts as absent and is written anew.

use std::path::{Path, PathBuf};

use crate::configuration::Configuration;
use crate::run::{Run, RunError};

/// A folder of runs.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// Opens a folder, and makes it if it is not there.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn open(folder: &Path) -> Result<Store, RunError> {
        std::fs::create_dir_all(folder).map_err(|error| RunError::Io { path: folder.to_owned(), error })?;
        Ok(Store { folder: folder.to_owned() })
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where a run is kept.
    #[must_use]
    pub fn path(&self, configuration: &Configuration) -> PathBuf {
        self.folder.join(configuration.digest()).with_extension("json")
    }

    /// A finished run.
    #[must_use]
    pub fn get(&self, configuration: &Configuration) -> Option<Run> {
        let text = std::fs::read_to_string(self.path(configuration)).ok()?;
        let run: Run = serde_json::from_str(&text).ok()?;
        (run.configuration == *configuration && run.measurement.format == sim::FORMAT).then_some(run)
    }

    /// Keeps a run: its file is there whole, or not at all.
    ///
    /// # Errors
    /// If it cannot be written.
    ///
    /// # Panics
    /// Never: a run is numbers and names.
    pub fn put(&self, run: &Run) -> Result<PathBuf, RunError> {
        let path = self.path(&run.configuration);
        let text = serde_json::to_string_pretty(run).expect("a run is numbers and names");
        let unfinished = tempfile::NamedTempFile::new_in(&self.folder)
            .map_err(|error| RunError::Io { path: self.folder.clone(), error })?;
        std::fs::write(unfinished.path(), text + "\n")
            .map_err(|error| RunError::Io { path: path.clone(), error })?;
        unfinished.persist(&path).map_err(|error| RunError::Io { path: path.clone(), error: error.error })?;
        Ok(path)
    }
}
