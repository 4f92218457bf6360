//! Threads that end while much that they retired still waits.
//!
//! In a program of its own: the threads of other tests would free what is to wait.

mod ledger;
mod random;

use std::collections::HashSet;
use std::sync::{Arc, Barrier, Mutex, Weak};

use ledger::{Ledger, Record, one_line};
use lookaside::index::{Find, SharedStore, Store};
use lookaside::{Found, Handle, Map, OwnedMap, Pin, RwLock};

/// Pins when it ends.
struct PinsAtLast;

impl Drop for PinsAtLast {
    fn drop(&mut self) {
        drop(crossbeam_epoch::pin());
    }
}

thread_local! {
    static LAST: PinsAtLast = const { PinsAtLast };
}

/// Runs this on a thread with a small stack, while all that it retires must wait; then lets the thread end, which has to free it.
fn end_with_much_to_free(fill: impl FnOnce() + Send) {
    // One test at a time.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock();
    let (filled, go) = (Barrier::new(2), Barrier::new(2));
    std::thread::scope(|scope| {
        let held = crossbeam_epoch::pin();
        let small = std::thread::Builder::new().stack_size(256 << 10);
        let ending = small.spawn_scoped(scope, || {
            // The last that is made is the first that ends: when this does, the thread's handle has gone.
            LAST.with(|_| ());
            fill();
            filled.wait();
            go.wait();
        });
        filled.wait();
        drop(held);
        // What was retired may be freed when the epoch has moved on twice; a look frees some hundreds.
        (0..3).for_each(|_| crossbeam_epoch::pin().flush());
        go.wait();
        ending.unwrap().join().unwrap();
    });
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

/// A value whose destructor uses the map that it was in.
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

const WAITING: u64 = 30_000;

/// A thread that has lost its handle to the collector is given a new one for each pin, and that runs destructors: were each to
/// run the next on top of it, the stack would end.
#[test]
fn a_thread_that_ends_forgets_what_waits_however_much_that_is() {
    let ledger = Arc::new(Ledger::default());
    let map = Map::new(Nothing, &one_line()).unwrap();
    end_with_much_to_free(|| (0..WAITING).for_each(|number| drop(map.insert(number, ledger.record(number)))));
    drop(map);
    ledger.settle();
}

/// Handles die in the destructors of an index that retires its leaves by itself.
#[test]
fn so_it_does_what_an_index_lets_go_of() {
    let ledger = Arc::new(Ledger::default());
    let tree = art::Tree::<[u8; 8], Handle<u64, Record>>::new().unwrap();
    let map = Map::new(tree, &one_line()).unwrap();
    end_with_much_to_free(|| {
        for number in 0..WAITING {
            map.insert(number, ledger.record(number));
            map.remove(&number);
        }
    });
    drop(map);
    ledger.settle();
}

#[test]
fn so_it_does_what_was_removed_and_is_let_go_of_later() {
    let ledger = Arc::new(Ledger::default());
    let map = Map::new(RwLock::new(HashSet::new()), &one_line()).unwrap();
    end_with_much_to_free(|| {
        for number in 0..WAITING {
            map.insert(number, ledger.record(number));
            let removed = map.remove(&number).unwrap();
            crossbeam_epoch::pin().defer(move || assert_eq!(removed.number(), number));
        }
    });
    drop(map);
    ledger.settle();
}

#[test]
fn and_so_where_destructors_use_the_map() {
    let ledger = Arc::new(Ledger::default());
    fn again<I>(map: &Arc<Map<u64, Again, I>>, ledger: &Arc<Ledger>, number: u64) -> Again
    where
        I: Find<u64, u64, Again> + Send + Sync + 'static,
    {
        let map: Weak<Map<u64, Again, I>> = Arc::downgrade(map);
        Again { map, _record: ledger.record(number) }
    }
    let set = Arc::new(Map::new(RwLock::new(HashSet::new()), &one_line()).unwrap());
    end_with_much_to_free(|| {
        for number in 0..WAITING {
            set.insert(number, again(&set, &ledger, number));
            set.remove(&number);
        }
    });
    let nothing = Arc::new(Map::new(Nothing, &one_line()).unwrap());
    end_with_much_to_free(|| {
        (0..WAITING).for_each(|number| drop(nothing.insert(number, again(&nothing, &ledger, number))));
    });
    drop((set, nothing));
    ledger.settle();
}

/// A value whose destructor pins.
struct Pinning {
    _record: Record,
    _last: PinsAtLast,
}

/// An index for one owner that lets go by epochs of what it is given.
struct Later;

impl Store<u64, Pinning> for Later {
    fn replace(&mut self, handle: Handle<u64, Pinning>) -> Option<Handle<u64, Pinning>> {
        crossbeam_epoch::pin().defer(move || drop(handle));
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
    let mut map = OwnedMap::new(Later, &one_line()).unwrap();
    end_with_much_to_free(|| {
        for number in 0..WAITING {
            let value = Pinning { _record: ledger.record(number), _last: PinsAtLast };
            assert!(map.insert(number, value).is_none());
        }
        drop(map);
    });
    ledger.settle();
}
