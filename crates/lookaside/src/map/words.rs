//! The standard library's words, for a map that threads share.
//!
//! What goes over all entries ([`MapRef::iter`], `retain`, `clear`) takes the list of them first, eight bytes an entry,
//! and then goes over that: no lock is held meanwhile, and the map may be used and changed. What others put in after
//! the list was taken is not in it.

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::panic::{RefUnwindSafe, UnwindSafe};

use super::{Map, MapRef};
use equivalent::Equivalent;

use crate::config::{Config, CreateError};
use crate::entry::Removed;
use crate::folding::RandomState;
use crate::hashing::IntoHashing;
use crate::index::{Find, Ordered, SharedDiscard, SharedStore, Walk};
use crate::index_id::NoIdLeft;
use crate::lock::RwLock;
use crate::shared::SharedBuffer;
use crate::words::{Iter, config_for};

impl<K, V> Map<K, V> {
    /// A map in the order of its keys, with a table of [`Config::default`]. Of its memory only those pages are taken
    /// that are used: where these are huge, a hundred entries that are asked for take all 32 MiB. For a small map, or
    /// one of many, take [`Map::with_capacity`].
    ///
    /// ```
    /// let map = lookaside::Map::<String, u64>::new();
    /// map.insert("rome".to_string(), 753);
    /// assert!(map.contains_key("rome"));
    /// ```
    ///
    /// # Panics
    /// If the machine does not have the memory; so does whatever makes a map here without a `Result`.
    /// [`Map::with_config`] gives an error instead.
    #[must_use]
    pub fn new() -> Self {
        Map::with_hasher(RandomState::default())
    }

    /// As [`Map::new`], with a table that has room for so many entries, though for no more than [`Config::default`]'s.
    #[must_use]
    pub fn with_capacity(entries: usize) -> Self {
        Map::with_capacity_and_hasher(entries, RandomState::default())
    }

    /// A map in the order of its keys, with a table as it is said here.
    ///
    /// # Errors
    /// [`CreateError`]: no size that a table can have, or no memory.
    pub fn with_config(config: &Config) -> Result<Self, CreateError> {
        Map::with_index(RwLock::default(), config)
    }

    /// A map in the order of its keys, behind a table that others may share: see [`Map::sharing`].
    ///
    /// # Errors
    /// [`NoIdLeft`] if the buffer was made for fewer indexes.
    pub fn with_buffer(buffer: &SharedBuffer) -> Result<Self, NoIdLeft> {
        Map::sharing(RwLock::default(), buffer, RandomState::default())
    }
}

impl<K, V, S> Map<K, V, RwLock<Ordered<K, V>>, S> {
    /// As [`Map::new`], with keys hashed so: any hasher will do (see [`crate::Hashing`]).
    #[must_use]
    pub fn with_hasher(hasher: impl IntoHashing<Hasher = S>) -> Self {
        Map::made(&Config::default(), hasher)
    }

    /// As [`Map::with_capacity`], with keys hashed so.
    #[must_use]
    pub fn with_capacity_and_hasher(entries: usize, hasher: impl IntoHashing<Hasher = S>) -> Self {
        Map::made(&config_for(entries), hasher)
    }
}

impl<K, V, I: Default, S> Map<K, V, I, S> {
    fn made(config: &Config, hasher: impl IntoHashing<Hasher = S>) -> Self {
        Map::with_index_and_hasher(I::default(), config, hasher).expect("memory for a table")
    }
}

impl<K, V, I: Default, S: BuildHasher + Default + 'static> Default for Map<K, V, I, S> {
    fn default() -> Self {
        Map::made(&Config::default(), S::default())
    }
}

impl<K, V, I, S> FromIterator<(K, V)> for Map<K, V, I, S>
where
    K: Hash + Eq + Send + Sync,
    V: Send + Sync,
    I: SharedStore<K, V> + Default,
    S: BuildHasher + Default + 'static,
{
    /// A map with a table for as many entries. The index is built at once, where it can be
    /// ([`SharedStore::load`]): faster than one insertion after the other.
    fn from_iter<T: IntoIterator<Item = (K, V)>>(entries: T) -> Self {
        let mut entries: Vec<(K, V)> = entries.into_iter().collect();
        let map = Self::made(&config_for(entries.len()), S::default());
        I::arrange(&mut entries);
        // The table has nothing of this map yet that would have to be cleared.
        let handles = entries.into_iter().map(|(key, value)| map.handle(key, value)).collect();
        map.index.load(handles);
        map
    }
}

impl<K, V, I, S> Extend<(K, V)> for Map<K, V, I, S>
where
    K: Hash + Eq + Send + Sync,
    V: Send + Sync,
    I: SharedStore<K, V>,
    S: BuildHasher,
{
    fn extend<T: IntoIterator<Item = (K, V)>>(&mut self, entries: T) {
        (&*self).extend(entries);
    }
}

impl<K, V, I, S> Extend<(K, V)> for &Map<K, V, I, S>
where
    K: Hash + Eq + Send + Sync,
    V: Send + Sync,
    I: SharedStore<K, V>,
    S: BuildHasher,
{
    fn extend<T: IntoIterator<Item = (K, V)>>(&mut self, entries: T) {
        for (key, value) in entries {
            // Pinned anew for each: what is replaced need not wait for the last.
            drop(self.insert(key, value));
        }
    }
}

impl<K: Send + Sync, V: Send + Sync, I, S: BuildHasher> MapRef<'_, K, V, I, S> {
    /// Whether there is such a key.
    #[inline]
    pub fn contains_key<Q>(&self, key: &Q) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
        I: Find<Q, K, V>,
    {
        self.get(key).is_some()
    }

    /// Entries in the index, as far as it knows.
    pub fn len(&self) -> usize
    where
        I: SharedStore<K, V>,
    {
        self.map.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool
    where
        I: SharedStore<K, V>,
    {
        self.map.is_empty()
    }

    /// All entries as they are now, in the index's order.
    ///
    /// ```
    /// let map: lookaside::Map<_, _> = [(2, "two"), (1, "one")].into_iter().collect();
    /// assert_eq!(map.pin().iter().collect::<Vec<_>>(), [(&1, &"one"), (&2, &"two")]);
    /// ```
    pub fn iter(&self) -> Iter<'_, K, V>
    where
        I: Walk<K, V>,
    {
        Iter::of(&self.map.index, &self.token())
    }

    /// Takes out the entries that `keep` is not true of, each in one step as by [`MapRef::remove_if`].
    ///
    /// # Panics
    /// If `keep` changes this map, or another behind the same buffer.
    pub fn retain(&self, mut keep: impl FnMut(&K, &V) -> bool)
    where
        K: Hash + Eq,
        I: Walk<K, V> + Find<K, K, V> + SharedDiscard<K, K, V>,
    {
        for (key, _) in self.iter() {
            drop(self.remove_if(key, |key, value| !keep(key, value)));
        }
    }

    /// Takes out all entries that there are now.
    pub fn clear(&self)
    where
        K: Hash,
        I: Walk<K, V> + SharedDiscard<K, K, V>,
    {
        self.iter().for_each(|(key, _)| drop::<Option<Removed<K, V>>>(self.remove(key)));
    }
}

impl<'r, K, V, I, S> IntoIterator for &'r MapRef<'_, K, V, I, S>
where
    K: Send + Sync,
    V: Send + Sync,
    I: Walk<K, V>,
    S: BuildHasher,
{
    type Item = (&'r K, &'r V);
    type IntoIter = Iter<'r, K, V>;

    fn into_iter(self) -> Iter<'r, K, V> {
        self.iter()
    }
}

impl<K: Send + Sync, V: Send + Sync, I, S: BuildHasher> Map<K, V, I, S> {
    /// [`MapRef::retain`], pinned for this call.
    ///
    /// # Panics
    /// As there.
    pub fn retain(&self, keep: impl FnMut(&K, &V) -> bool)
    where
        K: Hash + Eq,
        I: Walk<K, V> + Find<K, K, V> + SharedDiscard<K, K, V>,
    {
        self.pin().retain(keep);
    }

    /// [`MapRef::clear`], pinned for this call.
    pub fn clear(&self)
    where
        K: Hash,
        I: Walk<K, V> + SharedDiscard<K, K, V>,
    {
        self.pin().clear();
    }
}

// A panic in code of the user's, which the map calls, leaves the map whole. So who catches one sees what keys, values,
// index and hasher have become by it, and nothing else.
impl<K, V, I, S> UnwindSafe for Map<K, V, I, S>
where
    K: RefUnwindSafe,
    V: RefUnwindSafe,
    I: UnwindSafe,
    S: RefUnwindSafe,
{
}
impl<K, V, I, S> RefUnwindSafe for Map<K, V, I, S> where Self: UnwindSafe {}
impl<'m, K, V, I, S> UnwindSafe for MapRef<'m, K, V, I, S> where Map<K, V, I, S>: RefUnwindSafe {}
impl<'m, K, V, I, S> RefUnwindSafe for MapRef<'m, K, V, I, S> where Map<K, V, I, S>: RefUnwindSafe {}

impl<K, V, I, S> fmt::Debug for Map<K, V, I, S>
where
    K: fmt::Debug + Send + Sync,
    V: fmt::Debug + Send + Sync,
    I: Walk<K, V>,
    S: BuildHasher,
{
    /// Its entries, as the standard library's maps.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.pin(), f)
    }
}

impl<K, V, I, S> fmt::Debug for MapRef<'_, K, V, I, S>
where
    K: fmt::Debug + Send + Sync,
    V: fmt::Debug + Send + Sync,
    I: Walk<K, V>,
    S: BuildHasher,
{
    /// The map's entries.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}
