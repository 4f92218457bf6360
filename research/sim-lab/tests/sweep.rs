//! Processes of a sweep that say much. Alone in this file: a script that is executed must not be open for writing in a
//! child that another test starts at the same moment.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use indicatif::ProgressBar;
use sim_lab::configuration::{Configuration, Guest, Lengths};
use sim_lab::guest::{Container, Variant};
use sim_lab::store::Store;
use sim_lab::sweep::{Place, Swept, sweep};

use crate::shared;

fn configuration() -> Configuration {
    let lengths = Lengths { warm_up: 10, functional: 10, settle: 1, windows: 1, window: 10 };
    shared::configuration(Guest::InProcess, (Container::Map, Variant::Alone), (1_000, 1 << 14), lengths)
}

/// A sweep of one run in a process that is this script, or nothing where it does not come to an end.
fn swept(folder: &Path, script: &str) -> Option<Swept> {
    let program = folder.join("program");
    std::fs::write(&program, format!("#!/bin/sh\n{script}")).expect("written");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("allowed");
    let store = Store::open(&folder.join("store")).expect("a store");
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let progress = ProgressBar::hidden();
        let swept = sweep(&[configuration()], &store, &Place::Program(program), 1, &progress);
        // Nobody listens any more if it took too long.
        let _ = send.send(swept);
    });
    receive.recv_timeout(Duration::from_secs(60)).ok()
}

#[test]
fn a_process_that_says_more_than_a_pipe_holds_is_heard_to_its_end() {
    let folder = tempfile::tempdir().expect("a folder");
    // Three times what a pipe holds, before the line that says that a run is kept.
    let much = "head -c 200K /dev/zero | tr '\\0' x >&2\n";
    let made = swept(folder.path(), &format!("{much}echo kept\n")).expect("it ends");
    assert_eq!((made.made, made.failed.len()), (1, 0));
    let failed = swept(folder.path(), &format!("{much}echo 'disk full' >&2\nexit 3\n")).expect("it ends");
    assert_eq!((failed.made, failed.failed.len()), (0, 1));
    let reason = &failed.failed[0].1;
    assert!(reason.starts_with("... x") && reason.ends_with("xdisk full"), "{}", reason.len());
    assert!(reason.len() < 17 << 10, "{} bytes of it", reason.len());
    let silent = swept(folder.path(), "exit 3\n").expect("it ends");
    assert_eq!(silent.failed[0].1, "exit status: 3");
}
