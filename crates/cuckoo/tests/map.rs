//! The map beside the standard library's: every method, on maps so small and hashes so narrow that buckets overflow;
//! and what no sequence of operations shows: when what is dropped, types of odd shapes, crowds of equal hashes.

use std::collections::HashMap as Model;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::panic::{RefUnwindSafe, UnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use lookaside_cuckoo::{Compute, Equivalent, HashMap, HashMapRef, Hashes, OccupiedError, Operation};
use proptest::prelude::*;

/// Hashes of so many bits: at none, all keys are one crowd.
#[derive(Debug, Clone)]
struct Narrow(u32, RandomState);

impl Narrow {
    fn new(bits: u32) -> Narrow {
        Narrow(bits, RandomState::new())
    }
}

struct NarrowHasher(u32, std::hash::DefaultHasher);

impl BuildHasher for Narrow {
    type Hasher = NarrowHasher;

    fn build_hasher(&self) -> NarrowHasher {
        NarrowHasher(self.0, self.1.build_hasher())
    }
}

impl Hasher for NarrowHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.1.write(bytes);
    }

    fn finish(&self) -> u64 {
        self.1.finish() & ((1u64 << self.0) - 1)
    }
}

fn collected<K: Hash + Eq, V>(entries: impl IntoIterator<Item = (K, V)>) -> HashMap<K, V> {
    entries.into_iter().collect()
}

#[derive(Debug, Clone)]
enum Step {
    Insert(u16, u32),
    TryInsert(u16, u32),
    GetOrInsert(u16, u32),
    GetOrInsertWith(u16, u32),
    Update(u16),
    UpdateOrInsert(u16, u32),
    UpdateOrInsertWith(u16, u32),
    /// What is done to the remainder of the old value.
    Compute(u16, u32),
    Remove(u16),
    RemoveEntry(u16),
    RemoveIf(u16, u32),
    Get(u16),
    GetMany(Vec<u16>),
    Retain(u32),
    Clear,
    Extend(Vec<(u16, u32)>),
    Reserve(usize),
    Refresh,
    Look,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = || 0u16..300;
    let value = any::<u32>;
    let step = prop_oneof![
        12 => (key(), value()).prop_map(|(key, value)| Step::Insert(key, value)),
        4 => (key(), value()).prop_map(|(key, value)| Step::TryInsert(key, value)),
        2 => (key(), value()).prop_map(|(key, value)| Step::GetOrInsert(key, value)),
        2 => (key(), value()).prop_map(|(key, value)| Step::GetOrInsertWith(key, value)),
        2 => key().prop_map(Step::Update),
        2 => (key(), value()).prop_map(|(key, value)| Step::UpdateOrInsert(key, value)),
        2 => (key(), value()).prop_map(|(key, value)| Step::UpdateOrInsertWith(key, value)),
        4 => (key(), value()).prop_map(|(key, value)| Step::Compute(key, value)),
        4 => key().prop_map(Step::Remove),
        2 => key().prop_map(Step::RemoveEntry),
        2 => (key(), value()).prop_map(|(key, value)| Step::RemoveIf(key, value)),
        4 => key().prop_map(Step::Get),
        2 => prop::collection::vec(key(), 0..40).prop_map(Step::GetMany),
        1 => (1u32..10).prop_map(Step::Retain),
        1 => Just(Step::Clear),
        2 => prop::collection::vec((key(), value()), 0..100).prop_map(Step::Extend),
        1 => (0usize..200).prop_map(Step::Reserve),
        2 => Just(Step::Refresh),
        1 => Just(Step::Look),
    ];
    prop::collection::vec(step, 1..400)
}

type Map = HashMap<u16, u32, Narrow>;
type Ref<'m> = HashMapRef<'m, u16, u32, Narrow>;

/// Takes a step with both, and compares what they say.
fn step(
    step: &Step,
    map: &Map,
    pinned: &mut Ref<'_>,
    model: &mut Model<u16, u32>,
) -> Result<(), TestCaseError> {
    match *step {
        Step::Insert(key, value) => {
            prop_assert_eq!(pinned.insert(key, value).copied(), model.insert(key, value));
        }
        Step::TryInsert(key, value) => {
            let expected = match model.get(&key) {
                Some(current) => Err(OccupiedError { current, not_inserted: value }),
                None => Ok(&value),
            };
            prop_assert_eq!(pinned.try_insert(key, value), expected);
            model.entry(key).or_insert(value);
        }
        Step::GetOrInsert(key, value) => {
            prop_assert_eq!(*pinned.get_or_insert(key, value), *model.entry(key).or_insert(value));
        }
        Step::GetOrInsertWith(key, value) => {
            let was_there = model.contains_key(&key);
            let mut ran = false;
            let found = *pinned.get_or_insert_with(key, || {
                ran = true;
                value
            });
            prop_assert_eq!((found, ran), (*model.entry(key).or_insert(value), !was_there));
        }
        Step::Update(key) => {
            let update = |old: &u32| old.wrapping_mul(3);
            let expected = model.get_mut(&key).map(|value| {
                *value = update(value);
                *value
            });
            prop_assert_eq!(pinned.update(key, update).copied(), expected);
        }
        Step::UpdateOrInsert(key, value) => {
            let update = |old: &u32| old.wrapping_add(1);
            let expected = model.get(&key).map_or(value, update);
            model.insert(key, expected);
            prop_assert_eq!(*pinned.update_or_insert(key, update, value), expected);
        }
        Step::UpdateOrInsertWith(key, value) => {
            let update = |old: &u32| old.wrapping_add(2);
            let expected = model.get(&key).map_or(value, update);
            model.insert(key, expected);
            prop_assert_eq!(*pinned.update_or_insert_with(key, update, || value), expected);
        }
        Step::Compute(key, value) => {
            let decide = |old: Option<u32>| match (old, value % 3) {
                (Some(old), 0) => Operation::Insert(old.wrapping_sub(value)),
                (None, 0) => Operation::Insert(value),
                (_, 1) => Operation::Remove,
                (old, _) => Operation::Abort(old),
            };
            let old = model.get(&key).copied();
            let outcome = pinned.compute(key, |entry| decide(entry.map(|(_, value)| *value)));
            match (decide(old), old) {
                (Operation::Insert(new), None) => {
                    prop_assert_eq!(outcome, Compute::Inserted(&key, &new));
                    model.insert(key, new);
                }
                (Operation::Insert(new), Some(old)) => {
                    prop_assert_eq!(outcome, Compute::Updated { old: (&key, &old), new: (&key, &new) });
                    model.insert(key, new);
                }
                (Operation::Remove, Some(old)) => {
                    prop_assert_eq!(outcome, Compute::Removed(&key, &old));
                    model.remove(&key);
                }
                (Operation::Remove, None) => prop_assert_eq!(outcome, Compute::Absent),
                (Operation::Abort(old), _) => prop_assert_eq!(outcome, Compute::Aborted(old)),
            }
        }
        Step::Remove(key) => prop_assert_eq!(pinned.remove(&key).copied(), model.remove(&key)),
        Step::RemoveEntry(key) => {
            let removed = pinned.remove_entry(&key).map(|(key, value)| (*key, *value));
            prop_assert_eq!(removed, model.remove_entry(&key));
        }
        Step::RemoveIf(key, value) => {
            let is_to_go = |_: &u16, old: &u32| *old > value;
            let expected = match model.get_key_value(&key) {
                Some((key, old)) if !is_to_go(key, old) => Err((*key, *old)),
                Some((key, old)) => Ok(Some((*key, *old))),
                None => Ok(None),
            };
            let copied = |(key, value): (&u16, &u32)| (*key, *value);
            let outcome = pinned.remove_if(&key, is_to_go);
            prop_assert_eq!(outcome.map(|entry| entry.map(copied)).map_err(copied), expected);
            if expected.is_ok() {
                model.remove(&key);
            }
        }
        Step::Get(key) => {
            prop_assert_eq!(pinned.get(&key), model.get(&key));
            prop_assert_eq!(pinned.get_key_value(&key), model.get_key_value(&key));
            prop_assert_eq!(pinned.contains_key(&key), model.contains_key(&key));
            prop_assert_eq!(map.contains_key(&key), model.contains_key(&key));
            prop_assert_eq!(map.get_cloned(&key), model.get(&key).copied());
            prop_assert_eq!(map.get_with(&key, |value| value / 2), model.get(&key).map(|value| value / 2));
        }
        Step::GetMany(ref keys) => {
            let keys: Vec<_> = keys.iter().collect();
            let mut values = vec![Some(&7); keys.len()];
            pinned.get_many(&keys, &mut values);
            prop_assert_eq!(values, keys.iter().map(|key| model.get(key)).collect::<Vec<_>>());
        }
        Step::Retain(divisor) => {
            pinned.retain(|_, value| value % divisor == 0);
            model.retain(|_, value| *value % divisor == 0);
        }
        Step::Clear => {
            pinned.clear();
            model.clear();
        }
        Step::Extend(ref entries) => {
            (&*map).extend(entries.iter().copied());
            model.extend(entries.iter().copied());
        }
        Step::Reserve(additional) => pinned.reserve(additional),
        Step::Refresh => pinned.refresh(),
        Step::Look => {
            let told: Model<u16, u32> = pinned.iter().map(|(key, value)| (*key, *value)).collect();
            prop_assert_eq!(pinned.iter().count(), model.len());
            prop_assert_eq!(&told, &*model);
            let mut keys: Vec<_> = pinned.keys().copied().collect();
            let mut expected: Vec<_> = model.keys().copied().collect();
            keys.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(keys, expected);
            prop_assert_eq!(pinned.values().count(), model.len());
            let copy = map.clone();
            prop_assert!(copy == *map);
            prop_assert_eq!(format!("{:?}", copy).len(), format!("{:?}", model).len());
            prop_assert_eq!(copy.into_iter().collect::<Model<_, _>>(), model.clone());
        }
    }
    prop_assert_eq!((pinned.len(), map.is_empty()), (model.len(), model.is_empty()));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_does_what_the_standard_librarys_map_does(
        steps in steps(), bits in prop_oneof![Just(63u32), 0u32..8], capacity in 0usize..400,
    ) {
        let map = Map::with_capacity_and_hasher(capacity, Narrow::new(bits));
        let mut pinned = map.pin();
        let mut model = Model::new();
        for next in &steps {
            step(next, &map, &mut pinned, &mut model)?;
        }
        step(&Step::Look, &map, &mut pinned, &mut model)?;
    }
}

#[test]
fn it_grows_from_nothing_and_keeps_everything() {
    const KEYS: u64 = 100_000;
    let map = HashMap::new();
    assert_eq!((map.len(), map.is_empty()), (0, true));
    map.pin().retain(|_, _: &u64| false);
    for key in 0..KEYS {
        assert_eq!(map.pin().insert(key, key * 3), None);
    }
    let pinned = map.pin();
    assert!((0..KEYS).all(|key| pinned.get(&key) == Some(&(key * 3))));
    assert_eq!(pinned.get(&KEYS), None);
    assert_eq!(pinned.values().sum::<u64>(), 3 * (KEYS * (KEYS - 1) / 2));
    assert!(map.bytes() as u64 > 26 * KEYS && (map.bytes() as u64) < 48 * KEYS, "{}", map.bytes());
}

#[test]
fn keys_are_looked_up_by_what_they_lend_and_by_what_is_equivalent() {
    #[derive(Hash)]
    struct Pair<'a>(&'a str, u32);
    impl Equivalent<(String, u32)> for Pair<'_> {
        fn equivalent(&self, key: &(String, u32)) -> bool {
            self.0 == key.0 && self.1 == key.1
        }
    }
    let names: HashMap<String, u32> = [("one".to_owned(), 1)].into_iter().collect();
    assert_eq!(names.get_cloned("one"), Some(1));
    let pairs = HashMap::from([(("one".to_owned(), 1), 'x')]);
    assert_eq!(pairs.pin().get(&Pair("one", 1)), Some(&'x'));
    assert_eq!(pairs.pin().remove(&Pair("one", 2)), None);
    assert_eq!(pairs.pin().remove(&Pair("one", 1)), Some(&'x'));
}

#[test]
fn what_goes_is_dropped_once_and_soon_and_all_of_it_with_the_map() {
    /// Counts those that are alive.
    #[derive(Debug)]
    struct Counted(Arc<AtomicUsize>);
    impl Counted {
        fn new(alive: &Arc<AtomicUsize>) -> Counted {
            alive.fetch_add(1, Ordering::Relaxed);
            Counted(alive.clone())
        }
    }
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }
    let alive = Arc::new(AtomicUsize::new(0));
    let count = || alive.load(Ordering::Relaxed);
    let new = || Counted::new(&alive);
    // A narrow hash: some of them in the stash.
    let map = HashMap::with_hasher(Narrow::new(3));
    for key in 0..200 {
        map.pin().insert(key, new());
    }
    assert_eq!(count(), 200);
    {
        let pinned = map.pin();
        let found = pinned.get(&7).expect("put in above");
        assert!(pinned.insert(7, new()).is_some_and(|old| std::ptr::eq(old, found)));
        assert_eq!(count(), 201, "the old one is held");
        assert!(pinned.try_insert(7, new()).is_err());
        pinned.update(8, |_| new());
        pinned.update_or_insert(9, |_| new(), new());
        pinned.compute(10, |_| Operation::<Counted, ()>::Insert(new()));
        pinned.get_or_insert(11, new());
        pinned.get_or_insert_with(12, new);
        assert!(Arc::ptr_eq(&found.0, &alive));
    }
    map.collect();
    assert_eq!(count(), 200);
    map.pin().remove(&1);
    // Without asking: by and by.
    (0..1024).for_each(|_| drop(map.pin()));
    assert_eq!(count(), 199);
    map.pin().retain(|key, _| key % 2 == 0);
    map.collect();
    assert_eq!((count(), map.len()), (100, 100));
    map.pin().remove(&2);
    drop(map);
    assert_eq!(count(), 0);

    let map = collected((0..1000).map(|key| (key, new())));
    map.pin().clear();
    map.collect();
    assert_eq!((count(), map.len()), (0, 0));
    (&map).extend((0..10).map(|key| (key, new())));
    let mut entries = map.into_iter();
    assert_eq!((entries.len(), count()), (10, 10));
    drop(entries.next());
    assert_eq!(count(), 9);
    drop(entries);
    assert_eq!(count(), 0);
}

#[test]
fn slots_of_what_was_removed_are_used_again() {
    let map = HashMap::new();
    for key in 0..100_000u64 {
        map.pin().insert(key % 1000, key);
        map.pin().remove(&(key.wrapping_sub(500) % 1000));
    }
    assert!(map.bytes() < 200_000, "{} bytes for 1000 keys", map.bytes());
}

#[test]
fn types_of_any_shape() {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    #[repr(align(256))]
    struct Aligned(u8);
    #[derive(Debug, Clone, PartialEq, Eq)]
    #[repr(align(16384))]
    struct Page([u8; 100]);

    let nothing = HashMap::new();
    assert_eq!(nothing.pin().insert((), ()), None);
    assert_eq!(nothing.pin().insert((), ()), Some(&()));
    assert_eq!((nothing.pin().get(&()), nothing.len()), (Some(&()), 1));
    assert_eq!(nothing.into_iter().count(), 1);

    let set = collected((0..1000).map(|_| 0).chain(0..=255).map(|key: u8| (key, ())));
    assert_eq!((set.len(), set.pin().keys().map(|&key| u32::from(key)).sum::<u32>()), (256, 255 * 128));

    let aligned = collected((0..200).map(|key| (Aligned(key), key)));
    for (key, value) in &aligned.pin() {
        assert!(std::ptr::from_ref(key).is_aligned() && key.0 == *value);
    }
    let pages = collected((0..20u32).map(|key| (key, Page([key as u8; 100]))));
    let pinned = pages.pin();
    assert!((0..20).all(|key| {
        pinned
            .get(&key)
            .is_some_and(|page| std::ptr::from_ref(page).is_aligned() && page.0 == [key as u8; 100])
    }));
    let large = collected((0..30u32).map(|key| (key, [key; 1 << 14])));
    assert!((0..30).all(|key| large.get_with(&key, |value| *value == [key; 1 << 14]) == Some(true)));
}

/// A crowd of equal hashes, larger than any two buckets: slower, and right.
#[test]
fn any_number_of_keys_may_have_one_hash() {
    let map = HashMap::with_hasher(Narrow::new(0));
    let pinned = map.pin();
    for key in 0..300u32 {
        assert_eq!(pinned.insert(key, key), None);
    }
    assert!((0..300).all(|key| pinned.get(&key) == Some(&key)));
    assert_eq!((pinned.get(&300), pinned.iter().count()), (None, 300));
    for key in (0..300).step_by(3) {
        assert_eq!(pinned.remove(&key), Some(&key));
        assert_eq!(pinned.update(key + 1, |old| old + 1000), Some(&(key + 1001)));
    }
    assert_eq!(pinned.len(), 200);
    let keys: Vec<u32> = (0..300).collect();
    let mut values = vec![None; 300];
    pinned.get_many(&keys.iter().collect::<Vec<_>>(), &mut values);
    for (key, value) in keys.iter().zip(values) {
        let expected = [None, Some(key + 1000), Some(*key)][*key as usize % 3];
        assert_eq!(value.copied(), expected);
    }
    pinned.clear();
    assert_eq!((pinned.len(), pinned.iter().count()), (0, 0));
}

#[test]
fn it_may_be_shared_and_sent_and_debugged() {
    fn shared<T: Send + Sync + UnwindSafe + RefUnwindSafe>(_: &T) {}
    let map: HashMap<String, Vec<u8>> = HashMap::default();
    shared(&map);
    let map = HashMap::builder().capacity(10).hasher(RandomState::new()).hashes(Hashes::Avalanching).build();
    map.pin().insert(1, 2);
    assert_eq!(format!("{map:?} {:?}", map.pin()), "{1: 2} {1: 2}");
    assert_eq!(
        map,
        HashMap::from([(1, 2)]).into_iter().fold(map.clone(), |map, (key, value)| {
            map.pin().insert(key, value);
            map
        })
    );
    let moved = std::thread::spawn(move || map.get_cloned(&1)).join().unwrap();
    assert_eq!(moved, Some(2));
}

/// Room for more entries than a number can tell slots for was no room, and only the memory for them was refused;
/// checked arithmetic panicked without a reason.
#[test]
#[should_panic(expected = "ask for fewer")]
fn room_for_more_than_can_be() {
    drop(HashMap::<u64, u64>::with_capacity(usize::MAX));
}

/// Each bucket was split that there could be, which took minutes and all memory.
#[test]
fn room_for_more_than_can_come_is_refused_before_any_is_made() {
    struct Boasting(u64, usize);
    impl Iterator for Boasting {
        type Item = (u64, u64);

        fn next(&mut self) -> Option<Self::Item> {
            self.0 = self.0.checked_sub(1)?;
            Some((self.0, self.0))
        }

        fn size_hint(&self) -> (usize, Option<usize>) {
            (self.1, None)
        }
    }
    let map = HashMap::<u64, u64>::new();
    let before = map.bytes();
    for entries in [1 << 40, usize::MAX] {
        let refused = catch_unwind(|| map.pin().reserve(entries));
        let said = refused.unwrap_err().downcast::<String>().unwrap();
        assert!(said.contains("ask for fewer"), "{said}");
        // An iterator may say what it likes, and gives what it gives.
        (&map).extend(Boasting(3, entries));
        assert_eq!(map.len(), 3);
    }
    assert!(map.bytes() < before + (1 << 20), "{} bytes", map.bytes());
}

/// A map that grows behind a walk moves what the walk has told, and it took a time that went with the square of that to
/// go on: a walk of five million keys did not end.
#[test]
fn a_walk_ends_although_the_map_has_grown_behind_it() {
    const BEFORE: usize = 50_000;
    const AFTER: usize = 8 * BEFORE;
    // Once is enough, for others use the machine.
    let is_quick = |_| {
        let map: HashMap<usize, usize> = (0..BEFORE).map(|key| (key, key)).collect();
        let pinned = map.pin();
        let mut walk = pinned.keys();
        let mut told: Vec<_> = walk.by_ref().take(BEFORE / 10 * 9).copied().collect();
        (BEFORE..AFTER).for_each(|key| assert_eq!(pinned.insert(key, key), None));
        let began = Instant::now();
        told.extend(walk.copied());
        let (took, began) = (began.elapsed(), Instant::now());
        assert_eq!(pinned.keys().count(), AFTER);
        let whole = began.elapsed();
        told.retain(|&key| key < BEFORE);
        told.sort_unstable();
        assert!(told.into_iter().eq(0..BEFORE));
        took < 60 * whole
    };
    assert!((0..5).any(is_quick));
}
