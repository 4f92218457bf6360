//! This project's own indexes under QEMU with the plugin.
//!
//! They need Debian's qemu-user; without it they are skipped, unless LOOKASIDE_REQUIRE_PEERS=1.

#![allow(clippy::print_stderr, reason = "a test says that it was skipped")]

use std::path::Path;
use std::process::Command;

use sim::{Measurement, Profile, Window};
use sim_lab::configuration::{Configuration, Guest, Lengths, Table};
use sim_lab::guest::{Container, Distribution, Hash, Variant as LookupVariant};
use sim_qemu::guests::{GuestError, Index, Run, Simulated, Tools, Variant};

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

fn run(tools: &Tools, folder: &Path, index: Index, variant: Variant) -> Window {
    let run = Run {
        load: 100_000,
        functional: 30_000,
        window: 10_000,
        windows: 1,
        ..Run::new(index, variant, 60_000)
    };
    let (requests, out) = (folder.join("requests"), folder.join("run.json"));
    run.write_requests(&requests).expect("written");
    let own = Path::new(env!("CARGO_BIN_EXE_lookaside-own-index"));
    let command = tools.command(own, &requests, &run, &Simulated::new("stlt_paper", &out));
    let output = command.expect("no Redis is concerned").output().expect("started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Measurement::read(&out).expect("a measurement").windows[0]
}

#[test]
fn the_table_saves_walks_before_our_own_indexes_too() {
    let Some(tools) = tools() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    for index in [Index::Cuckoo, Index::Art, Index::ArtReorganised] {
        let alone = run(&tools, folder.path(), index, Variant::Alone);
        let stlt = run(&tools, folder.path(), index, Variant::Stlt);
        let again = run(&tools, folder.path(), index, Variant::Stlt);
        assert_eq!(stlt, again, "{index:?}: counts repeat");
        assert_eq!((alone.operations, alone.fast_path), (10_000, None));
        let fast = stlt.fast_path.expect("it has a table");
        assert_eq!(fast.total(), 10_000);
        assert!(fast.hits > 8500, "{index:?}: {fast:?}");
        assert!(stlt.walks() < alone.walks(), "{index:?}: {} of {}", stlt.walks(), alone.walks());
        eprintln!(
            "{}: {:.0} cycles and {:.2} walks alone, {:.0} and {:.2} with the STLT",
            index.name(),
            alone.cycles(),
            alone.walks(),
            stlt.cycles(),
            stlt.walks()
        );
    }
}

#[test]
fn the_cache_is_a_guest_with_its_own_buffer() {
    let Some(tools) = tools() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let alone = run(&tools, folder.path(), Index::Cache, Variant::Alone);
    let slb = run(&tools, folder.path(), Index::Cache, Variant::Slb);
    for (window, name) in [(&alone, "alone"), (&slb, "with its buffer")] {
        assert_eq!(window.operations, 10_000);
        // A key of three words, a value of eight.
        assert!(
            window.memory_accesses() > 11.0 && window.cycles() > 50.0,
            "{name}: {} cycles",
            window.cycles()
        );
        eprintln!("cache {name}: {:.0} cycles, {:.1} instructions", window.cycles(), window.instructions());
    }
    assert_ne!(alone.core.instructions, slb.core.instructions, "another way to the items");
}

#[test]
fn lookaside_sim_runs_our_own_indexes() {
    if tools().is_none() {
        return;
    }
    for container in Container::OWN {
        let lengths = Lengths { warm_up: 20_000, functional: 5_000, settle: 100, windows: 2, window: 1_000 };
        let configured = |variant, value_bytes| {
            let table = Table { bytes: 1 << 18, ways: 4, hash: Hash::Xxh3 };
            let asked = (5_000, value_bytes, Distribution::Zipf);
            let machine = Profile::stlt_paper();
            Configuration::new(Guest::Qemu, container, variant, asked, table, lengths, 1, &machine)
                .expect("legal")
        };
        let is_cache = container == Container::Cache;
        let (in_front, refused) = if is_cache {
            (LookupVariant::Slb, LookupVariant::Stlt)
        } else {
            (LookupVariant::Stlt, LookupVariant::Slb)
        };
        for variant in [LookupVariant::Alone, in_front] {
            let run = sim_lab::run::run(&configured(variant, 64)).expect("a run");
            assert!(run.programs.is_some_and(|programs| programs.len() == 16), "which builds ran");
            let measurement = run.measurement;
            assert_eq!((measurement.guest.as_str(), measurement.windows.len()), (container.name(), 2));
            assert!(measurement.windows.iter().all(|window| window.operations == 1_000));
        }
        for (variant, value_bytes) in [(refused, 64), (LookupVariant::Alone, 128)] {
            let error = sim_lab::run::run(&configured(variant, value_bytes)).expect_err("not this");
            assert!(error.to_string().contains(container.name()), "{error}");
        }
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
    for (index, variant) in [("cuckoo", "stlt"), ("art", "stlt"), ("cache", "slb")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lookaside-own-index"));
        let names = [format!("index={index}"), format!("variant={variant}")];
        let output = command.args(run.arguments(&requests)).args(names).output().expect("started");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
