//! Definitions, sweeps and what is kept of them.

use indicatif::ProgressBar;
use lab::experiment::{Definition, Outcome, Scale};
use lab::report::Report;
use lab::{html, results::Results};
use sim_lab::configuration::Guest;
use sim_lab::error::StudyError;
use sim_lab::store::Store;
use sim_lab::study::{self, Study};
use sim_lab::sweep::{Place, Swept, sweep};

use crate::shared::{self, catalogue, repository};

const SMALL: &str = r#"
name = "small"
title = "A small study"
kind = "simulation"
about = "Two programs, tiny."
runs = 2
[parameters]
keys = 2_000
containers = ["unordered_map", "map"]
variants = ["slb", "stlt"]
distributions = ["zipf"]
value_bytes = [64]
tables = [{ name = "64 KB", stlt_bytes = 65_536, slb_bytes = 163_840 }]
machines = [{ name = "", profile = "gainestown" }]
lengths = { warm_up = 4_000, settle = 50, windows = 2, window = 300 }
over = { variant = "alone" }
configuration = ["container", "variant"]
metrics = ["speed-up", "table-misses", "stack", "confidence"]
means = [{ name = "all, STLT", variants = ["stlt"] }]
[rows]
configurations = ["unordered_map, SLB", "unordered_map, STLT", "map, SLB", "map, STLT", "all, STLT"]
metrics = [
    "speed-up", "table misses", "cycles, 95 % confidence", "cycles: base", "cycles: fetch", "cycles: branches",
    "cycles: translation", "cycles: L2", "cycles: L3", "cycles: memory", "cycles: STLT",
]
[[expectations]]
statement = "the trees gain"
quantity = { configuration = "map, STLT", metric = "speed-up" }
at_least = 0.1
"#;

fn parse(text: &str) -> Definition {
    shared::parse("small", text)
}

fn results(definition: &Definition, store: &Store) -> (Results, Swept) {
    shared::results(definition, store, &shared::options(Scale::Full)).expect("results")
}

#[test]
fn finished_runs_are_not_run_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("a store");
    let definition = parse(SMALL);
    let study = Study::new(&definition, Scale::Full).expect("a study");
    let configurations = study.configurations(Guest::InProcess, 2).expect("legal");
    // Two programs alone, with SLB, with STLT; two seeds.
    assert_eq!(configurations.len(), 12);
    let swept = |wanted: &[_]| sweep(wanted, &store, &Place::Here, 2, &ProgressBar::hidden());
    let first = swept(&configurations[..5]);
    assert_eq!((first.kept, first.made, first.failed.len()), (0, 5, 0));
    let (own, second) = results(&definition, &store);
    assert_eq!((second.kept, second.made), (5, 7), "the rest");
    // One is lost, one is cut off.
    std::fs::remove_file(store.path(&configurations[0])).expect("it was there");
    std::fs::write(store.path(&configurations[7]), "{\"configuration\":").expect("written");
    let (again, third) = results(&definition, &store);
    assert_eq!((third.kept, third.made), (10, 2));
    assert_eq!(own.rows, again.rows, "counts repeat exactly");
    assert_eq!(
        std::fs::read_dir(folder.path()).expect("a folder").count(),
        12,
        "one file a run, nothing else"
    );
}

#[test]
fn rows_are_bands_over_seeds_with_the_stack_as_a_picture() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("a store");
    let definition = parse(SMALL);
    let (results, _) = results(&definition, &store);
    let row = |configuration: &str, metric: &str| {
        let mut rows = results.rows.iter();
        rows.find(|row| row.is(configuration, "", metric))
            .unwrap_or_else(|| panic!("{configuration}, {metric}"))
    };
    let speed_up = row("map, STLT", "speed-up");
    assert!(speed_up.minimum < speed_up.maximum && speed_up.runs == 2, "{speed_up:?}");
    // The mean of the two programs, seed by seed.
    let hash = row("unordered_map, STLT", "speed-up");
    let mean = (speed_up.median + hash.median) / 2.0;
    assert!((row("all, STLT", "speed-up").median - mean).abs() < 1e-9);
    let report = Report::of(&definition, &results).expect("a report");
    assert!(report.all_met());
    let page = html::page(&definition, &report).expect("pictures");
    assert!(page.contains("cycles, by what they went into"), "{}", &page[..200]);
}

#[test]
fn what_cannot_be_read_is_refused() {
    let refusal = |sound: &str, defective: &str| {
        let definition = parse(&SMALL.replace(sound, defective));
        Study::new(&definition, Scale::Full).map(|_| ()).expect_err(defective).to_string()
    };
    for (sound, defective, reason) in [
        ("keys = 2_000", "keys = 2_000\nkees = 1", "unknown field `kees`"),
        ("[\"zipf\"]", "[\"zipfian\"]", "unknown variant `zipfian`"),
        ("window = 300 }", "window = 300, widow = 1 }", "unknown field `widow`"),
        ("\"speed-up\", \"table-misses\", \"stack\"", "\"speed\"", "no metric 'speed'"),
        (
            "profile = \"gainestown\" }",
            "profile = \"gainestown\", changes = { core = { windows = 8 } } }",
            "windows",
        ),
        ("profile = \"gainestown\" }", "profile = \"gainstown\" }", "no machine 'gainstown': there are"),
        ("over = { variant = \"alone\" }", "over = { machine = \"other\" }", "no machine 'other'"),
        ("kind = \"simulation\"", "kind = \"index-space\"", "lab run"),
    ] {
        let said = refusal(sound, defective);
        assert!(said.contains(reason), "{defective}: {said}");
    }
    let definition = parse(&SMALL.replace("stlt_bytes = 65_536", "stlt_bytes = 65_535"));
    let study = Study::new(&definition, Scale::Full).expect("it can be read");
    let error = study.configurations(Guest::InProcess, 1).expect_err("no power of two");
    assert!(matches!(error, StudyError::Configuration { .. }), "{error}");
}

/// What is kept is judged by all that its definition expects, and what it misses is explained there.
#[test]
fn what_the_kept_results_miss_is_explained() {
    let folder = repository().join("research/results");
    let (mut judged, mut unexplained) = (0, Vec::new());
    for definition in catalogue().definitions() {
        let Some(results) = Results::newest(&folder, &definition.name).expect("results") else { continue };
        for expectation in &definition.expectations {
            let verdict = expectation.judge(&results.rows);
            assert_ne!(verdict.outcome, Outcome::Unmeasured, "{}: {verdict:?}", definition.name);
            if verdict.outcome == Outcome::Missed && definition.differs.is_none() {
                unexplained.push(format!("{}: {verdict:?}", definition.name));
            }
            judged += 1;
        }
    }
    assert!(unexplained.is_empty(), "{unexplained:#?}");
    assert!(judged > 100, "{judged}");
}

#[test]
fn who_runs_a_definition_is_what_it_says_or_who_was_asked() {
    let catalogue = catalogue();
    for (name, by_default, asked) in [
        ("stlt-figure13", &[Guest::InProcess][..], &[Guest::Qemu][..]),
        ("stlt-compiled", &[Guest::Qemu], &[Guest::Qemu]),
        ("stlt-moves", &[Guest::InProcess], &[Guest::InProcess]),
        ("stlt-table1", &[], &[]),
    ] {
        let definition = catalogue.get(name).expect("it is there");
        let guests = |guest| study::guests(&definition, guest, Scale::Full).expect("it can be read");
        assert_eq!((&guests(Guest::InProcess)[..], &guests(Guest::Qemu)[..]), (by_default, asked), "{name}");
    }
}

#[test]
fn every_definition_describes_runs_that_can_be_made() {
    let catalogue = catalogue();
    let exhibits = ["1", "11", "12", "13", "14", "15", "16", "17", "18", "19-left", "19-right"];
    for exhibit in exhibits.iter().map(|number| format!("stlt-figure{number}")).chain(["stlt-table5".into()])
    {
        assert!(catalogue.definitions().iter().any(|definition| definition.name == exhibit), "{exhibit}");
    }
    for definition in catalogue.definitions() {
        // A number that is shown without a word on what it should be tells nobody anything.
        assert!(!definition.expectations.is_empty(), "{} expects nothing", definition.name);
        for expectation in &definition.expectations {
            let of = &expectation.quantity;
            let promised = definition.rows.configurations.contains(&of.configuration)
                && definition.rows.metrics.contains(&of.metric);
            assert!(promised, "{}: nothing is measured of '{}'", definition.name, expectation.statement);
        }
    }
    for definition in catalogue.definitions().iter().filter(|definition| definition.kind == study::KIND) {
        for scale in [Scale::Full, Scale::Quick] {
            let study = Study::new(definition, scale).unwrap_or_else(|error| panic!("{error}"));
            let runs = study.configurations(Guest::InProcess, definition.runs_for(scale));
            assert!(!runs.expect("legal").is_empty(), "{}", definition.name);
        }
    }
}

#[test]
fn table_i_is_the_paper_s() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("a store");
    let definition = catalogue().get("stlt-table1").expect("it is there");
    let (results, swept) = results(&definition, &store);
    assert_eq!((swept.made, swept.kept), (0, 0));
    let report = Report::of(&definition, &results).expect("a report");
    assert_eq!((report.beside[0].paper, report.beside[0].ours[0].1), (837.0, 837.0));
    assert!(report.all_met());
}
