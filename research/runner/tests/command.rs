//! The command, as people and scripts run it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

pub(crate) const LOOKASIDE: &str = env!("CARGO_BIN_EXE_lookaside-lab");

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The command, in the repository.
pub(crate) fn lab(arguments: &[&str]) -> Command {
    let mut command = Command::new(LOOKASIDE);
    command.args(arguments).current_dir(repository());
    command
}

/// Whether it succeeded, what it printed, and what it said beside.
pub(crate) fn output(command: &mut Command) -> (bool, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("the program starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (status.success(), text(stdout), text(stderr))
}

/// What it printed.
#[track_caller]
pub(crate) fn said_by(command: &mut Command) -> String {
    let (succeeded, said, complained) = output(command);
    assert!(succeeded, "{command:?}: {complained}");
    said
}

/// What it printed, which is JSON.
#[track_caller]
pub(crate) fn json(command: &mut Command) -> Value {
    serde_json::from_str(&said_by(command)).expect("JSON")
}

/// It fails, and says this.
#[track_caller]
pub(crate) fn is_refused(command: &mut Command, reason: &str) {
    let (succeeded, said, complained) = output(command);
    assert!(!succeeded && complained.contains(reason), "{command:?}: {said}{complained}");
}
