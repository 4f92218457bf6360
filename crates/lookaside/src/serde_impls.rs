//! serde's faces of both maps, with the feature `serde`: a map of keys to values, in the order of the index.
//!
//! What is read is collected first, and the map built at once ([`FromIterator`]). Of equal keys the last stays.

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::index::{SharedStore, Store, Walk};
use crate::map::{Map, MapRef};
use crate::owned::OwnedMap;

/// Room that is made before an entry has come, whatever the input says of itself.
const AT_ONCE: usize = 1 << 12;

/// Reads a map's entries.
struct Entries<M, K, V>(PhantomData<M>, PhantomData<(K, V)>);

impl<'de, M, K, V> Visitor<'de> for Entries<M, K, V>
where
    M: FromIterator<(K, V)>,
    K: Deserialize<'de>,
    V: Deserialize<'de>,
{
    type Value = M;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<M, A::Error> {
        let mut entries = Vec::with_capacity(map.size_hint().unwrap_or(0).min(AT_ONCE));
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(entries.into_iter().collect())
    }
}

impl<K, V, I, S> Serialize for MapRef<'_, K, V, I, S>
where
    K: Serialize + Send + Sync,
    V: Serialize + Send + Sync,
    I: Walk<K, V>,
    S: BuildHasher,
{
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serializer.collect_map(self)
    }
}

impl<K, V, I, S> Serialize for Map<K, V, I, S>
where
    K: Serialize + Send + Sync,
    V: Serialize + Send + Sync,
    I: Walk<K, V>,
    S: BuildHasher,
{
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        self.pin().serialize(serializer)
    }
}

impl<K, V, I, S> Serialize for OwnedMap<K, V, I, S>
where
    K: Serialize + Send + Sync,
    V: Serialize + Send + Sync,
    I: Walk<K, V>,
    S: BuildHasher,
{
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serializer.collect_map(self)
    }
}

impl<'de, K, V, I, S> Deserialize<'de> for Map<K, V, I, S>
where
    K: Deserialize<'de> + Hash + Eq + Send + Sync,
    V: Deserialize<'de> + Send + Sync,
    I: SharedStore<K, V> + Default,
    S: BuildHasher + Default + 'static,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Entries(PhantomData, PhantomData))
    }
}

impl<'de, K, V, I, S> Deserialize<'de> for OwnedMap<K, V, I, S>
where
    K: Deserialize<'de> + Hash + Eq + Send + Sync,
    V: Deserialize<'de> + Send + Sync,
    I: Store<K, V> + Default,
    S: BuildHasher + Default + 'static,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Entries(PhantomData, PhantomData))
    }
}
