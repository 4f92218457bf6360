//! The pages under what the C library's allocator gives, and this program again where they have to be others.
//!
//! Our tables ask the kernel for huge pages. The allocator by default does not, and records, nodes and foreign engines
//! take their memory from it: on a virtual machine, where a translation that is not at hand is a walk through two sets
//! of page tables, the kind of page is a factor of up to two. The GNU C library asks for transparent huge pages where
//! `glibc.malloc.hugetlb=1` is set when a program starts, and at no other time: so an experiment whose definition says
//! `heap = "huge"` is run by this program anew.
//!
//! Either setting takes the place of whatever else the variable said, and lets it give every large allocation back to
//! the kernel when it is freed, so that the memory of one engine is not counted as the next one's. Where nothing is
//! said the heap is as programs have it.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};
use std::str::FromStr;

use serde::Deserialize;

use crate::experiment::ExperimentError;

/// The variable that the GNU C library reads when a program starts.
const VARIABLE: &str = "GLIBC_TUNABLES";
/// Says that a program was started anew: if it does not find the other then, the system took it away, and would again.
const ANEW: &str = "LOOKASIDE_STARTED_ANEW";

/// The pages that the allocator takes memory in.
///
/// ```
/// # use lookaside_lab::allocator::Malloc;
/// assert_eq!("huge".parse(), Ok(Malloc::Huge));
/// assert!("large".parse::<Malloc>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Malloc {
    /// Transparent huge pages.
    Huge,
    /// As the library takes them by itself: regular ones, unless the kernel gives huge ones to everybody.
    Plain,
}

/// A kind of heap that there is not.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are 'huge', transparent huge pages, and 'plain', as the C library takes them by itself")]
pub struct NoSuchMalloc;

impl FromStr for Malloc {
    type Err = NoSuchMalloc;

    fn from_str(name: &str) -> Result<Malloc, NoSuchMalloc> {
        match name {
            "huge" => Ok(Malloc::Huge),
            "plain" => Ok(Malloc::Plain),
            _ => Err(NoSuchMalloc),
        }
    }
}

/// What `lookaside-lab run` was told on the command line, which holds for a program that is started anew too.
#[derive(Debug, Clone, Copy)]
pub struct Flags<'f> {
    /// Small, once.
    pub quick: bool,
    /// How often, instead of as often as the definition says.
    pub runs: Option<u16>,
    /// Where to keep results.
    pub out: Option<&'f Path>,
    /// Print reports as JSON.
    pub json: bool,
}

/// What a program that was started anew left.
#[derive(Debug)]
pub struct Again {
    /// Whether it ran everything and met every expectation.
    pub all_met: bool,
    /// Its reports, where it was asked for JSON.
    pub reports: Vec<serde_json::Value>,
}

/// Lets this program end when the one that started it anew does, however that is ended: whoever runs an experiment
/// knows the number of the first only. Does nothing in one that was not started anew.
pub fn end_with_who_started_anew() {
    if env::var_os(ANEW).is_some() {
        // Where the system has no such thing, it goes on to its own end, as it would without.
        let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM));
    }
}

/// The allocator of this program, as it was started, in words for a result's provenance.
#[must_use]
pub fn describe() -> String {
    match env::var(VARIABLE) {
        Ok(tunables) if !tunables.is_empty() => format!("system ({VARIABLE}={tunables})"),
        _ => "system".into(),
    }
}

impl Malloc {
    /// As the command line and definitions name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Malloc::Huge => "huge",
            Malloc::Plain => "plain",
        }
    }

    fn tunables(self) -> &'static str {
        match self {
            Malloc::Huge => {
                "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=131072:glibc.malloc.trim_threshold=131072"
            }
            Malloc::Plain => "glibc.malloc.mmap_threshold=131072:glibc.malloc.trim_threshold=131072",
        }
    }

    /// Whether this program was started so.
    #[must_use]
    pub fn is_here(self) -> bool {
        env::var(VARIABLE).as_deref() == Ok(self.tunables())
    }

    /// Runs this program with its allocator so set: its subcommand `command`, for the definition of this path. What it
    /// prints is shown, or, where it is JSON, read.
    ///
    /// # Errors
    /// [`ExperimentError::Again`] where it cannot be started, or prints what is no reports.
    pub fn run_again(
        self,
        command: &[&str],
        definition: &Path,
        flags: &Flags<'_>,
    ) -> Result<Again, ExperimentError> {
        let again = |reason: String| ExperimentError::Again { malloc: self.name(), reason };
        if env::var_os(ANEW).is_some() {
            return Err(again(format!("the system does not let it have {VARIABLE}")));
        }
        let program = env::current_exe().map_err(|error| again(error.to_string()))?;
        let Flags { quick, runs, out, json } = *flags;
        let mut command_line = Command::new(program);
        command_line.env(VARIABLE, self.tunables()).env(ANEW, "1");
        command_line.args(command).arg(definition).args(["--malloc", self.name()]);
        command_line.args(quick.then_some("--quick")).args(json.then_some("--json"));
        command_line.args(runs.map(|runs| format!("--runs={runs}")));
        if let Some(out) = out {
            command_line.arg("--out").arg(out);
        }
        command_line.stdout(if json { Stdio::piped() } else { Stdio::inherit() });
        let child = command_line.spawn().map_err(|error| again(error.to_string()))?;
        let output = child.wait_with_output().map_err(|error| again(error.to_string()))?;
        if output.status.code().is_none() {
            return Err(again(format!("it was ended: {}", output.status)));
        }
        let reports = match json {
            // One that failed before it printed any has said why.
            true if output.stdout.is_empty() => Vec::new(),
            true => serde_json::from_slice(&output.stdout).map_err(|error| again(error.to_string()))?,
            false => Vec::new(),
        };
        Ok(Again { all_met: output.status.success(), reports })
    }
}
