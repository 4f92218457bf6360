//! The files of definitions: on the disk, or those of the repository, which are built into this program.
//!
//! Whoever installs the program has no repository. So its folder of definitions, with the papers' numbers, is part of
//! it, below a path that the disk has not ([`BUILT_IN`]): a definition is named by its path everywhere, wherever it
//! lies.

use std::io;
use std::path::{Path, PathBuf};

use include_dir::{Dir, DirEntry, include_dir};

/// Where the definitions that are built in lie.
pub const BUILT_IN: &str = "/built into lookaside/experiments";
/// The name of a folder of definitions.
pub const FOLDER: &str = "research/experiments";
/// What such a folder holds beside them. Others have folders of that name, too.
const PAPERS: &str = "papers";

static EXPERIMENTS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../experiments");

/// The folder of definitions that counts in `directory`: the repository's where that is in it, or the one that is built
/// in.
#[must_use]
pub fn folder_for(directory: &Path) -> PathBuf {
    let mut folders = directory.ancestors().map(|above| above.join(FOLDER));
    folders.find(|folder| folder.join(PAPERS).is_dir()).unwrap_or_else(|| BUILT_IN.into())
}

/// Whether nothing on the disk is meant by this path.
pub(super) fn is_built_in(path: &Path) -> bool {
    path.starts_with(BUILT_IN)
}

fn built_in(path: &Path) -> Option<&'static DirEntry<'static>> {
    EXPERIMENTS.get_entry(path.strip_prefix(BUILT_IN).ok()?)
}

/// The text of a file.
pub(super) fn read(path: &Path) -> io::Result<String> {
    if !is_built_in(path) {
        return std::fs::read_to_string(path);
    }
    let file = built_in(path).and_then(DirEntry::as_file).and_then(|file| file.contents_utf8());
    file.map(str::to_owned).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Whether there is a file of this path.
pub(crate) fn is_file(path: &Path) -> bool {
    if is_built_in(path) {
        built_in(path).is_some_and(|entry| entry.as_file().is_some())
    } else {
        path.is_file()
    }
}

/// What lies in a folder, in order: files, and folders.
pub(super) fn entries(folder: &Path) -> io::Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (mut files, mut folders): (Vec<PathBuf>, Vec<PathBuf>) = if is_built_in(folder) {
        let inside = folder.strip_prefix(BUILT_IN).ok().filter(|inside| !inside.as_os_str().is_empty());
        let found = inside.map_or(Some(&EXPERIMENTS), |inside| EXPERIMENTS.get_dir(inside));
        let found = found.ok_or(io::ErrorKind::NotFound)?;
        let path = |inside: &Path| Path::new(BUILT_IN).join(inside);
        (
            found.files().map(|file| path(file.path())).collect(),
            found.dirs().map(|dir| path(dir.path())).collect(),
        )
    } else {
        let entries = std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
        entries.collect::<Result<Vec<_>, _>>()?.into_iter().partition(|path| !path.is_dir())
    };
    files.sort();
    folders.sort();
    Ok((files, folders))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_in_is_what_lies_in_the_repository() {
        let repository = folder_for(Path::new(env!("CARGO_MANIFEST_DIR")));
        let mut folders = vec![PathBuf::new()];
        while let Some(inside) = folders.pop() {
            let (files, below) = entries(&repository.join(&inside)).unwrap();
            let (built_in, _) = entries(&Path::new(BUILT_IN).join(&inside)).unwrap();
            assert_eq!(files.len(), built_in.len(), "{}", inside.display());
            for (file, built_in) in files.iter().zip(&built_in) {
                assert_eq!(read(file).unwrap(), read(built_in).unwrap(), "{}", file.display());
            }
            folders.extend(below.iter().map(|path| path.strip_prefix(&repository).unwrap().to_owned()));
        }
        assert!(read(&Path::new(BUILT_IN).join("none.toml")).is_err());
        assert!(!is_file(Path::new(BUILT_IN)) && is_file(&Path::new(BUILT_IN).join("papers/slb.csv")));
    }
}
