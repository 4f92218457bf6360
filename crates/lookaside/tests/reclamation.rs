//! What was replaced is freed while the map is in use, however it is used; also if its destructor does its worst.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lookaside::{Config, Handle, Map, Operation, OwnedMap, PageKind, RwLock};
use parking_lot::Mutex;

use crate::ledger::{Ledger, Name, Record, quiet};

/// All maps share one collector of epochs: a test whose thread stands still while it is pinned would hold up the
/// others'.
static ALONE: Mutex<()> = Mutex::new(());

fn one_line() -> Config {
    Config::with_size(64).pages(PageKind::Base)
}

/// Counts itself while it lives.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(alive: &Arc<AtomicUsize>) -> Counted {
        alive.fetch_add(1, Ordering::SeqCst);
        Counted(alive.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

type Counting = Map<u64, Counted, RwLock<BTreeSet<Handle<u64, Counted>>>>;

fn counting() -> (Counting, Arc<AtomicUsize>) {
    (Map::with_index(RwLock::new(BTreeSet::new()), &one_line()).unwrap(), Arc::default())
}

/// How many values may wait: far fewer than are replaced below.
const MOST_WAITING: usize = 20_000;

#[test]
fn a_reader_that_is_refreshed_does_not_hold_back_what_it_replaces() {
    let _alone = ALONE.lock();
    // Rarely, it writes much before it is refreshed.
    for writes in [1, 1024] {
        let (map, alive) = counting();
        let mut reader = map.pin();
        for round in 0..200_000 / writes {
            (0..writes).for_each(|number| drop(reader.insert(number % 10, Counted::new(&alive))));
            reader.refresh();
            let waiting = alive.load(Ordering::SeqCst);
            assert!(waiting < MOST_WAITING, "{waiting} of {} values were not freed", round * writes);
        }
    }
}

#[test]
fn readers_that_write_a_lot_each_free_as_much() {
    let _alone = ALONE.lock();
    let (map, alive) = counting();
    for number in 0..2000u64 {
        let reader = map.pin();
        (0..100).for_each(|key| drop(reader.insert(key, Counted::new(&alive))));
        drop(reader);
        let waiting = alive.load(Ordering::SeqCst);
        assert!(waiting < MOST_WAITING, "{waiting} of {} values were not freed", number * 100);
    }
}

/// What a destructor panics with may itself panic when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("on purpose, again");
        }
    }
}

struct Bombing {
    _counted: Counted,
    armed: bool,
}

impl Drop for Bombing {
    fn drop(&mut self) {
        if self.armed {
            panic_any(Bomb);
        }
    }
}

#[test]
fn a_panic_that_panics_ends_where_the_entry_is_freed() {
    let _alone = ALONE.lock();
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let said = panic.payload_as_str().is_some_and(|said| said.contains("on purpose"));
        if !said && !panic.payload().is::<Bomb>() {
            usual(panic);
        }
    }));
    let alive: Arc<AtomicUsize> = Arc::default();
    let mut owned = OwnedMap::with_index(BTreeSet::new(), &one_line()).unwrap();
    let panics = (0..100u64)
        .filter(|number| {
            let value = Bombing { _counted: Counted::new(&alive), armed: *number < 10 };
            catch_unwind(AssertUnwindSafe(|| drop(owned.insert(number % 10, value)))).is_err()
        })
        .count();
    drop(owned);
    assert_eq!(
        (panics, alive.load(Ordering::SeqCst)),
        (0, 0),
        "panics in other calls, and values never dropped"
    );
}

#[test]
fn every_count_that_a_newcomer_may_begin_with_can_be_hit() {
    let _alone = ALONE.lock();
    for newcomer in [0, 15, 66, 67, 255] {
        let config = one_line().newcomer(newcomer);
        let map = Map::with_index(RwLock::new(BTreeSet::new()), &config).unwrap();
        map.buffer().monitor(false);
        map.insert(1u64, 2u64);
        let reader = map.pin();
        assert!((0..1000).all(|_| reader.get(&1) == Some(&2)), "{newcomer}");
    }
}

/// While a map drops its index it keeps some handles for a while; the entries of maps that are dropped by the values of
/// a map, and of maps that these have in their values, are gone with it all the same, and so are those that panic.
#[test]
fn maps_in_the_values_of_maps_go_with_them() {
    quiet();
    type Inner = Map<u64, Record>;
    let ledger = Arc::new(Ledger::default());
    let inner = |many| -> Inner { (0..many).map(|number| (number, ledger.record(number))).collect() };
    let middle = |many| -> Map<u64, Inner> { (0..many).map(|number| (number, inner(number))).collect() };
    let outer: Map<u64, Map<u64, Inner>> = (0..20).map(|number| (number, middle(number))).collect();
    let removed = outer.remove(&7).unwrap();
    let reader = outer.pin();
    assert_eq!(reader.get(&19).and_then(|middle| middle.get_with(&18, Inner::len)), Some(18));
    drop(reader);
    drop(outer);
    // Of the one that was removed, and is held.
    ledger.settle_but(6 * 7 / 2);
    assert_eq!(removed.get_with(&6, Inner::len), Some(6));
    drop(removed);
    ledger.settle();

    let panics = |number| {
        let mut record = ledger.record(number);
        record.panics = number % 3 == 0;
        record
    };
    drop((0..100).map(|number| (number, panics(number))).collect::<Inner>());
    drop((0..100).map(|number| (number, panics(number))).collect::<OwnedMap<u64, Record>>());
    ledger.settle();
}

/// The value that comes back is not lost with the result, where the key's destructor panics.
#[test]
fn a_value_that_was_not_put_in_is_dropped_although_its_key_panics() {
    quiet();
    let ledger = Arc::<Ledger>::default();
    let name = |panics| {
        let mut name = ledger.name(7);
        name.record.panics = panics;
        name
    };
    let fails = |try_insert: &mut dyn FnMut(Name, Record)| {
        let outcome = catch_unwind(AssertUnwindSafe(|| try_insert(name(true), ledger.record(1))));
        assert!(outcome.is_err(), "the key has panicked");
    };
    let map = Map::<Name, Record>::new();
    map.pin().insert(name(false), ledger.record(0));
    fails(&mut |name, record| drop(map.pin().try_insert(name, record)));
    fails(&mut |name, record| drop(map.pin().compute(name, |_| Operation::Abort(record))));
    drop(map);
    let mut owned = OwnedMap::<Name, Record>::new();
    owned.insert(name(false), ledger.record(0));
    fails(&mut |name, record| drop(owned.try_insert(name, record)));
    drop(owned);
    ledger.settle();
}
