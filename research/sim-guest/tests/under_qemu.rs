//! This project's own indexes under QEMU with the plugin.
//!
//! They need Debian's qemu-user; without it they are skipped, unless LOOKASIDE_REQUIRE_PEERS=1.

#![allow(clippy::print_stderr, reason = "a test says what it has measured")]

use std::path::Path;
use std::process::Command;

use indicatif::ProgressBar;
use lab::experiment::{Catalogue, Scale};
use lab::machine::Provenance;
use sim::{Measurement, Profile, Window};
use sim_lab::Options;
use sim_lab::configuration::{Configuration, Guest, Lengths, Table};
use sim_lab::guest::{Container, Distribution, Hash, Variant};
use sim_lab::store::Store;
use sim_lab::study::{self, Study};
use sim_lab::sweep::Place;
use sim_qemu::GuestError;
use sim_qemu::guests::Tools;
use sim_qemu::run::Run;

fn tools() -> Option<Tools> {
    match Tools::find() {
        Err(error @ GuestError::Qemu) => {
            outside::skip(error);
            None
        }
        found => Some(found.expect("cargo builds the plugin beside this test")),
    }
}

fn run(tools: &Tools, folder: &Path, index: Container, variant: Variant) -> Window {
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
    let command = tools.command(own, &requests, &run, Path::new("stlt_paper"), &out);
    let output = command.expect("no Redis is concerned").output().expect("started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Measurement::read(&out).expect("a measurement").windows[0]
}

#[test]
fn every_table_stands_before_our_own_indexes_and_the_hardware_s_saves_walks() {
    let Some(tools) = tools() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    for index in Container::OWN {
        let run = |variant| run(&tools, folder.path(), index, variant);
        let (alone, stlt) = (run(Variant::Alone), run(Variant::Stlt));
        if index == Container::Art {
            assert_eq!(stlt, run(Variant::Stlt), "counts repeat");
        }
        assert_eq!((alone.operations, alone.fast_path), (10_000, None));
        let hits = |window: &Window| {
            let fast = window.fast_path.expect("it has a table");
            assert_eq!(fast.total(), 10_000);
            assert!(fast.hits > 8500, "{index:?}: {fast:?}");
            fast.hits
        };
        assert!(stlt.walks() < alone.walks(), "{index:?}: {} of {}", stlt.walks(), alone.walks());
        if index == Container::ArtReorganised {
            // Another tree of the same program.
            continue;
        }
        let (slb, in_software) = (run(Variant::Slb), run(Variant::StltSw));
        // Rows and sets are as many: the tables differ in who keeps them, and in which of its equals goes.
        assert!(hits(&in_software).abs_diff(hits(&stlt)) < 100, "{index:?}");
        assert!(hits(&slb) > 0);
        for software in [&slb, &in_software] {
            assert_eq!(
                software.memory.stlt, alone.memory.stlt,
                "{index:?}: no instruction of the hardware's"
            );
            // Cycles are too near each other with so few keys: they follow how the guest was compiled.
            assert!(software.instructions() > stlt.instructions(), "{index:?}");
        }
        for (window, name) in [(&alone, "alone"), (&slb, "SLB"), (&in_software, "STLT-SW"), (&stlt, "STLT")] {
            let (cycles, walks) = (window.cycles(), window.walks());
            eprintln!("{} {name}: {cycles:.0} cycles, {walks:.2} walks", index.name());
        }
    }
}

#[test]
fn the_study_of_our_own_indexes_measures_what_it_promises() {
    if tools().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("a store");
    let (scale, jobs) = (Scale::Quick, 2);
    let options = Options { guest: Guest::InProcess, scale, seeds: None, jobs, place: Place::Here };
    let experiments = Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments/sim");
    let catalogue = Catalogue::read(&experiments).expect("every definition can be read");
    let definition = catalogue.get("stlt-own").expect("it is there");
    let study = Study::new(&definition, scale).expect("a study");
    let configurations = study.configurations(Guest::InProcess, 1).expect("legal");
    let (provenance, progress) = (Provenance::default(), ProgressBar::hidden());
    // Rows that are not promised, and promised ones that are not there, are an error.
    let (results, swept) =
        study::results(&definition, &store, &options, provenance, progress).expect("results");
    assert_eq!((swept.made, swept.failed.len()), (configurations.len(), 0), "{:?}", swept.failed);
    assert_eq!(results.shortfalls(&definition), [""; 0]);
}

#[test]
fn what_our_own_indexes_cannot_do_is_refused() {
    if tools().is_none() {
        return;
    }
    let refusal = |container| {
        let table = Table { bytes: 1 << 18, ways: 4, hash: Hash::Xxh3 };
        let lengths = Lengths { warm_up: 100, functional: 100, settle: 1, windows: 1, window: 10 };
        let (asked, machine) = ((100, 128, Distribution::Zipf), Profile::stlt_paper());
        let wanted =
            Configuration::new(Guest::Qemu, container, Variant::Alone, asked, table, lengths, 1, &machine);
        sim_lab::run::run(&wanted.expect("legal")).expect_err("not this").to_string()
    };
    for container in Container::OWN {
        let error = refusal(container);
        assert!(error.contains(container.name()) && error.contains("64 bytes"), "{error}");
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
        ..Run::new(Container::Map, Variant::Stlt, 1000)
    };
    let requests = folder.path().join("requests");
    run.write_requests(&requests).expect("written");
    let output = |index: &str, variant: &str, more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lookaside-own-index"));
        let names = [format!("index={index}"), format!("variant={variant}")];
        command.args(run.arguments(&requests)).args(names).args(more).output().expect("started")
    };
    for (index, variant) in [("cuckoo", "stlt"), ("art", "stlt"), ("cuckoo", "stlt-sw"), ("art", "slb")] {
        let output = output(index, variant, &[]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    for (index, variant, more, reason) in [
        ("trie", "alone", &[][..], "index= is cuckoo"),
        ("art", "hints", &[], "variant=hints"),
        ("cuckoo", "stlt-sw", &["rows=1000"], "power of two"),
        ("cuckoo", "stlt-sw", &["ways=3"], "1, 2, 4 or 8"),
        ("cuckoo", "slb", &["slb=1"], "holds nothing"),
        ("cuckoo", "alone", &["window=1000"], "fewer requests"),
        ("cuckoo", "alone", &["widow=1"], "no such option"),
    ] {
        let output = output(index, variant, more);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(reason), "{index} {variant} {more:?}: {said}");
    }
}
