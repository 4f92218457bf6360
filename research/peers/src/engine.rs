//! The foreign engines by name.

use std::collections::HashMap;
use std::sync::RwLock;

use lab::index::Index;
use lab::lookaside::indexes::ConcurrentMap;
use serde::Deserialize;

use crate::lookaside::hashed::{Dashmap, Papaya};
use crate::maps::{Numbers, Standard, Xxh3};

/// A foreign engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// The C++ library.
    Libcuckoo,
    /// Sharded.
    Dashmap,
    /// Lock-free.
    Papaya,
    /// The standard library's map under its lock.
    Standard,
}

impl Engine {
    /// All of them.
    pub const ALL: [Engine; 4] = [Engine::Libcuckoo, Engine::Dashmap, Engine::Papaya, Engine::Standard];

    /// The names of its calls: the same one twice where it has no batches.
    pub(crate) fn calls(self) -> [&'static str; 2] {
        match self {
            Engine::Libcuckoo => ["libcuckoo"; 2],
            Engine::Dashmap => ["dashmap"; 2],
            Engine::Papaya => ["papaya", "papaya, pinned once a batch"],
            Engine::Standard => ["HashMap under RwLock", "HashMap under RwLock, locked once a batch"],
        }
    }

    /// An empty one with room for `capacity` keys.
    ///
    /// # Errors
    /// In words, why there is none: it is not installed, or memory was refused.
    pub fn make(self, capacity: usize) -> Result<Box<dyn Index>, String> {
        Ok(match self {
            Engine::Libcuckoo => return libcuckoo(capacity),
            Engine::Dashmap => Box::new(Numbers(Dashmap::<_, _, Xxh3>::with_capacity(capacity))),
            Engine::Papaya => Box::new(Numbers(Papaya::<_, _, Xxh3>::with_capacity(capacity))),
            Engine::Standard => {
                Box::new(Standard(RwLock::new(HashMap::with_capacity_and_hasher(capacity, Xxh3))))
            }
        })
    }
}

#[cfg(libcuckoo)]
fn libcuckoo(capacity: usize) -> Result<Box<dyn Index>, String> {
    match crate::libcuckoo::LibCuckoo::with_capacity(capacity) {
        Some(map) => Ok(Box::new(map)),
        None => Err(format!("no memory for {capacity} keys")),
    }
}

#[cfg(not(libcuckoo))]
fn libcuckoo(_capacity: usize) -> Result<Box<dyn Index>, String> {
    Err("libcuckoo-dev is not installed".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::index::{Insertion, Key};
    use lab::subject::Tally;
    use proptest::prelude::*;

    /// The engines that are there. One that is not is named on standard error, or, with `LOOKASIDE_REQUIRE_PEERS=1`, is
    /// a failure.
    fn installed(capacity: usize) -> Vec<(Engine, Box<dyn Index>)> {
        let make = |engine: Engine| match engine.make(capacity) {
            Ok(index) => Some((engine, index)),
            Err(reason) => {
                outside::skip(reason);
                None
            }
        };
        Engine::ALL.into_iter().filter_map(make).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn every_engine_has_what_was_put_in(records in prop::collection::btree_set(0u64..400, 1..400)) {
            for (engine, index) in installed(400) {
                for &record in &records {
                    prop_assert_eq!(index.insert(record), Insertion::Done { displaced: 0 }, "{:?}", engine);
                }
                let keys: Vec<_> = (0..500).map(Key::of).collect();
                let mut expected = Tally::default();
                for (record, key) in (0..).zip(&keys) {
                    let there = records.contains(&record).then_some(record);
                    expected.count(there);
                    prop_assert_eq!(index.get(key), there, "{:?}", engine);
                }
                prop_assert_eq!(index.get_each(&keys), expected, "{:?}", engine);
                prop_assert_eq!(index.get_batched(&keys), expected, "{:?}", engine);
            }
        }
    }

    /// More keys than there was room for at first, from two threads.
    #[test]
    fn engines_are_shared_and_grow() {
        for (engine, index) in installed(100) {
            std::thread::scope(|scope| {
                for thread in 0..2u64 {
                    let index = &index;
                    scope.spawn(move || {
                        let filling = index.insert_each(thread * 5000..(thread + 1) * 5000);
                        assert_eq!((filling.inserted, filling.refused), (5000, false));
                    });
                }
            });
            let keys: Vec<_> = (0..10_000).map(Key::of).collect();
            let tally = index.get_each(&keys);
            assert_eq!((tally.found, tally.sum), (10_000, 9999 * 5000), "{engine:?}");
        }
    }

    #[test]
    #[cfg(libcuckoo)]
    fn both_languages_hash_alike() {
        for record in 0..10_000 {
            let key = Key::of(record);
            assert_eq!(crate::libcuckoo::hash(&key), key.hash());
        }
    }
}
