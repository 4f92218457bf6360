//! The tree behind a lookaside table against a plain map: any sequence of operations, on both forms of the map, with
//! tables so small that the tree is asked as often as they are. Keys are prefixes of each other and full of zeros and
//! 255s.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow, RangeBounds};
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::sync::Arc;

use lookaside::index::{Discard, Find, Scan, SharedDiscard, SharedStore, Store};
use lookaside::{Config as TableConfig, Handle, Map, MapRef, OwnedMap, PageKind};
use lookaside_art::index::Encode;
use lookaside_art::{Config, OwnedTree, Reader, Tree};
use proptest::prelude::*;

type Shared<T, K> = Tree<T, Handle<K, u64>>;
type Owned<T, K> = OwnedTree<T, Handle<K, u64>>;

/// A table of two lines, of which nothing is ever found to be of no use.
fn table() -> TableConfig {
    TableConfig::with_size(128).pages(PageKind::Base)
}

fn small() -> Config {
    Config::new().with_node_bytes(1 << 24).with_leaf_bytes(1 << 24)
}

#[derive(Debug, Clone)]
enum Operation<K> {
    Insert(K),
    Replace(K),
    Remove(K),
    Get(K),
    GetMany(Vec<K>),
    Range(Bound<K>, Bound<K>, usize),
    Reorganize,
    Refresh,
}

fn operations<K: std::fmt::Debug + Clone + 'static>(
    key: impl Strategy<Value = K> + Clone + 'static,
) -> impl Strategy<Value = Vec<Operation<K>>> {
    let bound = prop_oneof![
        key.clone().prop_map(Bound::Included),
        key.clone().prop_map(Bound::Excluded),
        Just(Bound::Unbounded)
    ];
    let operation = prop_oneof![
        8 => key.clone().prop_map(Operation::Insert),
        1 => key.clone().prop_map(Operation::Replace),
        3 => key.clone().prop_map(Operation::Remove),
        6 => key.clone().prop_map(Operation::Get),
        3 => prop::collection::vec(key, 0..40).prop_map(Operation::GetMany),
        3 => (bound.clone(), bound, 0..30usize).prop_map(|(from, to, most)| Operation::Range(from, to, most)),
        1 => Just(Operation::Reorganize),
        1 => Just(Operation::Refresh),
    ];
    prop::collection::vec(operation, 0..200)
}

/// A text of few different bytes: of the ends of the alphabet, mostly.
fn bytes() -> impl Strategy<Value = Vec<u8>> + Clone {
    prop::collection::vec(prop_oneof![3 => Just(0), 3 => Just(255), 2 => Just(7), 1 => any::<u8>()], 0..6)
}

/// Numbers that lie together, and the ends of their range.
fn numbers() -> impl Strategy<Value = i64> + Clone {
    prop_oneof![6 => -40..40i64, 1 => Just(i64::MIN), 1 => Just(i64::MAX), 1 => any::<i64>()]
}

/// Three bytes each, of which few differ.
fn arrays() -> impl Strategy<Value = [u8; 3]> + Clone {
    (0..3u8, prop_oneof![Just(0), Just(255)], any::<u8>()).prop_map(|(a, b, c)| [a, b, c])
}

/// Both forms of the map, as the test sees them.
trait Face<K> {
    fn insert(&mut self, key: K, value: u64) -> Option<u64>;
    /// What was replaced, if there is such a key; for the form that has such a call.
    fn replace(&mut self, key: K, value: u64) -> Option<u64>;
    fn remove(&mut self, key: &K) -> Option<u64>;
    fn get(&self, key: &K) -> Option<u64>;
    fn get_many(&self, keys: &[&K]) -> Vec<Option<u64>>;
    fn range(&self, from: Bound<&K>, to: Bound<&K>, most: usize) -> Vec<(K, u64)>;
    fn reorganize(&mut self);
    fn refresh(&mut self);
    fn len(&self) -> usize;
}

/// Gathers at most so many.
fn gather<K: Clone>(gathered: &mut Vec<(K, u64)>, most: usize, key: &K, value: u64) -> ControlFlow<()> {
    if gathered.len() == most {
        return ControlFlow::Break(());
    }
    gathered.push((key.clone(), value));
    ControlFlow::Continue(())
}

struct Sharing<'m, K: 'static, I> {
    map: &'m Map<K, u64, I>,
    reader: MapRef<'m, K, u64, I>,
    reorganize: fn(&Map<K, u64, I>),
}

impl<K, I> Face<K> for Sharing<'_, K, I>
where
    K: std::hash::Hash + Eq + Clone + std::fmt::Debug + Send + Sync,
    I: Find<K, K, u64> + SharedStore<K, u64> + SharedDiscard<K, K, u64> + Scan<K, K, u64>,
{
    fn insert(&mut self, key: K, value: u64) -> Option<u64> {
        self.reader.insert(key, value).map(|old| *old)
    }

    fn replace(&mut self, key: K, value: u64) -> Option<u64> {
        self.reader.replace(key, value).ok().map(|old| *old)
    }

    fn remove(&mut self, key: &K) -> Option<u64> {
        self.reader.remove(key).map(|old| *old)
    }

    fn get(&self, key: &K) -> Option<u64> {
        self.reader.get(key).copied()
    }

    fn get_many(&self, keys: &[&K]) -> Vec<Option<u64>> {
        let mut values = vec![None; keys.len()];
        self.reader.get_many(keys, &mut values);
        values.into_iter().map(|value| value.copied()).collect()
    }

    fn range(&self, from: Bound<&K>, to: Bound<&K>, most: usize) -> Vec<(K, u64)> {
        let mut gathered = Vec::new();
        self.reader.scan(from, to, |key, value| gather(&mut gathered, most, key, *value));
        let ranged = self.reader.range::<K, _>((from, to)).take(most);
        assert_eq!(ranged.map(|(key, value)| (key.clone(), *value)).collect::<Vec<_>>(), gathered);
        gathered
    }

    fn reorganize(&mut self) {
        (self.reorganize)(self.map);
    }

    fn refresh(&mut self) {
        self.reader.refresh();
    }

    fn len(&self) -> usize {
        self.map.len()
    }
}

impl<K, I> Face<K> for OwnedMap<K, u64, I>
where
    K: std::hash::Hash + Eq + Clone + std::fmt::Debug + Send + Sync,
    I: Find<K, K, u64> + Store<K, u64> + Discard<K, K, u64> + Scan<K, K, u64>,
{
    fn insert(&mut self, key: K, value: u64) -> Option<u64> {
        OwnedMap::insert(self, key, value).map(|old| *old)
    }

    fn replace(&mut self, key: K, value: u64) -> Option<u64> {
        self.get(&key)?;
        Face::insert(self, key, value)
    }

    fn remove(&mut self, key: &K) -> Option<u64> {
        OwnedMap::remove(self, key).map(|old| *old)
    }

    fn get(&self, key: &K) -> Option<u64> {
        OwnedMap::get(self, key).copied()
    }

    fn get_many(&self, keys: &[&K]) -> Vec<Option<u64>> {
        let mut values = vec![None; keys.len()];
        OwnedMap::get_many(self, keys, &mut values);
        values.into_iter().map(|value| value.copied()).collect()
    }

    fn range(&self, from: Bound<&K>, to: Bound<&K>, most: usize) -> Vec<(K, u64)> {
        let mut gathered = Vec::new();
        self.scan(from, to, |key, value| gather(&mut gathered, most, key, *value));
        let ranged = OwnedMap::range::<K, _>(self, (from, to)).take(most);
        assert_eq!(ranged.map(|(key, value)| (key.clone(), *value)).collect::<Vec<_>>(), gathered);
        gathered
    }

    fn reorganize(&mut self) {}

    fn refresh(&mut self) {}

    fn len(&self) -> usize {
        OwnedMap::len(self)
    }
}

/// Carries out the operations on the map and on a plain one.
fn compare<K: Ord + Clone + std::fmt::Debug>(map: &mut impl Face<K>, operations: &[Operation<K>]) {
    let mut model = BTreeMap::new();
    for (step, operation) in operations.iter().enumerate() {
        let value = step as u64;
        match operation {
            Operation::Insert(key) => {
                assert_eq!(map.insert(key.clone(), value), model.insert(key.clone(), value));
            }
            Operation::Replace(key) => {
                let old = model.get_mut(key).map(|old| std::mem::replace(old, value));
                assert_eq!(map.replace(key.clone(), value), old);
            }
            Operation::Remove(key) => assert_eq!(map.remove(key), model.remove(key)),
            Operation::Get(key) => assert_eq!(map.get(key), model.get(key).copied()),
            Operation::GetMany(keys) => {
                let expected: Vec<_> = keys.iter().map(|key| model.get(key).copied()).collect();
                assert_eq!(map.get_many(&keys.iter().collect::<Vec<_>>()), expected);
            }
            Operation::Range(from, to, most) => {
                // Not the model's own call, which panics where bounds are the wrong way round.
                let inside = model.iter().filter(|(key, _)| (from.as_ref(), to.as_ref()).contains(*key));
                let expected: Vec<_> = inside.take(*most).map(|(key, value)| (key.clone(), *value)).collect();
                assert_eq!(map.range(from.as_ref(), to.as_ref(), *most), expected);
            }
            Operation::Reorganize => map.reorganize(),
            Operation::Refresh => map.refresh(),
        }
    }
    assert_eq!(map.len(), model.len());
    let all: Vec<_> = model.into_iter().collect();
    assert_eq!(map.range(Bound::Unbounded, Bound::Unbounded, usize::MAX), all);
}

fn shared<T, K>(operations: &[Operation<K>])
where
    T: lookaside_art::Key + ?Sized,
    K: Encode<T> + Ord + std::hash::Hash + Clone + std::fmt::Debug + Send + Sync + 'static,
{
    let map = Map::with_index(Shared::<T, K>::with_config(&small()).unwrap(), &table()).unwrap();
    map.buffer().monitor(false);
    map.view().access_log().sample_every(1);
    let reorganize = |map: &Map<K, u64, Shared<T, K>>| {
        map.view().reorganize();
    };
    compare(&mut Sharing { map: &map, reader: map.pin(), reorganize }, operations);
}

fn owned<T, K>(operations: &[Operation<K>])
where
    T: lookaside_art::Key + ?Sized,
    K: Encode<T> + Ord + std::hash::Hash + Clone + std::fmt::Debug + Send + Sync + 'static,
{
    let mut map = OwnedMap::with_index(Owned::<T, K>::with_config(&small()).unwrap(), &table()).unwrap();
    map.monitor(false);
    compare(&mut map, operations);
}

/// Fewer under the sanitizers, which set this.
fn cases() -> u32 {
    if std::env::var_os("LOOKASIDE_STRESS_CHANGES").is_some() { 32 } else { 192 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn a_map_of_texts_is_a_map(operations in operations(bytes())) {
        shared::<[u8], Vec<u8>>(&operations);
        owned::<[u8], Vec<u8>>(&operations);
    }

    #[test]
    fn a_map_of_numbers_is_a_map(operations in operations(numbers())) {
        shared::<[u8; 8], i64>(&operations);
        owned::<[u8; 8], i64>(&operations);
    }

    #[test]
    fn a_map_of_arrays_is_a_map(operations in operations(arrays())) {
        shared::<[u8; 3], [u8; 3]>(&operations);
        owned::<[u8; 3], [u8; 3]>(&operations);
    }
}

/// Every kind of node, and batches that are longer than a group.
#[test]
fn large_maps_answer_batches_of_any_length() {
    let map = Map::with_index(Shared::<[u8], String>::with_config(&small()).unwrap(), &table()).unwrap();
    map.buffer().monitor(false);
    let name = |number: u64| format!("{}/{number}", number % 7);
    (0..20_000).for_each(|number| assert!(map.insert(name(number), number).is_none()));
    let mut reader = map.pin();
    for length in [0, 1, 15, 16, 17, 100, 1000] {
        let names: Vec<String> = (0..length).map(|at| name(at * 41)).collect();
        let mut values = vec![None; names.len()];
        reader.get_many(&names.iter().map(String::as_str).collect::<Vec<_>>(), &mut values);
        let expected: Vec<_> = (0..length).map(|at| (at * 41 < 20_000).then_some(at * 41)).collect();
        assert_eq!(values.into_iter().map(|value| value.copied()).collect::<Vec<_>>(), expected);
        reader.refresh();
    }
    drop(reader);
}

/// What the tree shows of itself is what the map has, in both directions, before and after everything has moved.
#[test]
fn a_view_shows_the_maps_entries() {
    let map = Map::with_index(Shared::<[u8], String>::with_config(&small()).unwrap(), &table()).unwrap();
    for (number, name) in ["rome", "romulus", "remus"].into_iter().enumerate() {
        map.insert(name.to_string(), number as u64);
    }
    let view = map.view();
    let values = |entries: lookaside_art::Range<'_, [u8], Handle<String, u64>>| {
        entries.map(|(_, entry)| *entry.value()).collect::<Vec<_>>()
    };
    let mut onlooker = view.pin();
    for _ in 0..2 {
        assert_eq!(values(onlooker.iter()), [2, 0, 1]);
        assert_eq!(values(onlooker.prefix(b"rom")), [0, 1]);
        assert_eq!(values(onlooker.range(&b"rome"[..]..)), [0, 1]);
        assert_eq!(values(onlooker.range_of_bytes(Bound::Unbounded, Bound::Excluded(b"rome"))), [2]);
        assert_eq!(onlooker.first_key_value().map(|(_, entry)| entry.key().as_str()), Some("remus"));
        assert_eq!(onlooker.last_key_value().map(|(_, entry)| entry.key().as_str()), Some("romulus"));
        let mut reorganization = view.reorganization(vec![b"rome".to_vec(), b"remus".to_vec()]);
        while reorganization.step(1).is_continue() {}
        assert!(reorganization.done().leaves > 0);
        onlooker.refresh();
    }
    assert!(map.remove("rome").is_some() && onlooker.prefix(b"rome").next().is_none());
    assert!(view.memory().leaf_bytes > 0 && view.regions()[0].obtained().size() > 0);
    drop(onlooker);
}

/// What the table answers, the tree is not asked for, and does not log.
#[test]
fn the_log_knows_what_the_table_misses() {
    let config = TableConfig::with_size(1 << 16).pages(PageKind::Base);
    let map = Map::with_index(Shared::<[u8; 8], u64>::with_config(&small()).unwrap(), &config).unwrap();
    map.buffer().monitor(false);
    (0..100u64).for_each(|number| drop(map.insert(number, number)));
    let log = map.view().access_log();
    let mut reader = map.pin();
    assert_eq!((reader.get(&1), log.drain()), (Some(&1), vec![]), "nothing is logged unless it is asked for");
    log.sample_every(1);
    for _ in 0..20 {
        (0..100u64).for_each(|number| assert_eq!(reader.get(&number), Some(&number)));
        reader.refresh();
    }
    let (counts, sampled) = (map.buffer().counts(), log.drain().len() as u64);
    assert!(counts.hits > 1000, "{counts:?}");
    assert!((50..=counts.misses).contains(&sampled), "{sampled} samples: {counts:?}");
    // Batches are logged alike.
    let absent: Vec<u64> = (1000..1040).collect();
    let mut values = vec![None; absent.len()];
    reader.get_many(&absent.iter().collect::<Vec<_>>(), &mut values);
    let expected: Vec<_> = absent.iter().map(|&number| lookaside_art::encode::u64(number)).collect();
    assert_eq!((log.drain(), values), (expected, vec![None; absent.len()]));
    drop(reader);
}

/// A full tree is no place for another entry: the call panics, and nothing has changed.
#[test]
fn a_full_tree_panics_and_the_map_stays_as_it_was() {
    let config = Config::new().with_node_bytes(1 << 26).with_leaf_bytes(1 << 22);
    let map = Map::with_index(Shared::<[u8; 8], u64>::with_config(&config).unwrap(), &table()).unwrap();
    let mut filled = 0;
    let refused = loop {
        let insert = || drop(map.insert(filled, filled));
        match catch_unwind(AssertUnwindSafe(insert)) {
            Ok(()) => filled += 1,
            Err(refused) => break refused,
        }
        assert!(filled < 1 << 20, "it is never full");
    };
    let words = refused.downcast_ref::<String>().expect("a panic in words");
    assert!(words.contains("make it with more room"), "{words}");
    let reader = map.pin();
    assert!(map.len() as u64 == filled && filled > 1000, "{filled}");
    assert!((0..filled).all(|number| reader.get(&number) == Some(&number)));
    assert_eq!(reader.get(&filled), None);
    // A removed entry leaves room, once everybody who saw it has left.
    drop(reader);
    (0..filled / 2).for_each(|number| assert!(map.remove(&number).is_some()));
    assert!(map.insert(filled, 1).is_none());
    assert_eq!(map.pin().get(&filled), Some(&1));
}

/// A thread-local that looks into a map when its thread ends, after what the log keeps for the thread.
#[test]
fn a_thread_that_is_ending_is_logged() {
    struct Last(Arc<Map<u64, u64, Shared<[u8; 8], u64>>>);
    impl Drop for Last {
        fn drop(&mut self) {
            assert_eq!(self.0.get_with(&2, |number| *number), Some(2));
        }
    }
    thread_local! {
        static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
    }
    let tree = Shared::<[u8; 8], u64>::with_config(&small()).unwrap();
    let map = Arc::new(Map::with_index(tree, &TableConfig::with_size(1 << 16)).unwrap());
    map.buffer().monitor(false);
    map.view().access_log().sample_every(1);
    (1..3).for_each(|number| drop(map.insert(number, number)));
    let last = Last(Arc::clone(&map));
    let ending = std::thread::spawn(move || {
        // Made first, it ends last.
        LAST.with(|kept| kept.replace(Some(last)));
        LAST.with(|kept| kept.borrow().as_ref().and_then(|last| last.0.get_with(&1, |number| *number)))
    });
    assert_eq!(ending.join().unwrap(), Some(1));
    let mut logged = map.view().access_log().drain();
    logged.sort_unstable();
    assert_eq!(logged, [1u64, 2].map(lookaside_art::encode::u64));
}

/// What a panic leaves whole may be used by who has caught it, with no word more.
#[test]
fn a_panic_leaves_trees_whole_if_it_does_values() {
    fn whole<T: UnwindSafe + RefUnwindSafe>() {}
    whole::<(Tree<[u8], u8>, Reader<'static, [u8], u8>, OwnedTree<[u8; 8], u8>)>();
    whole::<Map<u64, u64, Shared<[u8; 8], u64>>>();
    let tree = Tree::<[u8; 8], u64>::new().unwrap();
    let reader = tree.pin();
    (0..9u64).for_each(|number| assert!(reader.insert(&number.to_be_bytes(), number).unwrap().is_none()));
    assert!(catch_unwind(|| reader.retain(|_, number| *number < 5 || panic!("on purpose"))).is_err());
    assert_eq!(reader.iter().count(), 9);
}
