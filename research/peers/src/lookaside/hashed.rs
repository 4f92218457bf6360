//! Hash tables: hashbrown for one owner, papaya and dashmap for many threads; each with its own default hash.
//!
//! hashbrown keeps one byte of the hash a slot, so a set of handles follows a pointer only for the key it looks for.
//! The other two have no way to exchange an element of a set, and keep the key beside the handle.

use hashbrown::{HashMap, HashSet};
use lab::lookaside::{Alone, Key, Make, Request, Tally, Value};
use lab::measure::epochs;
use lookaside::index::{Discard, Find, SharedDiscard, SharedStore, Store};
use lookaside::{Found, Pin, Sought};

use super::Handled;

lab::map_alone!(pub(super) HashbrownAlone, HashMap<Key<N>, Box<Value>>, records => HashMap::with_capacity(records), "hashbrown's map alone.");

/// hashbrown's set of handles.
pub(super) struct Hashbrown<const N: usize>(HashSet<Handled<N>>);

impl<const N: usize> Make for Hashbrown<N> {
    fn make(records: usize) -> Result<Self, String> {
        Ok(Hashbrown(HashSet::with_capacity(records)))
    }
}

impl<const N: usize> Find<Key<N>, Key<N>, Value> for Hashbrown<N> {
    #[inline]
    fn find<'p>(&self, key: &Key<N>, pin: &Pin<'p>) -> Option<Found<'p, Key<N>, Value>> {
        self.0.get(Sought::of(key))?.found(pin)
    }
}

impl<const N: usize> Store<Key<N>, Value> for Hashbrown<N> {
    fn replace(&mut self, handle: Handled<N>) -> Option<Handled<N>> {
        self.0.replace(handle)
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

impl<const N: usize> Discard<Key<N>, Key<N>, Value> for Hashbrown<N> {
    fn remove(&mut self, key: &Key<N>) -> Option<Handled<N>> {
        self.0.take(Sought::of(key))
    }
}

/// papaya's map alone.
pub(super) struct PapayaAlone<const N: usize>(papaya::HashMap<Key<N>, Box<Value>>);

impl<const N: usize> Make for PapayaAlone<N> {
    fn make(records: usize) -> Result<Self, String> {
        Ok(PapayaAlone(papaya::HashMap::with_capacity(records)))
    }
}

impl<const N: usize> Alone<N> for PapayaAlone<N> {
    const SHARES_WRITES: bool = true;

    fn get_each(&self, keys: &[Key<N>]) -> Tally {
        let map = self.0.pin();
        let mut tally = Tally::default();
        keys.iter().for_each(|key| tally.count(map.get(key).map(|value| value.read())));
        tally
    }

    fn perform(&self, requests: &[Request<N>]) -> Tally {
        let mut tally = Tally::default();
        for requests in requests.chunks(epochs::REQUESTS) {
            let map = self.0.pin();
            for request in requests {
                if request.set {
                    map.insert(request.key, Box::new(Value::of(request.record)));
                } else {
                    tally.count(map.get(&request.key).map(|value| value.read()));
                }
            }
        }
        tally
    }
}

/// papaya's map of handles.
pub(super) struct Papaya<const N: usize>(papaya::HashMap<Key<N>, Handled<N>>);

impl<const N: usize> Make for Papaya<N> {
    fn make(records: usize) -> Result<Self, String> {
        Ok(Papaya(papaya::HashMap::with_capacity(records)))
    }
}

impl<const N: usize> Find<Key<N>, Key<N>, Value> for Papaya<N> {
    #[inline]
    fn find<'p>(&self, key: &Key<N>, pin: &Pin<'p>) -> Option<Found<'p, Key<N>, Value>> {
        self.0.pin().get(key)?.found(pin)
    }
}

impl<const N: usize> SharedStore<Key<N>, Value> for Papaya<N> {
    fn replace(&self, handle: Handled<N>) -> Option<Handled<N>> {
        self.0.pin().insert(*handle.key(), handle).cloned()
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

impl<const N: usize> SharedDiscard<Key<N>, Key<N>, Value> for Papaya<N> {
    fn remove(&self, key: &Key<N>) -> Option<Handled<N>> {
        self.0.pin().remove(key).cloned()
    }
}

/// dashmap's map alone.
pub(super) struct DashmapAlone<const N: usize>(dashmap::DashMap<Key<N>, Box<Value>>);

impl<const N: usize> Make for DashmapAlone<N> {
    fn make(records: usize) -> Result<Self, String> {
        Ok(DashmapAlone(dashmap::DashMap::with_capacity(records)))
    }
}

impl<const N: usize> Alone<N> for DashmapAlone<N> {
    const SHARES_WRITES: bool = true;

    fn get_each(&self, keys: &[Key<N>]) -> Tally {
        let mut tally = Tally::default();
        keys.iter().for_each(|key| tally.count(self.0.get(key).map(|value| value.read())));
        tally
    }

    fn perform(&self, requests: &[Request<N>]) -> Tally {
        let mut tally = Tally::default();
        for request in requests {
            if request.set {
                self.0.insert(request.key, Box::new(Value::of(request.record)));
            } else {
                tally.count(self.0.get(&request.key).map(|value| value.read()));
            }
        }
        tally
    }
}

/// dashmap's map of handles.
pub(super) struct Dashmap<const N: usize>(dashmap::DashMap<Key<N>, Handled<N>>);

impl<const N: usize> Make for Dashmap<N> {
    fn make(records: usize) -> Result<Self, String> {
        Ok(Dashmap(dashmap::DashMap::with_capacity(records)))
    }
}

impl<const N: usize> Find<Key<N>, Key<N>, Value> for Dashmap<N> {
    #[inline]
    fn find<'p>(&self, key: &Key<N>, pin: &Pin<'p>) -> Option<Found<'p, Key<N>, Value>> {
        self.0.get(key)?.found(pin)
    }
}

impl<const N: usize> SharedStore<Key<N>, Value> for Dashmap<N> {
    fn replace(&self, handle: Handled<N>) -> Option<Handled<N>> {
        self.0.insert(*handle.key(), handle)
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

impl<const N: usize> SharedDiscard<Key<N>, Key<N>, Value> for Dashmap<N> {
    fn remove(&self, key: &Key<N>) -> Option<Handled<N>> {
        Some(self.0.remove(key)?.1)
    }
}
