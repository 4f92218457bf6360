//! A table that fits what is asked for, as maps see it: smaller while that has room in a part of it, whole again when
//! it has not, and never wrong.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};

use lookaside::{Admission, Config, Handle, Map, OwnedMap, PageKind, RwLock};

const WHOLE: usize = 1 << 20;
const KEYS: u64 = 60_000;
const HOT: u64 = 2_000;

fn config() -> Config {
    Config::with_size(WHOLE).fits(true).pages(PageKind::Base)
}

/// Goes over the keys, up to so many times, until `done`.
fn until(done: impl Fn() -> bool, mut over_the_keys: impl FnMut(), times: usize, what: &str) {
    for _ in 0..times {
        over_the_keys();
        if done() {
            return;
        }
    }
    panic!("{what}: not after going {times} times over the keys");
}

#[test]
fn a_maps_table_is_as_small_as_what_is_asked_for_wants_it() {
    is_as_small_as_what_is_asked_for_wants_it(&config());
}

/// Its log begins anew with each table.
#[test]
fn one_with_a_log_is_too() {
    is_as_small_as_what_is_asked_for_wants_it(&Config::paper(WHOLE).fits(true));
}

fn is_as_small_as_what_is_asked_for_wants_it(config: &Config) {
    let logged = matches!(config.admission, Admission::Logged { .. });
    let bytes = |size: usize| if logged { size * (1 + config.log_ratio) } else { size };
    let map = Map::with_index(RwLock::new(BTreeSet::new()), config).unwrap();
    map.buffer().monitor(false);
    (0..KEYS).for_each(|key| assert!(map.insert(key, key).is_none()));
    let mut reader = map.pin();
    for round in 0..2 {
        let small = || map.buffer().bytes() == bytes(WHOLE >> 4);
        let hot = || (0..HOT).for_each(|key| assert_eq!(reader.get(&key), Some(&key)));
        until(small, hot, 2_000, "folding");
        let before = map.buffer().counts();
        reader.refresh();
        (0..HOT).for_each(|key| assert_eq!(reader.get(&key), Some(&key)));
        reader.refresh();
        let counts = map.buffer().counts();
        assert!(counts.hits - before.hits > HOT * 9 / 10, "round {round}: {before:?} {counts:?}");
        // Writes reach the small table.
        for key in (0..HOT).step_by(3) {
            assert_eq!(reader.remove(&key).as_deref(), Some(&key));
            assert_eq!(reader.get(&key), None);
            assert!(reader.insert(key, key).is_none());
            assert_eq!(reader.get(&key), Some(&key));
        }
        let whole = || map.buffer().bytes() == bytes(WHOLE);
        let all = || (0..KEYS).for_each(|key| assert_eq!(reader.get(&key), Some(&key)));
        until(whole, all, 20, "unfolding");
        // What was asked for once is thrown out of the account by a new table of the size that was asked for.
        map.buffer().resize(WHOLE).unwrap();
    }
}

#[test]
fn an_owners_table_stays_as_it_was_made() {
    let mut map = OwnedMap::with_index(BTreeSet::new(), &config()).unwrap();
    map.monitor(false);
    (0..HOT).for_each(|key| assert!(map.insert(key, key).is_none()));
    let whole = map.capacity();
    // As often as would fold a shared one many times over.
    for _ in 0..500 {
        (0..HOT).for_each(|key| assert_eq!(map.get(&key), Some(&key)));
    }
    assert_eq!(map.capacity(), whole);
}

#[test]
fn a_table_of_one_size_stays_as_it_was_made() {
    let map = Map::with_index(RwLock::new(BTreeSet::new()), &config().fits(false)).unwrap();
    map.insert(1u64, 1u64);
    let reader = map.pin();
    for _ in 0..1 << 20 {
        assert_eq!(reader.get(&1), Some(&1));
    }
    assert_eq!(map.buffer().bytes(), WHOLE);
}

/// A key whose comparison looks up in the same map, when it is told to.
#[derive(Debug)]
struct Curious(u64);

type CuriousMap = OwnedMap<Curious, u64, BTreeSet<Handle<Curious, u64>>>;

thread_local! {
    static MAP: RefCell<Option<CuriousMap>> = const { RefCell::new(None) };
    static ASKS: Cell<bool> = const { Cell::new(false) };
}

fn look_up_all(keys: u64, times: u64) {
    MAP.with_borrow(|map| {
        let map = map.as_ref().unwrap();
        (0..keys * times).for_each(|turn| assert_eq!(map.get(&Curious(turn % keys)), Some(&(turn % keys))));
    });
}

impl PartialEq for Curious {
    fn eq(&self, other: &Curious) -> bool {
        if ASKS.replace(false) {
            // As many as would fold a shared map's table, behind the lookup that compares.
            look_up_all(100, 10_000);
        }
        self.0 == other.0
    }
}

impl Eq for Curious {}

impl Hash for Curious {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.0.hash(hasher);
    }
}

impl PartialOrd for Curious {
    fn partial_cmp(&self, other: &Curious) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Curious {
    fn cmp(&self, other: &Curious) -> Ordering {
        self.0.cmp(&other.0)
    }
}

#[test]
fn an_owners_lookup_may_look_up_again() {
    let mut map = OwnedMap::with_index(BTreeSet::new(), &config()).unwrap();
    map.monitor(false);
    (0..100).for_each(|key| assert!(map.insert(Curious(key), key).is_none()));
    MAP.set(Some(map));
    look_up_all(100, 10);
    MAP.with_borrow(|map| {
        let map = map.as_ref().unwrap();
        let keys: Vec<Curious> = (0..16).map(Curious).collect();
        let asked: Vec<&Curious> = keys.iter().collect();
        let mut found = [None; 16];
        ASKS.set(true);
        map.get_many(&asked, &mut found);
        assert!(!ASKS.get(), "nothing was compared");
        assert!(found.iter().zip(0..).all(|(found, key)| *found == Some(&key)));
        ASKS.set(true);
        assert_eq!(map.get(&Curious(3)), Some(&3));
        assert!(!ASKS.get(), "nothing was compared");
    });
    MAP.set(None);
}
