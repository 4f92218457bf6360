//! What the simulator takes, in its quick size: the numbers mean nothing there, but every one that is expected is
//! measured.

use std::time::Instant;

use lab::experiment::{Definition, Outcome, Scale};
use sim_lab::configuration::{Configuration, Guest, Lengths, Table};
use sim_lab::guest::{Container, Distribution, Hash, Variant};
use sim_lab::machine::profile;
use sim_lab::run::run;
use sim_lab::study::Options;

use crate::shared::{catalogue, options, parse, qemu, repository, unkept, value};

#[test]
fn speed_and_memory_of_every_guest_are_measured_and_not_kept() {
    let definition = catalogue().get("stlt-speed").expect("it is there");
    let without_qemu = qemu().is_none();
    let options = Options { jobs: 1, ..options(Scale::Quick) };
    let results = unkept(&definition, &options).expect("results");
    assert_eq!(!results.skipped.is_empty(), without_qemu, "{:?}", results.skipped);
    for expectation in &definition.expectations {
        let under_qemu = expectation.quantity.configuration.starts_with("under QEMU");
        let verdict = expectation.judge(&results.rows);
        assert_eq!(verdict.outcome == Outcome::Unmeasured, under_qemu && without_qemu, "{verdict:?}");
    }
}

const KEYS: u32 = 100_000;
/// The warm-up enters so many keys, of those that it asks for, that no page of these rows is left untouched.
const TABLE: Table = Table { bytes: 16 << 20, ways: 4, hash: Hash::Xxh3 };
const LENGTHS: Lengths =
    Lengths { warm_up: 600_000, functional: 20_000, settle: 500, windows: 2, window: 4_000 };

/// One program in one place; the configuration that its rows are of.
fn definition(guest: &str) -> Definition {
    let Lengths { warm_up, functional, settle, windows, window } = LENGTHS;
    let text = format!(
        "name = 'small-speed'\ntitle = 'One program'\nkind = 'simulation'\nabout = 'A map.'\nruns = 1\n\
         [parameters]\nunkept = true\nguests = ['{guest}']\ncontainers = ['map']\nvariants = ['stlt']\n\
         distributions = ['zipf']\nvalue_bytes = [64]\nmachines = [{{ name = '', profile = 'gainestown' }}]\n\
         configuration = ['guest', 'part']\npoint = ['container', 'variant']\n\
         metrics = ['untimed-speed', 'timed-speed', 'seconds', 'memory']\n\
         parts = [{{ name = 'few', keys = {KEYS}, tables = [{{ name = '', stlt_bytes = {}, slb_bytes = 0 }}], \
         lengths = {{ warm_up = {warm_up}, functional = {functional}, settle = {settle}, windows = {windows}, \
         window = {window} }} }}]\n\
         [rows]\nconfigurations = ['{}']\nmetrics = ['without the clock', 'with the clock', 'a run', 'memory']\n",
        TABLE.bytes,
        if guest == "qemu" { "under QEMU, few" } else { "in this process, few" },
    );
    parse("small-speed", &text)
}

/// What such a run counts: instructions of the windows, and of a request.
fn counted(guest: Guest) -> (f64, f64) {
    let machine = profile("gainestown", &repository()).expect("a machine");
    let (container, variant, asked) = (Container::Map, Variant::Stlt, (KEYS, 64, Distribution::Zipf));
    let configuration =
        Configuration::new(guest, container, variant, asked, TABLE, LENGTHS, 1, &machine).expect("legal");
    let windows = run(&configuration).expect("it can be run").measurement.windows;
    let instructions = windows.iter().map(|window| window.core.instructions).sum::<u64>() as f64;
    (instructions, instructions / windows.iter().map(|window| window.operations).sum::<u64>() as f64)
}

#[test]
fn speeds_are_of_the_run_s_own_instructions_and_memory_holds_what_it_has() {
    // Another build of a guest may lie elsewhere; what is made here repeats exactly.
    for (name, guest, place, tolerance) in
        [("in-process", Guest::InProcess, "in this process", 1e-9), ("qemu", Guest::Qemu, "under QEMU", 0.02)]
    {
        if guest == Guest::Qemu && qemu().is_none() {
            continue;
        }
        let options = Options { guest, jobs: 1, ..options(Scale::Full) };
        let began = Instant::now();
        let results = unkept(&definition(name), &options);
        let (results, elapsed) = (results.expect("results"), began.elapsed().as_secs_f64());
        assert!(results.skipped.is_empty(), "{:?}", results.skipped);
        let of = |metric| value(&results, &format!("{place}, few"), "map, STLT", metric);
        // The seconds that the speeds mean: both phases are parts of the run, and the run is one of what was waited
        // for.
        let (windows, request) = counted(guest);
        let unclocked = request * LENGTHS.functional as f64;
        let functional = unclocked / (1e6 * of("without the clock"));
        let measured = windows / (1e6 * of("with the clock"));
        let share = (functional + measured) / of("a run");
        assert!(
            functional > 0.0 && measured > 0.0 && share <= 1.0 + tolerance,
            "{share}: {:?}",
            results.rows
        );
        // The rest, the load and the warm-up of the table alone, takes some times as long, not hundreds.
        assert!(share > 0.02, "{share}: {:?}", results.rows);
        assert!(of("a run") <= elapsed, "{elapsed} s: {:?}", results.rows);
        // In this process the records have no bytes of their own, but their places, and the tree's nodes: two children
        // and a parent at least.
        let record = if guest == Guest::Qemu { 24 + 64 } else { 4 * 4 };
        let held = (TABLE.bytes + u64::from(KEYS) * record) as f64 / 1e9;
        assert!((held..1.0).contains(&of("memory")), "{held} GB: {:?}", results.rows);
    }
}
