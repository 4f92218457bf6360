//! Sequences of operations against a plain map: one body, run over every configuration, both forms of the map, and two
//! indexes, on tables of one line, where everything collides, and on larger ones; with hashes of which there are only a
//! few, too.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{BuildHasher, Hasher};
use std::ops::{Bound, ControlFlow, RangeBounds};

use lookaside::index::{Discard, Find, Scan, Store};
use lookaside::{
    Admission, Config, CounterPolicy, Found, Handle, Map, MapRef, OwnedMap, PageKind, Pin, Removed, RwLock,
    SharedBuffer,
};
use proptest::prelude::*;

type Key = u16;
/// On the heap, so that a freed one is not read unnoticed under the address sanitizer.
type Value = Box<u64>;

const KEYS: Key = 60;

#[derive(Debug, Clone)]
enum Operation {
    Insert(Key),
    Replace(Key),
    Remove(Key),
    Get(Key),
    /// Looks a key up, changes it, and looks at what was found before.
    Overwrite(Key),
    GetMany(Vec<Key>),
    Range(Bound<Key>, Bound<Key>, usize),
    Hottest(usize),
    Resize(usize),
    Refresh,
    Monitor(bool),
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let key = 0..KEYS;
    let bound = prop_oneof![
        (0..KEYS).prop_map(Bound::Included),
        (0..KEYS).prop_map(Bound::Excluded),
        Just(Bound::Unbounded)
    ];
    let operation = prop_oneof![
        6 => key.clone().prop_map(Operation::Insert),
        2 => key.clone().prop_map(Operation::Replace),
        3 => key.clone().prop_map(Operation::Remove),
        9 => key.clone().prop_map(Operation::Get),
        2 => key.clone().prop_map(Operation::Overwrite),
        3 => prop::collection::vec(key, 0..40).prop_map(Operation::GetMany),
        1 => (bound.clone(), bound, 0..20usize).prop_map(|(from, to, most)| Operation::Range(from, to, most)),
        1 => (0..20usize).prop_map(Operation::Hottest),
        1 => prop_oneof![Just(0), Just(64), Just(128), 0..5000usize].prop_map(Operation::Resize),
        1 => Just(Operation::Refresh),
        1 => any::<bool>().prop_map(Operation::Monitor),
    ];
    prop::collection::vec(operation, 0..300)
}

/// Few distinct hashes, spread over all bits; or many.
#[derive(Debug, Clone, Default)]
struct Narrow {
    distinct: Option<u64>,
    state: u64,
}

impl BuildHasher for Narrow {
    type Hasher = Narrow;

    fn build_hasher(&self) -> Narrow {
        self.clone()
    }
}

impl Hasher for Narrow {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.state = self.state.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn finish(&self) -> u64 {
        let state = self.distinct.map_or(self.state, |distinct| self.state % distinct);
        let mixed = (state + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }
}

/// The standard library's, with an order made for the occasion.
#[derive(Debug, Default)]
struct Unordered(HashSet<Handle<Key, Value>>);

impl Find<Key, Key, Value> for Unordered {
    fn find<'p>(&self, key: &Key, pin: &Pin<'p>) -> Option<Found<'p, Key, Value>> {
        self.0.find(key, pin)
    }
}

impl Store<Key, Value> for Unordered {
    fn replace(&mut self, handle: Handle<Key, Value>) -> Option<Handle<Key, Value>> {
        Store::replace(&mut self.0, handle)
    }

    fn len(&self) -> usize {
        Store::len(&self.0)
    }
}

impl Discard<Key, Key, Value> for Unordered {
    fn remove(&mut self, key: &Key) -> Option<Handle<Key, Value>> {
        Discard::remove(&mut self.0, key)
    }
}

impl Scan<Key, Key, Value> for Unordered {
    fn scan<'p>(
        &self,
        from: Bound<&Key>,
        to: Bound<&Key>,
        pin: &Pin<'p>,
        visit: &mut dyn FnMut(Found<'p, Key, Value>) -> ControlFlow<()>,
    ) {
        let mut found: Vec<_> = self.0.iter().filter_map(|handle| handle.found(pin)).collect();
        found.retain(|found| (from, to).contains(found.key()));
        found.sort_by_key(|found| *found.key());
        let _ = found.into_iter().try_for_each(visit);
    }
}

/// Both forms of the map, as the test sees them.
trait Face {
    fn insert(&mut self, key: Key, value: Value) -> Option<Removed<Key, Value>>;
    /// Whether there is such a key; what was replaced, or what was not put in.
    fn replace(&mut self, key: Key, value: Value) -> Result<Removed<Key, Value>, (Key, Value)>;
    fn remove(&mut self, key: Key) -> Option<Removed<Key, Value>>;
    fn get(&self, key: Key) -> Option<&Value>;
    /// Inserts, and says what was found before, as it looks afterwards.
    fn overwrite(&mut self, key: Key, value: Value) -> Option<Value>;
    fn get_many(&self, keys: &[&Key]) -> Vec<Option<&Value>>;
    fn range(&self, from: Bound<Key>, to: Bound<Key>, most: usize) -> Vec<(Key, u64)>;
    fn hottest(&self, most: usize) -> Vec<(Key, u64, u8)>;
    fn resize(&mut self, size: usize) -> bool;
    fn refresh(&mut self);
    fn monitor(&mut self, watching: bool);
    fn len(&self) -> usize;
    /// Lookups that the counts know of, and writes.
    fn counted(&self) -> (u64, u64);
}

type SharedMap<I> = Map<Key, Value, RwLock<I>, Narrow>;

/// A shared map, through one long-lived reader.
struct Shared<'m, I> {
    map: &'m SharedMap<I>,
    reader: MapRef<'m, Key, Value, RwLock<I>, Narrow>,
}

/// Shows at most so many.
fn first(most: usize, shown: &mut Vec<(Key, u64)>) -> impl FnMut(&Key, &Value) -> ControlFlow<()> {
    move |key, value| {
        if shown.len() == most {
            return ControlFlow::Break(());
        }
        shown.push((*key, **value));
        ControlFlow::Continue(())
    }
}

fn copied(hottest: Vec<(&Key, &Value, u8)>) -> Vec<(Key, u64, u8)> {
    hottest.into_iter().map(|(&key, value, counter)| (key, **value, counter)).collect()
}

impl<I: Index> Face for Shared<'_, I> {
    fn insert(&mut self, key: Key, value: Value) -> Option<Removed<Key, Value>> {
        self.reader.insert(key, value)
    }

    fn replace(&mut self, key: Key, value: Value) -> Result<Removed<Key, Value>, (Key, Value)> {
        self.reader.replace(key, value)
    }

    fn remove(&mut self, key: Key) -> Option<Removed<Key, Value>> {
        self.reader.remove(&key)
    }

    fn get(&self, key: Key) -> Option<&Value> {
        self.reader.get(&key)
    }

    fn overwrite(&mut self, key: Key, value: Value) -> Option<Value> {
        let found = self.reader.get_key_value(&key);
        drop(self.reader.insert(key, value));
        found.map(|(of, found)| {
            assert_eq!(*of, key);
            found.clone()
        })
    }

    fn get_many(&self, keys: &[&Key]) -> Vec<Option<&Value>> {
        let mut values = vec![None; keys.len()];
        self.reader.get_many(keys, &mut values);
        values
    }

    fn range(&self, from: Bound<Key>, to: Bound<Key>, most: usize) -> Vec<(Key, u64)> {
        let mut shown = Vec::new();
        self.reader.scan(from.as_ref(), to.as_ref(), first(most, &mut shown));
        let ranged = self.reader.range::<Key, _>((from.as_ref(), to.as_ref())).take(most);
        assert_eq!(ranged.map(|(key, value)| (*key, **value)).collect::<Vec<_>>(), shown);
        shown
    }

    fn hottest(&self, most: usize) -> Vec<(Key, u64, u8)> {
        copied(self.reader.hottest(most))
    }

    fn resize(&mut self, size: usize) -> bool {
        self.map.buffer().resize(size).is_ok()
    }

    fn refresh(&mut self) {
        self.reader.refresh();
    }

    fn monitor(&mut self, watching: bool) {
        self.map.buffer().monitor(watching);
    }

    fn len(&self) -> usize {
        self.map.len()
    }

    fn counted(&self) -> (u64, u64) {
        let counts = self.map.buffer().counts();
        (counts.hits + counts.misses + counts.bypassed, counts.invalidations)
    }
}

impl<I: Index> Face for OwnedMap<Key, Value, I, Narrow> {
    fn insert(&mut self, key: Key, value: Value) -> Option<Removed<Key, Value>> {
        self.insert(key, value)
    }

    fn replace(&mut self, key: Key, value: Value) -> Result<Removed<Key, Value>, (Key, Value)> {
        self.replace(key, value)
    }

    fn remove(&mut self, key: Key) -> Option<Removed<Key, Value>> {
        self.remove(&key)
    }

    fn get(&self, key: Key) -> Option<&Value> {
        self.get(&key)
    }

    fn overwrite(&mut self, key: Key, value: Value) -> Option<Value> {
        let found = self.get_key_value(&key).map(|(of, found)| {
            assert_eq!(*of, key);
            found.clone()
        });
        drop(self.insert(key, value));
        found
    }

    fn get_many(&self, keys: &[&Key]) -> Vec<Option<&Value>> {
        let mut values = vec![None; keys.len()];
        self.get_many(keys, &mut values);
        values
    }

    fn range(&self, from: Bound<Key>, to: Bound<Key>, most: usize) -> Vec<(Key, u64)> {
        let mut shown = Vec::new();
        self.scan(from.as_ref(), to.as_ref(), first(most, &mut shown));
        let ranged = self.range::<Key, _>((from.as_ref(), to.as_ref())).take(most);
        assert_eq!(ranged.map(|(key, value)| (*key, **value)).collect::<Vec<_>>(), shown);
        shown
    }

    fn hottest(&self, most: usize) -> Vec<(Key, u64, u8)> {
        copied(self.hottest(most))
    }

    fn resize(&mut self, size: usize) -> bool {
        self.resize(size).is_ok()
    }

    fn refresh(&mut self) {}

    fn monitor(&mut self, watching: bool) {
        self.monitor(watching);
    }

    fn len(&self) -> usize {
        self.len()
    }

    fn counted(&self) -> (u64, u64) {
        let counts = self.counts();
        (counts.hits + counts.misses + counts.bypassed, counts.invalidations)
    }
}

/// Empty, where the standard library would not have it said.
fn is_empty_range(from: Bound<Key>, to: Bound<Key>) -> bool {
    let first = match from {
        Bound::Included(from) => u32::from(from),
        Bound::Excluded(from) => u32::from(from) + 1,
        Bound::Unbounded => 0,
    };
    match to {
        Bound::Included(to) => u32::from(to) < first,
        Bound::Excluded(to) => u32::from(to) <= first,
        Bound::Unbounded => false,
    }
}

/// Applies the operations to a map and to a plain one, and compares every answer.
fn check(face: &mut impl Face, smallest: usize, operations: &[Operation]) -> Result<(), TestCaseError> {
    let mut model = BTreeMap::<Key, u64>::new();
    // What was taken out, and what it must still be in the end.
    let mut removed: Vec<(Removed<Key, Value>, Key, u64)> = Vec::new();
    let (mut lookups, mut writes) = (0, 0);
    for (now, operation) in operations.iter().enumerate() {
        let now = now as u64;
        match operation {
            &Operation::Insert(key) => {
                let (old, expected) = (face.insert(key, Box::new(now)), model.insert(key, now));
                prop_assert_eq!(old.as_deref().map(|value| **value), expected);
                removed.extend(old.zip(expected).map(|(old, value)| (old, key, value)));
                writes += 1;
            }
            &Operation::Replace(key) => match face.replace(key, Box::new(now)) {
                Ok(old) => {
                    let expected = model.insert(key, now);
                    prop_assert_eq!(Some(**old), expected);
                    removed.push((old, key, expected.unwrap()));
                }
                Err((refused, value)) => {
                    prop_assert_eq!((refused, *value), (key, now));
                    prop_assert!(!model.contains_key(&key));
                }
            },
            &Operation::Remove(key) => {
                let (old, expected) = (face.remove(key), model.remove(&key));
                prop_assert_eq!(old.as_deref().map(|value| **value), expected);
                removed.extend(old.zip(expected).map(|(old, value)| (old, key, value)));
                writes += 1;
            }
            &Operation::Get(key) => {
                prop_assert_eq!(face.get(key).map(|value| **value), model.get(&key).copied());
                lookups += 1;
            }
            &Operation::Overwrite(key) => {
                prop_assert_eq!(
                    face.overwrite(key, Box::new(now)).map(|value| *value),
                    model.insert(key, now)
                );
                (lookups, writes) = (lookups + 1, writes + 1);
            }
            Operation::GetMany(keys) => {
                let values: Vec<_> = face
                    .get_many(&keys.iter().collect::<Vec<_>>())
                    .into_iter()
                    .map(|value| value.map(|value| **value))
                    .collect();
                prop_assert_eq!(values, keys.iter().map(|key| model.get(key).copied()).collect::<Vec<_>>());
                lookups += keys.len() as u64;
            }
            &Operation::Range(from, to, most) => {
                let expected: Vec<_> = if is_empty_range(from, to) {
                    Vec::new()
                } else {
                    model
                        .iter()
                        .filter(|(key, _)| (from, to).contains(*key))
                        .map(|(&key, &value)| (key, value))
                        .take(most)
                        .collect()
                };
                prop_assert_eq!(face.range(from, to, most), expected);
            }
            &Operation::Hottest(most) => {
                let hottest = face.hottest(most);
                prop_assert!(hottest.len() <= most && hottest.is_sorted_by(|a, b| a.2 >= b.2));
                for (key, value, _) in hottest {
                    prop_assert_eq!(model.get(&key), Some(&value), "in the table and not in the map");
                }
            }
            &Operation::Resize(size) => prop_assert_eq!(face.resize(size), size >= smallest),
            Operation::Refresh => face.refresh(),
            &Operation::Monitor(watching) => face.monitor(watching),
        }
        prop_assert_eq!(face.len(), model.len());
    }
    for key in 0..KEYS {
        prop_assert_eq!(face.get(key).map(|value| **value), model.get(&key).copied());
    }
    for (removed, key, value) in &removed {
        prop_assert_eq!((*removed.key(), ***removed), (*key, *value));
    }
    face.refresh();
    let counted = face.counted();
    prop_assert!(counted.0 >= lookups + u64::from(KEYS) && counted.1 >= writes, "{:?}", counted);
    Ok(())
}

/// An index that both forms take.
trait Index:
    Default + Find<Key, Key, Value> + Store<Key, Value> + Discard<Key, Key, Value> + Scan<Key, Key, Value>
{
}

impl Index for BTreeSet<Handle<Key, Value>> {}
impl Index for Unordered {}

/// A line.
const LINE: usize = 64;

/// Every form over every index, behind tables made so.
fn check_all(
    config: &Config,
    smallest: usize,
    hasher: &Narrow,
    operations: &[Operation],
) -> Result<(), TestCaseError> {
    fn forms<I: Index>(
        config: &Config,
        smallest: usize,
        hasher: &Narrow,
        operations: &[Operation],
    ) -> Result<(), TestCaseError> {
        let buffer = SharedBuffer::for_indexes(config, 2).unwrap();
        let map = Map::sharing(RwLock::new(I::default()), &buffer, hasher.clone()).unwrap();
        check(&mut Shared { map: &map, reader: map.pin() }, smallest, operations)?;
        // Again, behind the same table, as another index: none of the first one's entries may show.
        let other = Map::sharing(RwLock::new(I::default()), &buffer, hasher.clone()).unwrap();
        check(&mut Shared { map: &other, reader: other.pin() }, smallest, operations)?;
        let mut owned = OwnedMap::with_index_and_hasher(I::default(), config, hasher.clone()).unwrap();
        check(&mut owned, smallest, operations)
    }
    forms::<BTreeSet<Handle<Key, Value>>>(config, smallest, hasher, operations)?;
    forms::<Unordered>(config, smallest, hasher, operations)
}

/// In small pages: huge ones would be cleared for a line.
fn paper(size: usize) -> Config {
    Config::paper(size).pages(PageKind::Base)
}

fn standard(size: usize) -> Config {
    Config::with_size(size).pages(PageKind::Base)
}

fn sizes() -> impl Strategy<Value = usize> {
    prop_oneof![Just(2 * LINE), Just(1 << 10), Just(1 << 14)]
}

fn hashers() -> impl Strategy<Value = Narrow> {
    prop_oneof![Just(None), Just(Some(1)), Just(Some(5))].prop_map(|distinct| Narrow { distinct, state: 0 })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn the_papers_tables(size in sizes(), hasher in hashers(), operations in operations()) {
        check_all(&paper(size), LINE, &hasher, &operations)?;
        let admission = Admission::Logged { threshold: 0, sampling: 1.0 };
        let eager = paper(LINE).admission(admission);
        check_all(&eager, LINE, &hasher, &operations)?;
    }

    #[test]
    fn the_default_under_every_counter_policy(size in sizes(), hasher in hashers(), operations in operations()) {
        for counters in [CounterPolicy::EveryHit, CounterPolicy::Falling, CounterPolicy::Never] {
            check_all(&standard(size / 2).counters(counters), LINE, &hasher, &operations)?;
        }
        let sampled = standard(size).admission(Admission::Sampled { sampling: 0.3 });
        check_all(&sampled, LINE, &hasher, &operations)?;
    }
}

/// Fewer under the sanitizers, which set this.
fn cases() -> u32 {
    if std::env::var_os("LOOKASIDE_STRESS_CHANGES").is_some() { 32 } else { 192 }
}

/// The paper's counters are those of their own slots, and of every hit.
#[test]
fn by_the_papers_policy_each_hit_counts_at_once() {
    let mut owned = OwnedMap::with_index(BTreeSet::new(), &Config::paper(64 * 64)).unwrap();
    owned.insert(7u16, Value::from(7));
    owned.monitor(false);
    assert!(owned.get(&7).is_some(), "from the index");
    let counter = |owned: &OwnedMap<_, _, _>| owned.hottest(1)[0].2;
    let newcomer = counter(&owned);
    for hits in 1..=20 {
        assert!(owned.get(&7).is_some());
        assert_eq!(counter(&owned), newcomer + hits);
    }
}

#[test]
fn the_hottest_are_those_that_are_asked_for_most() {
    let config = standard(1 << 16).counters(CounterPolicy::EveryHit);
    let map = Map::with_index(RwLock::new(BTreeSet::new()), &config).unwrap();
    map.buffer().monitor(false);
    let reader = map.pin();
    let mut owned = OwnedMap::with_index(BTreeSet::new(), &config).unwrap();
    owned.monitor(false);
    for key in 0..100_u16 {
        reader.insert(key, Box::new(u64::from(key)));
        owned.insert(key, Box::new(u64::from(key)));
    }
    for key in 0..100 {
        for _ in 0..key {
            assert!(reader.get(&key).is_some() && owned.get(&key).is_some());
        }
    }
    for mut hottest in [copied(reader.hottest(10)), copied(owned.hottest(10))] {
        assert!(
            hottest.iter().all(|&(key, value, counter)| value == u64::from(key) && counter > 80),
            "{hottest:?}"
        );
        hottest.sort_unstable();
        assert!(hottest.iter().map(|&(key, ..)| key).eq(90..100), "{hottest:?}");
    }
}
