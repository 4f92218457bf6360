//! Finished runs, one file each, under the digest of their configuration.
//!
//! Whoever wants a run looks here first; so a sweep that was interrupted goes on where it was, and figures that
//! show the same runs share them. A file that cannot be read, or holds another configuration (two digests may
//! meet), counts as absent and is written anew.
//!
//! What runs in this process is versioned with the configuration. Compiled programs are not: their runs say which
//! builds of QEMU, plugin and guest made them, and count as absent for any others. So a run is kept under the
//! configuration and those builds together; without QEMU there is no telling, and none is kept.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::configuration::{Configuration, Guest};
use crate::error::RunError;
use crate::guest::Container;
use crate::qemu::Qemu;
use crate::run::Run;

/// A folder of runs.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
    /// Of each compiled program, what it is at present; nothing if it cannot be run.
    programs: Arc<Mutex<HashMap<Container, Option<String>>>>,
}

impl Store {
    /// Opens a folder, and makes it if it is not there.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn open(folder: &Path) -> Result<Store, RunError> {
        std::fs::create_dir_all(folder).map_err(RunError::io(folder))?;
        Ok(Store { folder: folder.to_owned(), programs: Arc::default() })
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
        let same = run.configuration == *configuration && run.measurement.format == sim::FORMAT;
        let current = match configuration.guest {
            Guest::InProcess => true,
            Guest::Qemu => run.programs.is_some() && run.programs == self.programs(configuration.container),
        };
        (same && current).then_some(run)
    }

    /// The builds that would run a compiled program now. Looked for once: they are large.
    fn programs(&self, container: Container) -> Option<String> {
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        let known = programs.entry(container);
        known.or_insert_with(|| Qemu::find().and_then(|qemu| qemu.identity(container)).ok()).clone()
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
        let unfinished = tempfile::NamedTempFile::new_in(&self.folder).map_err(RunError::io(&self.folder))?;
        std::fs::write(unfinished.path(), text + "\n").map_err(RunError::io(&path))?;
        unfinished.persist(&path).map_err(|error| RunError::io(&path)(error.error))?;
        Ok(path)
    }
}
