//! Indexes, keys and values that do what they should not, from safe code: answers may be wrong then; what is answered is
//! alive all the same, nothing is freed twice or never, and the map can be used afterwards.
//!
//! Worth most under the address sanitizer.

use std::borrow::Borrow;
use std::cell::Cell;
use std::cmp::Ordering as Order;
use std::collections::{BTreeSet, HashSet};
use std::hash::{Hash, Hasher};
use std::ops::{Bound, ControlFlow};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once, OnceLock, Weak};
use std::time::{Duration, Instant};

use lookaside::index::{Discard, Find, Scan, SharedDiscard, SharedStore, Store};
use lookaside::{
    Config, Found, Handle, Map, OwnedMap, PageKind, Parameters, Pin, RandomState, Removed, RwLock,
    SharedBuffer, StltConfig, Table,
};

fn one_line() -> Config {
    Config { pages: PageKind::Base, ..Config::with_size(64) }
}

fn one_set() -> StltConfig {
    StltConfig { pages: PageKind::Base, ..StltConfig::with_size(64) }
}

/// Records made and dropped.
#[derive(Debug, Default)]
struct Ledger {
    made: AtomicUsize,
    dropped: AtomicUsize,
}

impl Ledger {
    fn record(self: &Arc<Self>, number: u64) -> Record {
        self.made.fetch_add(1, Ordering::SeqCst);
        Record { number: Box::new(AtomicU64::new(number)), ledger: self.clone(), panics: false }
    }

    /// Waits until all records are gone: none is left, and none was dropped twice.
    fn settle(&self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        let counts = || (self.dropped.load(Ordering::SeqCst), self.made.load(Ordering::SeqCst));
        while counts().0 < counts().1 {
            assert!(Instant::now() < deadline, "{} of {} dropped", counts().0, counts().1);
            crossbeam_epoch::pin().flush();
        }
        assert_eq!(counts().0, counts().1, "dropped twice");
    }
}

/// A value on the heap that counts its end, and in which it shows that it has ended.
#[derive(Debug)]
struct Record {
    number: Box<AtomicU64>,
    ledger: Arc<Ledger>,
    panics: bool,
}

const GONE: u64 = u64::MAX;

impl Record {
    fn number(&self) -> u64 {
        let number = self.number.load(Ordering::SeqCst);
        assert_ne!(number, GONE, "a value that has been dropped");
        number
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        assert_ne!(self.number.swap(GONE, Ordering::SeqCst), GONE);
        self.ledger.dropped.fetch_add(1, Ordering::SeqCst);
        assert!(!self.panics, "on purpose");
        fuse();
    }
}

/// Xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }
}

thread_local! {
    static LUCK: Cell<u64> = const { Cell::new(0x1234_5678_9abc) };
    static FUSE: Cell<Option<u64>> = const { Cell::new(None) };
}

/// True once in so many times.
fn once_in(times: u64) -> bool {
    LUCK.with(|luck| {
        let mut random = Random(luck.get());
        let once = random.below(times as usize) == 0;
        luck.set(random.0);
        once
    })
}

/// Counts down, and panics when it gets to zero.
fn fuse() {
    // Threads that end drop values after their locals.
    let burnt = FUSE.try_with(|fuse| {
        let left = fuse.get();
        fuse.set(left.and_then(|left| left.checked_sub(1)));
        left == Some(0)
    });
    assert!(!burnt.unwrap_or(false), "on purpose");
}

/// Calls `what` with a fuse of 0, 1, 2 and so on steps, until it comes to its end. How often it did not.
fn burn(mut what: impl FnMut()) -> u64 {
    quiet();
    for steps in 0.. {
        FUSE.set(Some(steps));
        let outcome = catch_unwind(AssertUnwindSafe(&mut what));
        let left = FUSE.take();
        if outcome.is_ok() && left.is_some() {
            return steps;
        }
        assert!(steps < 10_000);
    }
    unreachable!()
}

/// Panics on purpose are not shown.
fn quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !panic.payload_as_str().is_some_and(|message| message.contains("on purpose")) {
                usual(panic);
            }
        }));
    });
}

/// The handles of all maps, in one heap that their indexes take from and throw at as they like.
#[derive(Default)]
struct Heap {
    handles: Vec<Handle<u64, Record>>,
    random: Option<Random>,
}

#[derive(Clone, Default)]
struct Liar(Arc<Mutex<Heap>>);

impl Liar {
    fn seeded(seed: u64) -> Liar {
        let heap = Heap { handles: Vec::new(), random: Some(Random(seed)) };
        Liar(Arc::new(Mutex::new(heap)))
    }

    fn any(&self) -> Option<Handle<u64, Record>> {
        let heap = &mut *self.0.lock().unwrap();
        let random = heap.random.as_mut().unwrap();
        if heap.handles.is_empty() || random.below(8) == 0 {
            return None;
        }
        let which = random.below(heap.handles.len());
        match random.below(3) {
            0 => Some(heap.handles.swap_remove(which)),
            _ => Some(heap.handles[which].clone()),
        }
    }

    fn put(&self, handle: Handle<u64, Record>) {
        let heap = &mut *self.0.lock().unwrap();
        let random = heap.random.as_mut().unwrap();
        // None, one or several; and the heap does not grow for ever.
        let copies = [0, 1, 1, 1, 2][random.below(5)];
        (0..copies).for_each(|_| heap.handles.push(handle.clone()));
        while heap.handles.len() > 50 {
            let which = random.below(heap.handles.len());
            heap.handles.swap_remove(which);
        }
    }
}

impl Find<u64, u64, Record> for Liar {
    fn find<'p>(&self, key: &u64, pin: &Pin<'p>) -> Option<Found<'p, u64, Record>> {
        for _ in 0..4 {
            // The right one sometimes, then another's, of this map or of a different one; which may die here.
            let right = || {
                let heap = self.0.lock().unwrap();
                heap.handles.iter().find(|handle| handle.key() == key).cloned()
            };
            let handle = if once_in(2) { right() } else { self.any() };
            if let Some(found) = handle.and_then(|handle| handle.found(pin)) {
                assert!(found.value().number() < GONE);
                return Some(found);
            }
        }
        None
    }

    fn find_many<'p>(&self, keys: &[&u64], pin: &Pin<'p>, found: &mut [Option<Found<'p, u64, Record>>]) {
        for key in keys {
            let found_one = self.find(key, pin);
            if let Some(place) = found.get_mut(usize::from(once_in(3))) {
                *place = found_one;
            }
        }
    }
}

impl SharedStore<u64, Record> for Liar {
    fn replace(&self, handle: Handle<u64, Record>) -> Option<Handle<u64, Record>> {
        let answer = if once_in(4) { Some(handle.clone()) } else { self.any() };
        self.put(handle);
        answer
    }

    fn len(&self) -> usize {
        once_in(2).into()
    }
}

impl SharedDiscard<u64, u64, Record> for Liar {
    fn remove(&self, _: &u64) -> Option<Handle<u64, Record>> {
        self.any()
    }
}

impl Store<u64, Record> for Liar {
    fn replace(&mut self, handle: Handle<u64, Record>) -> Option<Handle<u64, Record>> {
        SharedStore::replace(self, handle)
    }

    fn len(&self) -> usize {
        SharedStore::len(self)
    }
}

impl Discard<u64, u64, Record> for Liar {
    fn remove(&mut self, _: &u64) -> Option<Handle<u64, Record>> {
        self.any()
    }
}

impl Scan<u64, u64, Record> for Liar {
    fn scan<'p>(
        &self,
        _: Bound<&u64>,
        _: Bound<&u64>,
        pin: &Pin<'p>,
        visit: &mut dyn FnMut(Found<'p, u64, Record>) -> ControlFlow<()>,
    ) {
        while let Some(handle) = self.any() {
            if handle.found(pin).is_some_and(|found| visit(found).is_break()) && once_in(2) {
                return;
            }
        }
    }
}

/// A thread at a shared map whose index lies.
fn use_shared<T: Table>(
    map: &Map<u64, Record, Liar, RandomState, T>,
    ledger: &Arc<Ledger>,
    seed: u64,
    steps: usize,
) {
    let mut random = Random(seed);
    let mut reader = map.pin();
    let mut removed = Vec::new();
    for _ in 0..steps / 10 {
        let mut kept: Vec<&Record> = Vec::new();
        for _ in 0..10 {
            let key = random.below(20) as u64;
            match random.below(8) {
                0 | 1 => removed.extend(reader.insert(key, ledger.record(key))),
                2 => removed.extend(reader.remove(&key)),
                3 => removed.extend(reader.replace(key, ledger.record(key)).ok()),
                4 => {
                    let keys: Vec<u64> = (0..random.below(40) as u64).map(|key| key % 20).collect();
                    let mut values = vec![None; keys.len()];
                    reader.get_many(&keys.iter().collect::<Vec<_>>(), &mut values);
                    kept.extend(values.into_iter().flatten());
                }
                5 => reader.range(Bound::Unbounded, Bound::Unbounded, |_, value| {
                    kept.push(value);
                    ControlFlow::Break(())
                }),
                _ => kept.extend(reader.get(&key)),
            }
            kept.iter().for_each(|record| assert!(record.number() < GONE));
        }
        removed.iter().for_each(|removed| assert!(removed.number() < GONE));
        removed.truncate(random.below(20));
        reader.refresh();
    }
}

fn use_owned<T: Table>(
    map: &mut OwnedMap<u64, Record, Liar, RandomState, T>,
    ledger: &Arc<Ledger>,
    seed: u64,
    steps: usize,
) {
    let mut random = Random(seed);
    let mut removed = Vec::new();
    for _ in 0..steps / 10 {
        let mut kept: Vec<&Record> = Vec::new();
        for _ in 0..10 {
            let keys: Vec<u64> = (0..random.below(40) as u64).map(|key| key % 20).collect();
            let mut values = vec![None; keys.len()];
            map.get_many(&keys.iter().collect::<Vec<_>>(), &mut values);
            kept.extend(values.into_iter().flatten());
            kept.extend(map.get(&(random.below(20) as u64)));
            map.range(Bound::Unbounded, Bound::Unbounded, |_, value| {
                kept.push(value);
                ControlFlow::Break(())
            });
        }
        kept.iter().for_each(|record| assert!(record.number() < GONE));
        let key = random.below(20) as u64;
        removed.extend(map.insert(key, ledger.record(key)));
        removed.extend(map.remove(&(random.below(20) as u64)));
        if random.below(10) == 0 {
            map.resize([64, 128][random.below(2)]).unwrap();
        }
        removed.iter().for_each(|removed| assert!(removed.number() < GONE));
        removed.truncate(random.below(20));
    }
}

/// Two maps behind one table, one behind another, and one of the other form, whose indexes share their handles.
fn lie<P: Parameters>(config: &P) {
    let (ledger, liar) = (Arc::new(Ledger::default()), Liar::seeded(77));
    let buffer = SharedBuffer::<P::Table>::for_indexes(config, 2).unwrap();
    let shared = || Map::sharing(liar.clone(), &buffer, RandomState::default()).unwrap();
    let maps = [shared(), shared(), Map::new(liar.clone(), config).unwrap()];
    let mut owned = OwnedMap::new(liar.clone(), config).unwrap();
    let steps = steps();
    std::thread::scope(|scope| {
        let threads: Vec<_> = maps
            .iter()
            .enumerate()
            .map(|(number, map)| {
                let ledger = &ledger;
                scope.spawn(move || {
                    LUCK.set(number as u64 + 5);
                    use_shared(map, ledger, number as u64 + 9, steps);
                })
            })
            .collect();
        use_owned(&mut owned, &ledger, 3, steps);
        for _ in 0..20 {
            buffer.resize(128).unwrap();
            buffer.resize(64).unwrap();
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    assert!(owned.counts().hits > 0 && buffer.counts().hits > 0);
    // Handles outlive their maps, and are dropped in no order.
    let last = liar.0.clone();
    drop(liar);
    drop((owned, maps, buffer));
    last.lock().unwrap().handles.iter().for_each(|handle| assert!(handle.value().number() < GONE));
    drop(last);
    ledger.settle();
}

/// Fewer under the sanitizers, which set this.
fn steps() -> usize {
    std::env::var("LOOKASIDE_STRESS_CHANGES").map_or(20_000, |changes| changes.parse().expect("a number"))
}

#[test]
fn an_index_that_drops_keeps_and_mixes_up_its_handles_and_those_of_other_maps() {
    lie(&one_line());
    lie(&Config { pages: PageKind::Base, ..Config::paper(1 << 12) });
    lie(&one_set());
}

/// An index that gives its handle up as it finds it: what is emitted then is dead already.
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
    let map = Map::new(Fleeting::default(), &one_line()).unwrap();
    let mut owned = OwnedMap::new(Fleeting::default(), &one_line()).unwrap();
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
        // It is on its way out now: first it is waited for who may emit it, then for who may have found it since.
        (0..number % 4).for_each(|_| crossbeam_epoch::pin().flush());
        let reader = map.pin();
        let found = reader.get(&1);
        late += usize::from(found.is_some());
        let others = || (0..10).for_each(|_| crossbeam_epoch::pin().flush());
        std::thread::scope(|scope| scope.spawn(others).join().unwrap());
        assert!(found.is_none_or(|found| found.number() == number));
        drop(reader);
        ledger.settle();
        assert!(map.pin().get(&1).is_none());
    }
    assert!(late > 20, "found on its way out {late} times");
    for number in 0..20 {
        assert!(map.insert(1, ledger.record(number)).is_none());
        // The entry of another key: under this one's hash, it would not be forgotten.
        assert_eq!(map.pin().get(&9).unwrap().number(), number);
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

/// A key whose hash, order and equality are not to be relied on, and panic when a fuse burns down.
#[derive(Debug)]
struct Twisted {
    key: u64,
    lies: bool,
    /// Dropped with the entry.
    _record: Option<Record>,
}

impl Twisted {
    fn sought(key: u64, lies: bool) -> Twisted {
        Twisted { key, lies, _record: None }
    }

    fn lies(&self) -> bool {
        fuse();
        self.lies && once_in(8)
    }
}

impl Hash for Twisted {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let lie = u64::from(self.lies());
        (self.key ^ lie).hash(state);
    }
}

impl PartialEq for Twisted {
    fn eq(&self, other: &Self) -> bool {
        (self.key == other.key) != self.lies()
    }
}

impl Eq for Twisted {}

impl PartialOrd for Twisted {
    fn partial_cmp(&self, other: &Self) -> Option<Order> {
        Some(self.cmp(other))
    }
}

impl Ord for Twisted {
    fn cmp(&self, other: &Self) -> Order {
        let order = self.key.cmp(&other.key);
        if self.lies() { order.reverse() } else { order }
    }
}

/// Borrowed as a number that is sometimes another.
impl Borrow<u64> for Twisted {
    fn borrow(&self) -> &u64 {
        if self.lies() { &7 } else { &self.key }
    }
}

type Tree = BTreeSet<Handle<Twisted, Record>>;
type HashTable = HashSet<Handle<Twisted, Record>>;

trait TwistedIndex:
    Default
    + Store<Twisted, Record>
    + Find<Twisted, Twisted, Record>
    + Find<u64, Twisted, Record>
    + Discard<Twisted, Twisted, Record>
    + Discard<u64, Twisted, Record>
{
}

impl TwistedIndex for Tree {}
impl TwistedIndex for HashTable {}

fn twisted(ledger: &Arc<Ledger>, key: u64, lies: bool) -> Twisted {
    Twisted { key, lies, _record: Some(ledger.record(key)) }
}

fn with_lying_keys<I: TwistedIndex, P: Parameters>(config: &P) {
    let ledger = Arc::new(Ledger::default());
    let map: Map<_, _, _, _, P::Table> = Map::new(RwLock::new(I::default()), config).unwrap();
    let mut owned: OwnedMap<_, _, _, _, P::Table> = OwnedMap::new(I::default(), config).unwrap();
    let (mut random, mut reader) = (Random(5), map.pin());
    for step in 0..steps() {
        let key = random.below(40) as u64;
        let sought = Twisted::sought(key, true);
        match random.below(6) {
            0 => drop((
                reader.insert(twisted(&ledger, key, true), ledger.record(key)),
                owned.insert(twisted(&ledger, key, true), ledger.record(key)),
            )),
            1 => drop((reader.remove(&sought), owned.remove(&sought))),
            2 => drop((reader.remove(&key), owned.remove(&key))),
            3 => {
                for value in [reader.get(&key), owned.get(&key)].into_iter().flatten() {
                    assert!(value.number() < 40);
                }
            }
            4 => drop(reader.replace(twisted(&ledger, key, true), ledger.record(key))),
            _ => {
                let (keys, mut values) = ([&sought; 20], [None; 20]);
                reader.get_many(&keys, &mut values);
                values.into_iter().flatten().for_each(|value| assert!(value.number() < 40));
                let mut values = [None; 20];
                owned.get_many(&keys, &mut values);
                values.into_iter().flatten().for_each(|value| assert!(value.number() < 40));
            }
        }
        if step % 32 == 0 {
            reader.refresh();
        }
    }
    drop(reader);
    drop((map, owned));
    ledger.settle();
}

#[test]
fn keys_whose_hash_order_equality_and_borrowing_lie() {
    with_lying_keys::<Tree, _>(&one_line());
    with_lying_keys::<HashTable, _>(&one_line());
    with_lying_keys::<HashTable, _>(&one_set());
}

/// Every call, with a panic in every call of user code that it makes; and after each, the map as it should be.
fn with_panicking_keys<I: TwistedIndex, P: Parameters>(config: &P) {
    let ledger = Arc::new(Ledger::default());
    let map: Map<_, _, _, _, P::Table> = Map::new(RwLock::new(I::default()), config).unwrap();
    let mut owned: OwnedMap<_, _, _, _, P::Table> = OwnedMap::new(I::default(), config).unwrap();
    let key = |key| twisted(&ledger, key, false);
    let sought = |key| Twisted::sought(key, false);
    for number in 0..10 {
        map.insert(key(number), ledger.record(number));
        owned.insert(key(number), ledger.record(number));
    }
    let (some, others): (Vec<_>, Vec<_>) = ((0..20).map(sought).collect(), (0..10).map(sought).collect());
    let (some, others): (Vec<_>, Vec<_>) = (some.iter().collect(), others.iter().collect());
    let mut panics = [0; 11];
    for round in 0..3 {
        panics[0] += burn(|| assert_eq!(map.pin().get(&sought(3)).unwrap().number(), 3));
        panics[1] += burn(|| assert_eq!(owned.get(&sought(3)).unwrap().number(), 3));
        panics[2] += burn(|| {
            let (reader, mut values) = (map.pin(), [None; 20]);
            reader.get_many(&some, &mut values);
            assert_eq!(values.into_iter().flatten().count(), 10);
        });
        panics[3] += burn(|| {
            let mut values = [None; 20];
            owned.get_many(&some, &mut values);
            assert_eq!(values.into_iter().flatten().count(), 10);
        });
        panics[4] += burn(|| drop(map.insert(key(4), ledger.record(4))));
        panics[5] += burn(|| drop(owned.insert(key(4), ledger.record(4))));
        panics[6] += burn(|| drop(map.pin().replace(key(5), ledger.record(5)).unwrap()));
        panics[7] += burn(|| drop(map.remove(&sought(6))));
        panics[8] += burn(|| drop(owned.remove(&sought(6))));
        panics[9] += burn(|| assert_eq!(map.pin().get(&3).unwrap().number(), 3));
        panics[10] += burn(|| assert_eq!(owned.get(&3).unwrap().number(), 3));
        // No stripe is held, no lock poisoned, no key lost but the one removed.
        assert_eq!((map.len(), owned.len()), (9, 9), "round {round}");
        assert!(
            map.insert(key(6), ledger.record(6)).is_none()
                && owned.insert(key(6), ledger.record(6)).is_none()
        );
        let reader = map.pin();
        for key in &others {
            assert_eq!(reader.get(*key).unwrap().number(), key.key);
            assert_eq!(owned.get(*key).unwrap().number(), key.key);
        }
    }
    assert!(panics.iter().all(|&panics| panics > 0), "{panics:?}");
    drop((map, owned));
    ledger.settle();
}

#[test]
fn panics_in_hash_order_equality_and_borrowing_leave_everything_usable() {
    with_panicking_keys::<Tree, _>(&one_line());
    with_panicking_keys::<HashTable, _>(&one_line());
    with_panicking_keys::<HashTable, _>(&one_set());
}

/// Destructors run later, in the middle of other calls: their panics are nobody's there, and take no other value along.
#[test]
fn values_that_panic_when_dropped_harm_nobody() {
    quiet();
    let ledger = Arc::new(Ledger::default());
    let map = Map::new(RwLock::new(BTreeSet::new()), &one_line()).unwrap();
    let mut owned = OwnedMap::new(BTreeSet::new(), &one_line()).unwrap();
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
    let map: Arc<Ring> = Arc::new(Map::new(RwLock::new(BTreeSet::new()), &one_line()).unwrap());
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
    let mut owned = OwnedMap::new(BTreeSet::new(), &one_line()).unwrap();
    let map = Map::new(RwLock::new(BTreeSet::new()), &one_line()).unwrap();
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
    let mut map = OwnedMap::new(HashSet::new(), &one_line()).unwrap();
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
    let map = |size| {
        Map::new(Foreign(handle.clone()), &Config { pages: PageKind::Base, ..Config::with_size(size) })
    };
    let (own, other) = (map(64).unwrap(), map(64).unwrap());
    own.insert(1, 10);
    for _ in 0..3 {
        assert_eq!((own.pin().get(&1), other.pin().get(&1)), (Some(&10), None));
    }
    let owned = OwnedMap::new(Foreign(handle.clone()), &one_line()).unwrap();
    assert_eq!(owned.get(&1), None);
    // The map that it belonged to is gone: its table's place may be another's.
    drop(own);
    for _ in 0..20 {
        assert_eq!(map(64).unwrap().pin().get(&1), None);
    }
    assert_eq!(*handle.get().unwrap().value(), 10);
}
