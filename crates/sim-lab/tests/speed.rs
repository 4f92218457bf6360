//! What the simulator takes, in its quick size: the numbers mean nothing there, but every one that is expected is measured.

// Tests say what they skip.
#![allow(clippy::print_stderr)]

use std::path::Path;

use indicatif::ProgressBar;
use lab::experiment::{Catalogue, Outcome, Scale};
use lab::machine::Provenance;
use lab::results::Results;
use sim_lab::configuration::Guest;
use sim_lab::qemu::Qemu;
use sim_lab::speed;
use sim_lab::store::Store;
use sim_lab::study::{self, Options};
use sim_lab::sweep::Place;

/// Whether QEMU is not here and need not be.
fn does_without_qemu() -> bool {
    let Err(error) = Qemu::find() else { return false };
    let required = std::env::var_os("LOOKASIDE_REQUIRE_PEERS").is_some_and(|value| value == "1");
    assert!(!required, "{error}");
    eprintln!("skipped: {error}");
    true
}

fn value(results: &Results, configuration: &str, point: &str, metric: &str) -> f64 {
    let row = results.rows.iter().find(|row| row.is(configuration, point, metric));
    row.unwrap_or_else(|| panic!("{configuration}, {point}, {metric} is not in {:?}", results.rows)).median
}

#[test]
fn speed_and_memory_of_every_guest_are_measured_and_not_kept() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/sim");
    let catalogue = Catalogue::read(&folder).expect("every definition can be read");
    let definition = catalogue.get("stlt-speed").expect("it is there");
    assert_eq!(definition.kind, speed::KIND);
    let without_qemu = does_without_qemu();
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("a store");
    let options =
        Options { guest: Guest::InProcess, scale: Scale::Quick, seeds: None, jobs: 1, place: Place::Here };
    let progress = ProgressBar::hidden();
    let (results, swept) =
        study::results(&definition, &store, &options, Provenance::default(), progress).expect("results");
    assert_eq!((swept.made, swept.kept), (0, 0));
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0, "nothing of it is kept");
    assert_eq!(!results.skipped.is_empty(), without_qemu, "{:?}", results.skipped);
    for expectation in &definition.expectations {
        let under_qemu = expectation.quantity.configuration.starts_with("under QEMU");
        let verdict = expectation.judge(&results.rows);
        assert_eq!(verdict.outcome == Outcome::Unmeasured, under_qemu && without_qemu, "{verdict:?}");
    }
    for place in ["in this process", "under QEMU"].into_iter().take(if without_qemu { 1 } else { 2 }) {
        let of = |metric| value(&results, &format!("{place}, 1 M keys"), "map, STLT", metric);
        // Whatever computer this is: thousands of instructions a second at least, and the table at least is in memory.
        assert!(of("without the clock") > 0.001 && of("with the clock") > 0.001, "{:?}", results.rows);
        assert!((0.000_1..600.0).contains(&of("a run")), "{:?}", results.rows);
        assert!((0.001..6.0).contains(&of("memory")), "{:?}", results.rows);
    }
}
