//! Runs that are made beside each other are those that are made alone.

use indicatif::ProgressBar;
use sim::Profile;
use sim_lab::configuration::{Configuration, Guest, Lengths, Table};
use sim_lab::guest::{Container, Distribution, Hash, Variant};
use sim_lab::run::{run, run_all};
use sim_lab::store::Store;
use sim_lab::sweep::{Place, sweep};

/// Most of the warm-up is replayed.
const LENGTHS: Lengths = Lengths { warm_up: 20_000, functional: 1_000, settle: 50, windows: 2, window: 300 };

fn configuration(
    (container, variant, distribution): (Container, Variant, Distribution),
    (bytes, hash): (u64, Hash),
    machine: &Profile,
) -> Configuration {
    let table = Table { bytes, ways: 4, hash };
    let asked = (2_000, 64, distribution);
    Configuration::new(Guest::InProcess, container, variant, asked, table, LENGTHS, 3, machine)
        .expect("legal")
}

fn are_as_alone(configurations: &[Configuration]) {
    let mut together = Vec::new();
    run_all(configurations, |run| {
        together.push(run);
        Ok(())
    })
    .expect("they can be run");
    assert_eq!(together.len(), configurations.len());
    for (beside, configuration) in together.iter().zip(configurations) {
        let alone = run(configuration).expect("it can be run");
        assert_eq!(beside.configuration, *configuration);
        assert!(beside.measurement == alone.measurement, "{}", configuration.describe());
    }
}

#[test]
fn a_load_is_shared_by_all_ways_to_look_keys_up() {
    let paper = Profile::stlt_paper();
    let large: toml::Table = toml::from_str("paging.pages = '2MiB'").expect("TOML");
    let large_pages = paper.with_changes(&large).expect("a machine");
    // An SLB of 160 KiB lies among the records, one of 4 MiB behind them.
    let (small, far) = (160 << 10, 4 << 20);
    for container in Container::ALL {
        for distribution in [Distribution::Zipf, Distribution::Latest] {
            let with = |variant, bytes| {
                configuration((container, variant, distribution), (bytes, Hash::Xxh3), &paper)
            };
            let mut configurations = vec![
                with(Variant::Slb, far),
                with(Variant::Alone, far),
                with(Variant::Slb, small),
                with(Variant::Stlt, 1 << 14),
                with(Variant::StltVa, 1 << 15),
                with(Variant::StltSw, 1 << 14),
                configuration((container, Variant::Stlt, distribution), (1 << 15, Hash::Sip), &paper),
                configuration((container, Variant::Stlt, distribution), (1 << 15, Hash::Sip), &large_pages),
            ];
            if container != Container::Redis {
                configurations.extend([with(Variant::SlbBatches, far), with(Variant::StltBatches, 1 << 15)]);
            }
            let first = &configurations[0];
            assert!(configurations.iter().all(|other| first.shares_load_with(other)));
            are_as_alone(&configurations);
        }
    }
}

#[test]
fn others_load_for_themselves() {
    let paper = Profile::stlt_paper();
    let of = |container, distribution| {
        configuration((container, Variant::Stlt, distribution), (1 << 14, Hash::Xxh3), &paper)
    };
    let configurations = [
        of(Container::Map, Distribution::Zipf),
        of(Container::BTree, Distribution::Zipf),
        of(Container::BTree, Distribution::Uniform),
        of(Container::BTree, Distribution::Uniform),
    ];
    assert!(!configurations[0].shares_load_with(&configurations[1]));
    assert!(!configurations[1].shares_load_with(&configurations[2]));
    are_as_alone(&configurations);
}

#[test]
fn one_that_fails_takes_no_other_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("a store");
    let paper = Profile::stlt_paper();
    let of = |variant, bytes| {
        configuration((Container::Redis, variant, Distribution::Zipf), (bytes, Hash::Xxh3), &paper)
    };
    let configurations = [
        of(Variant::Stlt, 1 << 14),
        // A server is asked for one key at a time.
        of(Variant::StltBatches, 1 << 14),
        of(Variant::Stlt, 1 << 15),
        of(Variant::SlbBatches, 4 << 20),
        of(Variant::Alone, 1 << 14),
    ];
    let swept = sweep(&configurations, &store, &Place::Here, 1, &ProgressBar::hidden());
    assert_eq!((swept.kept, swept.made), (0, 3));
    let failed: Vec<_> = swept.failed.iter().map(|(configuration, _)| configuration).collect();
    assert_eq!(failed, [&configurations[1], &configurations[3]]);
    assert!(swept.failed.iter().all(|(_, reason)| reason.contains("no batches")), "{:?}", swept.failed);
    for made in [0, 2, 4] {
        assert!(store.get(&configurations[made]).is_some());
    }
}
