//! Indexes that do what they should not, from safe code: answers may be wrong then; what is answered is alive all the
//! same, nothing is freed twice or never, and the map can be used afterwards.
//!
//! Worth most under the address sanitizer.

use std::borrow::Borrow;
use std::hash::Hash;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock};

use crate::ledger::{GONE, LUCK, Ledger, Name, Record, once_in, one_line, steps};
use lookaside::index::{Discard, Find, Scan, SharedDiscard, SharedStore, Store};
use lookaside::{Config, Found, Handle, Map, OwnedMap, PageKind, Pin, RandomState, SharedBuffer};
use outside::Random;

/// What the maps have.
trait Kind: 'static {
    type Key: Hash + Ord + Borrow<u64> + Send + Sync;
    type Value: Send + Sync;
    const SUCCESSION: bool;
    fn pair(ledger: &Arc<Ledger>, number: u64) -> (Self::Key, Self::Value);
    /// Fails for a value that has been dropped.
    fn look_at(value: &Self::Value);
}

/// Records as values: each write goes to the index.
struct RecordsAsValues;

impl Kind for RecordsAsValues {
    type Key = u64;
    type Value = Record;
    const SUCCESSION: bool = false;

    fn pair(ledger: &Arc<Ledger>, number: u64) -> (u64, Record) {
        (number, ledger.record(number))
    }

    fn look_at(value: &Record) {
        assert!(value.number() < GONE);
    }
}

/// Records in keys, and values without a destructor: entries are succeeded.
struct RecordsInKeys;

impl Kind for RecordsInKeys {
    type Key = Name;
    type Value = u64;
    const SUCCESSION: bool = true;

    fn pair(ledger: &Arc<Ledger>, number: u64) -> (Name, u64) {
        (ledger.name(number), number)
    }

    fn look_at(value: &u64) {
        assert!(*value < 20);
    }
}

type Stored<E> = Handle<<E as Kind>::Key, <E as Kind>::Value>;

/// The handles of all maps, in one heap that their indexes take from and throw at as they like.
struct Heap<E: Kind> {
    handles: Vec<Stored<E>>,
    random: Random,
}

struct Liar<E: Kind>(Arc<Mutex<Heap<E>>>);

impl<E: Kind> Clone for Liar<E> {
    fn clone(&self) -> Self {
        Liar(Arc::clone(&self.0))
    }
}

impl<E: Kind> Liar<E> {
    fn seeded(seed: u64) -> Liar<E> {
        let heap = Heap { handles: Vec::new(), random: Random(seed) };
        Liar(Arc::new(Mutex::new(heap)))
    }

    fn any(&self) -> Option<Stored<E>> {
        let heap = &mut *self.0.lock().unwrap();
        let random = &mut heap.random;
        if heap.handles.is_empty() || random.below(8) == 0 {
            return None;
        }
        let which = random.below(heap.handles.len());
        match random.below(3) {
            0 => Some(heap.handles.swap_remove(which)),
            _ => Some(heap.handles[which].clone()),
        }
    }

    fn put(&self, handle: Stored<E>) {
        let heap = &mut *self.0.lock().unwrap();
        let random = &mut heap.random;
        // None, one or several; and the heap does not grow for ever.
        let copies = [0, 1, 1, 1, 2][random.below(5)];
        (0..copies).for_each(|_| heap.handles.push(handle.clone()));
        while heap.handles.len() > 50 {
            let which = random.below(heap.handles.len());
            heap.handles.swap_remove(which);
        }
    }
}

impl<Q: Borrow<u64>, E: Kind> Find<Q, E::Key, E::Value> for Liar<E> {
    fn find<'p>(&self, key: &Q, pin: &Pin<'p>) -> Option<Found<'p, E::Key, E::Value>> {
        for _ in 0..4 {
            // The right one sometimes, then another's, of this map or of a different one; which may die here.
            let right = || {
                let heap = self.0.lock().unwrap();
                heap.handles.iter().find(|handle| handle.key().borrow() == key.borrow()).cloned()
            };
            let handle = if once_in(2) { right() } else { self.any() };
            if let Some(found) = handle.and_then(|handle| handle.found(pin)) {
                E::look_at(found.value());
                return Some(found);
            }
        }
        None
    }

    fn find_many<'p>(
        &self,
        keys: &[&Q],
        pin: &Pin<'p>,
        mut found: impl FnMut(usize, Option<Found<'p, E::Key, E::Value>>),
    ) {
        for key in keys {
            // Of any key's place, its own or another's, or of none.
            let place = (0..keys.len()).find(|_| once_in(3)).unwrap_or(usize::MAX);
            found(place, self.find(*key, pin));
        }
    }
}

impl<E: Kind> SharedStore<E::Key, E::Value> for Liar<E> {
    const SUCCESSION: bool = E::SUCCESSION;

    fn replace(&self, handle: Stored<E>) -> Option<Stored<E>> {
        let answer = if once_in(4) { Some(handle.clone()) } else { self.any() };
        self.put(handle);
        answer
    }

    fn len(&self) -> usize {
        once_in(2).into()
    }
}

impl<E: Kind> SharedDiscard<u64, E::Key, E::Value> for Liar<E> {
    fn remove(&self, _: &u64) -> Option<Stored<E>> {
        self.any()
    }
}

impl<E: Kind> Store<E::Key, E::Value> for Liar<E> {
    const SUCCESSION: bool = E::SUCCESSION;

    fn replace(&mut self, handle: Stored<E>) -> Option<Stored<E>> {
        SharedStore::replace(self, handle)
    }

    fn len(&self) -> usize {
        SharedStore::len(self)
    }
}

impl<E: Kind> Discard<u64, E::Key, E::Value> for Liar<E> {
    fn remove(&mut self, _: &u64) -> Option<Stored<E>> {
        self.any()
    }
}

impl<E: Kind> Scan<u64, E::Key, E::Value> for Liar<E> {
    fn scan<'p>(
        &self,
        _: Bound<&u64>,
        _: Bound<&u64>,
        pin: &Pin<'p>,
        visit: &mut dyn FnMut(Found<'p, E::Key, E::Value>) -> ControlFlow<()>,
    ) {
        while let Some(handle) = self.any() {
            if handle.found(pin).is_some_and(|found| visit(found).is_break()) && once_in(2) {
                return;
            }
        }
    }
}

/// A thread at a shared map whose index lies.
fn use_shared<E: Kind>(map: &Map<E::Key, E::Value, Liar<E>>, ledger: &Arc<Ledger>, seed: u64, steps: usize) {
    let mut random = Random(seed);
    let mut reader = map.pin();
    let mut removed = Vec::new();
    for _ in 0..steps / 10 {
        let mut kept: Vec<&E::Value> = Vec::new();
        for _ in 0..10 {
            let key = random.below(20) as u64;
            match random.below(8) {
                0 | 1 => {
                    let (key, value) = E::pair(ledger, key);
                    removed.extend(reader.insert(key, value));
                }
                2 => removed.extend(reader.remove(&key)),
                3 => {
                    let (key, value) = E::pair(ledger, key);
                    removed.extend(reader.replace(key, value).ok());
                }
                4 => {
                    let keys: Vec<u64> = (0..random.below(40) as u64).map(|key| key % 20).collect();
                    let mut values = vec![None; keys.len()];
                    reader.get_many(&keys.iter().collect::<Vec<_>>(), &mut values);
                    kept.extend(values.into_iter().flatten());
                }
                5 => reader.scan(Bound::Unbounded, Bound::Unbounded, |_, value| {
                    kept.push(value);
                    ControlFlow::Break(())
                }),
                _ => kept.extend(reader.get(&key)),
            }
            kept.iter().for_each(|value| E::look_at(value));
        }
        removed.iter().for_each(|removed| E::look_at(removed));
        removed.truncate(random.below(20));
        reader.refresh();
    }
}

fn use_owned<E: Kind>(
    map: &mut OwnedMap<E::Key, E::Value, Liar<E>>,
    ledger: &Arc<Ledger>,
    seed: u64,
    steps: usize,
) {
    let mut random = Random(seed);
    let mut removed = Vec::new();
    for _ in 0..steps / 10 {
        let mut kept: Vec<&E::Value> = Vec::new();
        for _ in 0..10 {
            let keys: Vec<u64> = (0..random.below(40) as u64).map(|key| key % 20).collect();
            let mut values = vec![None; keys.len()];
            map.get_many(&keys.iter().collect::<Vec<_>>(), &mut values);
            kept.extend(values.into_iter().flatten());
            kept.extend(map.get(&(random.below(20) as u64)));
            map.scan(Bound::Unbounded, Bound::Unbounded, |_, value| {
                kept.push(value);
                ControlFlow::Break(())
            });
        }
        kept.iter().for_each(|value| E::look_at(value));
        let key = random.below(20) as u64;
        let (key, value) = E::pair(ledger, key);
        removed.extend(map.insert(key, value));
        removed.extend(map.remove(&(random.below(20) as u64)));
        if random.below(10) == 0 {
            map.resize([64, 128][random.below(2)]).unwrap();
        }
        removed.iter().for_each(|removed| E::look_at(removed));
        removed.truncate(random.below(20));
    }
}

/// Others replace the table while the indexes lie: what the old one has of the dead is nobody's answer.
#[test]
fn an_index_that_lies_is_survived_while_its_table_is_replaced() {
    replace::<RecordsAsValues>();
    replace::<RecordsInKeys>();
}

fn replace<E: Kind>() {
    let config = Config::with_size(64).pages(PageKind::Base);
    let (ledger, liar) = (Arc::new(Ledger::default()), Liar::<E>::seeded(78));
    let map = Map::with_index(liar.clone(), &config).unwrap();
    map.buffer().monitor(false);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let users: Vec<_> = (0..2)
            .map(|number| {
                let (map, ledger, done) = (&map, &ledger, &done);
                scope.spawn(move || {
                    LUCK.set(number + 15);
                    for turn in 0.. {
                        if done.load(Ordering::Relaxed) {
                            break;
                        }
                        use_shared::<E>(map, ledger, number + 19 + turn, 1_000);
                    }
                })
            })
            .collect();
        // Nobody is waited for who has failed.
        for size in [128, 64, 256].into_iter().cycle().take(300) {
            // Each table comes into use.
            let before = map.buffer().counts().admissions;
            map.buffer().resize(size).unwrap();
            while map.buffer().counts().admissions < before + 20
                && !users.iter().any(std::thread::ScopedJoinHandle::is_finished)
            {
                std::thread::yield_now();
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    let last = liar.0.clone();
    let counts = map.buffer().counts();
    assert_eq!(counts.successions > 0, E::SUCCESSION, "{counts:?}");
    drop((liar, map));
    last.lock().unwrap().handles.iter().for_each(|handle| E::look_at(handle.value()));
    drop(last);
    ledger.settle();
}

/// Two maps behind one table, one behind another, and one of the other form, whose indexes share their handles.
fn lie<E: Kind>(config: &Config) {
    let (ledger, liar) = (Arc::new(Ledger::default()), Liar::<E>::seeded(77));
    let buffer = SharedBuffer::for_indexes(config, 2).unwrap();
    let shared = || Map::sharing(liar.clone(), &buffer, RandomState::default()).unwrap();
    let maps = [shared(), shared(), Map::with_index(liar.clone(), config).unwrap()];
    let mut owned = OwnedMap::with_index(liar.clone(), config).unwrap();
    // It would leave out tables that hit so seldom, as it may do to the third.
    buffer.monitor(false);
    owned.monitor(false);
    let steps = steps();
    // Alone at first: among the others' handles, which it does not take for its own, it may never find one that is.
    for turn in 0..1_000 {
        use_owned::<E>(&mut owned, &ledger, 4 + turn, steps / 4);
        if owned.counts().hits > 0 && (owned.counts().successions > 0 || !E::SUCCESSION) {
            break;
        }
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> = maps
            .iter()
            .enumerate()
            .map(|(number, map)| {
                let ledger = &ledger;
                scope.spawn(move || {
                    LUCK.set(number as u64 + 5);
                    use_shared::<E>(map, ledger, number as u64 + 9, steps);
                })
            })
            .collect();
        use_owned::<E>(&mut owned, &ledger, 3, steps);
        for _ in 0..20 {
            buffer.resize(128).unwrap();
            buffer.resize(64).unwrap();
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    let counts = (owned.counts(), buffer.counts());
    assert!(counts.0.hits > 0 && counts.1.hits > 0, "{counts:?}");
    let succeeded = [counts.0, counts.1].map(|counts| counts.successions > 0);
    assert_eq!(succeeded, [E::SUCCESSION; 2], "{counts:?}");
    // Handles outlive their maps, and are dropped in no order.
    let last = liar.0.clone();
    drop(liar);
    drop((owned, maps, buffer));
    last.lock().unwrap().handles.iter().for_each(|handle| E::look_at(handle.value()));
    drop(last);
    ledger.settle();
}

#[test]
fn an_index_that_drops_keeps_and_mixes_up_its_handles_and_those_of_other_maps() {
    lie::<RecordsAsValues>(&one_line());
    lie::<RecordsAsValues>(&Config::paper(1 << 12).pages(PageKind::Base));
    lie::<RecordsInKeys>(&one_line());
    lie::<RecordsInKeys>(&Config::paper(1 << 12).pages(PageKind::Base));
}

/// An index that gives its handle up as it finds it: what is admitted then is dead already.
#[derive(Default)]
struct Fleeting(Mutex<Option<Handle<u64, Record>>>);

impl Find<u64, u64, Record> for Fleeting {
    fn find<'p>(&self, _: &u64, pin: &Pin<'p>) -> Option<Found<'p, u64, Record>> {
        self.0.lock().unwrap().take()?.found(pin)
    }
}

impl SharedStore<u64, Record> for Fleeting {
    fn replace(&self, handle: Handle<u64, Record>) -> Option<Handle<u64, Record>> {
        self.0.lock().unwrap().replace(handle)
    }

    fn len(&self) -> usize {
        0
    }
}

impl Store<u64, Record> for Fleeting {
    fn replace(&mut self, handle: Handle<u64, Record>) -> Option<Handle<u64, Record>> {
        SharedStore::replace(self, handle)
    }

    fn len(&self) -> usize {
        0
    }
}

#[test]
fn what_dies_while_it_is_found_is_forgotten_before_it_is_freed() {
    let ledger = Arc::new(Ledger::default());
    let map = Map::with_index(Fleeting::default(), &one_line()).unwrap();
    let mut owned = OwnedMap::with_index(Fleeting::default(), &one_line()).unwrap();
    let mut late = 0;
    for number in 0..200 {
        assert!(map.insert(1, ledger.record(number)).is_none());
        let other = map.pin();
        let reader = map.pin();
        let found = reader.get(&1).unwrap();
        assert_eq!(found.number(), number);
        drop(reader);
        // From the table, which has it still: the answer of an index that lies, but alive.
        assert_eq!(other.get(&1).unwrap().number(), number);
        drop(other);
        // It is on its way out now: first it is waited for who may admit it, then for who may have found it since.
        if number % 2 == 0 {
            map.buffer().collect();
        }
        let reader = map.pin();
        let found = reader.get(&1);
        late += usize::from(found.is_some());
        let others = || map.buffer().collect();
        std::thread::scope(|scope| scope.spawn(others).join().unwrap());
        assert!(found.is_none_or(|found| found.number() == number));
        drop(reader);
        map.buffer().collect();
        ledger.settle();
        assert!(map.pin().get(&1).is_none());
    }
    assert!(late > 20, "found on its way out {late} times");
    for number in 0..20 {
        assert!(map.insert(1, ledger.record(number)).is_none());
        // The entry of another key: under this one's hash, it would not be forgotten.
        assert_eq!(map.pin().get(&9).unwrap().number(), number);
        map.buffer().collect();
        ledger.settle();
        assert!(map.pin().get(&9).is_none());
    }
    for number in 0..100 {
        assert!(owned.insert(1, ledger.record(number)).is_none());
        assert_eq!(owned.get(&1).unwrap().number(), number);
        assert_eq!(owned.get(&1).unwrap().number(), number);
        // The next change of all frees it.
        assert!(owned.insert(2, ledger.record(number)).is_none());
        assert_eq!(ledger.made.load(Ordering::SeqCst) - ledger.dropped.load(Ordering::SeqCst), 1);
        assert_eq!(owned.get(&2).unwrap().number(), number);
        assert!(owned.get(&1).is_none());
    }
    drop(owned);
    ledger.settle();
}

/// Has room for one entry, and lets go of it for the next one.
#[derive(Default)]
struct OnePlace(Mutex<Option<Handle<u64, u64>>>);

impl Find<u64, u64, u64> for OnePlace {
    fn find<'p>(&self, key: &u64, pin: &Pin<'p>) -> Option<Found<'p, u64, u64>> {
        self.0.lock().unwrap().as_ref().filter(|handle| handle.key() == key)?.found(pin)
    }
}

impl SharedStore<u64, u64> for OnePlace {
    fn replace(&self, handle: Handle<u64, u64>) -> Option<Handle<u64, u64>> {
        let key = *handle.key();
        self.0.lock().unwrap().replace(handle).filter(|old| *old.key() == key)
    }

    fn len(&self) -> usize {
        self.0.lock().unwrap().iter().count()
    }
}

#[test]
fn what_an_index_has_let_go_of_on_its_own_can_be_forgotten() {
    let map = Map::with_index(OnePlace::default(), &one_line()).unwrap();
    map.buffer().monitor(false);
    map.insert(1, 10);
    assert_eq!(map.pin().get(&1), Some(&10));
    assert_eq!(map.buffer().occupancy(), 1, "admitted when the reader has gone");
    let reader = map.pin();
    assert!(reader.insert(2, 20).is_none());
    assert_eq!(reader.get(&1), Some(&10), "the table has not heard of it");
    reader.forget(&1);
    assert_eq!((reader.get(&1), reader.get(&2)), (None, Some(&20)));
}

/// Handles know whose they are.
#[test]
fn a_handle_is_not_found_in_another_map() {
    struct Foreign(Arc<OnceLock<Handle<u64, u64>>>);

    impl Find<u64, u64, u64> for Foreign {
        fn find<'p>(&self, _: &u64, pin: &Pin<'p>) -> Option<Found<'p, u64, u64>> {
            self.0.get()?.found(pin)
        }
    }

    impl SharedStore<u64, u64> for Foreign {
        fn replace(&self, handle: Handle<u64, u64>) -> Option<Handle<u64, u64>> {
            self.0.set(handle).err()
        }

        fn len(&self) -> usize {
            1
        }
    }

    let handle = Arc::new(OnceLock::new());
    let map = |size| Map::with_index(Foreign(handle.clone()), &Config::with_size(size).pages(PageKind::Base));
    let (own, other) = (map(64).unwrap(), map(64).unwrap());
    own.insert(1, 10);
    for _ in 0..3 {
        assert_eq!((own.pin().get(&1), other.pin().get(&1)), (Some(&10), None));
    }
    let owned = OwnedMap::with_index(Foreign(handle.clone()), &one_line()).unwrap();
    assert_eq!(owned.get(&1), None);
    // The map that it belonged to is gone: its table's place may be another's.
    drop(own);
    for _ in 0..20 {
        assert_eq!(map(64).unwrap().pin().get(&1), None);
    }
    assert_eq!(*handle.get().unwrap().value(), 10);
}

/// An index of one place.
#[derive(Default)]
struct Narrow(Option<Handle<u64, u64>>);

impl Find<u64, u64, u64> for Narrow {
    fn find<'p>(&self, key: &u64, pin: &Pin<'p>) -> Option<Found<'p, u64, u64>> {
        self.0.as_ref().filter(|handle| handle.key() == key)?.found(pin)
    }
}

impl Store<u64, u64> for Narrow {
    fn replace(&mut self, handle: Handle<u64, u64>) -> Option<Handle<u64, u64>> {
        let old = self.0.replace(handle)?;
        // Another key's is let go of without a word.
        (self.0.as_ref().map(Handle::key) == Some(old.key())).then_some(old)
    }

    fn len(&self) -> usize {
        self.0.iter().len()
    }
}

#[test]
fn what_an_owners_index_lets_go_of_on_its_own_is_no_answer_any_more() {
    let mut map = OwnedMap::with_index(Narrow::default(), &Config::with_size(1 << 12)).unwrap();
    for key in 0..100 {
        assert!(map.insert(key, key).is_none());
        // From the index, and then from the table.
        (0..3).for_each(|_| assert_eq!(map.get(&key), Some(&key)));
        if key > 0 {
            assert_eq!(map.get(&(key - 1)), None, "it is in the index no more");
        }
    }
    assert!(map.counts().hits > 0, "{:?}", map.counts());
}
