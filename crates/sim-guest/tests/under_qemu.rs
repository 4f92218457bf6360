//! This project's own indexes under QEMU with the plugin.
//!
//! They need Debian's qemu-user; without it they are skipped, unless LOOKASIDE_REQUIRE_PEERS=1.

#![allow(clippy::print_stderr, reason = "a test says that it was skipped")]

use std::path::Path;
use std::process::Command;

use sim::{Measurement, Window};
use sim_qemu::guests::{GuestError, Index, PROCESSOR, Run, Tools, Variant};

fn tools() -> Option<Tools> {
    match Tools::find() {
        Err(error @ GuestError::Qemu) => {
            let required = std::env::var_os("LOOKASIDE_REQUIRE_PEERS").is_some_and(|require| require == "1");
            assert!(!required, "{error}");
            eprintln!("skipped: {error}");
            None
        }
        found => Some(found.expect("cargo builds the plugin beside this test")),
    }
}

fn run(tools: &Tools, folder: &Path, index: &str, variant: Variant) -> Window {
    let run = Run {
        load: 100_000,
        functional: 30_000,
        window: 10_000,
        windows: 1,
        ..Run::new(Index::Map, variant, 60_000)
    };
    let (requests, out) = (folder.join("requests"), folder.join("run.json"));
    run.write_requests(&requests).expect("written");
    let output = Command::new(&tools.qemu)
        .args(["-cpu", PROCESSOR, "-plugin"])
        .arg(format!("{},profile=stlt_paper,guest={index},out={}", tools.plugin.display(), out.display()))
        .arg(env!("CARGO_BIN_EXE_lookaside-own-index"))
        .args(run.arguments(&requests))
        .arg(format!("index={index}"))
        .output()
        .expect("started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Measurement::read(&out).expect("a measurement").windows[0]
}

#[test]
fn the_table_saves_walks_before_our_own_indexes_too() {
    let Some(tools) = tools() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    for index in ["cuckoo", "art", "art-reorganised"] {
        let alone = run(&tools, folder.path(), index, Variant::Alone);
        let stlt = run(&tools, folder.path(), index, Variant::Stlt);
        let again = run(&tools, folder.path(), index, Variant::Stlt);
        assert_eq!(stlt, again, "{index}: counts repeat");
        assert_eq!((alone.operations, alone.fast_path), (10_000, None));
        let fast = stlt.fast_path.expect("it has a table");
        assert_eq!(fast.total(), 10_000);
        assert!(fast.hits > 8500, "{index}: {fast:?}");
        assert!(stlt.walks() < alone.walks(), "{index}: {} of {}", stlt.walks(), alone.walks());
        eprintln!(
            "{index}: {:.0} cycles and {:.2} walks alone, {:.0} and {:.2} with the STLT",
            alone.cycles(),
            alone.walks(),
            stlt.cycles(),
            stlt.walks()
        );
    }
}

#[test]
fn it_runs_without_a_simulator() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = Run {
        load: 100,
        functional: 100,
        window: 100,
        windows: 1,
        ..Run::new(Index::Map, Variant::Stlt, 1000)
    };
    let requests = folder.path().join("requests");
    run.write_requests(&requests).expect("written");
    for index in ["cuckoo", "art"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lookaside-own-index"));
        let output =
            command.args(run.arguments(&requests)).arg(format!("index={index}")).output().expect("started");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
