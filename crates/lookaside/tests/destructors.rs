//! Values whose destructors panic, use the map that they were in, or end each other; and values that end on other
//! threads.
//!
//! Worth most under the address sanitizer.

use std::borrow::Borrow;
use std::cell::Cell;
use std::collections::{BTreeSet, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use crate::ledger::{Ledger, Record, one_line, quiet};
use lookaside::{Handle, Map, Operation, OwnedMap, Removed, RwLock};

/// Destructors run later, in the middle of other calls: their panics are nobody's there, and take no other value along.
#[test]
fn values_that_panic_when_dropped_harm_nobody() {
    quiet();
    let ledger = Arc::new(Ledger::default());
    let map = Map::with_index(RwLock::new(BTreeSet::new()), &one_line()).unwrap();
    let mut owned = OwnedMap::with_index(BTreeSet::new(), &one_line()).unwrap();
    for number in 0..3000u64 {
        let record = || {
            let mut record = ledger.record(number);
            record.panics = number.is_multiple_of(3);
            record
        };
        map.insert(number % 10, record());
        owned.insert(number % 10, record());
        assert_eq!(map.pin().get(&(number % 10)).unwrap().number(), number);
        assert_eq!(owned.get(&(number % 10)).unwrap().number(), number);
    }
    let removed: Vec<_> = (0..5).filter_map(|key| owned.remove(&key)).collect();
    drop((map, owned));
    drop(removed);
    ledger.settle();
}

/// Its destructor panics, always.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Fragile(u64);

static BROKEN: AtomicUsize = AtomicUsize::new(0);

impl Borrow<u64> for Fragile {
    fn borrow(&self) -> &u64 {
        &self.0
    }
}

impl Drop for Fragile {
    fn drop(&mut self) {
        BROKEN.fetch_add(1, Relaxed);
        panic!("on purpose");
    }
}

/// Keys whose destructors panic from when they are told to until they have.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Brittle(u64);

thread_local! {
    static BREAKS: Cell<bool> = const { Cell::new(false) };
}

impl Drop for Brittle {
    fn drop(&mut self) {
        assert!(!BREAKS.replace(false), "on purpose");
    }
}

/// Whatever a call was about to answer is dropped where dropping the key that it was given panics.
#[test]
fn a_key_that_panics_when_dropped_takes_no_answer_along() {
    quiet();
    let (value, other) = (Arc::new(7), Arc::new(8));
    let map = Map::<Brittle, Arc<u64>>::with_config(&one_line()).unwrap();
    map.insert(Brittle(1), Arc::clone(&value));
    let lost = |call: &str, answer: &dyn Fn(Arc<u64>)| {
        let before = Arc::strong_count(&value);
        let new = Arc::clone(&value);
        BREAKS.set(true);
        assert!(catch_unwind(AssertUnwindSafe(|| answer(new))).is_err() && !BREAKS.get(), "{call}");
        assert_eq!(Arc::strong_count(&value), before, "{call}");
    };
    lost("try_insert", &|new| drop(map.try_insert(Brittle(1), new)));
    lost("compare_exchange", &|new| drop(map.compare_exchange(Brittle(1), &other, new)));
    lost("compare_exchange of nothing", &|new| drop(map.compare_exchange(Brittle(2), &other, new)));
    lost("get_or_insert_with", &|new| drop(map.get_or_insert_with(Brittle(1), || new)));
    lost("get_or_try_insert_with", &|new| drop(map.get_or_try_insert_with(Brittle(2), || Err(new))));
    lost("a reader's", &|new| drop(map.pin().get_or_try_insert_with(Brittle(2), || Err(new))));
    lost("compute, abort", &|new| drop(map.compute(Brittle(1), |_| Operation::Abort(new))));
    BREAKS.set(true);
    let remove = || drop(map.compute(Brittle(1), |_| Operation::<_, ()>::Remove));
    assert!(catch_unwind(AssertUnwindSafe(remove)).is_err());
    drop(map);
    assert_eq!(Arc::strong_count(&value), 1, "compute, remove");
    let mut owned = OwnedMap::<Brittle, Arc<u64>>::with_config(&one_line()).unwrap();
    owned.insert(Brittle(1), Arc::clone(&value));
    BREAKS.set(true);
    let insert = || drop(owned.try_insert(Brittle(1), Arc::clone(&value)));
    assert!(catch_unwind(AssertUnwindSafe(insert)).is_err());
    drop(owned);
    assert_eq!(Arc::strong_count(&value), 1, "an owner's try_insert");
}

/// Two panics at once would end the process.
#[test]
fn a_key_and_a_value_that_both_panic_when_dropped_harm_nobody() {
    quiet();
    let map = Map::with_index(RwLock::new(BTreeSet::new()), &one_line()).unwrap();
    for number in 0..100 {
        assert!(map.insert(Fragile(number), Fragile(number)).is_none());
        assert_eq!(map.pin().get(&number).map(|value| value.0), Some(number));
    }
    for number in 0..100 {
        assert!(map.remove(&number).is_some());
    }
    drop(map);
    assert_eq!(BROKEN.load(Relaxed), 200);
}

type Ring = Map<u64, Again, RwLock<BTreeSet<Handle<u64, Again>>>>;

/// A value whose destructor uses the map that it was in.
struct Again {
    map: Weak<Ring>,
    depth: u32,
    _record: Record,
}

impl Drop for Again {
    fn drop(&mut self) {
        if let Some(map) = self.map.upgrade()
            && self.depth > 0
        {
            let record = self._record.ledger.record(1);
            let key = u64::from(self.depth);
            map.insert(key, Again { map: self.map.clone(), depth: self.depth - 1, _record: record });
            assert!(map.pin().get(&key).is_some());
            map.buffer().resize(if self.depth.is_multiple_of(2) { 64 } else { 128 }).unwrap();
            map.remove(&key);
        }
    }
}

#[test]
fn destructors_may_use_the_map() {
    let ledger = Arc::new(Ledger::default());
    let map: Arc<Ring> = Arc::new(Map::with_index(RwLock::new(BTreeSet::new()), &one_line()).unwrap());
    for number in 0..400u64 {
        let again = Again { map: Arc::downgrade(&map), depth: 3, _record: ledger.record(number) };
        map.insert(number % 50 + 10, again);
        map.remove(&(number % 50 + 10));
        // Every so many pins run destructors; this makes it any of the calls.
        (0..number % 3).for_each(|_| drop(map.pin()));
        map.buffer().resize(64).unwrap();
    }
    drop(map);
    ledger.settle();
}

/// A value that holds what was removed before it: as one is freed, the next one dies.
struct Chain {
    _before: Option<Removed<u64, Chain>>,
    _record: Record,
}

#[test]
fn values_may_hold_what_was_removed() {
    let ledger = Arc::new(Ledger::default());
    let mut owned = OwnedMap::with_index(BTreeSet::new(), &one_line()).unwrap();
    let map = Map::with_index(RwLock::new(BTreeSet::new()), &one_line()).unwrap();
    for number in 0..200 {
        let before = owned.remove(&1);
        assert!(owned.insert(1, Chain { _before: before, _record: ledger.record(number) }).is_none());
        let before = map.remove(&1);
        assert!(map.insert(1, Chain { _before: before, _record: ledger.record(number) }).is_none());
    }
    owned.remove(&1);
    (0..50).for_each(|_| drop(owned.remove(&1)));
    let held = map.remove(&1).unwrap();
    drop(map);
    assert_eq!(held._record.number(), 199);
    drop(held);
    drop(owned);
    ledger.settle();
}

/// The owner-only form goes from thread to thread, and what was taken out of it to yet others.
#[test]
fn an_owned_map_can_be_sent() {
    let ledger = Arc::new(Ledger::default());
    let mut map = OwnedMap::with_index(HashSet::new(), &one_line()).unwrap();
    for round in 0..20 {
        map = std::thread::spawn({
            let ledger = ledger.clone();
            move || {
                let mut away = Vec::new();
                for key in 0..100u64 {
                    assert_eq!(map.get(&key).map(Record::number), (round > 0).then(|| round + key - 1));
                    let old = map.insert(key, ledger.record(round + key));
                    away.extend(
                        old.map(|old| std::thread::spawn(move || assert_eq!(old.number(), round + key - 1))),
                    );
                }
                away.into_iter().for_each(|thread| thread.join().unwrap());
                map
            }
        })
        .join()
        .unwrap();
    }
    drop(map);
    ledger.settle();
}
