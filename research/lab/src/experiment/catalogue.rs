//! Finding the definitions.
//!
//! They lie in the repository's folder `research/experiments/`, in the current directory or above it, as cargo's own
//! files do; elsewhere those that are built in are used, or those of a folder that is named. Its
//! subfolders group what is not measured by the laboratory alone: `peers/` beside foreign engines, `sim/` on the
//! simulated processor.
//!
//! Results are kept beside the repository's definitions. Outside of it they are kept in the current directory, where
//! who asked for them will look; a folder of all a user's results, somewhere in the home directory, would have to be
//! told to everyone.

use std::path::{Path, PathBuf};

use super::files::{entries, folder_for, is_built_in};
use super::{Definition, ExperimentError};

/// The definitions of a folder.
#[derive(Debug, Clone)]
pub struct Catalogue {
    folder: PathBuf,
    /// What results lie in.
    home: PathBuf,
    definitions: Vec<Definition>,
}

impl Catalogue {
    /// The definitions that count in `directory`: those of the repository around it, or those that are built in.
    ///
    /// # Errors
    /// As [`Catalogue::read`].
    pub fn find(directory: &Path) -> Result<Catalogue, ExperimentError> {
        let folder = folder_for(directory);
        if is_built_in(&folder) { Self::named(&folder, directory) } else { Self::read(&folder) }
    }

    /// The definitions in `folder`, with results in the directory `home`.
    ///
    /// # Errors
    /// As [`Catalogue::read`].
    pub fn named(folder: &Path, home: &Path) -> Result<Catalogue, ExperimentError> {
        Ok(Catalogue { home: home.to_owned(), ..Self::read(folder)? })
    }

    /// The definitions in `folder`, by name, with results beside it.
    ///
    /// # Errors
    /// [`ExperimentError::Io`] or [`ExperimentError::Definition`], for the first one that cannot be read.
    pub fn read(folder: &Path) -> Result<Catalogue, ExperimentError> {
        let (mut paths, _) =
            entries(folder).map_err(|error| ExperimentError::Io { path: folder.to_owned(), error })?;
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
        let definitions = paths.iter().map(|path| Definition::read(path)).collect::<Result<_, _>>()?;
        let home = folder.parent().unwrap_or(folder).to_owned();
        Ok(Catalogue { folder: folder.to_owned(), home, definitions })
    }

    /// The definitions in the subfolder `name`, with results where these have theirs.
    ///
    /// # Errors
    /// As [`Catalogue::read`].
    pub fn below(&self, name: &str) -> Result<Catalogue, ExperimentError> {
        Self::named(&self.folder.join(name), &self.home)
    }

    /// The definition of this name, if there is one.
    #[must_use]
    pub fn definition(&self, name: &str) -> Option<&Definition> {
        self.definitions.iter().find(|definition| definition.name == name)
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The definitions in the subfolders.
    ///
    /// # Errors
    /// As [`Catalogue::read`].
    pub fn others(&self) -> Result<Vec<Definition>, ExperimentError> {
        let (_, subfolders) = entries(&self.folder)
            .map_err(|error| ExperimentError::Io { path: self.folder.clone(), error })?;
        let catalogues = subfolders.iter().map(|subfolder| Catalogue::read(subfolder));
        Ok(catalogues
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .flat_map(|found| found.definitions)
            .collect())
    }

    /// Where results are kept by default: in a folder `results`.
    #[must_use]
    pub fn results_folder(&self) -> PathBuf {
        self.home.join("results")
    }

    /// The directory that results are kept in, each kind in a folder of its own.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// All definitions, by name.
    #[must_use]
    pub fn definitions(&self) -> &[Definition] {
        &self.definitions
    }

    /// All definitions: its own, and then those of its subfolders.
    ///
    /// # Errors
    /// As [`Catalogue::read`].
    pub fn all(&self) -> Result<Vec<Definition>, ExperimentError> {
        Ok(self.definitions.iter().cloned().chain(self.others()?).collect())
    }

    /// The definition with this name, here or in a subfolder, or in the file of this path.
    ///
    /// # Errors
    /// [`ExperimentError::Unknown`], or as [`Catalogue::read`] for subfolders and as [`Definition::read`] for a path.
    pub fn get(&self, name_or_path: &str) -> Result<Definition, ExperimentError> {
        if let Some(definition) = self.definition(name_or_path) {
            return Ok(definition.clone());
        }
        let all = self.all()?;
        if let Some(definition) = all.iter().find(|definition| definition.name == name_or_path) {
            return Ok(definition.clone());
        }
        let path = Path::new(name_or_path);
        if path.extension().is_some_and(|extension| extension == "toml") {
            return Definition::read(path);
        }
        Err(ExperimentError::Unknown {
            name: name_or_path.to_owned(),
            known: all.into_iter().map(|definition| definition.name).collect(),
        })
    }
}
