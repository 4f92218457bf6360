//! Bounds and failures: how much any one operation moves, how full a table gets, what happens when memory or a caller's
//! comparison fails.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use lookaside_cuckoo::experiments::{
    EightWay, FourWay, Layout, SPLITS_WHEN_FULL, SPLITS_WHEN_LOADED, Search, SevenWay,
};
use lookaside_cuckoo::{Config, CreateError, Growth, Insertion, Linear, Location, Table, TooFull, Work};
use outside::{Resource, limited};
use pages::{Budget, MapError, fault};

fn hash(key: u64) -> u64 {
    let mixed = (key + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

/// Entry i is key i, and has the hash of this function.
fn insert_hashed<L: Layout>(
    table: &Table<L>,
    key: u64,
    hash: u64,
    hasher: fn(u64) -> u64,
) -> Result<Insertion, TooFull> {
    let at = Location::new(key).unwrap();
    table.insert_or_get(hash, at, |at| at.get() == key, |at: Location| hasher(at.get()))
}

fn insert<L: Layout>(table: &Table<L>, key: u64) -> Result<Work, TooFull> {
    match insert_hashed(table, key, hash(key), hash)? {
        Insertion::Inserted(work) => Ok(work),
        Insertion::Occupied(_) => panic!("key {key} is new"),
    }
}

fn holds_all<L: Layout>(table: &Table<L>, keys: u64) -> bool {
    (0..keys).all(|key| table.find(hash(key), |at| at.get() == key).is_some())
}

fn growing(limit: usize) -> Config {
    Config::new().with_growth(Growth::Linear(Linear::up_to(limit)))
}

fn fill<L: Layout>(search: Search, buckets: usize) -> (Table<L>, u64) {
    let table =
        Table::<L>::with_buckets(buckets, &Config::new().with_growth(Growth::Fixed).with_search(search))
            .unwrap();
    let keys = (0..).find(|&key| insert(&table, key).is_err()).unwrap();
    assert!(holds_all(&table, keys));
    (table, keys)
}

/// The load before the first refusal: the paper's Table 2 has 94.8 to 95.2 % for four slots.
#[test]
fn a_table_of_a_power_of_two_fills_before_it_refuses() {
    for search in [Search::Walks(1), Search::Walks(2), Search::Walks(3), Search::BreadthFirst] {
        let (four, _) = fill::<FourWay>(search, 1 << 15);
        let (seven, _) = fill::<SevenWay>(search, 1 << 14);
        let (eight, _) = fill::<EightWay>(search, 1 << 14);
        assert!(four.load_factor() > 0.94, "{search:?}: {}", four.load_factor());
        assert!(
            seven.load_factor() > 0.97 && seven.bytes_per_key() < 9.5,
            "{search:?}: {}",
            seven.load_factor()
        );
        assert!(
            eight.load_factor() > 0.97 && eight.bytes_per_key() < 8.7,
            "{search:?}: {}",
            eight.load_factor()
        );
    }
}

#[test]
fn no_operation_of_a_growing_table_moves_more_than_a_handful_of_buckets() {
    let table: Table = Table::with_buckets(1, &growing(1 << 16)).unwrap();
    let mut splits = 0;
    for key in 0..200_000 {
        let work = insert(&table, key).unwrap();
        assert!(work.split <= SPLITS_WHEN_LOADED + SPLITS_WHEN_FULL, "{work:?}");
        // Breadth-first over 512 buckets goes at most a few displacements deep.
        assert!(work.displaced <= 8, "{work:?}");
        splits += work.split;
        if key > 5_000 {
            assert!((0.85..=0.95).contains(&table.load_factor()), "{} at {key}", table.load_factor());
        }
    }
    assert_eq!(splits + 1, table.buckets());
    assert!(holds_all(&table, 200_000));
}

#[test]
fn a_growing_table_stops_at_its_limit_and_is_full_there() {
    let table: Table = Table::with_buckets(8, &growing(1 << 10)).unwrap();
    let keys = (0..).find(|&key| insert(&table, key).is_err()).unwrap();
    assert_eq!(table.buckets(), 1 << 10);
    assert!(table.load_factor() > 0.97, "{}", table.load_factor());
    assert!(holds_all(&table, keys));
    // Room made is room had.
    assert_eq!(table.remove(hash(3), |at| at.get() == 3), Location::new(3));
    let neighbours = table.neighbours(hash(keys)).count();
    assert_eq!(neighbours, 14, "both buckets of the refused key are full");
    for victim in table.neighbours(hash(keys)).take(1).collect::<Vec<_>>() {
        assert!(table.remove_exact(hash(victim.get()), victim));
    }
    insert(&table, keys).expect("one of its neighbours has left");
}

#[test]
fn growth_takes_memory_from_the_budget_and_stops_where_it_is_refused() {
    const PIECE: usize = 64 << 10;
    let budget = Arc::new(Budget::new(5 * PIECE / 2));
    let growth = Growth::Linear(Linear::up_to(1 << 20).with_budget(budget.clone()));
    let config = Config::new().with_growth(growth);
    let table: Table = Table::with_buckets(1000, &config).unwrap();
    assert_eq!(budget.taken(), PIECE);
    let keys = (0..).find(|&key| insert(&table, key).is_err()).unwrap();
    assert_eq!(budget.taken(), 2 * PIECE);
    assert_eq!(table.buckets() * 64, 2 * PIECE, "every bucket that was paid for, and no more");
    assert!(holds_all(&table, keys));
    drop(table);
    assert_eq!(budget.taken(), 0);
    // Not even the first piece.
    let poor = Growth::Linear(Linear::up_to(1 << 20).with_budget(Arc::new(Budget::new(PIECE - 1))));
    let refused = Table::<SevenWay>::with_buckets(1, &Config::new().with_growth(poor));
    assert_eq!(refused.unwrap_err(), CreateError::OverBudget { bytes: PIECE });
}

#[test]
fn senseless_sizes_and_terms_are_errors() {
    let make = |buckets, config: &Config| Table::<SevenWay>::with_buckets(buckets, config).map(drop);
    assert_eq!(make(0, &Config::new()), Err(CreateError::NoRoom));
    assert_eq!(make(8, &growing(7)), Err(CreateError::NoRoom));
    assert_eq!(make(usize::MAX, &Config::default()), Err(CreateError::TooMany { buckets: usize::MAX }));
    assert!(matches!(
        Table::<SevenWay>::with_capacity(usize::MAX, &Config::default()),
        Err(CreateError::TooMany { .. })
    ));
    for load in [0.0, 0.96, f64::NAN] {
        let growth = Growth::Linear(Linear::up_to(8).with_target_load(load));
        let refused = make(8, &Config::new().with_growth(growth));
        assert!(matches!(refused, Err(CreateError::BadTargetLoad(_))), "{load}");
    }
    for walks in [0, 9] {
        let config = Config::new().with_growth(Growth::Fixed).with_search(Search::Walks(walks));
        assert_eq!(make(8, &config), Err(CreateError::BadWalks(walks)));
    }
}

#[test]
fn every_allocation_may_fail() {
    for config in [Config::new(), Config::new().with_growth(Growth::Fixed), growing(1 << 20)] {
        for nth in 0.. {
            let (table, reached) = fault::fail_nth(nth, || Table::<SevenWay>::with_buckets(1 << 10, &config));
            match table {
                Ok(table) => assert!(insert(&table, 1).is_ok()),
                Err(error) => {
                    assert!(matches!(error, CreateError::Memory(MapError::Refused { .. })), "{error}")
                }
            }
            if !reached {
                assert!(nth > 0);
                break;
            }
        }
    }
}

/// Entries whose comparison or hash panics when told to.
struct Explosive {
    armed: std::cell::Cell<bool>,
}

impl Explosive {
    fn tick(&self) {
        assert!(!self.armed.replace(false), "the caller's own failure");
    }
}

impl Explosive {
    fn holds(&self, location: Location, key: u64) -> bool {
        self.tick();
        location.get() == key
    }

    fn hash(&self, location: Location) -> u64 {
        self.tick();
        hash(location.get())
    }
}

#[test]
fn a_panic_in_a_comparison_or_hash_leaves_the_table_as_it_was_and_usable() {
    let table: Table = Table::with_buckets(2, &growing(1 << 12)).unwrap();
    let entries = Explosive { armed: false.into() };
    let put = |key: u64| {
        let at = Location::new(key).unwrap();
        table.insert_or_get(hash(key), at, |at| entries.holds(at, key), |at| entries.hash(at))
    };
    let (mut keys, mut panics) = (0, 0);
    while keys < 5_000 {
        entries.armed.set(true);
        match catch_unwind(AssertUnwindSafe(|| put(keys))) {
            Ok(outcome) => assert!(matches!(outcome, Ok(Insertion::Inserted(_)))),
            Err(_) => {
                panics += 1;
                // In a comparison the key did not get in; in a split, which comes after, it did.
                let _ = put(keys).unwrap();
            }
        }
        entries.armed.set(false);
        keys += 1;
    }
    assert!(panics > 500, "{panics} panics are too few to prove anything");
    assert!(holds_all(&table, keys));
    assert_eq!((table.len() as u64, table.iter().count() as u64), (keys, keys));
    let remove = |key: u64| {
        entries.armed.set(true);
        let _ = catch_unwind(AssertUnwindSafe(|| table.remove(hash(key), |at| entries.holds(at, key))));
        entries.armed.set(false);
        table.remove(hash(key), |at| entries.holds(at, key))
    };
    assert!((0..keys).all(|key| remove(key).is_some()));
    assert!(table.is_empty());
}

/// An owner whose hash lies loses entries; nothing else happens.
#[test]
fn a_lying_hash_gives_wrong_answers_and_nothing_worse() {
    let table: Table = Table::with_buckets(1, &growing(1 << 12)).unwrap();
    let accepted: Vec<_> = (0..5_000u64)
        .filter(|&key| {
            let inserted = insert_hashed(&table, key, hash(key), |key| hash(key * 31 + 7));
            matches!(inserted, Ok(Insertion::Inserted(_)))
        })
        .collect();
    // It may not find them where they went; it has lost none, and none is there twice.
    let mut there: Vec<_> = table.iter().map(Location::get).collect();
    there.sort_unstable();
    assert_eq!(there, accepted);
    assert_eq!(table.len(), accepted.len());
}

#[test]
fn equal_hashes_do_not_grow_a_table_that_is_nearly_empty() {
    let table: Table = Table::with_buckets(1, &growing(1 << 20)).unwrap();
    let taken =
        (0..20_000u64).filter(|&key| insert_hashed(&table, key, hash(1), |_| hash(1)).is_ok()).count();
    assert!((7..=14).contains(&taken), "{taken} of two buckets");
    assert!(table.buckets() <= 64, "{} buckets for {taken} entries", table.buckets());
}

#[test]
fn a_weak_hash_grows_a_table_as_a_good_one_does() {
    // Without the four bits that one counter of sixteen could be chosen by.
    fn weak(key: u64) -> u64 {
        hash(key) & !(0xf << 44)
    }
    const KEYS: u64 = 400_000;
    let table: Table = Table::with_buckets(1, &growing(1 << 20)).unwrap();
    for key in 0..KEYS {
        insert_hashed(&table, key, weak(key), weak).unwrap();
    }
    assert!(table.buckets() * 7 < 2 * KEYS as usize, "{} buckets", table.buckets());
}

/// A table that nobody told how far it may grow begins small and has room for whatever comes.
#[test]
fn a_table_grows_unless_told_otherwise() {
    const KEYS: u64 = 50_000;
    let table: Table = Table::with_capacity(1, &Config::default()).unwrap();
    assert_eq!(table.buckets(), 1);
    (0..KEYS).for_each(|key| assert!(insert(&table, key).is_ok()));
    assert!(holds_all(&table, KEYS) && table.load_factor() > 0.8);
}

/// And where a process may not have as many addresses as it likes.
#[test]
fn a_table_grows_as_far_as_addresses_go() {
    limited("bounds::a_table_grows_as_far_as_addresses_go", Resource::As, 256 << 20, || {
        let table: Table = Table::with_buckets(4, &Config::default()).unwrap();
        const KEYS: u64 = 50_000;
        (0..KEYS).for_each(|key| assert!(insert(&table, key).is_ok()));
        assert!(holds_all(&table, KEYS));
    });
}

/// Keys that are known to be new go in without a look at any entry, and are found as others are.
#[test]
fn what_is_known_to_be_new_is_not_compared() {
    const KEYS: u64 = 20_000;
    let table: Table = Table::with_buckets(1, &Config::new()).unwrap();
    for key in 0..KEYS {
        let at = Location::new(key).unwrap();
        table.insert_unique(hash(key), at, |at: Location| hash(at.get())).unwrap();
    }
    assert_eq!(table.len() as u64, KEYS);
    assert!(holds_all(&table, KEYS));
    assert!(matches!(insert_hashed(&table, 7, hash(7), hash), Ok(Insertion::Occupied(at)) if at.get() == 7));
}
