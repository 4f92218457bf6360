//! Several steps that are one: what others see happens at one moment, or not at all.
//!
//! | operation | closure | if another thread comes between |
//! |---|---|---|
//! | `try_insert`, `get_or_insert` | none | the key is there: that one counts |
//! | `get_or_insert_with` | makes a value, once; others wait for it | a plain insert counts, the new value is dropped |
//! | `update`, `update_or_insert`, `compute` | makes a new value of the old | it runs again, on what is there now |
//! | `remove_if` | says whether | it is asked again, of what is there now |
//!
//! An old entry is exchanged, or removed, only if it is still the one that the closure has seen: it is known by its
//! address, which no other entry gets while this thread's pin holds it. So no update is lost.

use std::error::Error;
use std::fmt;
use std::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::pinned::HashMapRef;

/// What [`HashMapRef::compute`] is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation<V, T> {
    /// Put this value in, in the place of the old one, if any.
    Insert(V),
    /// Remove the key.
    Remove,
    /// Nothing, and return this.
    Abort(T),
}

/// What [`HashMapRef::compute`] has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compute<'p, K, V, T> {
    /// The key was not there, and is now.
    Inserted(&'p K, &'p V),
    /// The key has another value.
    Updated {
        /// What there was.
        old: (&'p K, &'p V),
        /// What there is.
        new: (&'p K, &'p V),
    },
    /// The key was there, and was removed.
    Removed(&'p K, &'p V),
    /// The key was to be removed, and was not there.
    Absent,
    /// Nothing, as asked.
    Aborted(T),
}

/// A key was there already: see [`HashMapRef::try_insert`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OccupiedError<'p, V> {
    /// The value that is there.
    pub current: &'p V,
    /// The value that was not put in.
    pub not_inserted: V,
}

impl<V> fmt::Display for OccupiedError<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the key is in the map already: remove it first, or insert in its place")
    }
}

impl<V: fmt::Debug> Error for OccupiedError<'_, V> {}

impl<K, V, S> HashMapRef<'_, K, V, S>
where
    K: Hash + Eq,
    S: BuildHasher,
{
    /// Puts a key in that is not there: its value.
    ///
    /// # Errors
    /// The key is there: its value, and the one that was not put in.
    pub fn try_insert(&self, key: K, value: V) -> Result<&V, OccupiedError<'_, V>> {
        let hash = self.hash(&key);
        match self.pinned.insert_or_get(hash, self.pinned.make(key, value)) {
            Ok(new) => Ok(&new.value),
            Err((new, current)) => {
                // While there is no result yet, which a destructor that panics would lose.
                let (key, not_inserted) = new.into_parts();
                drop(key);
                Err(OccupiedError { current: &current.value, not_inserted })
            }
        }
    }

    /// The value of a key, which is put in with this one if it is not there.
    pub fn get_or_insert(&self, key: K, value: V) -> &V {
        self.try_insert(key, value).unwrap_or_else(|error| error.current)
    }

    /// The value of a key, which is put in with what `make` makes if it is not there.
    ///
    /// However many threads ask for an absent key at the same time, `make` runs once; the others wait for it. (Where
    /// `make` itself asks for another key in this way, no thread waits for that one, and two may make its value.)
    ///
    /// ```
    /// use lookaside_cuckoo::HashMap;
    ///
    /// let squares = HashMap::new();
    /// let squares = squares.pin();
    /// assert_eq!(squares.get_or_insert_with(7, || 49), &49);
    /// assert_eq!(squares.get_or_insert_with(7, || unreachable!("it is there")), &49);
    /// ```
    ///
    /// # Panics
    /// If `make` does: then nothing has happened, and the next who asks makes the value.
    #[doc(alias = "entry")]
    pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> &V {
        let hash = self.hash(&key);
        let find = |key: &K| self.pinned.find(hash, key).map(|entry| &entry.value);
        self.pinned.core().once.get_or_make(hash, key, find, |key| {
            match self.pinned.insert_or_get(hash, self.pinned.make(key, make())) {
                Ok(new) => &new.value,
                Err((_, current)) => &current.value,
            }
        })
    }

    /// Gives a key that is there another value, made from the old one: the new one, if the key is there.
    ///
    /// `update` runs again if another thread was faster. If it panics, nothing has happened.
    #[doc(alias = "alter")]
    pub fn update(&self, key: K, mut update: impl FnMut(&V) -> V) -> Option<&V> {
        let outcome = self.compute(key, |old| match old {
            Some((_, old)) => Operation::Insert(update(old)),
            None => Operation::Abort(()),
        });
        match outcome {
            Compute::Updated { new: (_, new), .. } => Some(new),
            _ => None,
        }
    }

    /// Gives a key another value, made from the old one, or this one if it is not there: the new value.
    ///
    /// `update` runs again if another thread was faster. If it panics, nothing has happened.
    pub fn update_or_insert(&self, key: K, update: impl FnMut(&V) -> V, value: V) -> &V {
        self.update_or_insert_with(key, update, move || value)
    }

    /// Gives a key another value, made from the old one, or what `make` makes if it is not there: the new value.
    ///
    /// `update` runs again if another thread was faster; `make` runs at most once, and what it has made is dropped if
    /// another thread puts the key in meanwhile. If one of them panics, nothing has happened.
    pub fn update_or_insert_with(
        &self,
        key: K,
        mut update: impl FnMut(&V) -> V,
        make: impl FnOnce() -> V,
    ) -> &V {
        let hash = self.hash(&key);
        let (mut key, mut make, mut made) = (key, Some(make), None);
        loop {
            let new = match self.pinned.find(hash, &key) {
                Some(old) => {
                    let new = self.pinned.make(key, update(&old.value));
                    match self.pinned.replace(hash, old, new) {
                        Ok(new) => return &new.value,
                        Err(new) => {
                            key = new.into_parts().0;
                            continue;
                        }
                    }
                }
                None => {
                    let value = made.take().or_else(|| make.take().map(|make| make()));
                    let value = value.expect("made, and not put in");
                    self.pinned.insert_or_get(hash, self.pinned.make(key, value))
                }
            };
            match new {
                Ok(new) => return &new.value,
                Err((new, _)) => {
                    let (same, value) = new.into_parts();
                    (key, made) = (same, Some(value));
                }
            }
        }
    }

    /// Puts in, exchanges or removes a key, as `decide` says of what there is for it.
    ///
    /// `decide` runs again if another thread was faster. If it panics, nothing has happened.
    ///
    /// ```
    /// use lookaside_cuckoo::{Compute, HashMap, Operation};
    ///
    /// // Takes one of what there is; the last one takes the key out.
    /// let stock = HashMap::from([("apple", 2)]);
    /// let take_one = |old: Option<(&&str, &u32)>| match old {
    ///     Some((_, 1)) => Operation::Remove,
    ///     Some((_, many)) => Operation::Insert(many - 1),
    ///     None => Operation::Abort("sold out"),
    /// };
    /// let stock = stock.pin();
    /// assert!(matches!(stock.compute("apple", take_one), Compute::Updated { new: (_, 1), .. }));
    /// assert!(matches!(stock.compute("apple", take_one), Compute::Removed(_, 1)));
    /// assert_eq!(stock.compute("apple", take_one), Compute::Aborted("sold out"));
    /// ```
    pub fn compute<'p, T>(
        &'p self,
        key: K,
        mut decide: impl FnMut(Option<(&'p K, &'p V)>) -> Operation<V, T>,
    ) -> Compute<'p, K, V, T> {
        let hash = self.hash(&key);
        let mut key = key;
        loop {
            let old = self.pinned.find(hash, &key);
            match (decide(old.map(|old| old.pair())), old) {
                (Operation::Insert(value), Some(old)) => {
                    match self.pinned.replace(hash, old, self.pinned.make(key, value)) {
                        Ok(new) => return Compute::Updated { old: old.pair(), new: new.pair() },
                        Err(new) => key = new.into_parts().0,
                    }
                }
                (Operation::Insert(value), None) => {
                    match self.pinned.insert_or_get(hash, self.pinned.make(key, value)) {
                        Ok(new) => return Compute::Inserted(&new.key, &new.value),
                        Err((new, _)) => key = new.into_parts().0,
                    }
                }
                (Operation::Remove, Some(old)) => {
                    if self.pinned.remove_exact(hash, old) {
                        return Compute::Removed(&old.key, &old.value);
                    }
                }
                (Operation::Remove, None) => return Compute::Absent,
                (Operation::Abort(value), _) => {
                    // As in `try_insert`.
                    drop(key);
                    return Compute::Aborted(value);
                }
            }
        }
    }

    /// Removes a key if `is_to_go` is true of it and its value: both, or nothing if the key is not there.
    ///
    /// `is_to_go` is asked again if another thread was faster. If it panics, nothing has happened.
    ///
    /// # Errors
    /// The key is there, and stays: both.
    pub fn remove_if<Q>(
        &self,
        key: &Q,
        mut is_to_go: impl FnMut(&K, &V) -> bool,
    ) -> Result<Option<(&K, &V)>, (&K, &V)>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let hash = self.hash(key);
        loop {
            let Some(old) = self.pinned.find(hash, key) else { return Ok(None) };
            if !is_to_go(&old.key, &old.value) {
                return Err(old.pair());
            }
            if self.pinned.remove_exact(hash, old) {
                return Ok(Some(old.pair()));
            }
        }
    }
}
