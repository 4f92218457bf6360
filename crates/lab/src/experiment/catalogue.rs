//! Finding the definitions.
//!
//! They lie in a folder `experiments/`, in the current directory or above it, as cargo's own files do. Definitions in
//! its subfolders belong to other programs (`experiments/peers/` to the crate of that name) and are read only by name
//! of their path.

use std::path::{Path, PathBuf};

use super::{Definition, ExperimentError};

/// The name of the folder that holds the definitions.
pub const FOLDER: &str = "experiments";

/// The definitions of a folder.
#[derive(Debug, Clone)]
pub struct Catalogue {
    folder: PathBuf,
    definitions: Vec<Definition>,
}

impl Catalogue {
    /// The definitions found from `directory` upwards.
    ///
    /// # Errors
    /// [`ExperimentError::NoCatalogue`] where there is no such folder, and as [`Catalogue::read`].
    pub fn find(directory: &Path) -> Result<Catalogue, ExperimentError> {
        directory.ancestors().map(|above| above.join(FOLDER)).find(|folder| folder.is_dir()).map_or_else(
            || Err(ExperimentError::NoCatalogue(directory.to_owned())),
            |folder| Self::read(&folder),
        )
    }

    /// The definitions in `folder`, by name.
    ///
    /// # Errors
    /// [`ExperimentError::Io`] or [`ExperimentError::Definition`], for the first one that cannot be read.
    pub fn read(folder: &Path) -> Result<Catalogue, ExperimentError> {
        let io = |error| ExperimentError::Io { path: folder.to_owned(), error };
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(io)? {
            let path = entry.map_err(io)?.path();
            if path.extension().is_some_and(|extension| extension == "toml") {
                paths.push(path);
            }
        }
        paths.sort();
        let definitions = paths.iter().map(|path| Definition::read(path)).collect::<Result<_, _>>()?;
        Ok(Catalogue { folder: folder.to_owned(), definitions })
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

    /// The definitions in the subfolders, which are those of other programs.
    ///
    /// # Errors
    /// As [`Catalogue::read`].
    pub fn others(&self) -> Result<Vec<Definition>, ExperimentError> {
        let io = |error| ExperimentError::Io { path: self.folder.clone(), error };
        let entries =
            std::fs::read_dir(&self.folder).map_err(io)?.map(|entry| entry.map(|entry| entry.path()));
        let mut subfolders: Vec<_> = entries.collect::<Result<_, _>>().map_err(io)?;
        subfolders.retain(|path| path.is_dir());
        subfolders.sort();
        let catalogues = subfolders.iter().map(|subfolder| Catalogue::read(subfolder));
        Ok(catalogues
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .flat_map(|found| found.definitions)
            .collect())
    }

    /// Where results are kept by default: the folder `results` beside the definitions'.
    #[must_use]
    pub fn results_folder(&self) -> PathBuf {
        self.folder.with_file_name("results")
    }

    /// All definitions, by name.
    #[must_use]
    pub fn definitions(&self) -> &[Definition] {
        &self.definitions
    }

    /// The definition with this name, or in the file of this path.
    ///
    /// # Errors
    /// [`ExperimentError::Unknown`], or as [`Definition::read`] for a path.
    pub fn get(&self, name_or_path: &str) -> Result<Definition, ExperimentError> {
        if let Some(definition) = self.definition(name_or_path) {
            return Ok(definition.clone());
        }
        let path = Path::new(name_or_path);
        if path.extension().is_some_and(|extension| extension == "toml") {
            return Definition::read(path);
        }
        Err(ExperimentError::Unknown {
            name: name_or_path.to_owned(),
            known: self.definitions.iter().map(|definition| definition.name.clone()).collect(),
        })
    }
}
