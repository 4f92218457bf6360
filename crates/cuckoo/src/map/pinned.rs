//! A map with a pin: what a thread does with a map.

use std::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::core::Pinned;
use super::iter::{Iter, Keys, Values};

/// A [map](super::HashMap) that this thread has pinned: what it finds stays until this is dropped or refreshed.
///
/// To keep it costs nothing but the memory of what is removed meanwhile.
///
/// ```
/// use lookaside_cuckoo::HashMap;
///
/// let map = HashMap::new();
/// let mut pinned = map.pin();
/// for number in 0..1000 {
///     pinned.insert(number % 10, number);
///     // What was replaced may be dropped from here on.
///     pinned.refresh();
/// }
/// assert_eq!(pinned.get(&7), Some(&997));
/// ```
///
/// It stays on its thread:
///
/// ```compile_fail
/// let map = lookaside_cuckoo::HashMap::from([(1, 2)]);
/// let pinned = map.pin();
/// std::thread::scope(|scope| {
///     scope.spawn(move || pinned.len());
/// });
/// ```
///
/// And what was found cannot be used once it is refreshed:
///
/// ```compile_fail
/// let map = lookaside_cuckoo::HashMap::from([(1, 2)]);
/// let mut pinned = map.pin();
/// let found = pinned.get(&1);
/// pinned.refresh();
/// assert_eq!(found, Some(&2));
/// ```
pub struct HashMapRef<'m, K, V, S = std::hash::RandomState> {
    pub(super) pinned: Pinned<'m, K, V, S>,
}

impl<'m, K, V, S> HashMapRef<'m, K, V, S> {
    #[inline(always)]
    pub(super) fn new(pinned: Pinned<'m, K, V, S>) -> Self {
        HashMapRef { pinned }
    }

    /// Lets go of what was found, and pins anew: what was removed so far is not held back by this any more. For who
    /// keeps a pin; now and then is enough.
    pub fn refresh(&mut self) {
        self.pinned.refresh();
    }

    /// Entries. Exact when nobody is writing.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pinned.core().table.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All entries, in no order. Others may write meanwhile: an entry that is there throughout is told once. A key
    /// whose value is exchanged meanwhile may be told with both.
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter(self.pinned.walk())
    }

    /// All keys: see [`HashMapRef::iter`].
    pub fn keys(&self) -> Keys<'_, K, V> {
        Keys(self.iter())
    }

    /// All values: see [`HashMapRef::iter`].
    pub fn values(&self) -> Values<'_, K, V> {
        Values(self.iter())
    }
}

impl<K, V, S> HashMapRef<'_, K, V, S>
where
    K: Hash + Eq,
    S: BuildHasher,
{
    #[inline(always)]
    pub(super) fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        self.pinned.core().hash(key)
    }

    /// The value of a key.
    #[inline(always)]
    pub fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.pinned.find(self.hash(key), key).map(|entry| &entry.value)
    }

    /// A key as it is in the map, and its value.
    #[inline]
    pub fn get_key_value<Q>(&self, key: &Q) -> Option<(&K, &V)>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.pinned.find(self.hash(key), key).map(|entry| entry.pair())
    }

    /// Whether there is a key.
    #[inline]
    pub fn contains_key<Q>(&self, key: &Q) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.pinned.find(self.hash(key), key).is_some()
    }

    /// Puts a key and its value in, in the place of what there is for the key: the old value, if any.
    ///
    /// Unlike in the standard library's map, the old key goes with the old value.
    #[doc(alias = "swap")]
    pub fn insert(&self, key: K, value: V) -> Option<&V> {
        let hash = self.hash(&key);
        self.pinned.core().table.prefetch_first(hash);
        let (_, old) = self.pinned.insert_or_replace(hash, self.pinned.make(key, value));
        old.map(|old| &old.value)
    }

    /// Removes a key: its value, if it was there.
    pub fn remove<Q>(&self, key: &Q) -> Option<&V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.remove_entry(key).map(|(_, value)| value)
    }

    /// Removes a key: the key as it was in the map and its value, if it was there.
    pub fn remove_entry<Q>(&self, key: &Q) -> Option<(&K, &V)>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.pinned.remove(self.hash(key), key).map(|entry| entry.pair())
    }

    /// Removes all entries. What others insert meanwhile may stay.
    pub fn clear(&self) {
        self.pinned.clear();
    }

    /// Removes all entries but those that `keep` is true of. What others insert meanwhile may stay, and an entry that
    /// was replaced since `keep` saw it stays.
    pub fn retain(&self, mut keep: impl FnMut(&K, &V) -> bool) {
        for entry in self.pinned.walk() {
            if !keep(&entry.key, &entry.value) {
                self.pinned.remove_exact(self.hash(&entry.key), entry);
            }
        }
    }

    /// Makes room for so many entries more. Others go on meanwhile.
    ///
    /// # Panics
    /// If the index can never have so many.
    pub fn reserve(&self, additional: usize) {
        assert!(self.pinned.reserve(additional), "no room for {additional} entries more: ask for fewer");
    }
}
