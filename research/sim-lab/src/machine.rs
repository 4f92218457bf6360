//! Machines by name: a file in a folder `profiles`, one that is built in ([`Profile::named`]), or a path.
//!
//! A name that nobody knows is answered with those that there are: whoever asks for a machine may not have seen the
//! folder.

use std::path::Path;

use sim::{Profile, ProfileError};

/// The folder of machines, beside the definitions' own.
pub const PROFILES: &str = "profiles";

/// The machine of a name: a file in the folder [`PROFILES`] at or above `from`, or one that is built in; or that of a
/// path, which ends with `.toml`.
///
/// # Errors
/// If there is none, or it is no machine.
pub fn profile(name: &str, from: &Path) -> Result<Profile, ProfileError> {
    if name.ends_with(".toml") {
        return Profile::read(Path::new(name));
    }
    let file = Path::new(PROFILES).join(format!("{name}.toml"));
    if let Some(path) = from.ancestors().map(|above| above.join(&file)).find(|path| path.is_file()) {
        return Profile::read(&path);
    }
    Profile::named(name).ok_or_else(|| ProfileError::Unknown { name: name.to_owned(), known: known(from) })
}

/// The names that lead to a machine from here.
fn known(from: &Path) -> Vec<String> {
    let folders = from.ancestors().filter_map(|above| std::fs::read_dir(above.join(PROFILES)).ok());
    let paths = folders.flatten().flatten().map(|entry| entry.path());
    let files = paths.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    let names = files.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()));
    let mut known: Vec<String> = names.chain(Profile::NAMES.map(str::to_owned)).collect();
    known.sort();
    known.dedup();
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_answered_with_those_that_are_known_and_each_of_them_is() {
        let above = tempfile::tempdir().expect("a folder");
        let (folder, from) = (above.path().join(PROFILES), above.path().join("experiments/sim"));
        std::fs::create_dir_all(&folder).expect("made");
        std::fs::create_dir_all(&from).expect("made");
        for name in ["own", "own.2026"] {
            let own = Profile { name: name.into(), ..Profile::stlt_paper() };
            std::fs::write(folder.join(format!("{name}.toml")), own.to_toml().expect("TOML"))
                .expect("written");
        }
        std::fs::write(folder.join("README.md"), "no machine").expect("written");
        let error = profile("pentium", &from).expect_err("nobody has it");
        let ProfileError::Unknown { known, .. } = &error else { panic!("{error}") };
        let own_and_built_in = ["current_server", "own", "own.2026", "sandy_bridge", "stlt_paper"];
        assert!(own_and_built_in.iter().all(|name| known.iter().any(|known| known == name)), "{known:?}");
        for name in known {
            assert_eq!(profile(name, &from).expect("a machine").name, *name);
            assert!(error.to_string().contains(name.as_str()), "{error}");
        }
        let path = folder.join("absent.toml");
        let error = profile(path.to_str().expect("text"), &from).expect_err("there is no such file");
        assert!(matches!(error, ProfileError::Unreadable { .. }), "{error}");
    }
}
