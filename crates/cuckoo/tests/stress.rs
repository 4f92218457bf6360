//! Many threads on one table, with the history of every key checked: what a lookup returned must have been in the table
//! at some moment during the lookup.
//!
//! Each key is written by one thread, which numbers its changes: it announces a change before it makes it and records
//! it when it is made. A reader notes what was made before its lookup and what was announced when it returned; the
//! version it saw must lie between. Entries are never reused here, so a location says its key and version for ever.

use std::sync::atomic::{AtomicU64, Ordering};

use lookaside_cuckoo::experiments::{EightWay, FourWay, Layout, Search, SevenWay};
use lookaside_cuckoo::{Config, Growth, Insertion, Linear, Location, Table, Upsertion};
use outside::Random;

const KEYS: usize = 1 << 13;
const WRITERS: usize = 2;
const READERS: usize = 2;

/// Location = version * KEYS + key. An odd version is one in which the key is in the table.
fn location(key: usize, version: u64) -> Location {
    Location::new(version * KEYS as u64 + key as u64).unwrap()
}

fn hash(key: usize) -> u64 {
    let mixed = (key as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) ^ mixed.rotate_left(31)
}

/// Whether the entry at a location is this key's.
fn holds(location: Location, key: usize) -> bool {
    location.get() as usize % KEYS == key
}

fn hasher(location: Location) -> u64 {
    hash(location.get() as usize % KEYS)
}

#[derive(Default)]
struct History {
    announced: AtomicU64,
    made: AtomicU64,
}

fn write<L: Layout>(table: &Table<L>, histories: &[History], writer: usize, changes: usize) {
    let mut random = Random(0x1234_5678 + writer as u64);
    for _ in 0..changes {
        let key = random.below(KEYS / WRITERS) * WRITERS + writer;
        let (history, hash) = (&histories[key], hash(key));
        let version = history.made.load(Ordering::Relaxed);
        let present = version % 2 == 1;
        // Versions go up by two where presence stays, by one where it changes.
        let (next, change) = match (present, random.below(4)) {
            (true, 0 | 1) => (version + 1, "remove"),
            (true, 2) => (version + 2, "upsert"),
            (true, _) => (version + 2, "replace"),
            (false, 0) => (version + 1, "upsert"),
            (false, _) => (version + 1, "insert"),
        };
        history.announced.store(next, Ordering::SeqCst);
        match change {
            "remove" => {
                assert_eq!(table.remove(hash, |at| holds(at, key)), Some(location(key, version)));
            }
            "replace" => assert!(table.replace(hash, location(key, version), location(key, next))),
            "upsert" => {
                let new = location(key, next);
                match table.insert_or_replace(hash, new, |at| holds(at, key), hasher).unwrap() {
                    Upsertion::Inserted(_) => assert!(!present),
                    Upsertion::Replaced(old) => assert_eq!((old, present), (location(key, version), true)),
                }
            }
            _ => {
                let new = location(key, next);
                let outcome = table.insert_or_get(hash, new, |at| holds(at, key), hasher).unwrap();
                assert!(matches!(outcome, Insertion::Inserted(_)), "{outcome:?}");
            }
        }
        history.made.store(next, Ordering::SeqCst);
    }
}

/// Checks what a lookup that began after `made` and ended before `announced` found.
fn judge(key: usize, found: Option<Location>, made: u64, announced: u64) {
    match found {
        Some(at) => {
            let version = at.get() / KEYS as u64;
            assert_eq!(at.get() as usize % KEYS, key, "the entry of another key");
            assert!(
                version % 2 == 1 && (made..=announced).contains(&version),
                "{version} not in {made}..={announced}"
            );
        }
        // Absent before the first change of the interval, after its last, or in between.
        None => assert!(made.is_multiple_of(2) || announced > made, "key {key} missed at version {made}"),
    }
}

fn read<L: Layout>(table: &Table<L>, histories: &[History], reader: usize, lookups: usize) {
    let mut random = Random(0x9876_5432 + reader as u64);
    let mut done = 0;
    while done < lookups {
        let keys: Vec<usize> = (0..1 + random.below(20)).map(|_| random.below(KEYS)).collect();
        let made: Vec<u64> = keys.iter().map(|&key| histories[key].made.load(Ordering::SeqCst)).collect();
        let mut found = vec![None; keys.len()];
        if random.below(2) == 0 {
            let hashes: Vec<u64> = keys.iter().map(|&key| hash(key)).collect();
            table.find_many(hasher, &hashes, |i, at| holds(at, keys[i]), &mut found);
        } else {
            for (found, &key) in found.iter_mut().zip(&keys) {
                *found = table.find(hash(key), |at| holds(at, key));
            }
        }
        for ((&key, found), made) in keys.iter().zip(found).zip(made) {
            judge(key, found, made, histories[key].announced.load(Ordering::SeqCst));
        }
        done += keys.len();
    }
}

fn stress<L: Layout>(table: &Table<L>, changes: usize) {
    let histories: Vec<History> = (0..KEYS).map(|_| History::default()).collect();
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for writer in 0..WRITERS {
            let (table, histories) = (&table, &histories);
            threads.push(scope.spawn(move || write(table, histories, writer, changes)));
        }
        for reader in 0..READERS {
            let (table, histories) = (&table, &histories);
            threads.push(scope.spawn(move || read(table, histories, reader, changes)));
        }
        // By hand, because the thread sanitizer sees a join and does not see the end of a scope.
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    let present: Vec<usize> =
        (0..KEYS).filter(|&key| histories[key].made.load(Ordering::SeqCst) % 2 == 1).collect();
    assert_eq!(table.len(), present.len());
    let mut keys: Vec<usize> = table.iter().map(|at| at.get() as usize % KEYS).collect();
    keys.sort_unstable();
    let first_difference = keys.iter().zip(&present).position(|(has, should)| has != should);
    assert!(
        first_difference.is_none() && keys.len() == present.len(),
        "not every key once: see {first_difference:?}"
    );
}

/// Fewer under the sanitizers, which set this: they look at every access, not at many of them.
fn changes() -> usize {
    std::env::var("LOOKASIDE_STRESS_CHANGES").map_or(200_000, |changes| changes.parse().expect("a number"))
}

macro_rules! stress_tests {
    ($($name:ident: $layout:ty),*) => { $(
        mod $name {
            use super::*;

            /// Nearly full, so that most inserts displace and many paths cross.
            #[test]
            fn a_crowded_table_of_fixed_size() {
                for search in [Search::BreadthFirst, Search::Walks(2)] {
                    // Of KEYS keys a good half is present at a time.
                    let buckets = (KEYS * 70 / 100 / <$layout>::SLOTS).next_power_of_two();
                    let config = Config::new().with_growth(Growth::Fixed).with_search(search);
                    stress(&Table::<$layout>::with_buckets(buckets, &config).unwrap(), changes());
                }
            }

            /// From two buckets to thousands, again and again: most of the run is growth.
            #[test]
            fn a_table_that_grows_from_nothing() {
                for target_load in [0.1, 0.5, 0.8] {
                    let growth = Growth::Linear(Linear::up_to(KEYS * 4).with_target_load(target_load));
                    let config = Config::new().with_growth(growth);
                    stress(&Table::<$layout>::with_buckets(2, &config).unwrap(), changes() / 4);
                }
            }
        }
    )* };
}

stress_tests!(four_way: FourWay, seven_way: SevenWay, eight_way: EightWay);

/// Threads that insert and remove the same few keys: of those who compete, one wins.
#[test]
fn competing_writers_agree_on_who_won() {
    let table: Table = Table::with_buckets(4, &Config::new().with_growth(Growth::Fixed)).unwrap();
    let inserted = AtomicU64::new(0);
    let removed = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for thread in 0..4u64 {
            let (table, inserted, removed) = (&table, &inserted, &removed);
            threads.push(scope.spawn(move || {
                let mut random = Random(77 + thread);
                for round in 0..changes() as u64 / 2 {
                    let key = random.below(5);
                    let mine = location(key, 1 + 2 * (round * 4 + thread));
                    match table.insert_or_get(hash(key), mine, |at| holds(at, key), hasher).unwrap() {
                        Insertion::Inserted(_) => inserted.fetch_add(1, Ordering::Relaxed),
                        Insertion::Occupied(other) => u64::from(
                            table.remove_exact(hash(key), other) && {
                                removed.fetch_add(1, Ordering::Relaxed);
                                true
                            },
                        ),
                    };
                }
            }));
        }
        // By hand, because the thread sanitizer sees a join and does not see the end of a scope.
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    assert_eq!(inserted.into_inner() - removed.into_inner(), table.len() as u64);
    assert_eq!(table.iter().count(), table.len());
}
