//! Compounds: against a naive map, by many threads at once, with closures that panic or use the map, and as a history
//! that some order of its steps explains.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use crate::ledger::{Ledger, Name, Record, one_line, quiet, steps};
use lookaside::index::{Find, SharedDiscard, SharedStore};
use lookaside::{
    Computed, Config, Handle, Hashing, Map, Mismatch, Operation, OwnedMap, PageKind, RandomState, RwLock,
    SharedBuffer,
};
use outside::Random;

/// Few slots, so that the table has some keys and not all.
fn small() -> Config {
    Config::with_size(128).pages(PageKind::Base)
}

/// Every call of a shared map beside a `BTreeMap`, by one thread.
fn agree<I>(map: &Map<u64, String, I>, seed: u64)
where
    I: SharedStore<u64, String> + SharedDiscard<u64, u64, String> + Find<u64, u64, String>,
{
    let (mut oracle, mut random) = (BTreeMap::<u64, String>::new(), Random(seed));
    let mut reader = map.pin();
    for step in 0..steps() / 4 {
        let key = random.below(40) as u64;
        let old = oracle.get(&key).cloned();
        let new = format!("{step}");
        match random.below(10) {
            0 => match reader.try_insert(key, new.clone()) {
                Ok(value) => {
                    assert_eq!((value, &old), (&new, &None));
                    oracle.insert(key, new);
                }
                Err(occupied) => {
                    assert_eq!((Some(occupied.current), occupied.not_inserted), (old.as_ref(), new));
                }
            },
            1 => {
                let value = reader.get_or_insert_with(key, || new.clone());
                assert_eq!(value, oracle.entry(key).or_insert(new));
            }
            2 => {
                let was = reader.update(key, |value| format!("{value}+"));
                assert_eq!(was.as_deref(), old.as_ref());
                oracle.entry(key).and_modify(|value| value.push('+'));
            }
            3 => {
                let was = reader.update_or_insert_with(key, |value| format!("{value}-"), || new.clone());
                assert_eq!(was.as_deref(), old.as_ref());
                oracle.entry(key).and_modify(|value| value.push('-')).or_insert(new);
            }
            4 => {
                let over = random.below(2) == 0;
                let was = reader.remove_if(&key, |seen, value| {
                    assert_eq!((seen, Some(value)), (&key, old.as_ref()));
                    over
                });
                assert_eq!(was.as_deref(), old.as_ref().filter(|_| over));
                if over {
                    oracle.remove(&key);
                }
            }
            5 => {
                let expected =
                    [old.clone().unwrap_or_default(), "another".to_string()][random.below(2)].clone();
                let outcome = reader.compare_exchange(key, &expected, new.clone());
                match old {
                    None => assert_eq!(outcome.unwrap_err(), Mismatch::Absent(new)),
                    Some(old) if old == expected => {
                        assert_eq!(*outcome.unwrap(), old);
                        oracle.insert(key, new);
                    }
                    Some(_) => assert_eq!(outcome.unwrap_err(), Mismatch::Different(new)),
                }
            }
            6 => {
                let what = random.below(3);
                let outcome = reader.compute(key, |entry| {
                    assert_eq!(entry.map(|(_, value)| value), old.as_ref());
                    [Operation::Insert(new.clone()), Operation::Remove, Operation::Abort(step)][what].clone()
                });
                match (what, outcome) {
                    (0, Computed::Inserted) => assert!(old.is_none()),
                    (0, Computed::Updated(was)) | (1, Computed::Removed(was)) => {
                        assert_eq!(Some(&*was), old.as_ref());
                    }
                    (1, Computed::Absent) => assert!(old.is_none()),
                    (2, Computed::Aborted(answer)) => assert_eq!(answer, step),
                    outcome => panic!("{outcome:?}"),
                }
                match what {
                    0 => drop(oracle.insert(key, new)),
                    1 => drop(oracle.remove(&key)),
                    _ => {}
                }
            }
            7 => {
                assert_eq!(map.get_with(&key, String::clone), old);
                assert_eq!(map.contains_key(&key), old.is_some());
            }
            _ => assert_eq!(reader.get(&key), old.as_ref()),
        }
        assert_eq!(reader.get(&key), oracle.get(&key));
        if random.below(30) == 0 {
            reader.refresh();
        }
    }
    drop(reader);
    assert_eq!(map.len(), oracle.len());
}

#[test]
fn each_compound_does_what_a_look_and_a_change_do() {
    for seed in 1..4 {
        agree(&Map::with_index(RwLock::new(BTreeSet::new()), &small()).unwrap(), seed);
        agree(&Map::with_index(RwLock::new(HashSet::new()), &one_line()).unwrap(), seed);
    }
}

/// Keys all of which have one hash: whoever is taken for another is found here.
#[test]
fn keys_of_one_hash_are_told_apart() {
    #[derive(Default, Clone)]
    struct One;
    impl std::hash::BuildHasher for One {
        type Hasher = Constant;
        fn build_hasher(&self) -> Constant {
            Constant
        }
    }
    struct Constant;
    impl std::hash::Hasher for Constant {
        fn write(&mut self, _: &[u8]) {}
        fn finish(&self) -> u64 {
            7
        }
    }
    let map = Map::<u64, u64, _, _>::with_capacity_and_hasher(10, Hashing::avalanching(One));
    for key in 0..20 {
        map.try_insert(key, key).unwrap();
        assert_eq!(map.update(key, |value| value + 100).as_deref(), Some(&key));
    }
    let reader = map.pin();
    assert!((0..20).all(|key| reader.get(&key) == Some(&(key + 100))));
    assert!((0..20).step_by(2).all(|key| reader.remove_if(&key, |_, _| true).is_some()));
    assert!((0..20).all(|key| reader.get(&key).is_some() == (key % 2 == 1)));
}

/// By hand, of 40,000 increments by four threads more than half were lost.
#[test]
fn four_threads_that_increment_lose_nothing() {
    const EACH: u64 = 10_000;
    let each = EACH.min(steps() as u64);
    let check = |map: &Map<u64, u64>| {
        std::thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || {
                    let reader = map.pin();
                    for step in 0..each {
                        let key = step % 3;
                        match (step + thread) % 3 {
                            0 => drop(reader.update_or_insert_with(key, |value| value + 1, || 1)),
                            1 => {
                                let next =
                                    |entry: Option<(&u64, &u64)>| entry.map_or(0, |(_, value)| *value) + 1;
                                let _ = map.compute::<()>(key, |entry| Operation::Insert(next(entry)));
                            }
                            _ => {
                                reader.get_or_insert_with(key, || 0);
                                loop {
                                    let Some(value) = map.get_with(&key, |value| *value) else { continue };
                                    if map.compare_exchange(key, &value, value + 1).is_ok() {
                                        break;
                                    }
                                }
                            }
                        }
                    }
                });
            }
        });
        let reader = map.pin();
        assert_eq!((0..3).filter_map(|key| reader.get(&key)).sum::<u64>(), 4 * each);
    };
    check(&Map::new());
    check(&Map::with_config(&one_line()).unwrap());
}

#[test]
fn a_value_is_made_once_however_many_threads_ask() {
    let map = Map::<u64, String>::new();
    for key in 0..20 {
        let (made, barrier) = (AtomicUsize::new(0), Barrier::new(6));
        std::thread::scope(|scope| {
            for thread in 0..6 {
                let (map, made, barrier) = (&map, &made, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    let make = || {
                        std::thread::sleep(Duration::from_millis(3));
                        format!("{}", made.fetch_add(1, Ordering::SeqCst))
                    };
                    let value = match thread % 2 {
                        0 => map.get_or_insert_with(key, make),
                        _ => map.pin().get_or_insert_with(key, make).clone(),
                    };
                    assert_eq!(value, "0");
                });
            }
        });
        assert_eq!(made.into_inner(), 1);
    }
}

#[test]
fn who_waits_for_a_value_whose_making_fails_or_panics_makes_it() {
    quiet();
    let map = Map::<u64, u64>::new();
    let barrier = Barrier::new(3);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (map, barrier) = (&map, &barrier);
            scope.spawn(move || {
                barrier.wait();
                let outcome = catch_unwind(AssertUnwindSafe(|| match thread {
                    0 => map.get_or_try_insert_with(1, || {
                        std::thread::sleep(Duration::from_millis(5));
                        Err("on purpose")
                    }),
                    1 => Ok(map.get_or_insert_with(1, || {
                        std::thread::sleep(Duration::from_millis(5));
                        panic!("on purpose")
                    })),
                    _ => {
                        // Behind the others, if they are that quick.
                        std::thread::sleep(Duration::from_millis(2));
                        Ok(map.get_or_insert_with(1, || 7))
                    }
                }));
                match outcome {
                    Ok(Ok(value)) => assert_eq!(value, 7),
                    Ok(Err(error)) => assert_eq!((error, thread), ("on purpose", 0)),
                    Err(_) => assert_eq!(thread, 1),
                }
            });
        }
    });
    assert_eq!(map.get_with(&1, |value| *value), Some(7));
}

#[test]
fn what_makes_a_value_may_use_the_map_and_ask_for_others() {
    fn fibonacci(map: &Map<u64, u64>, of: u64) -> u64 {
        map.get_or_insert_with(of, || match of {
            0 | 1 => of,
            _ => fibonacci(map, of - 1) + fibonacci(map, of - 2),
        })
    }
    let map = Map::new();
    assert_eq!(fibonacci(&map, 80), 23_416_728_348_467_685);
    // A value that came meanwhile by another call stays.
    let value = map.get_or_insert_with(1000, || {
        map.insert(1000, 1);
        2
    });
    assert_eq!((value, map.get_with(&1000, |value| *value)), (1, Some(1)));
}

/// Those who would wait for themselves are told, by a panic, whether alone or in a ring of threads and of maps.
#[test]
fn who_asks_for_a_value_that_waits_for_him_is_told() {
    quiet();
    let told = |outcome: std::thread::Result<u64>| {
        let message = outcome.unwrap_err().downcast::<&str>().map(|message| message.to_string());
        assert!(message.is_ok_and(|message| message.contains("while it was being made")));
    };
    hide("while it was being made");
    let map = Map::<u64, u64>::new();
    told(catch_unwind(AssertUnwindSafe(|| map.get_or_insert_with(1, || map.get_or_insert_with(1, || 2)))));
    assert!(!map.contains_key(&1));
    assert_eq!(map.get_or_insert_with(1, || 3), 3);

    let maps = [Map::<u64, u64>::new(), Map::new(), Map::new()];
    let barrier = Barrier::new(3);
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|thread| {
                let (maps, barrier) = (&maps, &barrier);
                scope.spawn(move || {
                    catch_unwind(AssertUnwindSafe(|| {
                        maps[thread].get_or_insert_with(9, || {
                            barrier.wait();
                            maps[(thread + 1) % 3].get_or_insert_with(9, || 5)
                        })
                    }))
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    // One at least is told; another may find that nobody makes the value any more.
    let mut refused = 0;
    for outcome in outcomes {
        match outcome {
            Ok(value) => assert_eq!(value, 5),
            refusal => {
                refused += 1;
                told(refusal);
            }
        }
    }
    assert!(refused > 0);
}

/// Panics with these words are not shown either.
fn hide(words: &'static str) {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !panic.payload_as_str().is_some_and(|message| message.contains(words)) {
            usual(panic);
        }
    }));
}

/// A closure under the stripe that panics has changed nothing and leaves nothing locked; the same if it changes the
/// map.
#[test]
fn a_closure_that_panics_or_changes_its_own_map_changes_nothing() {
    quiet();
    hide("by the closure of an update");
    let buffer = SharedBuffer::for_indexes(&small(), 2).unwrap();
    let map = Map::<u64, u64>::with_buffer(&buffer).unwrap();
    let beside = Map::<u64, u64>::with_buffer(&buffer).unwrap();
    let elsewhere = Map::<u64, u64>::new();
    map.insert(1, 10);
    let reader = map.pin();
    let changes: [&dyn Fn() -> u64; 9] = [
        &|| panic!("on purpose"),
        &|| map.insert(1, 11).map_or(0, |old| *old),
        &|| map.insert(500, 11).map_or(0, |old| *old),
        &|| map.remove(&1).map_or(0, |old| *old),
        &|| map.replace(1, 11).map_or(0, |old| *old),
        &|| map.update(2, |value| *value).map_or(0, |old| *old),
        &|| map.get_or_insert_with(77, || 8),
        &|| beside.insert(1, 11).map_or(0, |old| *old),
        &|| {
            map.pin().forget(&1);
            0
        },
    ];
    for change in changes {
        let panics = |what: &dyn Fn()| assert!(catch_unwind(AssertUnwindSafe(what)).is_err());
        panics(&|| drop(reader.update(1, |_| change())));
        panics(&|| drop(map.update_or_insert_with(9, |_| 1, change)));
        panics(&|| drop(map.remove_if(&1, |_, _| change() > 0)));
        panics(&|| {
            let _ = map.compute::<()>(1, |_| Operation::Insert(change()));
        });
        assert_eq!((reader.get(&1), reader.len(), beside.len()), (Some(&10), 1, 0));
        // Nothing is locked, of this key or of another.
        assert_eq!(map.update(1, |value| value + 1).as_deref(), Some(&10));
        assert_eq!(map.update(1, |value| value - 1).as_deref(), Some(&11));
    }
    // To look is allowed, and to change what is elsewhere.
    drop(map.update(1, |value| {
        elsewhere.insert(1, *value);
        map.get_with(&1, |value| *value).unwrap() + reader.len() as u64
    }));
    assert_eq!((reader.get(&1), elsewhere.get_with(&1, |value| *value)), (Some(&11), Some(10)));
}

/// Values and keys whose destructors use the map are freed as those of other writes are.
#[test]
fn destructors_that_use_the_map_may_come_from_compounds() {
    struct Uses(u64, Arc<Map<u64, u64>>);
    impl Drop for Uses {
        fn drop(&mut self) {
            drop(self.1.update_or_insert_with(self.0, |times| times + 1, || 1));
        }
    }
    let dropped = Arc::new(Map::<u64, u64>::with_config(&one_line()).unwrap());
    let map = Map::<u64, Uses>::with_config(&one_line()).unwrap();
    let uses = |number| Uses(number, Arc::clone(&dropped));
    assert!(map.try_insert(1, uses(1)).is_ok());
    assert!(map.try_insert(1, uses(2)).is_err());
    drop(map.update(1, |_| uses(3)));
    drop(map.remove_if(&1, |_, _| true));
    assert_eq!(map.pin().get_or_insert_with(1, || uses(4)).0, 4);
    drop(map);
    let reader = dropped.pin();
    assert!((1..5).all(|number| reader.get(&number) == Some(&1)));
}

/// Records in keys and values, by several threads: none is lost, none freed twice, none late.
#[test]
fn compounds_of_many_threads_free_each_entry_once() {
    let ledger = Arc::new(Ledger::default());
    let run = |map: &Map<Name, Record>| {
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let ledger = &ledger;
                scope.spawn(move || {
                    let (mut random, mut reader) = (Random(thread + 31), map.pin());
                    for _ in 0..steps() / 8 {
                        let number = random.below(10) as u64;
                        let (name, record) = (ledger.name(number), || ledger.record(number));
                        match random.below(5) {
                            0 => drop(reader.try_insert(name, record()).map(Record::number)),
                            1 => drop(reader.update(name, |old| ledger.record(old.number()))),
                            2 => drop(reader.get_or_insert_with(name, record).number()),
                            3 => drop(reader.compute::<()>(name, |entry| match entry {
                                Some((_, value)) if value.number() == number => Operation::Remove,
                                _ => Operation::Insert(record()),
                            })),
                            _ => drop(reader.remove_if(&number, |key, _| key.number == number)),
                        }
                        if random.below(20) == 0 {
                            reader.refresh();
                        }
                    }
                });
            }
        });
    };
    let map = Map::with_config(&one_line()).unwrap();
    run(&map);
    drop(map);
    ledger.settle();
}

#[test]
fn an_owner_has_the_same_words() {
    let (mut oracle, mut random) = (BTreeMap::<u64, String>::new(), Random(5));
    let mut map = OwnedMap::<u64, String>::with_config(&small()).unwrap();
    for step in 0..steps() / 4 {
        let key = random.below(40) as u64;
        let old = oracle.get(&key).cloned();
        let new = format!("{step}");
        match random.below(8) {
            0 => match map.try_insert(key, new.clone()) {
                Ok(value) => {
                    assert_eq!((value, &old), (&new, &None));
                    oracle.insert(key, new);
                }
                Err(occupied) => {
                    assert_eq!((Some(occupied.current), occupied.not_inserted), (old.as_ref(), new));
                }
            },
            1 => {
                let value = map.get_or_insert_with(key, || new.clone());
                assert_eq!(value, oracle.entry(key).or_insert(new));
            }
            2 => {
                let was = map.update(key, |value| format!("{value}+"));
                assert_eq!(was.as_deref(), old.as_ref());
                oracle.entry(key).and_modify(|value| value.push('+'));
            }
            3 => match (map.get_mut(&key), oracle.get_mut(&key)) {
                (Some(value), Some(other)) => {
                    value.push('!');
                    other.push('!');
                }
                (value, other) => assert_eq!(value, other),
            },
            4 => {
                let over = random.below(2) == 0;
                let was = map.remove_if(&key, |_, value| Some(value) == old.as_ref() && over);
                assert_eq!(was.as_deref(), old.as_ref().filter(|_| over));
                if over {
                    oracle.remove(&key);
                }
            }
            5 => drop((map.insert(key, new.clone()), oracle.insert(key, new))),
            _ => assert_eq!(map.get(&key), old.as_ref()),
        }
        assert_eq!(map.get(&key), oracle.get(&key));
        if step % 500 == 0 {
            assert!(map.iter().eq(oracle.iter()));
        }
    }
    assert_eq!(format!("{map:?}"), format!("{oracle:?}"));
    map.retain(|key, _| key % 3 == 0);
    oracle.retain(|key, _| key % 3 == 0);
    assert!(map.iter().eq(oracle.iter()));
    let drained: Vec<_> = map.drain().map(|removed| removed.try_unwrap().unwrap()).collect();
    assert_eq!(drained, oracle.clone().into_iter().collect::<Vec<_>>());
    assert!(map.is_empty() && map.get(&0).is_none());
    map.extend(oracle.clone());
    assert!(map.iter().eq(oracle.iter()));
    map.clear();
    assert!(map.is_empty() && oracle.keys().all(|key| !map.contains_key(key)));
}

/// Numbers, whose entries are succeeded: a value is changed where it is, whichever of the two entries has it.
#[test]
fn a_number_is_changed_in_place_also_where_it_has_succeeded_another() {
    let mut map = OwnedMap::<u64, u64>::new();
    for round in 0..5 {
        for key in 0..10 {
            map.insert(key, round);
            map.get(&key);
            *map.get_mut(&key).unwrap() += 100;
            assert_eq!(map.get(&key), Some(&(round + 100)));
        }
    }
    assert!(map.counts().successions > 0);
    map.insert(3, 0);
    assert_eq!(map.insert(3, 1).as_deref(), Some(&0));
}

#[test]
fn a_shared_map_has_the_standard_librarys_words() {
    let pairs = [(3, "three"), (1, "one"), (2, "two"), (1, "uno")];
    let mut map: Map<u64, &str> = pairs.into_iter().collect();
    let oracle: BTreeMap<u64, &str> = pairs.into_iter().collect();
    assert_eq!(format!("{map:?} {:?}", map.pin()), format!("{oracle:?} {oracle:?}"));
    assert!(map.pin().iter().eq(oracle.iter()) && map.pin().into_iter().rev().eq(oracle.iter().rev()));
    map.extend([(9, "nine"), (4, "four")]);
    assert_eq!((map.len(), map.pin().get(&1)), (5, Some(&"uno")));
    map.retain(|key, _| key % 2 == 0);
    assert_eq!(map.pin().iter().map(|(key, _)| *key).collect::<Vec<_>>(), [2, 4]);
    // The list was taken before: what the loop puts in is not in it.
    let reader = map.pin();
    for (key, value) in &reader {
        map.insert(key + 100, value);
    }
    assert_eq!(map.len(), 4);
    drop(reader);
    map.clear();
    assert!(map.is_empty() && map.pin().is_empty() && Map::<u64, u64>::default().is_empty());
    // Hashed, where an index says so.
    let hashed: Map<u64, u64, RwLock<HashSet<Handle<u64, u64>>>> = (0..100).map(|key| (key, key)).collect();
    let seen: HashMap<u64, u64> = hashed.pin().iter().map(|(key, value)| (*key, *value)).collect();
    assert_eq!((seen.len(), hashed.len(), hashed.pin().get(&42)), (100, 100, Some(&42)));
    let hasher = std::hash::RandomState::new();
    let by_sip = Map::<&str, u64, _, _>::with_hasher(hasher);
    by_sip.insert("key", 1);
    assert_eq!(by_sip.pin().get("key"), Some(&1));
    type Whole<K, V> = Map<K, V, RwLock<BTreeSet<Handle<K, V>>>, RandomState>;
    let _: Whole<u64, u64> = Map::with_capacity(10);
}

/// A step of a history: what was called, what it answered, and when it was called and answered.
#[derive(Debug, Clone, Copy)]
struct Step {
    call: Call,
    called: u64,
    answered: u64,
}

/// Calls of one key with their answers.
#[derive(Debug, Clone, Copy)]
enum Call {
    /// What was there, if it was not put in.
    TryInsert {
        value: u64,
        current: Option<u64>,
    },
    /// One more; what was there.
    Update {
        old: Option<u64>,
    },
    /// If it is even; what was taken out.
    RemoveIf {
        old: Option<u64>,
    },
    Get {
        found: Option<u64>,
    },
}

impl Call {
    /// The value after it, if it could have answered so with this one before.
    fn after(self, value: Option<u64>) -> Option<Option<u64>> {
        match self {
            Call::TryInsert { value: new, current: None } => value.is_none().then_some(Some(new)),
            Call::TryInsert { current, .. } => (value == current).then_some(value),
            Call::Update { old } => (value == old).then_some(value.map(|value| value + 1)),
            Call::RemoveIf { old: Some(old) } => (value == Some(old) && old % 2 == 0).then_some(None),
            Call::RemoveIf { old: None } => value.is_none_or(|value| value % 2 == 1).then_some(value),
            Call::Get { found } => (value == found).then_some(value),
        }
    }
}

/// Whether some order of the steps, in which none comes before another that was answered when it was called, explains
/// all answers (Wing and Gong, 1993, with the states that were tried remembered, as Lowe does).
fn is_linearizable(steps: &[Step]) -> bool {
    fn explains(
        steps: &[Step],
        done: u64,
        value: Option<u64>,
        tried: &mut HashSet<(u64, Option<u64>)>,
    ) -> bool {
        if done == (1 << steps.len()) - 1 {
            return true;
        }
        if !tried.insert((done, value)) {
            return false;
        }
        let open = |&at: &usize| done & 1 << at == 0;
        let first_answer = (0..steps.len()).filter(open).map(|at| steps[at].answered).min().unwrap_or(0);
        (0..steps.len()).filter(open).filter(|&at| steps[at].called < first_answer).any(|at| {
            steps[at].call.after(value).is_some_and(|value| explains(steps, done | 1 << at, value, tried))
        })
    }
    assert!(steps.len() < 64);
    explains(steps, 0, None, &mut HashSet::new())
}

#[test]
fn the_checker_of_histories_knows_a_lost_update() {
    let step = |call, called, answered| Step { call, called, answered };
    let put = step(Call::TryInsert { value: 4, current: None }, 0, 1);
    let increments = |other| {
        [put, step(Call::Update { old: Some(4) }, 2, 5), step(Call::Update { old: Some(other) }, 3, 4)]
    };
    assert!(is_linearizable(&increments(5)));
    assert!(!is_linearizable(&increments(4)), "both saw the same value");
    let late = [put, step(Call::RemoveIf { old: Some(4) }, 2, 3), step(Call::Get { found: Some(4) }, 4, 5)];
    assert!(!is_linearizable(&late), "found behind its removal");
}

/// Three threads at two keys, whose tags share a line with others': each key's history is explained by some order.
#[test]
fn histories_of_compounds_are_linearizable() {
    const THREADS: u64 = 3;
    const STEPS: usize = 14;
    let (rounds, end) = (steps() / 20, Instant::now() + Duration::from_secs(20));
    let mut explained = 0;
    for round in 0..rounds as u64 {
        if Instant::now() > end {
            break;
        }
        let map = Map::<u64, u64>::with_config(&one_line()).unwrap();
        map.buffer().monitor(false);
        let (clock, barrier) = (AtomicU64::new(0), Barrier::new(THREADS as usize));
        let histories: Vec<Vec<(u64, Step)>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let (map, clock, barrier) = (&map, &clock, &barrier);
                    scope.spawn(move || {
                        let mut random = Random(round * THREADS + thread + 1);
                        let mut history = Vec::new();
                        barrier.wait();
                        let reader = map.pin();
                        for _ in 0..STEPS {
                            let key = random.below(2) as u64;
                            let called = clock.fetch_add(1, Ordering::SeqCst);
                            let call = match random.below(5) {
                                0 => {
                                    let value = random.below(4) as u64;
                                    let current = reader.try_insert(key, value).err();
                                    Call::TryInsert { value, current: current.map(|error| *error.current) }
                                }
                                1 => Call::Update {
                                    old: reader.update(key, |value| value + 1).map(|old| *old),
                                },
                                2 => {
                                    let old = reader.remove_if(&key, |_, value| value % 2 == 0);
                                    Call::RemoveIf { old: old.map(|old| *old) }
                                }
                                _ => Call::Get { found: reader.get(&key).copied() },
                            };
                            let answered = clock.fetch_add(1, Ordering::SeqCst);
                            history.push((key, Step { call, called, answered }));
                        }
                        history
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for key in 0..2 {
            let of_key = histories.iter().flatten().filter(|(of, _)| *of == key);
            let mut steps: Vec<Step> = of_key.map(|(_, step)| *step).collect();
            steps.sort_by_key(|step| step.called);
            assert!(is_linearizable(&steps), "{steps:#?}");
            explained += 1;
        }
    }
    assert!(explained >= 20, "only {explained} histories in twenty seconds");
}
