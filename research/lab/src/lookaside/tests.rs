//! The tables of this module behind a map. Not all of them, with all their forms: those are compiled into the library,
//! and tested there (`tests/entrants.rs`), or they would be compiled once more.

use std::sync::atomic::{AtomicU64, Ordering};

use super::beside::{Beside, Record, Records};
use super::bulk_chaining::{BulkChaining, FOUR_LINES, ONE_LINE, TWO_LINES};
use super::chaining::Chaining;
use super::contestant::Make;
use super::cuckoo_table::Cuckoo;
use super::history;
use super::indexes::{Handled, Hashed, Tree};
use super::items::Kept;
use super::model;
use super::record::{Key, Value};
use super::visit::BATCH;
use lookaside::RwLock;

#[test]
fn our_indexes_behind_a_map_are_maps_and_never_show_an_older_record() {
    history::check::<RwLock<Tree<24>>>();
    history::check::<RwLock<Hashed<24>>>();
    history::check::<Cuckoo<24, Handled<24>>>();
    history::check::<Chaining<24, Handled<24>>>();
    history::check::<BulkChaining<24, Handled<24>, true, FOUR_LINES>>();
    history::check::<BulkChaining<24, Handled<24>, true, TWO_LINES>>();
    history::check::<BulkChaining<24, Handled<24>, true, ONE_LINE>>();
}

/// Who has seen a record replaced does not see an older one, whole as it may be: neither one key at a time nor in
/// batches, whether the table is asked or, for the monitor's trials, is not.
#[test]
fn records_with_a_buffer_beside_them_are_never_stale() {
    are_never_stale::<Chaining<24, Record<24>>>();
    are_never_stale::<Cuckoo<24, Kept<24>>>();
}

fn are_never_stale<I: Make + Records<24, Value = Value>>() {
    const RECORDS: usize = BATCH;
    const VERSIONS: u64 = 20_000;
    let index = I::make(RECORDS).unwrap();
    let beside = Beside::<24, _>::new(index, &lookaside::Config::with_size(256)).unwrap();
    let keys: Vec<_> = (0..RECORDS as u64).map(Key::of).collect();
    let written: Vec<_> = keys.iter().map(|_| AtomicU64::new(0)).collect();
    keys.iter().for_each(|&key| beside.pin().insert(key, Value::of(0)));
    let all = std::array::from_fn::<_, RECORDS, _>(|i| &keys[i]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut session = beside.pin();
            for version in 1..=VERSIONS {
                let record = version as usize % RECORDS;
                session.insert(keys[record], Value::of(version));
                assert_eq!(session.get(&keys[record]), Some(&Value::of(version)));
                written[record].store(version, Ordering::Release);
                if version % 64 == 0 {
                    session.refresh();
                }
            }
        });
        scope.spawn(|| {
            let mut session = beside.pin();
            let mut seen = [0; RECORDS];
            while written.iter().map(|version| version.load(Ordering::Acquire)).max() < Some(VERSIONS) {
                let least: Vec<_> = written.iter().map(|version| version.load(Ordering::Acquire)).collect();
                let mut values = [None; RECORDS];
                session.get_many(&all, &mut values);
                for (i, value) in values.into_iter().enumerate() {
                    for value in [value, session.get(&keys[i])] {
                        let words = value.expect("never removed").words();
                        assert_eq!(words, [words[0]; 8]);
                        assert!(words[0] >= least[i].max(seen[i]), "an older one");
                        seen[i] = words[0];
                    }
                }
                session.refresh();
            }
        });
    });
    let session = beside.pin();
    for record in 0..RECORDS as u64 {
        let last = VERSIONS - (VERSIONS - record) % RECORDS as u64;
        assert_eq!(session.get(&keys[record as usize]), Some(&Value::of(last)));
    }
    drop(session);
    let counts = beside.buffer().counts();
    assert!(counts.hits > 0 && counts.invalidations >= VERSIONS, "{counts:?}");
}

#[test]
fn records_that_are_taken_out_are_gone_from_the_table_and_the_index() {
    let index = Chaining::<24, Record<24>>::make(10).unwrap();
    let beside = Beside::<24, _>::new(index, &lookaside::Config::with_size(256)).unwrap();
    let session = beside.pin();
    let keys: Vec<_> = (0..4).map(Key::of).collect();
    keys.iter().for_each(|&key| session.insert(key, Value::of(1)));
    for key in &keys[..2] {
        session.remove(key);
        assert_eq!(session.get(key), None);
    }
    let mut values = [None; 4];
    session.get_many(&keys.iter().collect::<Vec<_>>(), &mut values);
    assert!(values[..2] == [None; 2] && values[2..].iter().all(Option::is_some));
}

#[test]
fn owned_indexes_behind_a_map_are_maps() {
    model::check_owned::<Tree<24>>();
    model::check_owned::<Hashed<24>>();
    model::check_owned::<BulkChaining<24, Handled<24>, false, FOUR_LINES>>();
    model::check_owned::<BulkChaining<24, Handled<24>, false, TWO_LINES>>();
    model::check_owned::<BulkChaining<24, Handled<24>, false, ONE_LINE>>();
}
