//! The standard library's words, and the compounds of a map that threads share, for the owner, who needs no stripe for
//! them.

#![allow(unsafe_code)]

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::panic::{RefUnwindSafe, UnwindSafe};

use super::OwnedMap;
use equivalent::Equivalent;

use crate::config::{Config, CreateError};
use crate::entry::{Draft, Found, Removed};
use crate::folding::RandomState;
use crate::hashing::{IntoHashing, hash_of};
use crate::index::{Discard, Exclusive, Find, Ordered, Store, Walk};
use crate::map::OccupiedError;
use crate::words::{Iter, config_for};

impl<K, V> OwnedMap<K, V> {
    /// A map in the order of its keys, with a table of [`Config::default`]. Of its memory only those pages are taken
    /// that are used.
    ///
    /// ```
    /// let mut map = lookaside::OwnedMap::<String, u64>::new();
    /// map.insert("rome".to_string(), 753);
    /// *map.get_mut("rome").unwrap() += 1;
    /// assert_eq!(map.get("rome"), Some(&754));
    /// ```
    ///
    /// # Panics
    /// If the machine does not have the memory; so does whatever makes a map here without a `Result`.
    /// [`OwnedMap::with_config`] gives an error instead.
    #[must_use]
    pub fn new() -> Self {
        OwnedMap::with_hasher(RandomState::default())
    }

    /// As [`OwnedMap::new`], with a table that has room for so many entries, though for no more than
    /// [`Config::default`]'s.
    #[must_use]
    pub fn with_capacity(entries: usize) -> Self {
        OwnedMap::with_capacity_and_hasher(entries, RandomState::default())
    }

    /// A map in the order of its keys, with a table as it is said here.
    ///
    /// # Errors
    /// [`CreateError`]: no size that a table can have, or no memory.
    pub fn with_config(config: &Config) -> Result<Self, CreateError> {
        OwnedMap::with_index(Ordered::new(), config)
    }
}

impl<K, V, S> OwnedMap<K, V, Ordered<K, V>, S> {
    /// As [`OwnedMap::new`], with keys hashed so: any hasher will do (see [`crate::Hashing`]).
    #[must_use]
    pub fn with_hasher(hasher: impl IntoHashing<Hasher = S>) -> Self {
        OwnedMap::made(&Config::default(), hasher)
    }

    /// As [`OwnedMap::with_capacity`], with keys hashed so.
    #[must_use]
    pub fn with_capacity_and_hasher(entries: usize, hasher: impl IntoHashing<Hasher = S>) -> Self {
        OwnedMap::made(&config_for(entries), hasher)
    }
}

impl<K, V, I: Default, S> OwnedMap<K, V, I, S> {
    fn made(config: &Config, hasher: impl IntoHashing<Hasher = S>) -> Self {
        OwnedMap::with_index_and_hasher(I::default(), config, hasher).expect("memory for a table")
    }
}

impl<K, V, I: Default, S: BuildHasher + Default + 'static> Default for OwnedMap<K, V, I, S> {
    fn default() -> Self {
        OwnedMap::made(&Config::default(), S::default())
    }
}

impl<K, V, I, S> FromIterator<(K, V)> for OwnedMap<K, V, I, S>
where
    K: Hash + Eq + Send + Sync,
    V: Send + Sync,
    I: Store<K, V> + Default,
    S: BuildHasher + Default + 'static,
{
    /// As a [`Map`](crate::Map)'s.
    fn from_iter<T: IntoIterator<Item = (K, V)>>(entries: T) -> Self {
        let mut entries: Vec<(K, V)> = entries.into_iter().collect();
        let mut map = Self::made(&config_for(entries.len()), S::default());
        I::arrange(&mut entries);
        let new = |(key, value)| {
            let hash = hash_of(&map.hashing, &key);
            Draft::new(key, value, hash, &map.reclaimer).handle()
        };
        let handles = entries.into_iter().map(new).collect();
        map.index.as_mut().expect("there while the map is").load(handles);
        map.bury();
        map
    }
}

impl<K, V, I, S> Extend<(K, V)> for OwnedMap<K, V, I, S>
where
    K: Hash + Eq + Send + Sync,
    V: Send + Sync,
    I: Store<K, V>,
    S: BuildHasher,
{
    fn extend<T: IntoIterator<Item = (K, V)>>(&mut self, entries: T) {
        entries.into_iter().for_each(|(key, value)| drop(self.insert(key, value)));
    }
}

impl<K: Send + Sync, V: Send + Sync, I, S: BuildHasher> OwnedMap<K, V, I, S> {
    /// Whether there is such a key.
    #[inline]
    pub fn contains_key<Q>(&self, key: &Q) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
        I: Find<Q, K, V>,
    {
        self.get(key).is_some()
    }

    /// All entries, in the index's order.
    pub fn iter(&self) -> Iter<'_, K, V>
    where
        I: Walk<K, V>,
    {
        Iter::of(self.index(), &self.token())
    }

    /// The value of a key, to be changed where it is: neither table nor index take notice.
    ///
    /// Where an index may have shown its handles to others, it cannot be had: see [`Exclusive`].
    pub fn get_mut<Q>(&mut self, key: &Q) -> Option<&mut V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        I: Find<Q, K, V> + Exclusive<K, V>,
    {
        // SAFETY: by the owner, alone; and the index is exclusive.
        unsafe { self.find(key)?.value_mut() }
    }

    /// Puts an entry in if there is none of this key; its value.
    ///
    /// # Errors
    /// [`OccupiedError`] with the value that there is, and the one that was not put in.
    pub fn try_insert(&mut self, key: K, value: V) -> Result<&V, OccupiedError<'_, V>>
    where
        K: Hash + Eq,
        I: Store<K, V> + Find<K, K, V>,
    {
        match self.find_to_change(&key) {
            Some(found) => {
                // While there is no result yet, which a destructor that panics would lose.
                drop(key);
                Err(OccupiedError { current: found.value(), not_inserted: value })
            }
            None => Ok(self.put_in(key, value)),
        }
    }

    /// The value of a key; if it has none, that which `make` makes, which it has from then on.
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &V
    where
        K: Hash + Eq,
        I: Store<K, V> + Find<K, K, V>,
    {
        match self.find_to_change(&key) {
            Some(found) => found.value(),
            None => self.put_in(key, make()),
        }
    }

    /// Puts another value in the place of a key's, made from it; the one that was there. If there is no such key,
    /// nothing happens.
    pub fn update(&mut self, key: K, change: impl FnOnce(&V) -> V) -> Option<Removed<K, V>>
    where
        K: Hash + Eq,
        I: Store<K, V> + Find<K, K, V>,
    {
        let value = change(self.find(&key)?.value());
        self.insert(key, value)
    }

    /// Takes an entry out if `is_over` says so, who sees it.
    pub fn remove_if<Q>(&mut self, key: &Q, is_over: impl FnOnce(&K, &V) -> bool) -> Option<Removed<K, V>>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        I: Find<Q, K, V> + Discard<Q, K, V>,
    {
        let found = self.find(key)?;
        if is_over(found.key(), found.value()) { self.remove(key) } else { None }
    }

    /// Takes out the entries that `keep` is not true of.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &V) -> bool)
    where
        K: Hash,
        I: Walk<K, V> + Discard<K, K, V>,
    {
        drop(self.take_all(|found| !keep(found.key(), found.value())));
    }

    /// Takes out all entries.
    pub fn clear(&mut self)
    where
        I: Default,
    {
        self.index = Some(I::default());
        self.bury();
    }

    /// Takes out all entries, and gives them, in the index's order.
    ///
    /// ```
    /// let mut map: lookaside::OwnedMap<_, _> = [(2, "two"), (1, "one")].into_iter().collect();
    /// let values: Vec<_> = map.drain().map(|removed| *removed).collect();
    /// assert_eq!((values, map.len()), (vec!["one", "two"], 0));
    /// ```
    pub fn drain(&mut self) -> impl ExactSizeIterator<Item = Removed<K, V>> + use<K, V, I, S>
    where
        K: Hash,
        I: Walk<K, V> + Discard<K, K, V>,
    {
        self.take_all(|_| true).into_iter()
    }

    /// Takes out the entries that `wanted` is true of.
    fn take_all(&mut self, mut wanted: impl FnMut(Found<'_, K, V>) -> bool) -> Vec<Removed<K, V>>
    where
        K: Hash,
        I: Walk<K, V> + Discard<K, K, V>,
    {
        let mut all = Vec::new();
        self.index().walk(&self.token(), &mut |found| {
            if wanted(found) {
                // SAFETY: nothing is freed before the graveyard is emptied below: what is taken out is in the list
                // until then, whichever entries an index that lies gives.
                all.push(unsafe { found.outlive() });
            }
        });
        let mut removed = Vec::with_capacity(all.len());
        for found in all {
            removed.extend(self.take_out(Found::<K, V>::key(found)));
        }
        self.bury();
        removed
    }

    /// As [`OwnedMap::find`], for who changes the map if there is no such key.
    fn find_to_change<'m>(&mut self, key: &K) -> Option<Found<'m, K, V>>
    where
        K: Hash + Eq,
        I: Find<K, K, V>,
        Self: 'm,
    {
        // SAFETY: the callers return what is found, borrowed from the map as they have it, or change the map if nothing
        // is. (That a borrow ends in one of two branches, the compiler does not see.)
        self.find(key).map(|found| unsafe { found.outlive() })
    }

    /// Puts an entry in; its value.
    fn put_in(&mut self, key: K, value: V) -> &V
    where
        K: Hash + Eq,
        I: Store<K, V>,
    {
        // What has died before is freed now: what the index lets go of in the insertion waits for the next change.
        self.bury();
        let hash = hash_of(&self.hashing, &key);
        let draft = Draft::new(key, value, hash, &self.reclaimer);
        // SAFETY: freed by the next change at the earliest, which borrows the map mutably.
        let found = unsafe { draft.found() };
        drop(self.put_over(hash, draft, |_| {}));
        found.value()
    }
}

impl<'m, K, V, I, S> IntoIterator for &'m OwnedMap<K, V, I, S>
where
    K: Send + Sync,
    V: Send + Sync,
    I: Walk<K, V>,
    S: BuildHasher,
{
    type Item = (&'m K, &'m V);
    type IntoIter = Iter<'m, K, V>;

    fn into_iter(self) -> Iter<'m, K, V> {
        self.iter()
    }
}

// As a `Map`'s.
impl<K, V, I, S> UnwindSafe for OwnedMap<K, V, I, S>
where
    K: RefUnwindSafe,
    V: RefUnwindSafe,
    I: UnwindSafe,
    S: RefUnwindSafe,
{
}
impl<K, V, I, S> RefUnwindSafe for OwnedMap<K, V, I, S> where Self: UnwindSafe {}

impl<K, V, I, S> fmt::Debug for OwnedMap<K, V, I, S>
where
    K: fmt::Debug + Send + Sync,
    V: fmt::Debug + Send + Sync,
    I: Walk<K, V>,
    S: BuildHasher,
{
    /// Its entries, as the standard library's maps.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}
