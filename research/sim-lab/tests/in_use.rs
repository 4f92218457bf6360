//! What is done to tables in use: every definition in its quick size, and the signs that even that shows.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock};

use lab::experiment::{Outcome, Scale};
use lab::results::Results;
use sim_lab::Options;
use sim_lab::in_use;

use crate::shared::{catalogue, options, unkept, value};

/// Each definition is measured once, whichever test asks first.
fn quick(name: &str) -> &'static Results {
    static MEASURED: Mutex<BTreeMap<String, &'static OnceLock<Results>>> = Mutex::new(BTreeMap::new());
    let mut measured = MEASURED.lock().expect("nothing fails while it is held");
    let once = *measured.entry(name.to_owned()).or_insert_with(|| Box::leak(Box::default()));
    drop(measured);
    once.get_or_init(|| {
        let definition = catalogue().get(name).expect("it is there");
        unkept(&definition, &options(Scale::Quick)).unwrap_or_else(|error| panic!("{error}"))
    })
}

#[test]
fn every_definition_measures_what_it_promises() {
    let catalogue = catalogue();
    let all = || catalogue.definitions().iter().filter(|definition| in_use::is(&definition.kind));
    assert_eq!(all().count(), 5);
    for definition in all() {
        assert!(!definition.expectations.is_empty(), "{} expects nothing", definition.name);
        let measured = quick(&definition.name);
        assert!(measured.skipped.is_empty() && measured.rows.iter().all(|row| row.median.is_finite()));
        for expectation in &definition.expectations {
            let verdict = expectation.judge(&measured.rows);
            assert_ne!(verdict.outcome, Outcome::Unmeasured, "{}: {verdict:?}", definition.name);
        }
    }
}

#[test]
fn counts_repeat_exactly_however_many_run_side_by_side() {
    let definition = catalogue().get("stlt-moves").expect("it is there");
    let alone = Options { jobs: 1, ..options(Scale::Quick) };
    let alone = unkept(&definition, &alone).unwrap_or_else(|error| panic!("{error}"));
    assert!(options(Scale::Quick).jobs > 1);
    assert_eq!(alone.rows, quick("stlt-moves").rows);
}

#[test]
fn the_monitor_uses_the_table_where_it_pays() {
    let results = quick("stlt-monitor");
    let with_table = |way, workload| value(results, way, workload, "requests with the table");
    assert_eq!(with_table("always on", "does not pay"), 100.0);
    assert!(with_table("monitored", "pays") > 80.0, "all but the trials without");
    assert!(
        with_table("monitored", "does not pay") < 60.0,
        "the first period, the trials, and what they got wrong"
    );
    assert!(value(results, "monitored", "in turn", "decisions that changed") >= 1.0);
}

#[test]
fn a_resized_table_is_empty_and_its_lines_were_cleared() {
    let results = quick("stlt-resize");
    let of = |point, metric| value(results, "unordered_map, cleared", point, metric);
    // A mebibyte is 16,384 lines, which take 22 cycles each.
    assert_eq!(of("call", "cycles of the call"), 16_384.0 * 22.0 / 1e6);
    let misses = |point| of(point, "table misses");
    assert!(misses("after 0") > 40.0 && misses("after 100000") < misses("after 10000"));
    assert!(misses("after 100000") < 2.0 * misses("before") + 1.0);
    let twice = value(results, "unordered_map, to twice the size", "call", "cycles of the call");
    assert_eq!(twice, 2.0 * of("call", "cycles of the call"));
}

#[test]
fn keys_of_one_integer_never_find_their_own_record() {
    let results = quick("stlt-flood");
    let attackers = |attack| value(results, attack, "100 %", "the attacker's speed-up");
    assert!(attackers("one integer") < 1.0 && attackers("one set") < 1.0);
    assert!(attackers("one integer, monitored") > attackers("one integer"));
    let of_others = |share| value(results, "one integer", share, "the others' speed-up");
    assert!(of_others("0 %") > 1.0 && of_others("50 %") > 1.0);
}

#[test]
fn a_kernel_without_arrays_scans_the_table_at_each_switch() {
    let results = quick("stlt-switches");
    let kernel = |configuration| value(results, configuration, "0.3 ms", "the kernel's cycles");
    assert_eq!(kernel("STLT, 0 pages in the array"), 0.0);
    let array = kernel("STLT, 24 pages in the array");
    // Twenty-four entries in three lines, wherever those are.
    assert!((24.0 + 3.0 * 4.0..=24.0 + 3.0 * 160.0).contains(&array), "{array}");
    assert!(kernel("STLT, brought up to date at each switch") > 16_384.0 * 4.0);
}

#[test]
fn pages_that_move_fill_the_ipb_and_records_do_not() {
    let results = quick("stlt-moves");
    let updates = |what, point| value(results, what, point, "updates of the table");
    assert_eq!(updates("records move, 64 MB", "10 % of requests"), 0.0);
    assert!(updates("pages move, 64 MB", "20 in 1000 requests") > 0.0);
    let speed_up = |what, point| value(results, what, point, "speed-up");
    assert!(
        speed_up("records move, 64 MB", "10 % of requests")
            < speed_up("records move, 64 MB", "0 % of requests")
    );
}
