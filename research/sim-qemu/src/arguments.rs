//! What the plugin is told on QEMU's command line: `-plugin libsim_qemu.so,profile=machine.toml,out=run.json`.
//!
//! `profile` is the machine, a TOML file or the name of a built-in one; `out` is where the measurement goes (JSON).
//! What the program is, and what its requests were drawn with, whoever starts it knows: of that a measurement of the
//! plugin says nothing. A path that contains a comma cannot be given: QEMU cuts there.

use std::path::{Path, PathBuf};

use sim::{Profile, ProfileError};

/// What was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Arguments {
    /// The machine.
    pub profile: Profile,
    /// Where the measurement goes.
    pub out: PathBuf,
}

/// Why a run is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArgumentError {
    /// There is no such argument.
    #[error("unknown argument \"{0}\"; there are profile= and out=")]
    Unknown(String),
    /// A necessary one is not there.
    #[error("{0}= is missing: name the machine (profile=) and where the measurement goes (out=)")]
    Missing(&'static str),
    /// The profile cannot be read, or is no machine.
    #[error("profile={path} is no built-in machine: {error}")]
    Profile {
        /// As given.
        path: String,
        /// Why.
        error: ProfileError,
    },
}

impl Arguments {
    /// Reads `name=value` arguments.
    ///
    /// # Errors
    /// If one is unknown, missing or no machine.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Arguments, ArgumentError> {
        let (mut profile, mut out) = (None, None);
        for argument in arguments {
            match argument.split_once('=') {
                Some(("profile", path)) => {
                    let named = Profile::named(path).map_or_else(|| Profile::read(Path::new(path)), Ok);
                    let error = |error| ArgumentError::Profile { path: path.to_owned(), error };
                    profile = Some(named.map_err(error)?);
                }
                Some(("out", path)) => out = Some(PathBuf::from(path)),
                _ => return Err(ArgumentError::Unknown(argument)),
            }
        }
        let profile = profile.ok_or(ArgumentError::Missing("profile"))?;
        Ok(Arguments { profile, out: out.ok_or(ArgumentError::Missing("out"))? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_named_machine_and_output_and_what_is_wrong_is_said() {
        let parse = |arguments: &[&str]| Arguments::parse(arguments.iter().map(ToString::to_string));
        let arguments = parse(&["profile=stlt_paper", "out=a.json"]).expect("all is there");
        assert_eq!(arguments, Arguments { profile: Profile::stlt_paper(), out: "a.json".into() });
        for (arguments, expected) in [
            (&["profile=stlt_paper"][..], "out= is missing"),
            (&["out=a"], "profile= is missing"),
            (&["profile=/nowhere", "out=a"], "no built-in machine: /nowhere"),
            (&["profil=stlt_paper", "out=a"], "unknown argument \"profil=stlt_paper\""),
        ] {
            let error = parse(arguments).expect_err(expected).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
