//! The standard library's maps.
//!
//! Alone they map keys to boxed values, for one thread or for readers: the lock is taken once for millions of requests,
//! so that it costs nothing. Behind a map they hold handles; [`Tree`] keeps the keys beside them, as a `BTreeMap` alone
//! does, so that a search does not follow a pointer for every comparison.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashMap, HashSet};

use lookaside::index::{Discard, Find, Store};
use lookaside::{Found, Handle, Pin};

use super::contestant::Make;
use super::record::{Key, Value};

/// Alone: a map with `get` and `insert`, of this type, made so.
#[macro_export]
macro_rules! map_alone {
    ($vis:vis $name:ident, $map:ty, $records:ident => $make:expr, $doc:literal) => {
        #[doc = $doc]
        $vis struct $name<const N: usize>($crate::lookaside::RwLock<$map>);

        impl<const N: usize> $crate::lookaside::Make for $name<N> {
            fn make($records: usize) -> Result<Self, String> {
                Ok($name($crate::lookaside::RwLock::new($make)))
            }
        }

        impl<const N: usize> $crate::lookaside::Alone<N> for $name<N> {
            const SHARES_WRITES: bool = false;

            fn get_each(&self, keys: &[$crate::lookaside::Key<N>]) -> $crate::lookaside::Tally {
                let map = self.0.read();
                let mut tally = $crate::lookaside::Tally::default();
                keys.iter().for_each(|key| tally.count(map.get(key).map(|value| value.read())));
                tally
            }

            fn perform(
                &self,
                requests: &[$crate::lookaside::Request<N>],
            ) -> $crate::lookaside::Tally {
                let mut map = self.0.write();
                let mut tally = $crate::lookaside::Tally::default();
                for request in requests {
                    if request.set {
                        map.insert(
                            request.key,
                            Box::new($crate::lookaside::Value::of(request.record)),
                        );
                    } else {
                        tally.count(map.get(&request.key).map(|value| value.read()));
                    }
                }
                tally
            }

            fn renew(
                &self,
                requests: &[$crate::lookaside::Request<N>],
            ) -> Option<$crate::lookaside::Tally> {
                let map = self.0.read();
                Some($crate::lookaside::renew_each(requests, |key| map.get(key).map(|value| &**value)))
            }
        }
    };
}

map_alone!(pub(super) TreeAlone, BTreeMap<Key<N>, Box<Value>>, _records => BTreeMap::new(), "The standard library's B-tree.");
map_alone!(pub(super) HashAlone, HashMap<Key<N>, Box<Value>>, records => HashMap::with_capacity(records), "The standard library's hash table, with its own hash.");

/// A B-tree of handles, their keys beside them.
#[derive(Debug, Default)]
pub(super) struct Tree<const N: usize>(BTreeMap<Key<N>, Handle<Key<N>, Value>>);

impl<const N: usize> Make for Tree<N> {
    fn make(_records: usize) -> Result<Self, String> {
        Ok(Tree::default())
    }
}

impl<const N: usize> Find<Key<N>, Key<N>, Value> for Tree<N> {
    #[inline]
    fn find<'p>(&self, key: &Key<N>, pin: &Pin<'p>) -> Option<Found<'p, Key<N>, Value>> {
        self.0.get(key)?.found(pin)
    }
}

impl<const N: usize> Store<Key<N>, Value> for Tree<N> {
    const SUCCESSION: bool = true;

    fn replace(&mut self, handle: Handle<Key<N>, Value>) -> Option<Handle<Key<N>, Value>> {
        self.0.insert(*handle.key(), handle)
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

impl<const N: usize> Discard<Key<N>, Key<N>, Value> for Tree<N> {
    fn remove(&mut self, key: &Key<N>) -> Option<Handle<Key<N>, Value>> {
        self.0.remove(key)
    }
}

/// The handles of a hash table that has its own hash.
type Hashed<const N: usize> = HashSet<Handle<Key<N>, Value>, RandomState>;

impl<const N: usize> Make for Hashed<N> {
    fn make(records: usize) -> Result<Self, String> {
        Ok(HashSet::with_capacity_and_hasher(records, RandomState::new()))
    }
}

/// The standard library's `BTreeSet` of handles, whose comparisons follow a pointer each.
type Ordered<const N: usize> = std::collections::BTreeSet<Handle<Key<N>, Value>>;

impl<const N: usize> Make for Ordered<N> {
    fn make(_records: usize) -> Result<Self, String> {
        Ok(Ordered::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lookaside::model;
    use lookaside::RwLock;

    #[test]
    fn standard_maps_behind_a_map_are_maps() {
        model::check::<RwLock<Tree<24>>>();
        model::check::<RwLock<Hashed<24>>>();
        model::check::<RwLock<Ordered<24>>>();
        model::check_ranges::<RwLock<Ordered<24>>>();
    }
}
