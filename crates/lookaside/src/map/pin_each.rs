//! Lookups and [compounds](super::compound) of a map, each pinned for its call: for who keeps no reader.

use std::convert::Infallible;
use std::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::Map;
#[cfg(doc)]
use super::MapRef;
use super::compound::{Computed, Mismatch, OccupiedError, Operation, behind};
use crate::entry::Removed;
use crate::index::{Find, SharedDiscard, SharedStore};

impl<K: Send + Sync, V: Send + Sync, I, S: BuildHasher> Map<K, V, I, S> {
    /// What `look` makes of the value of a key: for one lookup, where no reader is to be kept. In a task of an
    /// asynchronous program, say, which must not hold a reader while it waits.
    ///
    /// ```
    /// let map = lookaside::Map::<&str, String>::new();
    /// map.insert("rome", "eternal".to_string());
    /// assert_eq!(map.get_with("rome", String::len), Some(7));
    /// ```
    #[inline]
    pub fn get_with<Q, R>(&self, key: &Q, look: impl FnOnce(&V) -> R) -> Option<R>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        I: Find<Q, K, V>,
    {
        self.pin().get(key).map(look)
    }

    /// Whether there is such a key.
    #[inline]
    pub fn contains_key<Q>(&self, key: &Q) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
        I: Find<Q, K, V>,
    {
        self.pin().contains_key(key)
    }

    /// [`MapRef::try_insert`], pinned for this call.
    ///
    /// # Errors
    /// The value that was not put in, if there is such a key.
    pub fn try_insert(&self, key: K, value: V) -> Result<(), V>
    where
        K: Hash + Eq,
        I: SharedStore<K, V> + Find<K, K, V>,
    {
        self.pin().try_insert(key, value).map(|_| ()).map_err(|occupied| occupied.not_inserted)
    }

    /// A clone of what [`MapRef::get_or_insert_with`] gives; not pinned while the value is made.
    ///
    /// # Panics
    /// As there.
    pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> V
    where
        K: Hash + Eq,
        V: Clone,
        I: SharedStore<K, V> + Find<K, K, V>,
    {
        let made: Result<V, Infallible> = self.get_or_try_insert_with(key, || Ok(make()));
        match made {
            Ok(value) => value,
            Err(never) => match never {},
        }
    }

    /// A clone of what [`MapRef::get_or_try_insert_with`] gives; not pinned while the value is made.
    ///
    /// # Errors
    /// That of `make`.
    ///
    /// # Panics
    /// As there.
    pub fn get_or_try_insert_with<E>(&self, key: K, make: impl FnOnce() -> Result<V, E>) -> Result<V, E>
    where
        K: Hash + Eq,
        V: Clone,
        I: SharedStore<K, V> + Find<K, K, V>,
    {
        loop {
            if let Some(value) = self.get_with(&key, V::clone) {
                return behind((key, make), Ok(value));
            }
            let Some(flight) = self.pin().board(&key) else { continue };
            // One may have landed between the look and the boarding.
            if let Some(value) = self.get_with(&key, V::clone) {
                return behind((flight, key, make), Ok(value));
            }
            let value = match make() {
                Ok(value) => value,
                Err(error) => return behind((flight, key), Err(error)),
            };
            return Ok(match self.pin().insert_absent(key, value) {
                Ok(value) => value.clone(),
                Err(OccupiedError { current, .. }) => current.clone(),
            });
        }
    }

    /// [`MapRef::replace`], pinned for this call.
    ///
    /// # Errors
    /// As there.
    pub fn replace(&self, key: K, value: V) -> Result<Removed<K, V>, (K, V)>
    where
        K: Hash + Eq,
        I: SharedStore<K, V> + Find<K, K, V>,
    {
        self.pin().replace(key, value)
    }

    /// [`MapRef::update`], pinned for this call.
    ///
    /// ```
    /// let map = lookaside::Map::<&str, u64>::new();
    /// map.insert("visits", 0);
    /// std::thread::scope(|scope| {
    ///     for _ in 0..4 {
    ///         scope.spawn(|| (0..100).for_each(|_| drop(map.update("visits", |visits| visits + 1))));
    ///     }
    /// });
    /// assert_eq!(map.get_with("visits", |visits| *visits), Some(400));
    /// ```
    ///
    /// # Panics
    /// As there.
    pub fn update(&self, key: K, change: impl FnOnce(&V) -> V) -> Option<Removed<K, V>>
    where
        K: Hash + Eq,
        I: SharedStore<K, V> + Find<K, K, V>,
    {
        self.pin().update(key, change)
    }

    /// [`MapRef::update_or_insert_with`], pinned for this call.
    ///
    /// # Panics
    /// As there.
    pub fn update_or_insert_with(
        &self,
        key: K,
        change: impl FnOnce(&V) -> V,
        make: impl FnOnce() -> V,
    ) -> Option<Removed<K, V>>
    where
        K: Hash + Eq,
        I: SharedStore<K, V> + Find<K, K, V>,
    {
        self.pin().update_or_insert_with(key, change, make)
    }

    /// [`MapRef::compute`], pinned for this call.
    ///
    /// # Panics
    /// As there.
    pub fn compute<T>(
        &self,
        key: K,
        decide: impl FnOnce(Option<(&K, &V)>) -> Operation<V, T>,
    ) -> Computed<K, V, T>
    where
        K: Hash + Eq,
        I: SharedStore<K, V> + Find<K, K, V> + SharedDiscard<K, K, V>,
    {
        self.pin().compute(key, decide)
    }

    /// [`MapRef::remove_if`], pinned for this call.
    ///
    /// # Panics
    /// As there.
    pub fn remove_if<Q>(&self, key: &Q, is_over: impl FnOnce(&K, &V) -> bool) -> Option<Removed<K, V>>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        I: Find<Q, K, V> + SharedDiscard<Q, K, V>,
    {
        self.pin().remove_if(key, is_over)
    }

    /// [`MapRef::compare_exchange`], pinned for this call.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// As there.
    pub fn compare_exchange(&self, key: K, expected: &V, new: V) -> Result<Removed<K, V>, Mismatch<V>>
    where
        K: Hash + Eq,
        V: PartialEq,
        I: SharedStore<K, V> + Find<K, K, V>,
    {
        self.pin().compare_exchange(key, expected, new)
    }
}
