//! Threads that free much while they are ending.

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, Weak};

use crate::ledger::{Ledger, Record, one_line};
use lookaside::index::{Find, SharedStore, Store};
use lookaside::{Found, Handle, Map, OwnedMap, Pin, Removed, RwLock};

/// Does what it was given when it ends.
struct Last(Cell<Option<Box<dyn FnOnce()>>>);

impl Drop for Last {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(|last| last());
    }
}

thread_local! {
    static LAST: Last = const { Last(Cell::new(None)) };
}

/// Runs this on a thread with a small stack when that is ending: the last that is made of its thread-locals is the
/// first that ends, so that it has lost the number by which collectors know it.
fn when_a_thread_ends(last: impl FnOnce() + Send + 'static) {
    let small = std::thread::Builder::new().stack_size(256 << 10);
    let ending = small.spawn(|| {
        LAST.with(|at_last| at_last.0.set(Some(Box::new(last))));
        drop(Map::<u64, u64, _>::with_index(Nothing, &one_line()).unwrap().pin());
    });
    ending.unwrap().join().unwrap();
}

/// An index that keeps nothing: what it is given dies at once.
struct Nothing;

impl<V: 'static> Find<u64, u64, V> for Nothing {
    fn find<'p>(&self, _: &u64, _: &Pin<'p>) -> Option<Found<'p, u64, V>> {
        None
    }
}

impl<V: 'static> SharedStore<u64, V> for Nothing {
    fn replace(&self, _: Handle<u64, V>) -> Option<Handle<u64, V>> {
        None
    }

    fn len(&self) -> usize {
        0
    }
}

const WAITING: u64 = 30_000;

/// A value whose destructor uses a map, that which it was in.
struct Again {
    map: Weak<dyn Lacks>,
    _record: Record,
}

trait Lacks: Send + Sync {
    fn lacks(&self, key: u64) -> bool;
}

impl<I: Find<u64, u64, Again> + Send + Sync> Lacks for Map<u64, Again, I> {
    fn lacks(&self, key: u64) -> bool {
        self.pin().get(&key).is_none()
    }
}

impl Drop for Again {
    fn drop(&mut self) {
        assert!(self.map.upgrade().is_none_or(|map| map.lacks(self._record.number())));
    }
}

/// A thread that has lost its number has a record for each pin: were each to run the next destructor on top of it, the
/// stack would end.
#[test]
fn a_thread_that_ends_forgets_what_waits_however_much_that_is() {
    let (ledger, map) =
        (Arc::new(Ledger::default()), Arc::new(Map::with_index(Nothing, &one_line()).unwrap()));
    let (records, others) = (Arc::clone(&ledger), Arc::clone(&map));
    when_a_thread_ends(move || {
        let reader = others.pin();
        (0..WAITING).for_each(|number| drop(others.insert(number, records.record(number))));
        records.settle_but(WAITING as usize);
        drop(reader);
    });
    drop(map);
    ledger.settle();
}

/// Handles die in the destructors of an index that retires its leaves by itself.
#[test]
fn so_it_does_what_an_index_lets_go_of() {
    let ledger = Arc::new(Ledger::default());
    let tree = art::Tree::<[u8; 8], Handle<u64, Record>>::new().unwrap();
    let map = Arc::new(Map::with_index(tree, &one_line()).unwrap());
    let (records, others) = (Arc::clone(&ledger), Arc::clone(&map));
    when_a_thread_ends(move || {
        for number in 0..WAITING {
            others.insert(number, records.record(number));
            others.remove(&number);
        }
    });
    drop(map);
    ledger.settle();
}

/// What was removed holds what was removed before it, and goes when the map has gone.
struct Chain<R> {
    _before: Option<R>,
    _record: Record,
}

struct OfMap(Chain<Removed<u64, OfMap>>);

struct OfOwned(Chain<Removed<u64, OfOwned>>);

#[test]
fn so_it_does_what_was_removed_and_is_let_go_of_later() {
    let ledger = Arc::new(Ledger::default());
    let records = Arc::clone(&ledger);
    when_a_thread_ends(move || {
        let map = Map::with_index(RwLock::new(HashSet::new()), &one_line()).unwrap();
        let mut owned = OwnedMap::with_index(HashSet::new(), &one_line()).unwrap();
        let (mut last, mut last_owned) = (None, None);
        for number in 0..WAITING {
            let chain = Chain { _before: last, _record: records.record(number) };
            map.insert(number, OfMap(chain));
            last = map.remove(&number);
            let chain = Chain { _before: last_owned, _record: records.record(number) };
            owned.insert(number, OfOwned(chain));
            last_owned = owned.remove(&number);
        }
        drop((map, owned));
        records.settle_but(2 * WAITING as usize);
        assert_eq!(last.as_ref().unwrap().0._record.number(), WAITING - 1);
        assert_eq!(last_owned.as_ref().unwrap().0._record.number(), WAITING - 1);
        drop((last, last_owned));
    });
    ledger.settle();
}

#[test]
fn and_so_where_destructors_use_the_map() {
    fn again<I>(map: &Arc<Map<u64, Again, I>>, ledger: &Arc<Ledger>, number: u64) -> Again
    where
        I: Find<u64, u64, Again> + Send + Sync + 'static,
    {
        let map: Weak<Map<u64, Again, I>> = Arc::downgrade(map);
        Again { map, _record: ledger.record(number) }
    }
    let ledger = Arc::new(Ledger::default());
    let records = Arc::clone(&ledger);
    when_a_thread_ends(move || {
        let set = Arc::new(Map::with_index(RwLock::new(HashSet::new()), &one_line()).unwrap());
        let nothing = Arc::new(Map::with_index(Nothing, &one_line()).unwrap());
        let readers = (set.pin(), nothing.pin());
        for number in 0..WAITING {
            set.insert(number, again(&set, &records, number));
            set.remove(&number);
            nothing.insert(number, again(&nothing, &records, number));
        }
        records.settle_but(2 * WAITING as usize);
        drop(readers);
        drop((set, nothing));
        records.settle();
    });
    ledger.settle();
}

/// An index for one owner that keeps what it is given elsewhere.
struct Elsewhere(Arc<Mutex<Vec<Handle<u64, Again>>>>);

impl Store<u64, Again> for Elsewhere {
    fn replace(&mut self, handle: Handle<u64, Again>) -> Option<Handle<u64, Again>> {
        self.0.lock().unwrap().push(handle);
        None
    }

    fn len(&self) -> usize {
        0
    }
}

/// The map has gone: its entries are freed as their last handles are.
#[test]
fn so_it_does_what_an_owned_map_has_left_behind() {
    let ledger = Arc::new(Ledger::default());
    let records = Arc::clone(&ledger);
    when_a_thread_ends(move || {
        let handles = Arc::default();
        let mut map = OwnedMap::with_index(Elsewhere(Arc::clone(&handles)), &one_line()).unwrap();
        let other = Arc::new(Map::<u64, Again, _>::with_index(Nothing, &one_line()).unwrap());
        for number in 0..WAITING {
            let (map_of_it, _record): (Weak<Map<u64, Again, Nothing>>, _) =
                (Arc::downgrade(&other), records.record(number));
            assert!(map.insert(number, Again { map: map_of_it, _record }).is_none());
        }
        drop(map);
        records.settle_but(WAITING as usize);
        handles.lock().unwrap().clear();
        records.settle();
    });
    ledger.settle();
}
