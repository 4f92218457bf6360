//! The hash tables that are written in Rust, of record numbers by key: dashmap, papaya, and the standard library's
//! under a lock.
//!
//! | map | design | where its entries lie | best call for lookups |
//! |---|---|---|---|
//! | dashmap | shards, each a hash table under a read-write lock | in the table | `get` |
//! | papaya | one lock-free table, epochs for its memory | one allocation an entry | `get` with a guard for a batch |
//! | standard | one hash table under a read-write lock | in the table | `get` under a lock taken once a batch |
//!
//! All are made with room for their keys, so that none grows, and hash with [`Xxh3`].

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use std::sync::{PoisonError, RwLock};

use lab::index::{BATCH, Index, Insertion, Key};
use lab::lookaside::indexes::ConcurrentMap;
use lab::subject::Tally;

/// The hash that every table of a comparison uses: [`Key::hash`].
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Xxh3;

/// Hashes one key.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OneKey(u64);

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

/// A map for many threads, as an index.
pub(crate) struct Numbers<M>(pub(crate) M);

impl<M: ConcurrentMap<Key, u64>> Index for Numbers<M> {
    #[inline(always)]
    fn get(&self, key: &Key) -> Option<u64> {
        self.0.look(key, &self.0.guard(), |record| *record)
    }

    #[inline]
    fn insert(&self, record: u64) -> Insertion {
        self.0.put(Key::of(record), record, &self.0.guard());
        Insertion::Done { displaced: 0 }
    }

    fn get_batched(&self, keys: &[Key]) -> Tally {
        let mut tally = Tally::default();
        for keys in keys.chunks(BATCH) {
            let guard = self.0.guard();
            keys.iter().for_each(|key| tally.count(self.0.look(key, &guard, |record| *record)));
        }
        tally
    }
}

/// The standard library's, under its read-write lock.
pub(crate) struct Standard(pub(crate) RwLock<HashMap<Key, u64, Xxh3>>);

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

    fn get_batched(&self, keys: &[Key]) -> Tally {
        let mut tally = Tally::default();
        for keys in keys.chunks(BATCH) {
            let map = self.0.read().unwrap_or_else(PoisonError::into_inner);
            keys.iter().for_each(|key| tally.count(map.get(key).copied()));
        }
        tally
    }
}
