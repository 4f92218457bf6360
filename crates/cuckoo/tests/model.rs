//! Sequences of operations against a plain map, for every layout and way of searching, on tables small enough that
//! buckets overflow, tags collide and growth passes several doublings.

use std::cell::RefCell;
use std::collections::HashMap;

use lookaside_cuckoo::experiments::{EightWay, FourWay, Inline, Layout, Search, SevenWay, Striped};
use lookaside_cuckoo::{Config, Growth, Insertion, Linear, Location, Table, Upsertion};
use proptest::prelude::*;

/// Entries by location: the key each was made for. `spread` narrows the hash, so that keys collide.
struct Ledger {
    keys: RefCell<Vec<u32>>,
    spread: u32,
}

impl Ledger {
    fn new(spread: u32) -> Self {
        Ledger { keys: RefCell::default(), spread }
    }

    fn add(&self, key: u32) -> Location {
        let mut keys = self.keys.borrow_mut();
        keys.push(key);
        Location::new(keys.len() as u64 - 1).unwrap()
    }

    fn hash_of(&self, key: u32) -> u64 {
        let mixed = (u64::from(key) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = mixed ^ mixed >> 32;
        // Few distinct hashes, spread over all bits.
        if self.spread >= 64 {
            mixed
        } else {
            (mixed % (1 << self.spread)).wrapping_mul(0xD6E8_FEB8_6659_FD93)
        }
    }
}

impl Ledger {
    fn holds(&self, location: Location, key: u32) -> bool {
        self.keys.borrow()[location.get() as usize] == key
    }

    fn hash(&self, location: Location) -> u64 {
        self.hash_of(self.keys.borrow()[location.get() as usize])
    }
}

#[derive(Debug, Clone)]
enum Operation {
    Insert(u32),
    Upsert(u32),
    Remove(u32),
    Replace(u32),
    ReplaceStale(u32),
    Get(u32),
    GetMany(Vec<u32>),
}

fn operation(keys: u32) -> impl Strategy<Value = Operation> {
    let key = 0..keys;
    prop_oneof![
        6 => key.clone().prop_map(Operation::Insert),
        2 => key.clone().prop_map(Operation::Upsert),
        2 => key.clone().prop_map(Operation::Remove),
        1 => key.clone().prop_map(Operation::Replace),
        1 => key.clone().prop_map(Operation::ReplaceStale),
        2 => key.clone().prop_map(Operation::Get),
        1 => prop::collection::vec(key, 0..40).prop_map(Operation::GetMany),
    ]
}

/// Applies the operations to a table and to a map, and compares every answer. Says how often the table was too full.
fn check<L: Layout>(table: &Table<L>, spread: u32, operations: &[Operation]) -> Result<usize, TestCaseError> {
    let ledger = Ledger::new(spread);
    let mut model: HashMap<u32, Location> = HashMap::new();
    let mut refusals = 0;
    let get = |key: u32| table.find(ledger.hash_of(key), |location| ledger.holds(location, key));
    let hasher = |location: Location| ledger.hash(location);
    for operation in operations {
        match *operation {
            Operation::Insert(key) => {
                let location = ledger.add(key);
                let eq = |location| ledger.holds(location, key);
                match (table.insert_or_get(ledger.hash_of(key), location, eq, hasher), model.get(&key)) {
                    (Ok(Insertion::Occupied(found)), Some(&expected)) => prop_assert_eq!(found, expected),
                    (Ok(Insertion::Inserted(_)), None) => drop(model.insert(key, location)),
                    (Err(_), None) => refusals += 1,
                    (outcome, expected) => {
                        prop_assert!(false, "insert {key}: {outcome:?}, the model has {expected:?}")
                    }
                }
            }
            Operation::Upsert(key) => {
                let location = ledger.add(key);
                let eq = |location| ledger.holds(location, key);
                let upsertion = table.insert_or_replace(ledger.hash_of(key), location, eq, hasher);
                match (upsertion, model.get(&key).copied()) {
                    (Ok(Upsertion::Replaced(found)), Some(expected)) => {
                        prop_assert_eq!(found, expected);
                        model.insert(key, location);
                    }
                    (Ok(Upsertion::Inserted(_)), None) => drop(model.insert(key, location)),
                    (Err(_), None) => refusals += 1,
                    (outcome, expected) => {
                        prop_assert!(false, "upsert {key}: {outcome:?}, the model has {expected:?}")
                    }
                }
            }
            Operation::Remove(key) => {
                let removed = table.remove(ledger.hash_of(key), |location| ledger.holds(location, key));
                prop_assert_eq!(removed, model.remove(&key));
            }
            Operation::Replace(key) => {
                if let Some(held) = model.get_mut(&key) {
                    let new = ledger.add(key);
                    prop_assert!(!table.replace_if(ledger.hash_of(key), *held, new, || false));
                    prop_assert_eq!(get(key), Some(*held));
                    prop_assert!(table.replace(ledger.hash_of(key), *held, new));
                    *held = new;
                }
            }
            Operation::ReplaceStale(key) => {
                let never_inserted = ledger.add(key);
                prop_assert!(!table.replace(ledger.hash_of(key), never_inserted, never_inserted));
                prop_assert!(!table.remove_exact(ledger.hash_of(key), never_inserted));
            }
            Operation::Get(key) => prop_assert_eq!(get(key), model.get(&key).copied()),
            Operation::GetMany(ref keys) => {
                let hashes: Vec<_> = keys.iter().map(|&key| ledger.hash_of(key)).collect();
                let mut found = vec![Location::new(0); keys.len()];
                table.find_many(hasher, &hashes, |i, location| ledger.holds(location, keys[i]), &mut found);
                let expected: Vec<_> = keys.iter().map(|key| model.get(key).copied()).collect();
                prop_assert_eq!(found, expected);
            }
        }
        prop_assert_eq!(table.len(), model.len());
    }
    for (&key, &location) in &model {
        prop_assert_eq!(get(key), Some(location), "key {} at the end", key);
        prop_assert!(table.neighbours(ledger.hash_of(key)).any(|neighbour| neighbour == location));
    }
    let mut all: Vec<_> = table.iter().collect();
    let mut expected: Vec<_> = model.into_values().collect();
    all.sort();
    expected.sort();
    prop_assert_eq!(all, expected);
    Ok(refusals)
}

fn searches() -> impl Strategy<Value = Search> {
    prop_oneof![Just(Search::BreadthFirst), (1usize..=3).prop_map(Search::Walks)]
}

macro_rules! model_tests {
    ($($name:ident: $layout:ty, grows at $load:expr, refusals $refusals:expr),* $(,)?) => { $(
        mod $name {
            use super::*;

            proptest! {
                #![proptest_config(ProptestConfig {
                    cases: cases(), failure_persistence: None, ..ProptestConfig::default()
                })]

                #[test]
                fn a_fixed_table_is_a_map_until_it_is_full(
                    search in searches(),
                    buckets in 1usize..40,
                    operations in prop::collection::vec(operation(300), 1..600),
                ) {
                    let config = Config::new().with_growth(Growth::Fixed).with_search(search);
                    check(&Table::<$layout>::with_buckets(buckets, &config).unwrap(), 64, &operations)?;
                }

                #[test]
                fn a_growing_table_is_a_map_and_makes_room(
                    search in searches(),
                    buckets in 1usize..8,
                    target_load in $load,
                    operations in prop::collection::vec(operation(2000), 1..1500),
                ) {
                    let growth = Growth::Linear(Linear::up_to(1 << 12).with_target_load(target_load));
                    let config = Config::new().with_search(search).with_growth(growth);
                    let table = Table::<$layout>::with_buckets(buckets, &config).unwrap();
                    let refusals = check(&table, 64, &operations)?;
                    prop_assert!($refusals.contains(&refusals), "{} refusals", refusals);
                }

                #[test]
                fn colliding_hashes_are_told_apart_by_their_keys(
                    search in searches(),
                    spread in 1u32..6,
                    grows: bool,
                    operations in prop::collection::vec(operation(60), 1..300),
                ) {
                    let growth = if grows { Growth::Linear(Linear::up_to(64)) } else { Growth::Fixed };
                    let config = Config::new().with_search(search).with_growth(growth);
                    check(&Table::<$layout>::with_buckets(16, &config).unwrap(), spread, &operations)?;
                }
            }
        }
    )* };
}

// Buckets of one or two slots are no layout to use: keys that share few buckets overflow them at any size. They are
// here because on them the rare cases of the wide layouts happen all the time.
model_tests! {
    four_way: FourWay, grows at 0.3..0.8, refusals 0..1,
    seven_way: SevenWay, grows at 0.3..0.9, refusals 0..1,
    eight_way: EightWay, grows at 0.3..0.9, refusals 0..1,
    one_way_inline: Inline<1>, grows at 0.1..0.4, refusals 0..usize::MAX,
    two_way_striped: Striped<2, 3>, grows at 0.1..0.7, refusals 0..usize::MAX,
}

/// Fewer under the sanitizers, which set this.
fn cases() -> u32 {
    if std::env::var_os("LOOKASIDE_STRESS_CHANGES").is_some() { 32 } else { 256 }
}
