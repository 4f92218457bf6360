//! One test for all indexes: behind a [`lookaside::Map`] with a tiny table of either kind, each must be a map.
//!
//! The table has two lines for a hundred keys, so entries come and go all the time, and the index answers as often as the
//! table does.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow, RangeBounds};

use lookaside::index::{Find, Scan, SharedDiscard, SharedStore};
use lookaside::{Config, Map, Parameters, Random, StltConfig, Table};

use super::contestant::Make;
use super::record::{Key, Value};

/// Keys that are written.
const KEYS: u32 = 100;
/// Steps of the check.
const STEPS: u32 = 20_000;

/// Checks an index behind a map against a plain map, with each of the tables.
///
/// # Panics
/// Where the two differ.
pub fn check<I>()
where
    I: Make
        + Find<Key<24>, Key<24>, Value>
        + SharedStore<Key<24>, Value>
        + SharedDiscard<Key<24>, Key<24>, Value>,
{
    check_behind::<I, _>(&Config::with_size(128), 1000);
    // Of what is emitted, its log sees a twentieth.
    check_behind::<I, _>(&Config::paper(128), 10);
    check_behind::<I, _>(&StltConfig::with_size(128), 1000);
}

/// Behind a table made so, which must have evicted so often.
fn check_behind<I, P: Parameters>(config: &P, evictions: u64)
where
    P::Table: Table<Config = P>,
    I: Make
        + Find<Key<24>, Key<24>, Value>
        + SharedStore<Key<24>, Value>
        + SharedDiscard<Key<24>, Key<24>, Value>,
{
    let index = I::make(KEYS as usize).unwrap_or_else(|reason| panic!("{reason}"));
    let map = Map::new(index, config).expect("two lines are a table");
    map.buffer().monitor(false);
    let mut model = BTreeMap::new();
    let random = Random::new(3);
    let key = || Key::of(u64::from(random.below(KEYS)));
    let mut reader = map.pin();
    for step in 0..STEPS {
        let (key_now, value) = (key(), Value::of(u64::from(step)));
        match random.below(10) {
            0 => {
                let old = reader.insert(key_now, value.clone()).map(|old| old.clone());
                assert_eq!(old, model.insert(key_now, value), "insert, step {step}");
            }
            1 => {
                let replaced = reader.replace(key_now, value.clone()).ok().map(|old| old.clone());
                assert_eq!(replaced, model.get(&key_now).cloned(), "replace, step {step}");
                model.entry(key_now).and_modify(|old| *old = value);
            }
            2 => {
                let old = reader.remove(&key_now).map(|old| old.clone());
                assert_eq!(old, model.remove(&key_now), "remove, step {step}");
            }
            3 | 4 => {
                let keys: Vec<_> = (0..random.below(40)).map(|_| key()).collect();
                let asked: Vec<_> = keys.iter().collect();
                let mut values = vec![None; keys.len()];
                reader.get_many(&asked, &mut values);
                let expected: Vec<_> = keys.iter().map(|key| model.get(key)).collect();
                assert_eq!(values, expected, "get_many, step {step}");
            }
            _ => assert_eq!(reader.get(&key_now), model.get(&key_now), "get, step {step}"),
        }
        if step % 64 == 0 {
            assert_eq!(map.len(), model.len(), "step {step}");
            reader.refresh();
        }
    }
    drop(reader);
    let counts = map.buffer().counts();
    assert!(counts.hits > 1000 && counts.evictions > evictions && counts.cleared > 100, "{counts:?}");
}

/// Checks the ranges of an ordered index behind a map, and that they end where they are told to.
///
/// # Panics
/// Where they differ from a plain map's.
pub fn check_ranges<I>()
where
    I: Make
        + Find<Key<24>, Key<24>, Value>
        + SharedStore<Key<24>, Value>
        + SharedDiscard<Key<24>, Key<24>, Value>
        + Scan<Key<24>, Key<24>, Value>,
{
    let index = I::make(KEYS as usize).unwrap_or_else(|reason| panic!("{reason}"));
    let map = Map::new(index, &Config::with_size(128)).expect("two lines are a table");
    let mut model = BTreeMap::new();
    let random = Random::new(5);
    let key = || Key::of(u64::from(random.below(KEYS)));
    let bound = || match random.below(5) {
        0 => Bound::Unbounded,
        1 | 2 => Bound::Included(key()),
        _ => Bound::Excluded(key()),
    };
    let mut reader = map.pin();
    let mut shown_in_all = 0;
    for step in 0..STEPS / 10 {
        let (key, value) = (key(), Value::of(u64::from(step)));
        if random.below(3) == 0 {
            reader.remove(&key);
            model.remove(&key);
        } else {
            reader.insert(key, value.clone());
            model.insert(key, value);
        }
        let (from, to, most) = (bound(), bound(), 1 + random.below(40) as usize);
        let mut shown = Vec::new();
        reader.range(from.as_ref(), to.as_ref(), |key, value| {
            shown.push((*key, value.clone()));
            if shown.len() == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let within = model.iter().filter(|(key, _)| (from, to).contains(*key)).take(most);
        assert!(within.eq(shown.iter().map(|(key, value)| (key, value))), "range, step {step}");
        shown_in_all += shown.len();
        reader.refresh();
    }
    assert!(shown_in_all > STEPS as usize / 10, "next to nothing was in the ranges");
}
