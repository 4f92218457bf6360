//! Hash tables: hashbrown for one owner, papaya and dashmap for many threads; each with its own default hash.
//!
//! hashbrown keeps one byte of the hash a slot, so a set of handles follows a pointer only for the key it looks for.
//! The other two have no way to exchange an element of a set, and keep the key beside the handle.

use std::hash::{BuildHasher, Hash};

use hashbrown::{HashMap, HashSet};
use lab::lookaside::indexes::{ConcurrentMap, Handled, LocalMap};
use lab::lookaside::{Key, Make, Value};
use lookaside::index::{Find, Store};
use lookaside::{Found, Pin, Sought};
use papaya::Guard as _;

/// hashbrown's map alone.
pub(super) struct HashbrownAlone<const N: usize>(HashMap<Key<N>, Box<Value>>);

impl<const N: usize> Make for HashbrownAlone<N> {
    fn make(records: usize) -> Result<Self, String> {
        Ok(HashbrownAlone(HashMap::with_capacity(records)))
    }
}

impl<const N: usize> LocalMap<N> for HashbrownAlone<N> {
    #[inline(always)]
    fn get(&self, key: &Key<N>) -> Option<&Value> {
        self.0.get(key).map(|value| &**value)
    }

    #[inline(always)]
    fn put(&mut self, key: Key<N>, value: Value) {
        self.0.insert(key, Box::new(value));
    }
}

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

/// papaya's map.
pub(crate) struct Papaya<K, T, S = std::hash::RandomState>(papaya::HashMap<K, T, S>);

impl<K, T, S> ConcurrentMap<K, T> for Papaya<K, T, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    T: Send + Sync + 'static,
    S: BuildHasher + Default + Send + Sync + 'static,
{
    type Guard<'m> = papaya::LocalGuard<'m>;

    fn with_capacity(records: usize) -> Self {
        Papaya(papaya::HashMap::builder().capacity(records).hasher(S::default()).build())
    }

    #[inline(always)]
    fn guard(&self) -> Self::Guard<'_> {
        self.0.guard()
    }

    fn refresh<'m>(&'m self, guard: &mut Self::Guard<'m>) {
        guard.refresh();
    }

    #[inline(always)]
    fn look<R>(&self, key: &K, guard: &Self::Guard<'_>, see: impl FnOnce(&T) -> R) -> Option<R> {
        self.0.get(key, guard).map(see)
    }

    #[inline(always)]
    fn put(&self, key: K, new: T, guard: &Self::Guard<'_>) {
        self.0.insert(key, new, guard);
    }

    fn exchange(&self, key: K, new: T) -> Option<T>
    where
        T: Clone,
    {
        self.0.pin().insert(key, new).cloned()
    }

    fn keys(&self) -> usize {
        self.0.len()
    }
}

/// dashmap's map.
pub(crate) struct Dashmap<K, T, S = std::hash::RandomState>(dashmap::DashMap<K, T, S>);

impl<K, T, S> ConcurrentMap<K, T> for Dashmap<K, T, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    T: Send + Sync + 'static,
    S: BuildHasher + Default + Clone + Send + Sync + 'static,
{
    type Guard<'m> = ();

    fn with_capacity(records: usize) -> Self {
        Dashmap(dashmap::DashMap::with_capacity_and_hasher(records, S::default()))
    }

    fn guard(&self) -> Self::Guard<'_> {}

    fn refresh<'m>(&'m self, _guard: &mut Self::Guard<'m>) {}

    #[inline(always)]
    fn look<R>(&self, key: &K, _guard: &Self::Guard<'_>, see: impl FnOnce(&T) -> R) -> Option<R> {
        self.0.get(key).map(|value| see(&value))
    }

    #[inline(always)]
    fn put(&self, key: K, new: T, _guard: &Self::Guard<'_>) {
        self.0.insert(key, new);
    }

    fn exchange(&self, key: K, new: T) -> Option<T>
    where
        T: Clone,
    {
        self.0.insert(key, new)
    }

    fn keys(&self) -> usize {
        self.0.len()
    }
}
