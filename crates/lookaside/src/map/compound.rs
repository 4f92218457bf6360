//! Compounds: a look and a change of one key in one step, without a lock of the caller's.
//!
//! ```text
//!   update, compute, remove_if       the key's stripe { what is there -> the closure -> the change }
//!   try_insert, compare_exchange     the same, without a closure
//!   get_or_insert_with               look; board (one thread for a key); the closure; try_insert
//! ```
//!
//! All writes of a key hold its stripe ([`crate::stripes`]). So what a write finds there, in the table before it is
//! cleared or else in the index, is what the key has until the write ends: between the look and the change of a
//! compound nobody changes the key. Each is one atomic step between its call and its return.
//!
//! # Closures under the stripe
//!
//! They run once, while other writes of the stripe wait, a thousandth of all keys; lookups do not wait. Keep them
//! short. They may look into the map. They must not change it, nor another map behind the same buffer: two threads
//! could wait for each other's stripes. So every such write panics, whichever key it is of ([`Within`]). A closure that
//! panics has changed nothing, and gives the stripe back; the key is no longer in the table, until it is found again.
//!
//! Closures of two maps with buffers of their own that change each other's maps can wait for each other, as the holders
//! of any two locks can.
//!
//! # Closures that make a value
//!
//! That of `get_or_insert_with` may take its time, so it holds nothing, and may use the map as it likes
//! ([`crate::single_flight`]).
//!
//! Rejected: *a closure that is called again until nobody has interfered*, as papaya's: it needs no rule about what it
//! may do, but then one that changes its own key never ends, and one that counts its calls counts wrong.

use std::convert::Infallible;
use std::fmt;
use std::hash::{BuildHasher, Hash};

use atomics::{Hold, Within, held};
use equivalent::Equivalent;

use super::MapRef;
use crate::buffer::Write;
use crate::entry::{Draft, Found, Handle, Removed, may_stay};
use crate::index::{Find, SharedDiscard, SharedStore};
use crate::single_flight::{Boarding, Flight, SingleFlight};

/// What all maps are having made.
static FLIGHTS: SingleFlight = SingleFlight::new();

/// What [`MapRef::compute`] is to do with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation<V, T = ()> {
    /// Put this value in, whether the key has one or not.
    Insert(V),
    /// Take the entry out, if there is one.
    Remove,
    /// Change nothing, and give this back.
    Abort(T),
}

/// What [`MapRef::compute`] has done.
#[derive(Debug)]
#[must_use = "it says whether the operation was aborted"]
pub enum Computed<K: 'static, V: 'static, T = ()> {
    /// The key had no value, and has one now.
    Inserted,
    /// It has another; this was there before.
    Updated(Removed<K, V>),
    /// It has none; this was there before.
    Removed(Removed<K, V>),
    /// It was to be taken out, and was not there.
    Absent,
    /// Nothing was changed.
    Aborted(T),
}

/// A key that was to be put in is there already.
pub struct OccupiedError<'r, V> {
    /// The value that it has.
    pub current: &'r V,
    /// The value that was not put in.
    pub not_inserted: V,
}

impl<V: fmt::Debug> fmt::Debug for OccupiedError<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OccupiedError { current, not_inserted } = self;
        f.debug_struct("OccupiedError").field("current", current).field("not_inserted", not_inserted).finish()
    }
}

impl<V: fmt::Debug> fmt::Display for OccupiedError<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OccupiedError { current, not_inserted } = self;
        write!(f, "failed to insert {not_inserted:?}: the key has {current:?} already")
    }
}

impl<V: fmt::Debug> std::error::Error for OccupiedError<'_, V> {}

/// Why [`MapRef::compare_exchange`] has changed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mismatch<V> {
    /// The key has another value; this is what was not put in.
    Different(V),
    /// There is no such key; this is what was not put in.
    Absent(V),
}

impl<V> Mismatch<V> {
    /// The value that was not put in.
    pub fn into_inner(self) -> V {
        match self {
            Mismatch::Different(value) | Mismatch::Absent(value) => value,
        }
    }
}

impl<V> fmt::Display for Mismatch<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mismatch::Different(_) => "the key has another value",
            Mismatch::Absent(_) => "there is no such key",
        })
    }
}

impl<V: fmt::Debug> std::error::Error for Mismatch<V> {}

impl<K: Send + Sync, V: Send + Sync, I, S: BuildHasher> MapRef<'_, K, V, I, S> {
    /// To be called before a write.
    ///
    /// # Panics
    /// If a closure of a compound, called by this thread under a stripe of this buffer, is what writes.
    #[inline]
    pub(super) fn may_write(&self) {
        assert!(
            held(&*self.map.buffer.0).is_none(),
            "a map was changed by the closure of an update, compute or remove_if of its own, or of a map behind the \
             same buffer: look things up there, and change the map behind it"
        );
    }

    /// Runs a closure of the user's under a stripe of this map's buffer.
    fn within<R>(&self, closure: impl FnOnce() -> R) -> R {
        let _within = Within::enter(&*self.map.buffer.0, Hold::Exclusive);
        closure()
    }

    /// Asks to make the value of a key; `None` if another thread has, for which this one has waited.
    ///
    /// # Panics
    /// If it would wait for itself.
    pub(super) fn board(&self, key: &K) -> Option<Flight<'static>>
    where
        K: Hash,
    {
        self.may_write();
        match FLIGHTS.board((std::ptr::from_ref(self.map).addr(), self.hash(key))) {
            Boarding::Make(flight) => Some(flight),
            Boarding::LookAgain => None,
            Boarding::Ring => panic!(
                "the value of a key was asked for while it was being made, by what makes it: get_or_insert_with must \
                 not ask for its own key, nor for one that waits for it"
            ),
        }
    }

    /// Begins a write of this key, and finds what it has, by the table if that knows.
    fn write_and_look<Q>(&self, hash: u64, key: &Q) -> (Write<'_>, Option<Current<'_, K, V>>)
    where
        Q: Equivalent<K> + ?Sized,
        I: Find<Q, K, V>,
    {
        self.may_write();
        let mut known = None;
        let write = self.pinned.write_over(hash, |pointer| {
            // SAFETY: as in `look`.
            let found = unsafe { Found::<K, V>::at(pointer) };
            let same = key.equivalent(found.key()) && found.is_of(hash);
            if same {
                known = Some(found);
            }
            same
        });
        let current = match known {
            Some(found) => Some(Current { found, by_table: true }),
            None => self.map.index.find(key, &self.token()).map(|found| Current { found, by_table: false }),
        };
        (write, current)
    }

    /// Puts a value in by a write that has found what the key had; what it had.
    fn store_over(
        &self,
        key: K,
        value: V,
        hash: u64,
        write: Write<'_>,
        current: Option<Current<'_, K, V>>,
        show: impl FnOnce(&Handle<K, V>),
    ) -> (Found<'_, K, V>, Option<Removed<K, V>>)
    where
        I: SharedStore<K, V>,
    {
        let succeeds = I::SUCCESSION && may_stay::<V>();
        let known = current.filter(|current| succeeds && current.by_table).map(|current| current.found);
        let draft = Draft::new(key, value, hash, &self.map.reclaimer);
        // SAFETY: whatever the index does with it from here on, it is freed only after this thread has left, which has
        // pinned the buffer.
        let found = unsafe { draft.found() };
        let old = self.store(hash, draft, write, known, show);
        (found, old.map(Removed))
    }

    /// Ends a write that has changed nothing: what the table had, it has again.
    fn keep(write: &Write<'_>, current: Option<Current<'_, K, V>>, hash: u64) {
        if let Some(Current { found, by_table: true }) = current
            && found.is_of(hash)
            && let Some(pointer) = found.pointer()
        {
            write.put(pointer);
        }
    }

    /// Puts an entry in if there is none of this key; its value.
    ///
    /// ```
    /// let map = lookaside::Map::<&str, u64>::new();
    /// let reader = map.pin();
    /// assert_eq!(reader.try_insert("rome", 753).unwrap(), &753);
    /// let error = reader.try_insert("rome", 754).unwrap_err();
    /// assert_eq!((error.current, error.not_inserted), (&753, 754));
    /// ```
    ///
    /// # Errors
    /// [`OccupiedError`] with the value that there is, and the one that was not put in.
    ///
    /// # Panics
    /// As [`MapRef::insert`].
    #[doc(alias = "insert_if_absent")]
    pub fn try_insert(&self, key: K, value: V) -> Result<&V, OccupiedError<'_, V>>
    where
        K: Hash + Eq,
        I: SharedStore<K, V> + Find<K, K, V>,
    {
        // Without the stripe at first: who finds the key there need not stop others.
        if let Some(current) = self.get(&key) {
            return behind(key, Err(OccupiedError { current, not_inserted: value }));
        }
        self.insert_absent(key, value)
    }

    pub(super) fn insert_absent(&self, key: K, value: V) -> Result<&V, OccupiedError<'_, V>>
    where
        K: Hash + Eq,
        I: SharedStore<K, V> + Find<K, K, V>,
    {
        let hash = self.hash(&key);
        let (write, current) = self.write_and_look(hash, &key);
        if let Some(Current { found, .. }) = current {
            Self::keep(&write, current, hash);
            drop(write);
            return behind(key, Err(OccupiedError { current: found.value(), not_inserted: value }));
        }
        Ok(self.store_over(key, value, hash, write, None, |_| {}).0.value())
    }

    /// The value of a key; if it has none, that which `make` makes, which it has from then on.
    ///
    /// However many threads ask for a key at the same time, one of them makes the value, and the others wait for it; so
    /// do those that ask for a key of the very same hash. No lock is held meanwhile: `make` may use the map, and ask
    /// for other values that are to be made. A value that is put in meanwhile by another call is the one that stays. If
    /// `make` panics, nothing is put in, and one of those who wait makes it.
    ///
    /// ```
    /// let map = lookaside::Map::<String, usize>::new();
    /// let reader = map.pin();
    /// assert_eq!(reader.get_or_insert_with("four".to_string(), || 4), &4);
    /// assert_eq!(reader.get_or_insert_with("four".to_string(), || unreachable!()), &4);
    /// ```
    ///
    /// # Panics
    /// If `make` asks for this key, or for one that is being made by a thread that waits for this one: it would wait
    /// for itself. As [`MapRef::insert`] otherwise.
    pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> &V
    where
        K: Hash + Eq,
        I: SharedStore<K, V> + Find<K, K, V>,
    {
        let made: Result<&V, Infallible> = self.get_or_try_insert_with(key, || Ok(make()));
        match made {
            Ok(value) => value,
            Err(never) => match never {},
        }
    }

    /// As [`MapRef::get_or_insert_with`], where `make` may fail: then nothing is put in, and one of those who wait
    /// makes it.
    ///
    /// # Errors
    /// That of `make`.
    ///
    /// # Panics
    /// As [`MapRef::get_or_insert_with`].
    pub fn get_or_try_insert_with<E>(&self, key: K, make: impl FnOnce() -> Result<V, E>) -> Result<&V, E>
    where
        K: Hash + Eq,
        I: SharedStore<K, V> + Find<K, K, V>,
    {
        loop {
            if let Some(value) = self.get(&key) {
                return Ok(value);
            }
            let Some(flight) = self.board(&key) else { continue };
            // One may have landed between the look and the boarding.
            if let Some(value) = self.get(&key) {
                return Ok(value);
            }
            return match make() {
                Ok(value) => Ok(self.insert_absent(key, value).unwrap_or_else(|occupied| occupied.current)),
                Err(error) => behind((flight, key), Err(error)),
            };
        }
    }

    /// Puts another value in the place of a key's, made from it in one step; the one that was there. If there is no
    /// such key, nothing happens.
    ///
    /// ```
    /// let map = lookaside::Map::<&str, u64>::new();
    /// map.insert("visits", 1);
    /// assert_eq!(map.pin().update("visits", |visits| visits + 1).as_deref(), Some(&1));
    /// assert_eq!(map.pin().get("visits"), Some(&2));
    /// assert!(map.pin().update("misses", |misses| misses + 1).is_none());
    /// ```
    ///
    /// # Panics
    /// If `change` changes this map, or another behind the same buffer. It may look into it.
    pub fn update(&self, key: K, change: impl FnOnce(&V) -> V) -> Option<Removed<K, V>>
    where
        K: Hash + Eq,
        I: SharedStore<K, V> + Find<K, K, V>,
    {
        let hash = self.hash(&key);
        let (write, current) = self.write_and_look(hash, &key);
        let found = current?.found;
        let value = self.within(|| change(found.value()));
        self.store_over(key, value, hash, write, current, |_| {}).1
    }

    /// As [`MapRef::update`]; if there is no such key, puts in what `make` makes.
    ///
    /// ```
    /// let map = lookaside::Map::<&str, u64>::new();
    /// for word in ["to", "be", "or", "not", "to", "be"] {
    ///     map.pin().update_or_insert_with(word, |times| times + 1, || 1);
    /// }
    /// assert_eq!(map.pin().get("to"), Some(&2));
    /// ```
    ///
    /// # Panics
    /// If one of the closures changes this map, or another behind the same buffer.
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
        let hash = self.hash(&key);
        let (write, current) = self.write_and_look(hash, &key);
        let value = self.within(|| match current {
            Some(current) => change(current.found.value()),
            None => make(),
        });
        self.store_over(key, value, hash, write, current, |_| {}).1
    }

    /// Does with a key what `decide` says, who sees its entry, in one step.
    ///
    /// ```
    /// use lookaside::{Computed, Operation};
    ///
    /// let map = lookaside::Map::<&str, u64>::new();
    /// map.insert("tickets", 1);
    /// let sell = || map.pin().compute("tickets", |entry| match entry {
    ///     None => Operation::Abort("sold out"),
    ///     Some((_, 1)) => Operation::Remove,
    ///     Some((_, left)) => Operation::Insert(left - 1),
    /// });
    /// assert!(matches!(sell(), Computed::Removed(_)));
    /// assert!(matches!(sell(), Computed::Aborted("sold out")));
    /// ```
    ///
    /// # Panics
    /// If `decide` changes this map, or another behind the same buffer.
    pub fn compute<T>(
        &self,
        key: K,
        decide: impl FnOnce(Option<(&K, &V)>) -> Operation<V, T>,
    ) -> Computed<K, V, T>
    where
        K: Hash + Eq,
        I: SharedStore<K, V> + Find<K, K, V> + SharedDiscard<K, K, V>,
    {
        let hash = self.hash(&key);
        let (write, current) = self.write_and_look(hash, &key);
        let entry = current.map(|Current { found, .. }| (found.key(), found.value()));
        match self.within(|| decide(entry)) {
            Operation::Insert(value) => match self.store_over(key, value, hash, write, current, |_| {}).1 {
                Some(old) => Computed::Updated(old),
                None => Computed::Inserted,
            },
            Operation::Remove => {
                let old = current.and_then(|_| self.take_out(&key, hash, write));
                behind(key, old.map_or(Computed::Absent, Computed::Removed))
            }
            Operation::Abort(answer) => {
                Self::keep(&write, current, hash);
                behind((write, key), Computed::Aborted(answer))
            }
        }
    }

    /// Takes an entry out if `is_over` says so, who sees it, in one step.
    ///
    /// ```
    /// let map = lookaside::Map::<&str, u64>::new();
    /// map.insert("lease", 30);
    /// assert!(map.pin().remove_if("lease", |_, until| *until < 20).is_none());
    /// assert_eq!(map.pin().remove_if("lease", |_, until| *until < 40).as_deref(), Some(&30));
    /// ```
    ///
    /// # Panics
    /// If `is_over` changes this map, or another behind the same buffer.
    pub fn remove_if<Q>(&self, key: &Q, is_over: impl FnOnce(&K, &V) -> bool) -> Option<Removed<K, V>>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        I: Find<Q, K, V> + SharedDiscard<Q, K, V>,
    {
        let hash = self.hash(key);
        let (write, current) = self.write_and_look(hash, key);
        let found = current?.found;
        if self.within(|| is_over(found.key(), found.value())) {
            self.take_out(key, hash, write)
        } else {
            Self::keep(&write, current, hash);
            None
        }
    }

    /// Puts a value in if the key has one that is equal to `expected`; the one that was there.
    ///
    /// ```
    /// use lookaside::Mismatch;
    ///
    /// let map = lookaside::Map::<&str, u64>::new();
    /// map.insert("version", 1);
    /// assert_eq!(map.pin().compare_exchange("version", &1, 2).as_deref(), Ok(&1));
    /// assert_eq!(map.pin().compare_exchange("version", &1, 3).unwrap_err(), Mismatch::Different(3));
    /// ```
    ///
    /// # Errors
    /// [`Mismatch`], with the value that was not put in.
    ///
    /// # Panics
    /// If the values' `PartialEq` changes this map, or another behind the same buffer.
    #[doc(alias = "compare_and_swap")]
    pub fn compare_exchange(&self, key: K, expected: &V, new: V) -> Result<Removed<K, V>, Mismatch<V>>
    where
        K: Hash + Eq,
        V: PartialEq,
        I: SharedStore<K, V> + Find<K, K, V>,
    {
        let hash = self.hash(&key);
        let (write, current) = self.write_and_look(hash, &key);
        let Some(Current { found, .. }) = current else {
            return behind((write, key), Err(Mismatch::Absent(new)));
        };
        if self.within(|| found.value() != expected) {
            Self::keep(&write, current, hash);
            return behind((write, key), Err(Mismatch::Different(new)));
        }
        // As in `replace`.
        let mut share = None;
        let old = self.store_over(key, new, hash, write, current, |new| share = Some(new.clone())).1;
        Ok(old.or(share.map(Removed)).expect("one of the two"))
    }

    /// Takes an entry out by a write that has begun, and ends it.
    fn take_out<Q>(&self, key: &Q, hash: u64, write: Write<'_>) -> Option<Removed<K, V>>
    where
        Q: ?Sized,
        I: SharedDiscard<Q, K, V>,
    {
        let old = self.map.index.remove(key);
        let newest = self.gave_back(old.as_ref(), hash, &write);
        drop(write);
        newest.or(old).map(Removed)
    }
}

/// The answer of a call, whose arguments and guards are dropped first, in their order: one that is dropped behind the
/// answer, and panics, loses it without running its destructor.
pub(super) fn behind<A, T>(arguments: A, answer: T) -> T {
    drop(arguments);
    answer
}

/// What a write has found.
struct Current<'r, K: 'static, V: 'static> {
    found: Found<'r, K, V>,
    by_table: bool,
}

impl<K, V> Clone for Current<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for Current<'_, K, V> {}
