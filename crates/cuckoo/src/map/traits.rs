//! The standard library's traits.

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::panic::{RefUnwindSafe, UnwindSafe};

use super::iter::{IntoIter, Iter};
use super::{HashMap, HashMapRef};

impl<K, V, S: Default> Default for HashMap<K, V, S> {
    /// An empty map.
    fn default() -> Self {
        HashMap::with_hasher(S::default())
    }
}

impl<K: fmt::Debug, V: fmt::Debug, S> fmt::Debug for HashMap<K, V, S> {
    /// As the standard library's: `{key: value, ..}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pin().fmt(f)
    }
}

impl<K: fmt::Debug, V: fmt::Debug, S> fmt::Debug for HashMapRef<'_, K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

impl<K, V, S> Clone for HashMap<K, V, S>
where
    K: Clone + Hash + Eq,
    V: Clone,
    S: Clone + BuildHasher,
{
    /// A map of copies of the entries. While others write to this one, it is no snapshot: see [`HashMapRef::iter`].
    fn clone(&self) -> Self {
        let copy = HashMap { core: self.core.like(self.len()) };
        {
            let (from, to) = (self.pin(), copy.pin());
            for (key, value) in &from {
                to.insert(key.clone(), value.clone());
            }
        }
        copy
    }
}

impl<K, V, S> Extend<(K, V)> for &HashMap<K, V, S>
where
    K: Hash + Eq,
    S: BuildHasher,
{
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        let entries = entries.into_iter();
        let mut pinned = self.pin();
        // In a map that has some, half of them may be there: as the standard library's.
        let least = entries.size_hint().0;
        let room = if pinned.is_empty() { least } else { least.div_ceil(2) };
        // Of an iterator that says it has more than any map could, entries are taken as they come.
        pinned.pinned.reserve(room);
        for (number, (key, value)) in entries.enumerate() {
            pinned.insert(key, value);
            // What was replaced is not to pile up.
            if number % 1024 == 1023 {
                pinned.refresh();
            }
        }
    }
}

impl<K, V, S> Extend<(K, V)> for HashMap<K, V, S>
where
    K: Hash + Eq,
    S: BuildHasher,
{
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        (&*self).extend(entries);
    }
}

impl<K, V, S> FromIterator<(K, V)> for HashMap<K, V, S>
where
    K: Hash + Eq,
    S: BuildHasher + Default,
{
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = HashMap::default();
        map.extend(entries);
        map
    }
}

impl<K: Hash + Eq, V, const N: usize> From<[(K, V); N]> for HashMap<K, V> {
    /// ```
    /// let map = lookaside_cuckoo::HashMap::from([("one", 1), ("two", 2)]);
    /// assert_eq!(map.len(), 2);
    /// ```
    fn from(entries: [(K, V); N]) -> Self {
        HashMap::from_iter(entries)
    }
}

impl<K, V, S> PartialEq for HashMap<K, V, S>
where
    K: Hash + Eq,
    V: PartialEq,
    S: BuildHasher,
{
    /// Whether both have the same keys and equal values; of maps that others write to, as far as that can be said.
    fn eq(&self, other: &Self) -> bool {
        let (left, right) = (self.pin(), other.pin());
        left.len() == right.len() && left.iter().all(|(key, value)| right.get(key) == Some(value))
    }
}

impl<K, V, S> Eq for HashMap<K, V, S>
where
    K: Hash + Eq,
    V: Eq,
    S: BuildHasher,
{
}

// A panic in code of the user's, which the map calls, leaves the map whole: see its module. So who catches one sees
// what keys, values and hasher have become by it, and nothing else.
impl<K: UnwindSafe, V: UnwindSafe, S: UnwindSafe> UnwindSafe for HashMap<K, V, S> {}
impl<K: RefUnwindSafe, V: RefUnwindSafe, S: RefUnwindSafe> RefUnwindSafe for HashMap<K, V, S> {}
impl<K: RefUnwindSafe, V: RefUnwindSafe, S: RefUnwindSafe> UnwindSafe for HashMapRef<'_, K, V, S> {}
impl<K: RefUnwindSafe, V: RefUnwindSafe, S: RefUnwindSafe> RefUnwindSafe for HashMapRef<'_, K, V, S> {}

impl<K, V, S> IntoIterator for HashMap<K, V, S> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V>;

    /// The entries, in no order, moved out of the map.
    fn into_iter(mut self) -> IntoIter<K, V> {
        let mut entries = Vec::with_capacity(self.len());
        self.core.drain(|key, value| entries.push((key, value)));
        IntoIter(entries.into_iter())
    }
}

impl<'p, K, V, S> IntoIterator for &'p HashMapRef<'_, K, V, S> {
    type Item = (&'p K, &'p V);
    type IntoIter = Iter<'p, K, V>;

    fn into_iter(self) -> Iter<'p, K, V> {
        self.iter()
    }
}

#[cfg(feature = "serde")]
mod serialized {
    //! As the standard library's map: a map of keys and values.

    use std::marker::PhantomData;

    use serde::de::{MapAccess, Visitor};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::*;

    impl<K: Serialize, V: Serialize, S> Serialize for HashMap<K, V, S> {
        fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
            serializer.collect_map(&self.pin())
        }
    }

    impl<'de, K, V, S> Deserialize<'de> for HashMap<K, V, S>
    where
        K: Deserialize<'de> + Hash + Eq,
        V: Deserialize<'de>,
        S: BuildHasher + Default,
    {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Entries<K, V, S>(PhantomData<fn() -> HashMap<K, V, S>>);

            impl<'de, K, V, S> Visitor<'de> for Entries<K, V, S>
            where
                K: Deserialize<'de> + Hash + Eq,
                V: Deserialize<'de>,
                S: BuildHasher + Default,
            {
                type Value = HashMap<K, V, S>;

                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("a map")
                }

                fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
                    let map = HashMap::default();
                    while let Some((key, value)) = entries.next_entry()? {
                        map.pin().insert(key, value);
                    }
                    Ok(map)
                }
            }

            deserializer.deserialize_map(Entries(PhantomData))
        }
    }
}
