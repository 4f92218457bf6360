//! What the plugin is told on QEMU's command line: `-plugin libsim_qemu.so,profile=machine.toml,out=run.json`.
//!
//! | argument | meaning |
//! |---|---|
//! | `profile` | the machine: a TOML file, or the name of a built-in one |
//! | `out` | where the measurement goes (JSON) |
//! | `guest`, `variant`, `seed` | what the measurement says of the run; optional |
//! | `cost` | where goes what the run took, in seconds and memory (JSON, [`crate::cost`]); optional |
//!
//! A path that contains a comma cannot be given: QEMU cuts there.

use std::path::PathBuf;

use sim::{Profile, ProfileError};

/// What was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Arguments {
    /// The machine.
    pub profile: Profile,
    /// Where the measurement goes.
    pub out: PathBuf,
    /// The program.
    pub guest: String,
    /// How it looks its keys up.
    pub variant: String,
    /// What its keys are drawn with.
    pub seed: u64,
    /// Where it goes what the run took.
    pub cost: Option<PathBuf>,
}

/// Why a run is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArgumentError {
    /// There is no such argument.
    #[error("unknown argument \"{0}\"; there are profile=, out=, guest=, variant=, seed= and cost=")]
    Unknown(String),
    /// A necessary one is not there.
    #[error("{0}= is missing: name the machine (profile=) and where the measurement goes (out=)")]
    Missing(&'static str),
    /// A seed is a number.
    #[error("seed={0} is not a number from 0 to 2^64 - 1")]
    Seed(String),
    /// The profile cannot be read.
    #[error("profile={path} is no built-in machine and cannot be read: {error}")]
    Unreadable {
        /// As given.
        path: String,
        /// The system's answer.
        error: std::io::Error,
    },
    /// It is no machine.
    #[error("profile={path}: {error}")]
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
        let (mut profile, mut out, mut cost) = (None, None, None);
        let (mut guest, mut variant, mut seed) = (String::new(), String::new(), 0);
        for argument in arguments {
            match argument.split_once('=') {
                Some(("profile", path)) => profile = Some(machine(path)?),
                Some(("out", path)) => out = Some(PathBuf::from(path)),
                Some(("cost", path)) => cost = Some(PathBuf::from(path)),
                Some(("guest", name)) => name.clone_into(&mut guest),
                Some(("variant", name)) => name.clone_into(&mut variant),
                Some(("seed", number)) => {
                    seed = number.parse().map_err(|_| ArgumentError::Seed(number.to_owned()))?;
                }
                _ => return Err(ArgumentError::Unknown(argument)),
            }
        }
        let profile = profile.ok_or(ArgumentError::Missing("profile"))?;
        let out = out.ok_or(ArgumentError::Missing("out"))?;
        Ok(Arguments { profile, out, guest, variant, seed, cost })
    }
}

fn machine(path: &str) -> Result<Profile, ArgumentError> {
    if let Some(profile) = Profile::named(path) {
        return Ok(profile);
    }
    let text = std::fs::read_to_string(path)
        .map_err(|error| ArgumentError::Unreadable { path: path.to_owned(), error })?;
    Profile::from_toml(&text).map_err(|error| ArgumentError::Profile { path: path.to_owned(), error })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Arguments, ArgumentError> {
        Arguments::parse(arguments.iter().map(ToString::to_string))
    }

    #[test]
    fn a_run_is_named_machine_and_output() {
        let arguments = parse(&["profile=stlt_paper", "out=a.json", "guest=map", "variant=slb", "seed=7"]);
        let arguments = arguments.expect("all is there");
        assert_eq!(arguments.profile, Profile::stlt_paper());
        assert_eq!((arguments.guest.as_str(), arguments.variant.as_str(), arguments.seed), ("map", "slb", 7));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (arguments, expected) in [
            (&["profile=stlt_paper"][..], "out= is missing"),
            (&["out=a"], "profile= is missing"),
            (&["profile=/nowhere", "out=a"], "cannot be read"),
            (&["profile=stlt_paper", "out=a", "seed=x"], "seed=x"),
            (&["profil=stlt_paper", "out=a"], "unknown argument \"profil=stlt_paper\""),
        ] {
            let error = parse(arguments).expect_err(expected).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
