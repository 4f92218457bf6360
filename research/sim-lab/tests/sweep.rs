//! Runs that fail, here and in processes of their own.

use std::path::PathBuf;

use indicatif::ProgressBar;
use sim_lab::configuration::{Configuration, Guest, Lengths};
use sim_lab::guest::{Container, Variant};
use sim_lab::store::Store;
use sim_lab::sweep::{Place, sweep};

use crate::shared;

fn configuration(container: Container, variant: Variant) -> Configuration {
    let lengths = Lengths { warm_up: 10, functional: 10, settle: 1, windows: 1, window: 10 };
    shared::configuration(Guest::InProcess, (container, variant), (1_000, 1 << 14), lengths)
}

#[test]
fn one_that_fails_takes_no_other_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("a store");
    // A server is asked for one key at a time.
    let variants =
        [Variant::Stlt, Variant::StltBatches, Variant::StltVa, Variant::SlbBatches, Variant::Alone];
    let configurations = variants.map(|variant| configuration(Container::Redis, variant));
    let swept = sweep(&configurations, &store, &Place::Here, 2, &ProgressBar::hidden());
    assert_eq!((swept.kept, swept.made), (0, 3));
    let failed: Vec<_> = swept.failed.iter().map(|(configuration, _)| configuration).collect();
    assert_eq!(failed, [&configurations[1], &configurations[3]]);
    assert!(swept.failed.iter().all(|(_, reason)| reason.contains("no batches")), "{:?}", swept.failed);
    assert!([0, 2, 4].iter().all(|&made| store.get(&configurations[made]).is_some()));
}

#[test]
fn a_process_that_fails_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("a store");
    let swept = |program: &str| {
        let place = Place::Program(PathBuf::from(program));
        sweep(&[configuration(Container::Map, Variant::Alone)], &store, &place, 1, &ProgressBar::hidden())
    };
    assert_eq!((swept("true").made, swept("false").failed[0].1.as_str()), (1, "exit status: 1"));
    // It is told of an option that it does not know.
    let said = &swept("cat").failed[0].1;
    assert!(said.contains("--configuration"), "{said}");
    assert!(swept("/nowhere/program").failed[0].1.starts_with("/nowhere/program: "));
}
