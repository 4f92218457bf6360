//! Indexes as people have them, alone and behind a map: an index is written once, for whatever it stores.
//!
//! | trait | index | alone | behind a map |
//! |---|---|---|---|
//! | [`LocalMap`] | for one owner | [`Alone`]: its lock is taken once for millions of requests | its set of handles |
//! | [`ConcurrentMap`] | for many threads | [`Boxes`]: a guard serves for millions of requests | [`Handles`] |
//!
//! [`Tree`] keeps the keys beside the handles, as a `BTreeMap` alone does, so that a search does not follow a pointer
//! for every comparison.

use std::borrow::Borrow;
use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashMap, HashSet};

use lookaside::index::{Find, SharedStore, Store};
use lookaside::{Found, Handle, Pin, RwLock};

use super::contestant::{Abilities, Contestant, Make};
use super::record::{Key, Value};
use super::visit::{Answer, Lot, Request, Visit, in_turn};
use crate::subject::Call;

/// A map of one owner.
pub trait LocalMap<const N: usize>: Make + Send + Sync {
    /// The value of a key.
    fn get(&self, key: &Key<N>) -> Option<&Value>;

    /// Puts a value in, in the place of the one of an equal key.
    fn put(&mut self, key: Key<N>, value: Value);
}

/// A type with `get` and `insert`, of boxed values, as such a map.
macro_rules! local_map {
    ($map:ident, $records:ident => $make:expr) => {
        impl<const N: usize> Make for $map<Key<N>, Box<Value>> {
            fn make($records: usize) -> Result<Self, String> {
                Ok($make)
            }
        }

        impl<const N: usize> LocalMap<N> for $map<Key<N>, Box<Value>> {
            #[inline(always)]
            fn get(&self, key: &Key<N>) -> Option<&Value> {
                $map::get(self, key).map(|value| &**value)
            }

            #[inline(always)]
            fn put(&mut self, key: Key<N>, value: Value) {
                self.insert(key, Box::new(value));
            }
        }
    };
}

local_map!(BTreeMap, _records => BTreeMap::new());
local_map!(HashMap, records => HashMap::with_capacity(records));

/// A map of one owner, by reference.
struct Owner<M>(M);

impl<const N: usize, M: LocalMap<N>> Visit<N> for Owner<&M> {
    #[inline(always)]
    fn look<R>(&self, key: &Key<N>, see: impl FnOnce(&Value) -> R) -> Option<R> {
        self.0.get(key).map(see)
    }

    fn set(&mut self, _request: &Request<N>) {
        unreachable!("whoever writes has the map locked for writes")
    }
}

impl<const N: usize, M: LocalMap<N>> Visit<N> for Owner<&mut M> {
    #[inline(always)]
    fn look<R>(&self, key: &Key<N>, see: impl FnOnce(&Value) -> R) -> Option<R> {
        self.0.get(key).map(see)
    }

    #[inline(always)]
    fn set(&mut self, request: &Request<N>) {
        self.0.put(request.key, Value::of(request.record));
    }
}

/// A map of one owner alone: many may look up, or one may write. Its lock is taken once a call.
pub struct Alone<M>(RwLock<M>);

impl<M: Make> Make for Alone<M> {
    fn make(records: usize) -> Result<Self, String> {
        RwLock::make(records).map(Alone)
    }
}

impl<const N: usize, M: LocalMap<N>> Contestant<N> for Alone<M> {
    fn ask(&self, _thread: usize, call: Call, lots: [Lot<'_, N>; 2]) -> Answer {
        match lots[1] {
            Lot::Requests(_) => in_turn(&mut Owner(&mut *self.0.write()), call, lots),
            Lot::Keys(_) | Lot::Renewals(_) => in_turn(&mut Owner(&*self.0.read()), call, lots),
        }
    }

    fn abilities(&self) -> Abilities {
        Abilities::READ_BY_MANY
    }
}

/// A map for many threads, of whatever there is for each key.
pub trait ConcurrentMap<K, T>: Sized + Send + Sync {
    /// As [`SharedStore::SUCCESSION`].
    const SUCCESSION: bool = false;

    /// What a thread holds while it uses the map, for as many requests as it likes.
    type Guard<'m>
    where
        Self: 'm;

    /// An empty one with room for so many records, if it takes room beforehand.
    fn with_capacity(records: usize) -> Self;

    /// A guard for this thread.
    fn guard(&self) -> Self::Guard<'_>;

    /// Lets go of what was replaced since the guard was made, or last refreshed.
    fn refresh<'m>(&'m self, guard: &mut Self::Guard<'m>);

    /// Shows what there is for a key.
    fn look<R>(&self, key: &K, guard: &Self::Guard<'_>, see: impl FnOnce(&T) -> R) -> Option<R>;

    /// Puts something in, in the place of what there was for an equal key.
    fn put(&self, key: K, new: T, guard: &Self::Guard<'_>);

    /// The same, and gives back what there was.
    fn exchange(&self, key: K, new: T) -> Option<T>
    where
        T: Clone;

    /// How many keys there are.
    fn keys(&self) -> usize;
}

/// A map for many threads alone, of values that are on the heap.
pub struct Boxes<const N: usize, T, M>(M, std::marker::PhantomData<fn() -> T>);

impl<const N: usize, T, M: ConcurrentMap<Key<N>, T>> Make for Boxes<N, T, M> {
    fn make(records: usize) -> Result<Self, String> {
        Ok(Boxes(M::with_capacity(records), std::marker::PhantomData))
    }
}

impl<const N: usize, T, M> Contestant<N> for Boxes<N, T, M>
where
    T: Borrow<Value> + From<Value>,
    M: ConcurrentMap<Key<N>, T>,
{
    fn ask(&self, _thread: usize, call: Call, lots: [Lot<'_, N>; 2]) -> Answer {
        let mut guarded = Guarded::<N, T, M> { map: &self.0, guard: self.0.guard() };
        in_turn(&mut guarded, call, lots)
    }

    fn abilities(&self) -> Abilities {
        Abilities::SHARED
    }
}

/// Such a map and a guard of it.
struct Guarded<'m, const N: usize, T, M: ConcurrentMap<Key<N>, T> + 'm> {
    map: &'m M,
    guard: M::Guard<'m>,
}

impl<const N: usize, T, M> Visit<N> for Guarded<'_, N, T, M>
where
    T: Borrow<Value> + From<Value>,
    M: ConcurrentMap<Key<N>, T>,
{
    #[inline(always)]
    fn look<R>(&self, key: &Key<N>, see: impl FnOnce(&Value) -> R) -> Option<R> {
        self.map.look(key, &self.guard, |value| see(value.borrow()))
    }

    #[inline(always)]
    fn set(&mut self, request: &Request<N>) {
        self.map.put(request.key, Value::of(request.record).into(), &self.guard);
    }

    fn refresh(&mut self) {
        self.map.refresh(&mut self.guard);
    }
}

/// What is stored behind a map.
pub type Handled<const N: usize> = Handle<Key<N>, Value>;

/// A map for many threads of handles, to stand behind a map.
pub struct Handles<const N: usize, M>(M);

impl<const N: usize, M: ConcurrentMap<Key<N>, Handled<N>>> Make for Handles<N, M> {
    fn make(records: usize) -> Result<Self, String> {
        Ok(Handles(M::with_capacity(records)))
    }
}

impl<const N: usize, M: ConcurrentMap<Key<N>, Handled<N>>> Find<Key<N>, Key<N>, Value> for Handles<N, M> {
    #[inline]
    fn find<'p>(&self, key: &Key<N>, pin: &Pin<'p>) -> Option<Found<'p, Key<N>, Value>> {
        self.0.look(key, &self.0.guard(), |handle| handle.found(pin))?
    }
}

impl<const N: usize, M: ConcurrentMap<Key<N>, Handled<N>>> SharedStore<Key<N>, Value> for Handles<N, M> {
    const SUCCESSION: bool = M::SUCCESSION;

    fn replace(&self, handle: Handled<N>) -> Option<Handled<N>> {
        self.0.exchange(*handle.key(), handle)
    }

    fn len(&self) -> usize {
        self.0.keys()
    }
}

/// A B-tree of handles, their keys beside them.
#[derive(Debug, Default)]
pub(super) struct Tree<const N: usize>(BTreeMap<Key<N>, Handled<N>>);

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

    fn replace(&mut self, handle: Handled<N>) -> Option<Handled<N>> {
        self.0.insert(*handle.key(), handle)
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

/// The handles of a hash table that has its own hash.
pub(super) type Hashed<const N: usize> = HashSet<Handled<N>, RandomState>;

impl<const N: usize> Make for Hashed<N> {
    fn make(records: usize) -> Result<Self, String> {
        Ok(HashSet::with_capacity_and_hasher(records, RandomState::new()))
    }
}
