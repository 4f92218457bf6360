//! The tables of this module behind a map.

use lookaside::{Handle, OwnedMap};

use super::bulk_chaining::{BulkChaining, FOUR_LINES, ONE_LINE, TWO_LINES};
use super::chaining::Chaining;
use super::contestant::Make;
use super::cuckoo_table::Cuckoo;
use super::entrants::own_entrants;
use super::lookups::{Missing, Parameters, run_with};
use super::model;
use super::record::{Key, Value};
use crate::experiment::Session;

type Handled = Handle<Key<24>, Value>;

#[test]
fn our_tables_behind_a_map_are_maps() {
    model::check::<Cuckoo<24, Handled>>();
    model::check::<Chaining<24, Handled>>();
    model::check::<BulkChaining<24, Handled, true, FOUR_LINES>>();
    model::check::<BulkChaining<24, Handled, true, TWO_LINES>>();
    model::check::<BulkChaining<24, Handled, true, ONE_LINE>>();
}

/// Two threads write keys of their own and read all: what they read is what was written there, or nothing before that.
#[test]
fn writers_of_one_chain_do_not_lose_each_others_records() {
    fn check<I>()
    where
        I: Make
            + lookaside::index::Find<Key<24>, Key<24>, Value>
            + lookaside::index::SharedStore<Key<24>, Value>
            + lookaside::index::SharedDiscard<Key<24>, Key<24>, Value>
            + Send
            + Sync,
    {
        const RECORDS: u64 = 2000;
        // For a few records only: chains are long.
        let index = I::make(RECORDS as usize).unwrap();
        let map = lookaside::Map::new(index, &lookaside::Config::with_size(4096)).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let map = &map;
                scope.spawn(move || {
                    for record in 0..RECORDS {
                        let mut reader = map.pin();
                        if record % 2 == thread {
                            for _ in 0..4 {
                                reader.insert(Key::of(record), Value::of(record));
                                assert_eq!(reader.get(&Key::of(record)), Some(&Value::of(record)));
                                reader.refresh();
                                if record % 3 == 0 {
                                    assert!(reader.remove(&Key::of(record)).is_some());
                                    assert_eq!(reader.get(&Key::of(record)), None);
                                }
                            }
                        } else if let Some(value) = reader.get(&Key::of(record)) {
                            assert_eq!(value, &Value::of(record));
                        }
                    }
                });
            }
        });
        let reader = map.pin();
        for record in 0..RECORDS {
            let expected = (record % 3 != 0).then(|| Value::of(record));
            assert_eq!(reader.get(&Key::of(record)).copied(), expected, "record {record}");
        }
    }
    check::<Cuckoo<24, Handled>>();
    check::<Chaining<24, Handled>>();
    check::<BulkChaining<24, Handled, true, FOUR_LINES>>();
}

#[test]
fn the_partitioned_table_behind_its_owner_is_a_map() {
    let index = BulkChaining::<24, Handled, false, FOUR_LINES>::make(300).unwrap();
    let mut map = OwnedMap::new(index, &lookaside::Config::with_size(256)).unwrap();
    for round in 0..3 {
        for record in 0..300 {
            let old = map.insert(Key::of(record), Value::of(record + round));
            assert_eq!(old.map(|old| *old), (round > 0).then(|| Value::of(record + round - 1)));
        }
        for record in 0..400 {
            let expected = (record < 300).then(|| Value::of(record + round));
            assert_eq!(map.get(&Key::of(record)).copied(), expected);
        }
    }
    for record in (0..300).step_by(2) {
        assert!(map.remove(&Key::of(record)).is_some());
        assert_eq!(map.get(&Key::of(record)), None);
    }
    assert_eq!(map.len(), 150);
}

#[test]
fn what_is_missing_is_left_out_and_what_nobody_knows_is_refused() {
    let parameters: Parameters = toml::from_str(
        "indexes = ['BTreeMap', 'elsewhere']
        forms = ['alone', 'slb', 'slb-call']
        records = 100
        points = [{ name = 'few', range = 10, bytes = 4096 }]
        warm_up = 100
        operations = 100
        threads = [1]",
    )
    .unwrap();
    let run = |missing: &[Missing]| {
        let mut session = Session::new(1, indicatif::ProgressBar::hidden());
        run_with(&parameters, &mut session, own_entrants(), own_entrants(), missing)
    };
    run(&[Missing { name: "elsewhere", why: "it is not installed" }]).unwrap();
    let why = run(&[]).unwrap_err().to_string();
    assert!(why.contains("'elsewhere'") && why.contains("BTreeMap"), "{why}");
}
