//! This project's own files near the running program: the newest of each, and none that is older than its sources.
//!
//! ```text
//!   target/release/lookaside                     runs
//!   target/release/deps/liblookaside_capi.a      built whenever the program is, which depends on it
//!   target/release/liblookaside_capi.{a,d}       built when it is asked for by name; else as old as that
//!   target/release/lookaside-own-index{,.d}      the same, and nowhere else: nothing depends on a program
//! ```
//!
//! So after `cargo build --package lookaside-cli` the guest of our own indexes is the one of long ago, and what is
//! measured of it would go under today's revision. Beside what it builds by name cargo writes what that was made of
//! (`.d`): whatever is older than one of these sources is refused. Of files of the same time, which are links to the
//! same, that with the list is taken. Where no program was built, but one installed, there is no list, and nothing is
//! refused; nor are sources missed that are no more.
//!
//! What was found to be current once is not doubted again by the same process: sweeps take hours, and whoever edits a
//! source meanwhile changes nothing of what runs.
//!
//! Rejected: to compare with the time of the running program. It does not depend on the guest: a source of the guest's
//! alone can be newer than both.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use parking_lot::Mutex;

use crate::error::{GuestError, io_error};

/// Where cargo puts them for a program, a test or an example, then where an installation does. As seen from the
/// program.
const FOLDERS: [&str; 5] = ["deps", "../deps", "", "..", "../lib"];

/// One of our own files, near the running program.
pub(crate) fn part(name: &'static str) -> Result<PathBuf, GuestError> {
    let program = std::env::current_exe().map_err(io_error(Path::new("/proc/self/exe")))?;
    near(program.parent().unwrap_or(Path::new("/")), name)
}

fn near(beside: &Path, name: &'static str) -> Result<PathBuf, GuestError> {
    static CURRENT: Mutex<BTreeSet<(SystemTime, PathBuf)>> = Mutex::new(BTreeSet::new());
    let candidates = FOLDERS.iter().map(|folder| beside.join(folder).join(name));
    let found = candidates.filter_map(|path| Some((written(&path)?, path))).max_by_key(|(time, _)| *time);
    let found = found.ok_or_else(|| GuestError::Part { name, beside: beside.to_owned() })?;
    let mut current = CURRENT.lock();
    if !current.contains(&found) {
        let (time, path) = &found;
        if let Some(newer) = sources(path).into_iter().find(|source| written(source) > Some(*time)) {
            return Err(GuestError::Stale { path: path.clone(), newer });
        }
        current.insert(found.clone());
    }
    Ok(found.1)
}

/// When a file was last written; None: there is no such file.
fn written(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok().filter(fs::Metadata::is_file)?.modified().ok()
}

/// What a file was made of, if cargo has left a word about that: `FILE: SOURCE SOURCE ...`, blanks in names behind a
/// `\`.
fn sources(path: &Path) -> Vec<PathBuf> {
    let list = fs::read_to_string(path.with_extension("d")).unwrap_or_default();
    let named = list.lines().filter_map(|line| line.split_once(": "));
    let names = named.flat_map(|(_, names)| {
        let hidden = names.replace("\\ ", "\0");
        hidden.split_whitespace().map(|name| PathBuf::from(name.replace('\0', " "))).collect::<Vec<_>>()
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::Duration;

    use tempfile::TempDir;

    use super::*;

    const LIBRARY: &str = "liblookaside_capi.a";
    const OWN: &str = "lookaside-own-index";

    /// A folder as cargo's, with a program in `release`; files are of the minutes that they are told.
    struct Built(TempDir);

    impl Built {
        fn new() -> Built {
            Built(tempfile::tempdir().expect("a folder"))
        }

        fn file(&self, name: &str, content: &str, minute: u64) -> PathBuf {
            let path = self.0.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(&path, content).expect("written");
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(60 * minute);
            File::options().write(true).open(&path).and_then(|file| file.set_modified(time)).expect("set");
            path
        }

        fn near(&self, name: &'static str) -> Result<PathBuf, GuestError> {
            near(&self.0.path().join("release"), name)
        }
    }

    /// The list beside a file.
    fn list(of: &Path, sources: &[&Path]) -> String {
        let escaped = |path: &Path| path.display().to_string().replace(' ', "\\ ");
        let sources: Vec<_> = sources.iter().copied().map(escaped).collect();
        format!("{}: {}\n", escaped(of), sources.join(" "))
    }

    #[test]
    fn a_guest_that_is_older_than_its_sources_is_refused() {
        let built = Built::new();
        let source = built.file("a folder/engine.rs", "", 1);
        let guest = built.file("release/lookaside-own-index", "", 2);
        built.file(
            "release/lookaside-own-index.d",
            &list(&guest, &[Path::new("/nowhere/that.rs"), &source]),
            2,
        );
        assert_eq!(built.near(OWN).expect("newer than its sources"), guest);
        built.file("release/lookaside-own-index", "", 3);
        built.file("a folder/engine.rs", "", 4);
        let error = built.near(OWN).expect_err("edited, and not built");
        assert!(matches!(&error, GuestError::Stale { path, newer } if *path == guest && *newer == source));
        let said = error.to_string();
        for part in [OWN, "engine.rs", "cargo build --release --workspace"] {
            assert!(said.contains(part), "{part} is not in: {said}");
        }
        built.file("release/lookaside-own-index", "", 5);
        assert_eq!(built.near(OWN).expect("built again"), guest);
        // A sweep has begun.
        built.file("a folder/engine.rs", "", 6);
        assert_eq!(built.near(OWN).expect("as before"), guest);
    }

    #[test]
    fn of_several_builds_the_newest_is_taken() {
        let built = Built::new();
        let there = |name: &str, minute| built.file(name, "", minute);
        assert!(matches!(built.near(LIBRARY), Err(GuestError::Part { name: LIBRARY, .. })));
        let dependency = there("release/deps/liblookaside_capi.a", 1);
        assert_eq!(built.near(LIBRARY).expect("the only one"), dependency);
        let named = there("release/liblookaside_capi.a", 2);
        assert_eq!(built.near(LIBRARY).expect("the newer"), named);
        there("release/deps/liblookaside_capi.a", 3);
        assert_eq!(built.near(LIBRARY).expect("the newer"), dependency);
        // Links to the same: the one with the list.
        there("release/liblookaside_capi.a", 3);
        assert_eq!(built.near(LIBRARY).expect("the same"), named);
        let source = there("slb.rs", 5);
        there("release/liblookaside_capi.a", 4);
        there("release/deps/liblookaside_capi.a", 4);
        built.file("release/liblookaside_capi.d", &list(&named, &[&source]), 4);
        assert!(matches!(built.near(LIBRARY), Err(GuestError::Stale { .. })));
        // Built anew for a program that depends on it.
        there("release/deps/liblookaside_capi.a", 6);
        assert_eq!(built.near(LIBRARY).expect("the newer"), dependency);
    }

    #[test]
    fn what_is_installed_has_no_list() {
        let installed = Built::new();
        let library = installed.file("lib/liblookaside_capi.a", "", 1);
        let guest = installed.file("release/lookaside-own-index", "", 1);
        assert_eq!(installed.near(OWN).expect("beside the program"), guest);
        let found = installed.near(LIBRARY).expect("in lib");
        assert_eq!(fs::canonicalize(found).expect("there"), fs::canonicalize(library).expect("there"));
    }
}
