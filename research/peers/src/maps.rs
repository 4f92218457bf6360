//! The maps that are written in Rust: dashmap, papaya, and the standard library's under a lock.
//!
//! | map | design | where its entries lie | best call for lookups |
//! |---|---|---|---|
//! | dashmap | shards, each a hash table under a read-write lock | in the table | `get` |
//! | papaya | one lock-free table, memory reclaimed by epochs | one allocation an entry | `get` on a map pinned once a batch |
//! | standard | one hash table under a read-write lock | in the table | `get` under a lock taken once a batch |
//!
//! All are made with room for their keys, so that none grows, and hash with [`Xxh3`].

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use std::sync::{PoisonError, RwLock};

use dashmap::DashMap;
use lab::index::{BATCH, Index, Insertion, Key};
use lab::subject::Tally;

/// The hash that every table of a comparison uses: [`Key::hash`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Xxh3;

/// Hashes one key.
#[derive(Debug, Clone, Copy, Default)]
pub struct OneKey(u64);

impl BuildHasher for Xxh3 {
    type Hasher = OneKey;

    #[inline]
    fn build_hasher(&self) -> OneKey {
        OneKey(0)
    }
}

impl Hasher for OneKey {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.0 = Key(bytes.try_into().expect("a key is 16 bytes, and nothing else is hashed")).hash();
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// dashmap's.
pub struct Dash(DashMap<Key, u64, Xxh3>);

impl Dash {
    /// An empty map with room for `capacity` keys.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Dash {
        Dash(DashMap::with_capacity_and_hasher(capacity, Xxh3))
    }
}

impl Index for Dash {
    #[inline(always)]
    fn get(&self, key: &Key) -> Option<u64> {
        self.0.get(key).map(|record| *record)
    }

    #[inline]
    fn insert(&self, record: u64) -> Insertion {
        self.0.insert(Key::of(record), record);
        Insertion::Done { displaced: 0 }
    }

    fn remove(&self, record: u64) -> bool {
        self.0.remove(&Key::of(record)).is_some()
    }
}

/// papaya's.
pub struct Papaya(papaya::HashMap<Key, u64, Xxh3>);

impl Papaya {
    /// An empty map with room for `capacity` keys.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Papaya {
        Papaya(papaya::HashMap::builder().capacity(capacity).hasher(Xxh3).build())
    }
}

impl Index for Papaya {
    #[inline(always)]
    fn get(&self, key: &Key) -> Option<u64> {
        self.0.pin().get(key).copied()
    }

    #[inline]
    fn insert(&self, record: u64) -> Insertion {
        self.0.pin().insert(Key::of(record), record);
        Insertion::Done { displaced: 0 }
    }

    fn remove(&self, record: u64) -> bool {
        self.0.pin().remove(&Key::of(record)).is_some()
    }

    fn get_batched(&self, keys: &[Key]) -> Tally {
        let mut tally = Tally::default();
        for keys in keys.chunks(BATCH) {
            let map = self.0.pin();
            for key in keys {
                tally.count(map.get(key).copied());
            }
        }
        tally
    }
}

/// The standard library's, under its read-write lock.
pub struct Standard(RwLock<HashMap<Key, u64, Xxh3>>);

impl Standard {
    /// An empty map with room for `capacity` keys.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Standard {
        Standard(RwLock::new(HashMap::with_capacity_and_hasher(capacity, Xxh3)))
    }
}

impl Index for Standard {
    #[inline(always)]
    fn get(&self, key: &Key) -> Option<u64> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(key).copied()
    }

    #[inline]
    fn insert(&self, record: u64) -> Insertion {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(Key::of(record), record);
        Insertion::Done { displaced: 0 }
    }

    fn remove(&self, record: u64) -> bool {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(&Key::of(record)).is_some()
    }

    fn get_batched(&self, keys: &[Key]) -> Tally {
        let mut tally = Tally::default();
        for keys in keys.chunks(BATCH) {
            let map = self.0.read().unwrap_or_else(PoisonError::into_inner);
            for key in keys {
                tally.count(map.get(key).copied());
            }
        }
        tally
    }
}
