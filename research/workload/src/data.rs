//! Where recorded traces are found.
//!
//! The data belongs to others and is not part of this repository. It is looked for in the folder that the variable
//! `LOOKASIDE_DATA` names, and nowhere else. A relative name is tried first from the current directory and then from
//! the root of the workspace, because cargo runs a test in its crate's own directory and a program in the caller's.
//! Nobody needs it: what is drawn from published figures has them built into the program, and
//! [`generated`](crate::generated) traces stand in for recorded ones. `research/workload/README.md` says where the
//! recorded ones are to be had.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The environment variable that names the folder.
pub const VARIABLE: &str = "LOOKASIDE_DATA";

/// The root of the workspace, as it was when this crate was compiled.
const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Why data was not found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The variable does not name a folder.
    #[error("no folder of data is named: {ADVICE}")]
    Unnamed,
    /// No place that was looked at holds the folder.
    #[error("no workload data at {}: {ADVICE}", listed(looked_for))]
    FolderAbsent {
        /// The places, in the order in which they were looked at.
        looked_for: Vec<PathBuf>,
    },
    /// The folder is there, and the file is not in it.
    #[error("no file {}: {ADVICE}", path.display())]
    FileAbsent {
        /// The file looked for.
        path: PathBuf,
    },
}

fn listed(paths: &[PathBuf]) -> String {
    let shown: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    shown.join(" or ")
}

/// What all of them end with.
const ADVICE: &str = "set LOOKASIDE_DATA to the folder that holds traces/ and keys/";

/// The folder that holds the data: `traces/` and `keys/`.
///
/// ```no_run
/// use lookaside_workload::{data::DataFolder, trace::Trace};
///
/// let folder = DataFolder::find()?;
/// for record in Trace::open(folder.file("traces/web07.trace.xz")?)? {
///     let record = record?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataFolder {
    path: PathBuf,
}

impl DataFolder {
    /// Looks for the folder that [`VARIABLE`] names.
    ///
    /// # Errors
    ///
    /// [`DataError::Unnamed`] where it is unset or empty, [`DataError::FolderAbsent`] with every place that was looked
    /// at.
    pub fn find() -> Result<DataFolder, DataError> {
        let named = env::var_os(VARIABLE);
        // Without a current directory, a relative name still has the root of the workspace to go from.
        let current = env::current_dir().ok();
        DataFolder::find_from(named.as_deref(), current.as_deref(), Path::new(WORKSPACE))
    }

    fn find_from(
        named: Option<&OsStr>,
        current: Option<&Path>,
        workspace: &Path,
    ) -> Result<DataFolder, DataError> {
        let name = Path::new(named.filter(|name| !name.is_empty()).ok_or(DataError::Unnamed)?);
        let mut looked_for = Vec::new();
        // Joining an absolute name gives that name, so it is looked at once.
        for base in current.into_iter().chain([workspace]) {
            let path = base.join(name);
            if path.is_dir() {
                return Ok(DataFolder { path });
            }
            if !looked_for.contains(&path) {
                looked_for.push(path);
            }
        }
        Err(DataError::FolderAbsent { looked_for })
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file, or of a folder, inside this one, such as `traces/orm-busy.trace.xz`.
    ///
    /// # Errors
    ///
    /// [`DataError::FileAbsent`] where nothing has that name.
    pub fn file(&self, name: impl AsRef<Path>) -> Result<PathBuf, DataError> {
        let path = self.path.join(name);
        if path.exists() { Ok(path) } else { Err(DataError::FileAbsent { path }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_relative_name_is_tried_from_the_current_directory_and_then_from_the_workspace() {
        let scratch = tempfile::tempdir().unwrap();
        let (current, workspace) = (scratch.path().join("here"), scratch.path().join("workspace"));
        fs::create_dir_all(&current).unwrap();
        fs::create_dir_all(workspace.join("data")).unwrap();
        let find = || DataFolder::find_from(Some(OsStr::new("data")), Some(&current), &workspace);

        assert_eq!(find().unwrap().path(), workspace.join("data"));
        fs::create_dir(current.join("data")).unwrap();
        assert_eq!(find().unwrap().path(), current.join("data"));
    }

    /// Data was looked for in a folder beside the repository where the variable was not set. Whoever had cloned it into
    /// a folder without one was told of a place that he never heard of.
    #[test]
    fn an_unset_or_empty_variable_names_no_folder_wherever_the_workspace_lies() {
        let scratch = tempfile::tempdir().unwrap();
        let workspace = scratch.path().join("workspace");
        fs::create_dir_all(scratch.path().join("shared/workloads")).unwrap();
        fs::create_dir_all(&workspace).unwrap();
        for named in [None, Some(OsStr::new(""))] {
            let error = DataFolder::find_from(named, Some(&workspace), &workspace).unwrap_err();
            assert_eq!(error, DataError::Unnamed);
            assert!(error.to_string().contains(VARIABLE) && !error.to_string().contains("shared"), "{error}");
        }
    }

    #[test]
    fn what_is_absent_is_named_together_with_the_variable() {
        let scratch = tempfile::tempdir().unwrap();
        let (current, workspace) = (scratch.path().join("here"), scratch.path().join("workspace"));
        let error = DataFolder::find_from(Some(OsStr::new("data")), Some(&current), &workspace).unwrap_err();
        let expected = vec![current.join("data"), workspace.join("data")];
        assert_eq!(error, DataError::FolderAbsent { looked_for: expected.clone() });
        let message = error.to_string();
        assert!(message.contains(VARIABLE), "{message}");
        assert!(expected.iter().all(|path| message.contains(path.to_str().unwrap())), "{message}");

        let absolute = scratch.path().join("nowhere");
        let error =
            DataFolder::find_from(Some(absolute.as_os_str()), Some(&current), &workspace).unwrap_err();
        assert_eq!(error, DataError::FolderAbsent { looked_for: vec![absolute] });

        let folder = DataFolder { path: scratch.path().to_owned() };
        let error = folder.file("traces/none").unwrap_err();
        assert_eq!(error, DataError::FileAbsent { path: scratch.path().join("traces/none") });
        assert!(error.to_string().contains(VARIABLE));
    }
}
