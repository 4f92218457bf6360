//! A front: a table of references in front of an index that one keeps as it is.
//!
//! A [`Map`](crate::Map) owns its index and its entries. But much that is searched is there already, and lends
//! references to what it finds: a tree that is no longer changed, a sorted slice, a mapped file, a snapshot of a
//! database. While it is borrowed, what it has lent stays where it is and as it is. So here the borrow checker is the
//! whole protocol: no epochs, no tickets, no stripes, and no handles in the index.
//!
//! ```text
//!   get:   bucket of the hash -> slots with its tag -> is it this? -> the reference
//!                             \- none: the index -> what it lends enters the table
//! ```
//!
//! # Why no reference outlives what it refers to
//!
//! * A `Front<&'a E>` takes nothing but an `&'a E`, and gives what it has taken: as a hash map of such references does.
//!   It is invariant in `'a`. If it could be taken for a front of a shorter `'a`, somebody could put in what lives that
//!   long, and find it again where it is taken for what it is.
//! * The memory of a front serves the next borrow after [`Front::recycle`], which takes the front whole, and empties it
//!   before it gives it another type. A front that is forgotten is lost, and no more.
//! * A slot's pointer and its second word are of one item: see [`crate::wide`]. What one thread has put in, and all
//!   that it points to, is seen by others: a slot is published by a release, and read by an acquire.
//! * Closures may lie, panic, or use the front again: they run while nothing is locked, and a wrong answer is a
//!   reference that is good all the same.
//!
//! # What is counted
//!
//! Which hits warm their slot is decided before the bucket is looked at: a branch that depends on a line which is yet
//! to come cannot be predicted. Hits and misses are not counted, and there is no monitor: who gives the closure that
//! asks the index can count its calls.
//!
//! Rejected: *a view that clears the table when it is dropped*: it may be forgotten, so that the table must be cleared
//! before it is used again all the same; *a reader for each thread, with its random numbers*: one more thing to keep,
//! for one load from the thread's own memory.

#![allow(unsafe_code)]

use std::convert::Infallible;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;

use crate::config::{Config, CreateError};
use crate::folding::RandomState;
use crate::hashing::{Hashing, IntoHashing, hash_of};
use crate::lent::Lent;
use crate::pointer::Pointer;
use crate::random::Random;
use crate::slb::Slb;
use crate::wide::Words;

/// Keys looked up at once in a batch: enough to keep a core's misses busy, few enough to stay in its first-level cache.
const GROUP: usize = 16;

thread_local! {
    static RANDOM: Random = const { Random::new(1) };
}

/// Who has such items, and takes them: to be shared by threads if they are, and invariant.
type Items<T> = PhantomData<(T, fn(T) -> T)>;

/// A table of references in front of an index that lends them.
///
/// `T` says what is lent: see [`Lent`]. Any number of threads may look up at once. What the index lends must not depend
/// on when it is asked: a front goes on answering with what it was given.
///
/// ```
/// use lookaside::{Config, Front};
/// use std::collections::BTreeMap;
///
/// let squares: BTreeMap<u64, u64> = (0..1000).map(|number| (number, number * number)).collect();
///
/// let front = Front::new(&Config::with_size(1 << 20))?;
/// let square = |number: u64| {
///     // Found in the table if it is this key's; else in the tree. A number fits the table itself.
///     front.get(&number, |(key, _), sought| key == *sought, |&key| Some((key, squares.get(&key)?)))
/// };
/// assert_eq!(square(31), Some((31, &961))); // From the tree...
/// assert_eq!(square(31), Some((31, &961))); // ... and from the table.
/// assert_eq!(square(1000), None);
/// # Ok::<(), lookaside::CreateError>(())
/// ```
///
/// Keys of any type, as the index lends them; many at once:
///
/// ```
/// # use lookaside::{Config, Front};
/// # use std::collections::HashMap;
/// let stars = HashMap::from([("Sirius".to_owned(), -1.46), ("Vega".to_owned(), 0.03)]);
/// let front = Front::new(&Config::with_size(1 << 20))?;
/// let mut found = [None; 2];
/// front.get_many(&["Vega", "Sol"], &mut found, |(name, _), sought| name == sought, |name| {
///     stars.get_key_value(name)
/// });
/// assert_eq!(found, [Some((&"Vega".to_owned(), &0.03)), None]);
/// # Ok::<(), lookaside::CreateError>(())
/// ```
///
/// Nothing that is found outlives the index:
///
/// ```compile_fail,E0597
/// # use lookaside::{Config, Front};
/// let front = Front::new(&Config::with_size(1 << 20)).unwrap();
/// {
///     let rows = [(7, "seven")];
///     front.get(&7, |row: &(i32, &str), key| row.0 == *key, |_| rows.first());
/// }
/// front.get(&7, |row, key| row.0 == *key, |_| None);
/// ```
///
/// Nor does a front stand before an index that is changed:
///
/// ```compile_fail,E0502
/// # use lookaside::{Config, Front};
/// let mut rows = vec![(7, "seven")];
/// let front = Front::new(&Config::with_size(1 << 20)).unwrap();
/// front.get(&7, |row: &(i32, &str), key| row.0 == *key, |_| rows.first());
/// rows.clear();
/// front.get(&7, |row, key| row.0 == *key, |_| None);
/// ```
///
/// A front is not taken for one of shorter lives:
///
/// ```compile_fail
/// # use lookaside::Front;
/// fn shorter<'f, 'a>(front: &'f Front<&'static str>, _: &'a str) -> &'f Front<&'a str> {
///     front
/// }
/// ```
///
/// And only what threads may share is shared by them:
///
/// ```compile_fail,E0277
/// # use lookaside::Front;
/// fn shared<T: Sync>() {}
/// shared::<Front<&std::cell::Cell<u64>>>();
/// ```
pub struct Front<T, S = RandomState> {
    table: Slb,
    /// Of items that need them.
    words: Option<Words>,
    hashing: Hashing<S>,
    items: Items<T>,
}

impl<T: Lent> Front<T> {
    /// An empty front. All of [`Config::size`] is used: by items that need a second word for half as many slots.
    ///
    /// # Errors
    /// [`CreateError`]: no size that a table can have, or no memory.
    pub fn new(config: &Config) -> Result<Self, CreateError> {
        Front::with_hasher(config, RandomState::default())
    }
}

impl<T: Lent, S> Front<T, S> {
    /// As [`Front::new`], with keys hashed so: any hasher will do that gives different keys different hashes (see
    /// [`Hashing`]).
    ///
    /// # Errors
    /// As [`Front::new`].
    pub fn with_hasher(config: &Config, hasher: impl IntoHashing<Hasher = S>) -> Result<Self, CreateError> {
        let size = if T::WIDE { config.size / 2 } else { config.size };
        let table = Slb::new(&config.resized(size))?;
        let words = if T::WIDE { Some(Words::beside(&table, config)?) } else { None };
        Ok(Front { table, words, hashing: hasher.into_hashing(), items: PhantomData })
    }

    /// The same memory, emptied, for what is lent next: by the same index when it has been changed, by the next
    /// snapshot. Takes some milliseconds for 32 MB; a small table is enough for what does not live long.
    ///
    /// Between two borrows, a front is kept as one of what lives for ever:
    ///
    /// ```
    /// use lookaside::{Config, Front};
    ///
    /// let mut kept: Front<&'static u64> = Front::new(&Config::with_size(1 << 16))?;
    /// let mut numbers = vec![7, 8, 9];
    /// for _ in 0..3 {
    ///     let front = kept.recycle();
    ///     let found = front.get(&1, |_, _| true, |&at: &usize| numbers.get(at));
    ///     assert_eq!(found, Some(&numbers[1]));
    ///     kept = front.recycle();
    ///     numbers[1] += 1;
    /// }
    /// # Ok::<(), lookaside::CreateError>(())
    /// ```
    ///
    /// Only items that are kept alike fit the same memory:
    ///
    /// ```compile_fail,E0080
    /// # use lookaside::{Config, Front};
    /// let front = Front::<&u64>::new(&Config::with_size(1 << 16)).unwrap();
    /// let front: Front<&str> = front.recycle();
    /// ```
    #[must_use]
    pub fn recycle<U: Lent>(mut self) -> Front<U, S> {
        const { assert!(T::WIDE == U::WIDE, "one needs a second word for each slot, the other does not") };
        self.table.reset();
        let Front { table, words, hashing, .. } = self;
        Front { table, words, hashing, items: PhantomData }
    }

    /// Items that it has room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.table.capacity()
    }

    /// Items that it holds; counted by walking over it.
    #[must_use]
    pub fn occupancy(&self) -> usize {
        self.table.occupancy()
    }

    /// Bytes of its tables.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.table.bytes() + self.words.as_ref().map_or(0, Words::bytes)
    }

    /// The slot of the first item of this hash's tag that `accept` takes.
    #[inline(always)]
    fn find(&self, hash: u64, mut accept: impl FnMut(T) -> bool) -> Option<usize> {
        let mut decoded = |pointer: Pointer, word: u64| {
            // SAFETY: the table has only what `admit` has encoded, which are values of this type: `recycle`, which
            // alone changes that, empties the table. It gives a pointer that was inserted, and with it the word that
            // was inserted with it, or of items that have none the zero that `encode` gave.
            accept(unsafe { T::decode(pointer, word) })
        };
        if T::WIDE {
            self.words.as_ref()?.find(&self.table, hash, decoded)
        } else {
            Some(self.table.find(hash, |pointer| decoded(pointer, 0))?.0)
        }
    }

    /// The item of a key that the table has.
    #[inline(always)]
    fn look<Q: ?Sized>(&self, hash: u64, key: &Q, mut is: impl FnMut(T, &Q) -> bool) -> Option<T> {
        let mut found = None;
        let slot = self.find(hash, |item| {
            let accepted = is(item, key);
            if accepted {
                found = Some(item);
            }
            accepted
        })?;
        self.warm(hash, slot);
        found
    }

    #[inline(always)]
    fn warm(&self, hash: u64, slot: usize) {
        RANDOM.with(|random| self.table.warm(hash, slot, random));
    }

    /// Asks the index, and keeps what it lends.
    #[inline]
    fn search<Q: ?Sized, E>(
        &self,
        hash: u64,
        key: &Q,
        find: impl FnOnce(&Q) -> Result<Option<T>, E>,
    ) -> Result<Option<T>, E> {
        let found = find(key)?;
        if let Some(item) = found {
            self.admit(hash, item);
        }
        Ok(found)
    }

    #[inline(never)]
    fn admit(&self, hash: u64, item: T) {
        let Some((pointer, word)) = item.encode() else { return };
        RANDOM.with(|random| {
            if !self.table.wants(hash, random) {
                return;
            }
            match &self.words {
                Some(words) => words.insert(&self.table, hash, pointer, word, random),
                None => {
                    self.table.insert(hash, pointer, random);
                }
            }
        });
    }
}

impl<T: Lent, S: BuildHasher> Front<T, S> {
    /// What the index lends for a key: from the table if that has something that `is` says is this key's, otherwise by
    /// asking the index, which is what `find` does.
    ///
    /// `is` compares whole keys: the table compares 16 bits of their hashes.
    #[inline]
    pub fn get<Q: Hash + ?Sized>(
        &self,
        key: &Q,
        is: impl FnMut(T, &Q) -> bool,
        find: impl FnOnce(&Q) -> Option<T>,
    ) -> Option<T> {
        let Ok(found) = self.try_get(key, is, |key| Ok::<_, Infallible>(find(key)));
        found
    }

    /// As [`Front::get`], of an index that can fail.
    ///
    /// # Errors
    /// Those of `find`.
    #[inline]
    pub fn try_get<Q: Hash + ?Sized, E>(
        &self,
        key: &Q,
        is: impl FnMut(T, &Q) -> bool,
        find: impl FnOnce(&Q) -> Result<Option<T>, E>,
    ) -> Result<Option<T>, E> {
        let hash = hash_of(&self.hashing, key);
        match self.look(hash, key, is) {
            Some(item) => Ok(Some(item)),
            None => self.search(hash, key, find),
        }
    }

    /// As [`Front::get`] of many keys: `found[i]` becomes what there is for `keys[i]`. The waits for memory overlap.
    ///
    /// # Panics
    /// If the slices differ in length.
    #[inline]
    pub fn get_many<Q: Hash + ?Sized>(
        &self,
        keys: &[&Q],
        found: &mut [Option<T>],
        is: impl FnMut(T, &Q) -> bool,
        mut find: impl FnMut(&Q) -> Option<T>,
    ) {
        let Ok(()) = self.try_get_many(keys, found, is, |key| Ok::<_, Infallible>(find(key)));
    }

    /// As [`Front::get_many`], of an index that can fail.
    ///
    /// # Errors
    /// The first of `find`'s. What was found until then is in `found`, and nothing behind it.
    ///
    /// # Panics
    /// As [`Front::get_many`].
    pub fn try_get_many<Q: Hash + ?Sized, E>(
        &self,
        keys: &[&Q],
        found: &mut [Option<T>],
        mut is: impl FnMut(T, &Q) -> bool,
        mut find: impl FnMut(&Q) -> Result<Option<T>, E>,
    ) -> Result<(), E> {
        assert_eq!(keys.len(), found.len(), "one answer a key");
        found.fill(None);
        for (keys, found) in keys.chunks(GROUP).zip(found.chunks_mut(GROUP)) {
            self.get_group(keys, found, &mut is, &mut find)?;
        }
        Ok(())
    }

    fn get_group<Q: Hash + ?Sized, E>(
        &self,
        keys: &[&Q],
        found: &mut [Option<T>],
        mut is: impl FnMut(T, &Q) -> bool,
        mut find: impl FnMut(&Q) -> Result<Option<T>, E>,
    ) -> Result<(), E> {
        let mut hashes = [0; GROUP];
        for (hash, key) in hashes.iter_mut().zip(keys) {
            *hash = hash_of(&self.hashing, *key);
            self.table.prefetch(*hash);
            if let Some(words) = &self.words {
                words.prefetch(*hash);
            }
        }
        // What each bucket has first. Nearly always the right one.
        let mut seen = [None; GROUP];
        for (seen, &hash) in seen.iter_mut().zip(&hashes[..keys.len()]) {
            let mut first = None;
            let slot = self.find(hash, |item| {
                first = Some(item);
                true
            });
            *seen = slot.zip(first);
            if let Some(item) = first {
                item.prefetch();
            }
        }
        for (((&key, &hash), seen), found) in keys.iter().zip(&hashes).zip(seen).zip(found) {
            *found = match seen {
                Some((slot, item)) if is(item, key) => {
                    self.warm(hash, slot);
                    Some(item)
                }
                // It may be behind another with the same tag.
                Some(_) => match self.look(hash, key, &mut is) {
                    Some(item) => Some(item),
                    None => self.search(hash, key, &mut find)?,
                },
                None => self.search(hash, key, &mut find)?,
            };
        }
        Ok(())
    }
}

impl<T: Lent, S> fmt::Debug for Front<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Front")
            .field("capacity", &self.capacity())
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}
