//! What an index must be able to do to stand behind a map.
//!
//! An index stores [`Handle`]s, ordered, hashed or however it likes, and finds them by key. It need not be trusted: one
//! that loses handles, keeps them, or finds the wrong ones makes a map with wrong answers, and no worse.
//!
//! | trait | what | for |
//! |---|---|---|
//! | [`Find`] | look up, one or many | both forms |
//! | [`Store`], [`Discard`] | change, with `&mut self` | [`crate::OwnedMap`] |
//! | [`SharedStore`], [`SharedDiscard`] | change, with `&self` | [`crate::Map`] |
//! | [`Scan`] | in order | where the index has an order |
//! | [`Walk`] | over all, in any order | `iter`, `retain`, `Debug` and others |
//! | [`Exclusive`] | keeps its handles to itself | [`crate::OwnedMap::get_mut`] |
//! | [`View`] | be looked at, and do what only this index can | where there is such a thing |
//!
//! The standard library's `BTreeSet` and `HashSet` of handles are indexes for one owner; under a [`crate::RwLock`] they
//! are shared ones. The project's radix tree is one, with its feature `lookaside` (crate `lookaside-art`). Concurrent
//! indexes of other crates are a dozen lines each: see those of `research/peers`.
//!
//! A shared index is changed by one thread at a time for any one key, and not while the same thread searches it. It
//! must not use the map that it stands behind, nor write to another one behind the same buffer: they share stripes. Nor
//! may what it calls while it is locked, the comparison of keys or the visitor of a scan, change it: under a `RwLock`
//! that panics.

mod compared;

use std::borrow::Borrow;
use std::collections::{BTreeSet, HashSet};
use std::hash::{BuildHasher, Hash};
use std::ops::{Bound, ControlFlow};

use equivalent::{Comparable, Equivalent};

use self::compared::Compared;
use crate::entry::{Found, Handle, Pin, Sought};

/// The index of a map that was given none: in the order of the keys.
pub type Ordered<K, V> = BTreeSet<Handle<K, V>>;

/// Looking keys up, by themselves, by what they can be borrowed as, or by what is [`Equivalent`] to them: the standard
/// library's sets of handles take all of these, and ask for an order ([`Comparable`]) where they have one.
pub trait Find<Q: ?Sized, K: 'static, V: 'static> {
    /// The entry of this key.
    fn find<'p>(&self, key: &Q, pin: &Pin<'p>) -> Option<Found<'p, K, V>>;

    /// The entries of many keys: `found(i, ...)` is told that of `keys[i]`, for each of them once, in any order. An
    /// index that can look up several at once overrides this. Whoever asks is told rather than given a list: to go over
    /// that again would cost a quick index a twentieth of its lookups.
    #[inline]
    fn find_many<'p>(
        &self,
        keys: &[&Q],
        pin: &Pin<'p>,
        mut found: impl FnMut(usize, Option<Found<'p, K, V>>),
    ) {
        for (i, key) in keys.iter().enumerate() {
            found(i, self.find(key, pin));
        }
    }
}

/// Storing, by the one owner.
pub trait Store<K: 'static, V: 'static> {
    /// Whether a write whose key the table has may leave the index as it is, and let the entry that the index has be
    /// succeeded by the new one, which is then what [`Handle::found`] finds. For an index whose search is long: behind
    /// a tree, it makes such a write as quick as lookups are made, or nearly.
    ///
    /// The index then does not hear of those writes: one that has side effects, or goes by values, or that lets entries
    /// go by itself, with which a write would be lost, leaves it off. Each key written like that keeps the bytes of its
    /// old value, until the index is next asked about it; as many keys at most as the table has slots. Values with a
    /// destructor are not succeeded.
    const SUCCESSION: bool = false;

    /// Puts a handle in, and gives back the one of an equal key, if there was one.
    fn replace(&mut self, handle: Handle<K, V>) -> Option<Handle<K, V>>;

    /// Brings entries into the order in which they are best loaded, if there is one: they will lie in memory, and come
    /// to [`Store::load`], in this order. Of equal keys, the one that came later must do so still.
    fn arrange(entries: &mut Vec<(K, V)>) {
        let _ = entries;
    }

    /// Puts many handles in, each as by [`Store::replace`]. What they replace is dropped.
    fn load(&mut self, handles: Vec<Handle<K, V>>) {
        handles.into_iter().for_each(|handle| drop(self.replace(handle)));
    }

    /// Handles in the index.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Removing, by the one owner.
pub trait Discard<Q: ?Sized, K: 'static, V: 'static> {
    /// Takes the handle of this key out.
    fn remove(&mut self, key: &Q) -> Option<Handle<K, V>>;
}

/// Storing, by many threads.
pub trait SharedStore<K: 'static, V: 'static> {
    /// As [`Store::SUCCESSION`]. Nor do such writes take the index's locks.
    const SUCCESSION: bool = false;

    /// Puts a handle in, and gives back the one of an equal key, if there was one.
    fn replace(&self, handle: Handle<K, V>) -> Option<Handle<K, V>>;

    /// As [`Store::arrange`].
    fn arrange(entries: &mut Vec<(K, V)>) {
        let _ = entries;
    }

    /// As [`Store::load`].
    fn load(&self, handles: Vec<Handle<K, V>>) {
        handles.into_iter().for_each(|handle| drop(self.replace(handle)));
    }

    /// Handles in the index, as far as it knows.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Removing, by many threads.
pub trait SharedDiscard<Q: ?Sized, K: 'static, V: 'static> {
    /// Takes the handle of this key out.
    fn remove(&self, key: &Q) -> Option<Handle<K, V>>;
}

/// Walking in order.
pub trait Scan<Q: ?Sized, K: 'static, V: 'static> {
    /// Shows the entries between two bounds, in order, until `visit` breaks.
    fn scan<'p>(
        &self,
        from: Bound<&Q>,
        to: Bound<&Q>,
        pin: &Pin<'p>,
        visit: &mut dyn FnMut(Found<'p, K, V>) -> ControlFlow<()>,
    );
}

/// Walking over all entries, in any order.
pub trait Walk<K: 'static, V: 'static> {
    /// Shows each entry once.
    fn walk<'p>(&self, pin: &Pin<'p>, visit: &mut dyn FnMut(Found<'p, K, V>));
}

/// An index that keeps its handles to itself: by whoever has it mutably, an entry may be changed in place
/// ([`crate::OwnedMap::get_mut`]).
///
/// # Safety
/// A handle that was put in is given back by a write, or dropped, and not cloned or shown to anybody otherwise.
#[allow(unsafe_code)]
pub unsafe trait Exclusive<K: 'static, V: 'static>: Store<K, V> {}

// SAFETY: the standard library's sets show their elements to whoever has the set, and a map shows its index to nobody;
// the comparison of handles is that of keys, which is shown keys.
#[allow(unsafe_code)]
unsafe impl<K: Ord, V> Exclusive<K, V> for BTreeSet<Handle<K, V>> {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl<K: Hash + Eq, V, S: BuildHasher> Exclusive<K, V> for HashSet<Handle<K, V>, S> {}

impl<K, V> Walk<K, V> for BTreeSet<Handle<K, V>> {
    fn walk<'p>(&self, pin: &Pin<'p>, visit: &mut dyn FnMut(Found<'p, K, V>)) {
        self.iter().filter_map(|handle| handle.found(pin)).for_each(visit);
    }
}

impl<K, V, S> Walk<K, V> for HashSet<Handle<K, V>, S> {
    fn walk<'p>(&self, pin: &Pin<'p>, visit: &mut dyn FnMut(Found<'p, K, V>)) {
        self.iter().filter_map(|handle| handle.found(pin)).for_each(visit);
    }
}

/// What an index shows of itself while it stands behind a map: see [`crate::Map::view`].
///
/// Nothing that it shows puts an entry in, takes one out or replaces one: the table in front would not hear of it. An
/// index that breaks this makes a map with old values, and no worse.
pub trait View {
    /// What is shown.
    type Shown<'i>
    where
        Self: 'i;

    /// Shows it.
    fn view(&self) -> Self::Shown<'_>;
}

impl<Q: Comparable<K> + ?Sized, K: Ord, V> Find<Q, K, V> for BTreeSet<Handle<K, V>> {
    #[inline]
    fn find<'p>(&self, key: &Q, pin: &Pin<'p>) -> Option<Found<'p, K, V>> {
        self.get(&key as &dyn Compared<Q, K>)?.found(pin)
    }
}

impl<K: Ord, V> Store<K, V> for BTreeSet<Handle<K, V>> {
    const SUCCESSION: bool = true;

    fn replace(&mut self, handle: Handle<K, V>) -> Option<Handle<K, V>> {
        BTreeSet::replace(self, handle)
    }

    fn arrange(entries: &mut Vec<(K, V)>) {
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    }

    fn load(&mut self, handles: Vec<Handle<K, V>>) {
        // Built from the bottom, leaf by full leaf, where there is nothing yet. Of equal keys the last stays.
        if self.is_empty() {
            *self = handles.into_iter().collect();
        } else {
            handles.into_iter().for_each(|handle| drop(BTreeSet::replace(self, handle)));
        }
    }

    fn len(&self) -> usize {
        BTreeSet::len(self)
    }
}

impl<Q: Comparable<K> + ?Sized, K: Ord, V> Discard<Q, K, V> for BTreeSet<Handle<K, V>> {
    fn remove(&mut self, key: &Q) -> Option<Handle<K, V>> {
        self.take(&key as &dyn Compared<Q, K>)
    }
}

impl<Q: Ord + ?Sized, K: Borrow<Q> + Ord, V> Scan<Q, K, V> for BTreeSet<Handle<K, V>> {
    fn scan<'p>(
        &self,
        from: Bound<&Q>,
        to: Bound<&Q>,
        pin: &Pin<'p>,
        visit: &mut dyn FnMut(Found<'p, K, V>) -> ControlFlow<()>,
    ) {
        if is_empty_range(&from, &to) {
            return;
        }
        let bounds = (from.map(Sought::of), to.map(Sought::of));
        for handle in self.range::<Sought<Q>, _>(bounds) {
            if handle.found(pin).is_some_and(|found| visit(found).is_break()) {
                return;
            }
        }
    }
}

/// Whether nothing lies between these bounds: for some such pairs the standard library's trees, and others, panic.
pub fn is_empty_range<Q: Ord + ?Sized>(from: &Bound<&Q>, to: &Bound<&Q>) -> bool {
    match (from, to) {
        (Bound::Excluded(from), Bound::Excluded(to) | Bound::Included(to))
        | (Bound::Included(from), Bound::Excluded(to)) => from >= to,
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
    }
}

impl<Q, K, V, S> Find<Q, K, V> for HashSet<Handle<K, V>, S>
where
    Q: Hash + Equivalent<K> + ?Sized,
    K: Hash + Eq,
    S: BuildHasher,
{
    #[inline]
    fn find<'p>(&self, key: &Q, pin: &Pin<'p>) -> Option<Found<'p, K, V>> {
        self.get(&key as &dyn Compared<Q, K>)?.found(pin)
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Store<K, V> for HashSet<Handle<K, V>, S> {
    fn replace(&mut self, handle: Handle<K, V>) -> Option<Handle<K, V>> {
        HashSet::replace(self, handle)
    }

    fn len(&self) -> usize {
        HashSet::len(self)
    }
}

impl<Q, K, V, S> Discard<Q, K, V> for HashSet<Handle<K, V>, S>
where
    Q: Hash + Equivalent<K> + ?Sized,
    K: Hash + Eq,
    S: BuildHasher,
{
    fn remove(&mut self, key: &Q) -> Option<Handle<K, V>> {
        self.take(&key as &dyn Compared<Q, K>)
    }
}
