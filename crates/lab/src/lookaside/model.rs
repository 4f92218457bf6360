//! One test for all indexes: behind a [`lookaside::Map`] with a tiny table of either kind, each must be a map.
//!
//! The table has two lines for a hundred keys, so entries come and go all the time, and the index answers as often as the
//! table does.

use std::collections::BTreeMap;

use lookaside::index::{Find, SharedDiscard, SharedStore};
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
    check_behind::<I, _>(&Config::with_size(128));
    check_behind::<I, _>(&StltConfig::with_size(128));
}

fn check_behind<I, P: Parameters>(config: &P)
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
    assert!(counts.hits > 1000 && counts.evictions > 1000 && counts.cleared > 100, "{counts:?}");
}
