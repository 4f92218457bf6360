//! Writes that the index is not asked for, and what becomes of the entries that it keeps meanwhile.

use std::collections::{BTreeSet, HashSet};
use std::hash::{BuildHasher, Hasher};
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::ledger::{Ledger, Name, one_line, steps};
use lookaside::index::{Discard, Find, Scan, SharedDiscard, SharedStore, Store};
use lookaside::{
    Config, Counts, Found, Handle, Map, MapRef, OwnedMap, PageKind, Pin, RwLock, SharedBuffer, Sought,
};
use outside::Random;

/// A tree that counts what it is asked to store and to find.
struct Asked<V: 'static> {
    set: Arc<RwLock<BTreeSet<Handle<Name, V>>>>,
    writes: Arc<AtomicUsize>,
    searches: Arc<AtomicUsize>,
}

impl<V> Default for Asked<V> {
    fn default() -> Self {
        Asked { set: Arc::default(), writes: Arc::default(), searches: Arc::default() }
    }
}

impl<V> Find<Name, Name, V> for Asked<V> {
    fn find<'p>(&self, key: &Name, pin: &Pin<'p>) -> Option<Found<'p, Name, V>> {
        self.set.find(key, pin)
    }
}

impl<V> Find<u64, Name, V> for Asked<V> {
    fn find<'p>(&self, key: &u64, pin: &Pin<'p>) -> Option<Found<'p, Name, V>> {
        self.searches.fetch_add(1, Ordering::Relaxed);
        self.set.find(key, pin)
    }
}

impl Scan<u64, Name, u64> for Asked<u64> {
    fn scan<'p>(
        &self,
        from: Bound<&u64>,
        to: Bound<&u64>,
        pin: &Pin<'p>,
        visit: &mut dyn FnMut(Found<'p, Name, u64>) -> ControlFlow<()>,
    ) {
        self.set.scan(from, to, pin, visit);
    }
}

impl<V> SharedStore<Name, V> for Asked<V> {
    const SUCCESSION: bool = true;

    fn replace(&self, handle: Handle<Name, V>) -> Option<Handle<Name, V>> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.set.write().replace(handle)
    }

    fn len(&self) -> usize {
        self.set.read().len()
    }
}

impl<V> SharedDiscard<u64, Name, V> for Asked<V> {
    fn remove(&self, key: &u64) -> Option<Handle<Name, V>> {
        SharedDiscard::remove(&*self.set, key)
    }
}

impl<V> Store<Name, V> for Asked<V> {
    const SUCCESSION: bool = true;

    fn replace(&mut self, handle: Handle<Name, V>) -> Option<Handle<Name, V>> {
        SharedStore::replace(self, handle)
    }

    fn len(&self) -> usize {
        SharedStore::len(self)
    }
}

impl<V> Discard<u64, Name, V> for Asked<V> {
    fn remove(&mut self, key: &u64) -> Option<Handle<Name, V>> {
        SharedDiscard::remove(self, key)
    }
}

/// What a walk over the index shows.
fn shown(reader: &MapRef<'_, Name, u64, Asked<u64>>) -> Vec<(u64, u64)> {
    let mut shown = Vec::new();
    reader.scan(Bound::<&u64>::Unbounded, Bound::Unbounded, |key, value| {
        shown.push((key.number, *value));
        ControlFlow::Continue(())
    });
    shown
}

fn told<V: Send + Sync>(reader: &mut MapRef<'_, Name, V, Asked<V>>, map: &Map<Name, V, Asked<V>>) -> Counts {
    reader.refresh();
    map.buffer().counts()
}

#[test]
fn a_write_that_the_table_knows_does_without_the_index() {
    let (ledger, index) = (Arc::new(Ledger::default()), Asked::default());
    let (writes, searches) = (Arc::clone(&index.writes), Arc::clone(&index.searches));
    let asked = || writes.load(Ordering::Relaxed);
    let map = Map::with_index(index, &one_line()).unwrap();
    let mut reader = map.pin();
    assert!(reader.insert(ledger.name(7), 70).is_none());
    assert_eq!(asked(), 1);
    // Not hot yet: the index is asked.
    assert_eq!(reader.insert(ledger.name(7), 71).as_deref(), Some(&70));
    assert_eq!(asked(), 2);
    assert_eq!(reader.get(&7), Some(&71));
    reader.refresh();
    for value in 72..80 {
        let old = if value % 2 == 0 {
            reader.insert(ledger.name(7), value)
        } else {
            reader.replace(ledger.name(7), value).ok()
        };
        assert_eq!(old.as_deref(), Some(&(value - 1)));
        // From the table, and from the index.
        let before = searches.load(Ordering::Relaxed);
        assert_eq!(reader.get(&7), Some(&value));
        assert_eq!(searches.load(Ordering::Relaxed), before);
        assert_eq!(shown(&reader), [(7, value)]);
    }
    assert_eq!((asked(), map.len()), (2, 1));
    assert_eq!(told(&mut reader, &map).successions, 8);
    // Forgotten by the table, it is found by the index, which is asked about the next write.
    reader.forget(&7);
    assert_eq!(reader.get(&7), Some(&79));
    reader.forget(&7);
    let old = reader.insert(ledger.name(7), 80).unwrap();
    assert_eq!((*old, old.key().number, asked()), (79, 7, 3));
    assert_eq!(reader.get(&7), Some(&80));
    reader.refresh();
    // Once more, and then it is removed: the newest is what was there.
    assert_eq!(reader.insert(ledger.name(7), 81).as_deref(), Some(&80));
    assert_eq!(reader.remove(&7).as_deref(), Some(&81));
    assert_eq!((reader.get(&7), map.len(), asked()), (None, 0, 3));
    assert!(reader.replace(ledger.name(7), 82).is_err());
    assert!(reader.insert(ledger.name(7), 83).is_none());
    assert_eq!(reader.get(&7), Some(&83));
    drop((old, reader));
    drop(map);
    ledger.settle();
}

#[test]
fn the_owner_does_without_the_index_too() {
    let (ledger, index) = (Arc::new(Ledger::default()), Asked::default());
    let (writes, searches) = (Arc::clone(&index.writes), Arc::clone(&index.searches));
    let mut map = OwnedMap::with_index(index, &one_line()).unwrap();
    assert!(map.insert(ledger.name(7), 70).is_none());
    assert_eq!(map.get(&7), Some(&70));
    for value in 71..80 {
        let old = if value % 2 == 0 {
            map.insert(ledger.name(7), value)
        } else {
            map.replace(ledger.name(7), value).ok()
        };
        assert_eq!(old.as_deref(), Some(&(value - 1)));
        assert_eq!(map.get(&7), Some(&value));
    }
    assert_eq!(searches.load(Ordering::Relaxed), 1);
    assert_eq!((writes.load(Ordering::Relaxed), map.counts().successions), (1, 9));
    // What is succeeded is buried in time: the first, the newest, and the last that was replaced.
    let left = ledger.made.load(Ordering::SeqCst) - ledger.dropped.load(Ordering::SeqCst);
    assert!(left <= 3, "{left}");
    map.forget(&7);
    assert_eq!(map.get(&7), Some(&79));
    map.forget(&7);
    assert_eq!(map.insert(ledger.name(7), 80).as_deref(), Some(&79));
    assert_eq!(map.get(&7), Some(&80));
    assert_eq!(map.insert(ledger.name(7), 81).as_deref(), Some(&80));
    let removed = map.remove(&7).unwrap();
    assert_eq!((*removed, map.get(&7), map.len()), (81, None, 0));
    drop(map);
    assert_eq!((*removed, removed.key().number), (81, 7));
    drop(removed);
    ledger.settle();
}

/// No more keys keep an old value than the table has slots; and they stop keeping it when the index is asked about
/// them.
#[test]
fn there_are_as_many_successions_as_slots() {
    let ledger = Arc::new(Ledger::default());
    let index = Asked::default();
    let set = Arc::clone(&index.set);
    let map = Map::with_index(index, &one_line()).unwrap();
    map.buffer().monitor(false);
    let slots = map.buffer().capacity() as u64;
    let mut reader = map.pin();
    (0..3 * slots).for_each(|key| assert!(reader.insert(ledger.name(key), key).is_none()));
    let write_hot = |reader: &mut MapRef<'_, _, _, _>, key| {
        let before = told(reader, &map).successions;
        for _ in 0..2 {
            assert_eq!(reader.get(&key), Some(&key));
            reader.refresh();
        }
        assert_eq!(reader.insert(ledger.name(key), key).as_deref(), Some(&key));
        told(reader, &map).successions - before
    };
    for key in 0..slots {
        assert_eq!(write_hot(&mut reader, key), 1, "{key}");
    }
    for key in slots..2 * slots {
        assert_eq!(write_hot(&mut reader, key), 0, "{key}");
    }
    // Those that are successions stay such.
    assert_eq!(write_hot(&mut reader, 0), 1);
    reader.remove(&0).unwrap();
    reader.forget(&1);
    reader.insert(ledger.name(1), 1).unwrap();
    for (key, succeeds) in [(slots, 1), (slots + 1, 1), (slots + 2, 0)] {
        assert_eq!(write_hot(&mut reader, key), succeeds, "{key}");
    }
    // Nor when the index lets go of them by itself.
    set.write().clear();
    drop(reader);
    map.buffer().collect();
    ledger.settle();
    let mut reader = map.pin();
    (0..=slots).for_each(|key| assert!(reader.insert(ledger.name(key), key).is_none()));
    for key in 0..=slots {
        assert_eq!(write_hot(&mut reader, key), u64::from(key < slots), "{key}");
    }
    drop(reader);
    drop((map, set));
    ledger.settle();
}

/// An index of which a search comes back after others have written: it has the entry by then, and is late to look at
/// it.
#[derive(Default)]
struct Late {
    asked: Asked<u64>,
    meanwhile: Arc<Mutex<Option<Meanwhile>>>,
}

type Meanwhile = Box<dyn FnOnce() + Send>;

impl Find<u64, Name, u64> for Late {
    fn find<'p>(&self, key: &u64, pin: &Pin<'p>) -> Option<Found<'p, Name, u64>> {
        let handle = self.asked.set.read().get(Sought::of(key)).cloned()?;
        let meanwhile = self.meanwhile.lock().unwrap().take();
        meanwhile.into_iter().for_each(|write| thread::scope(|scope| drop(scope.spawn(write))));
        handle.found(pin)
    }
}

impl SharedStore<Name, u64> for Late {
    const SUCCESSION: bool = true;

    fn replace(&self, handle: Handle<Name, u64>) -> Option<Handle<Name, u64>> {
        SharedStore::replace(&self.asked, handle)
    }

    fn len(&self) -> usize {
        SharedStore::len(&self.asked)
    }
}

impl SharedDiscard<u64, Name, u64> for Late {
    fn remove(&self, key: &u64) -> Option<Handle<Name, u64>> {
        SharedDiscard::remove(&self.asked, key)
    }
}

/// A search may come to the first, and to its place only after the index has given it back: what the key had before its
/// succession is no answer then, either.
#[test]
fn who_is_late_finds_the_newest_that_was_there() {
    type Write = fn(&Arc<Ledger>, &Map<Name, u64, Late>);
    let removes: Write = |_, map| assert_eq!(map.remove(&7).as_deref(), Some(&71));
    let inserts: Write = |ledger, map| {
        map.pin().forget(&7);
        assert_eq!(map.insert(ledger.name(7), 72).as_deref(), Some(&71));
    };
    // By the table, which has it from a search that is not late.
    let succeeds: Write = |ledger, map| {
        assert_eq!(map.pin().get(&7), Some(&71));
        assert_eq!(map.insert(ledger.name(7), 72).as_deref(), Some(&71));
    };
    for (write, seen, after) in [(removes, 71, None), (inserts, 71, Some(&72)), (succeeds, 72, Some(&72))] {
        let (ledger, index) = (Arc::new(Ledger::default()), Late::default());
        let meanwhile = Arc::clone(&index.meanwhile);
        let map = Arc::new(Map::with_index(index, &one_line()).unwrap());
        map.insert(ledger.name(7), 70);
        assert_eq!(map.pin().get(&7), Some(&70));
        assert_eq!(map.insert(ledger.name(7), 71).as_deref(), Some(&70));
        map.pin().forget(&7);
        let (others, names) = (Arc::clone(&map), Arc::clone(&ledger));
        *meanwhile.lock().unwrap() = Some(Box::new(move || write(&names, &others)));
        let reader = map.pin();
        assert_eq!(reader.get(&7), Some(&seen));
        assert!(meanwhile.lock().unwrap().is_none());
        // Nor is it remembered.
        map.buffer().collect();
        assert_eq!(reader.get(&7), after);
        drop(reader);
        assert_eq!(map.pin().get(&7), after);
        drop(map);
        ledger.settle();
    }
}

/// What an index has let go of is on its way out: the table may find it, but a write that went there would go with it.
#[test]
fn what_the_index_has_let_go_of_has_no_successor() {
    for was_succeeded in [false, true] {
        let (ledger, index) = (Arc::new(Ledger::default()), Asked::default());
        let (set, writes) = (Arc::clone(&index.set), Arc::clone(&index.writes));
        let map = Map::with_index(index, &one_line()).unwrap();
        let reader = map.pin();
        reader.insert(ledger.name(7), 70);
        assert_eq!(map.pin().get(&7), Some(&70));
        if was_succeeded {
            assert!(map.insert(ledger.name(7), 71).is_some());
        }
        set.write().clear();
        // Nothing is forgotten or freed while a reader stays.
        assert_eq!(map.pin().get(&7), Some(&(70 + u64::from(was_succeeded))));
        assert!(map.insert(ledger.name(7), 72).is_none());
        assert_eq!(writes.load(Ordering::Relaxed), 2);
        drop(reader);
        map.buffer().collect();
        ledger.settle_but(1);
        assert_eq!(map.pin().get(&7), Some(&72));
        map.pin().forget(&7);
        assert_eq!(map.pin().get(&7), Some(&72));
        drop((map, set));
        ledger.settle();

        let index = Asked::default();
        let (set, writes) = (Arc::clone(&index.set), Arc::clone(&index.writes));
        let mut map = OwnedMap::with_index(index, &one_line()).unwrap();
        map.insert(ledger.name(7), 70);
        assert_eq!(map.get(&7), Some(&70));
        if was_succeeded {
            assert!(map.insert(ledger.name(7), 71).is_some());
        }
        set.write().clear();
        assert_eq!(map.get(&7), Some(&(70 + u64::from(was_succeeded))));
        assert!(map.insert(ledger.name(7), 72).is_none());
        assert_eq!((map.get(&7), writes.load(Ordering::Relaxed)), (Some(&72), 2));
        map.insert(ledger.name(8), 80);
        ledger.settle_but(2);
        map.forget(&7);
        assert_eq!(map.get(&7), Some(&72));
        drop((map, set));
        ledger.settle();
    }
}

/// A write that finds a successor in the table goes to its first: so the table has neither when the first is freed.
#[test]
fn a_successor_is_forgotten_before_its_first_is_freed() {
    let (ledger, index) = (Arc::new(Ledger::default()), Asked::default());
    let set = Arc::clone(&index.set);
    let map = Map::with_index(index, &one_line()).unwrap();
    map.insert(ledger.name(7), 70);
    assert_eq!(map.pin().get(&7), Some(&70));
    map.insert(ledger.name(7), 71).unwrap();
    // What was replaced is a share of the first, which has gone with it.
    ledger.settle_but(2);
    set.write().clear();
    map.buffer().collect();
    ledger.settle();
    assert_eq!(map.pin().get(&7), None);
    assert!(map.insert(ledger.name(7), 72).is_none());
    assert_eq!(map.pin().get(&7), Some(&72));
    drop((map, set));
    ledger.settle();
}

/// Gives whatever hash it is told to, all of one tag and so of one stripe.
#[derive(Clone, Default)]
struct Turning(Arc<AtomicU64>);

impl BuildHasher for Turning {
    type Hasher = Turning;

    fn build_hasher(&self) -> Turning {
        self.clone()
    }
}

impl Hasher for Turning {
    fn write(&mut self, _: &[u8]) {}

    fn finish(&self) -> u64 {
        7 << 52 | self.0.load(Ordering::Relaxed)
    }
}

/// What dies is forgotten under its first's hash: a key that lies about its own is for the index to sort out.
#[test]
fn an_entry_of_another_hash_has_no_successor() {
    let (ledger, hasher, index) = (Arc::new(Ledger::default()), Turning::default(), Asked::default());
    let writes = Arc::clone(&index.writes);
    let buffer = SharedBuffer::for_indexes(&one_line(), 1).unwrap();
    let map = Map::sharing(index, &buffer, hasher.clone()).unwrap();
    map.insert(ledger.name(7), 70);
    assert_eq!(map.pin().get(&7), Some(&70));
    assert_eq!(map.insert(ledger.name(7), 71).as_deref(), Some(&70));
    hasher.0.store(1, Ordering::Relaxed);
    // The table is cleared of a tag.
    assert_eq!(map.pin().get(&7), Some(&71));
    assert_eq!(writes.load(Ordering::Relaxed), 1);
    assert!(map.insert(ledger.name(7), 72).is_some());
    assert_eq!((map.pin().get(&7), writes.load(Ordering::Relaxed)), (Some(&72), 2));

    let (hasher, index) = (Turning::default(), Asked::default());
    let writes = Arc::clone(&index.writes);
    let mut owned = OwnedMap::with_index_and_hasher(index, &one_line(), hasher.clone()).unwrap();
    owned.insert(ledger.name(7), 70);
    assert_eq!(owned.get(&7), Some(&70));
    assert_eq!(owned.insert(ledger.name(7), 71).as_deref(), Some(&70));
    hasher.0.store(1, Ordering::Relaxed);
    assert_eq!((owned.get(&7), writes.load(Ordering::Relaxed)), (Some(&71), 1));
    assert!(owned.insert(ledger.name(7), 72).is_some());
    assert_eq!((owned.get(&7), writes.load(Ordering::Relaxed)), (Some(&72), 2));
    drop((map, owned));
    ledger.settle();
}

/// An index that does not say that it takes part is told of each write.
#[test]
fn an_index_has_to_take_part() {
    let map = Map::with_index(RwLock::new(HashSet::new()), &one_line()).unwrap();
    let mut owned = OwnedMap::with_index(HashSet::new(), &one_line()).unwrap();
    for value in 0..20u64 {
        assert_eq!(map.insert(7u64, value).as_deref().copied(), value.checked_sub(1));
        assert_eq!(map.pin().get(&7), Some(&value));
        assert_eq!(owned.insert(7u64, value).as_deref().copied(), value.checked_sub(1));
        assert_eq!(owned.get(&7), Some(&value));
    }
    let counts = [map.buffer().counts(), owned.counts()];
    assert!(counts.iter().all(|counts| counts.successions == 0 && counts.cleared > 10), "{counts:?}");
}

/// Their destructors would run late.
#[test]
fn values_with_a_destructor_are_not_kept() {
    let ledger = Arc::new(Ledger::default());
    let names = Arc::new(Ledger::default());
    let map = Map::with_index(Asked::default(), &one_line()).unwrap();
    let mut reader = map.pin();
    reader.insert(names.name(7), ledger.record(0));
    for number in 1..20 {
        assert_eq!(reader.get(&7).unwrap().number(), number - 1);
        reader.refresh();
        assert_eq!(reader.insert(names.name(7), ledger.record(number)).unwrap().number(), number - 1);
    }
    assert_eq!(told(&mut reader, &map).successions, 0);
    drop(reader);
    map.buffer().collect();
    ledger.settle_but(1);
    drop(map);
    ledger.settle();
    names.settle();
}

/// What was found stays while it is pinned, whatever becomes of its succession.
#[test]
fn what_was_found_outlives_its_succession() {
    let ledger = Arc::new(Ledger::default());
    let map = Map::with_index(Asked::default(), &one_line()).unwrap();
    let onlooker = map.pin();
    map.insert(ledger.name(7), 0);
    assert_eq!(map.pin().get(&7), Some(&0));
    let mut kept = Vec::new();
    let look = |kept: &mut Vec<_>, value| {
        onlooker.scan(Bound::<&u64>::Unbounded, Bound::Unbounded, |key: &Name, found: &u64| {
            kept.push((key, found, value));
            ControlFlow::Continue(())
        });
    };
    for value in 1..50 {
        match value % 10 {
            0 => drop(map.remove(&7).unwrap()),
            1 if value > 1 => assert!(map.insert(ledger.name(7), value).is_none()),
            5 => {
                map.pin().forget(&7);
                drop(map.insert(ledger.name(7), value).unwrap());
            }
            _ => drop(map.insert(ledger.name(7), value).unwrap()),
        }
        assert_eq!(map.pin().get(&7), (value % 10 != 0).then_some(&value));
        look(&mut kept, value);
        map.buffer().collect();
    }
    assert_eq!(kept.len(), 45);
    for (key, found, value) in kept {
        // Compared, and so looked at.
        assert!(*key == ledger.name(7) && *found == value);
    }
    assert!(map.buffer().counts().successions > 30, "{:?}", map.buffer().counts());
    drop(onlooker);
    drop(map);
    ledger.settle();
}

/// Threads write the same few keys, hot ones and others, and look them up: each sees values grow.
#[test]
fn many_threads_see_each_key_grow() {
    const KEYS: u64 = 24;
    fn grow(config: &Config) {
        let ledger = Arc::new(Ledger::default());
        let map = Map::with_index(Asked::default(), config).unwrap();
        map.buffer().monitor(false);
        (0..KEYS).for_each(|key| assert!(map.insert(ledger.name(key), 0).is_none()));
        let clock = AtomicU64::new(1);
        let floors: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
        thread::scope(|scope| {
            for seed in 1..=3 {
                let (map, ledger, clock, floors) = (&map, &ledger, &clock, &floors);
                scope.spawn(move || {
                    let mut random = Random(seed);
                    let mut reader = map.pin();
                    for step in 0..steps() {
                        let key = random.key(KEYS as usize) as u64;
                        // Writers of a key take turns: a value that is written later is greater.
                        if random.below(3) == 0 && key % 3 == seed - 1 {
                            let value = clock.fetch_add(1, Ordering::SeqCst);
                            let old = *reader.insert(ledger.name(key), value).unwrap();
                            assert!(old < value && old == floors[key as usize].swap(value, Ordering::SeqCst));
                        } else {
                            let floor = floors[key as usize].load(Ordering::SeqCst);
                            let found = *reader.get(&key).unwrap();
                            assert!(found >= floor, "key {key}: {found} after {floor}");
                        }
                        if random.below(40) == 0 {
                            reader.forget(&key);
                        }
                        if step % 16 == 0 {
                            reader.refresh();
                        }
                    }
                });
            }
        });
        let counts = map.buffer().counts();
        assert!(counts.successions > 0 && counts.invalidations > counts.successions, "{counts:?}");
        drop(map);
        ledger.settle();
    }
    grow(&one_line());
    grow(&Config::with_size(1 << 12).pages(PageKind::Base));
}
