//! A concurrent hash map: the index of this crate, with the entries that it names.
//!
//! ```text
//!   HashMap, HashMapRef      what a program sees: safe
//!   compounds, batch, iter   several steps that are one, many keys, all keys: safe
//!   once                     one thread at a time makes a value
//!   core                     entries behind locations, pins, retiring: unsafe
//!   crate::slab, crate::table, atomics::reclaim
//! ```
//!
//! An entry, key and value, lies in a slot of its own and never changes: whoever has found it reads it in peace, and an
//! update puts another entry in its place. The index has its address and a tag in one word. So a lookup reads a bucket,
//! seldom a second one ([`crate::first`]), and the entry, takes no lock and writes nothing that other threads read; and
//! an entry takes its own bytes and 10 to 17 of index.
//!
//! # Closures
//!
//! No closure runs under a lock of the index. One that turns an old value into a new one may run again, if another
//! thread was faster; one that makes a value for a key that is absent runs once, and others that want the value wait
//! ([`once`]). So a closure may use the map, and when it panics, nothing has happened.
//!
//! Comparisons of keys and hashes do run under locks, as everywhere. One that uses the map it belongs to panics where
//! it would wait for itself (see [`Entries`](crate::Entries)).
//!
//! Rejected: *values that change in place* under a lock, as dashmap has them, whose readers wait and whose every lookup
//! writes; *closures under the bucket's lock*, which neighbours and growth would wait for, and which could not use the
//! map; *entries in the buckets*, which makes buckets of any size, and moves what others read.

mod batch;
mod compounds;
mod core;
mod iter;
mod pinned;
mod traits;

use std::hash::{BuildHasher, Hash, RandomState};
use std::marker::PhantomData;

use equivalent::Equivalent;

pub use self::compounds::{Compute, OccupiedError, Operation};
pub use self::iter::{IntoIter, Iter, Keys, Values};
pub use self::pinned::HashMapRef;

use self::core::Core;
use crate::hash::Hashes;

/// A concurrent hash map: lookups take no lock, writers of different keys run side by side, and it grows without a
/// pause.
///
/// All operations take `&self`. What a lookup finds is lent and not copied: so a thread first [pins](HashMap::pin) the
/// map, and has what it finds until it lets the pin go. One that uses the map again and again keeps its pin, and
/// [refreshes](HashMapRef::refresh) it now and then: then a lookup pays nothing for it. Where no reference is wanted,
/// [`HashMap::get_with`] and [`HashMap::get_cloned`] pin for one call.
///
/// ```
/// use lookaside_cuckoo::HashMap;
///
/// let visits: HashMap<String, u64> = HashMap::new();
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| {
///             let visits = visits.pin();
///             for page in ["home", "news", "home"] {
///                 visits.update_or_insert(page.to_owned(), |count| count + 1, 1);
///             }
///         });
///     }
/// });
/// assert_eq!(visits.get_cloned("home"), Some(8));
/// assert_eq!(visits.pin().get("news"), Some(&4));
/// ```
///
/// The default hash is the standard library's, which withstands keys that are chosen to harm. Any [`BuildHasher`] will
/// do; of one whose hashes are good, say so ([`HashMapBuilder::hashes`]).
///
/// Keys that it lends are as long-lived as those that can be put in:
///
/// ```compile_fail
/// use lookaside_cuckoo::HashMap;
///
/// fn shorter<'a>(map: &'a HashMap<&'static str, u32>) -> &'a HashMap<&'a str, u32> {
///     map
/// }
/// ```
///
/// A map claims addresses for 2^28 buckets, 16 GiB, wherever the process may have so many, and memory as it grows. It
/// is meant for a program's large or shared maps, and not to be one of thousands. Memory that it has had stays the
/// map's, for new entries, until it is dropped.
pub struct HashMap<K, V, S = RandomState> {
    pub(self) core: Core<K, V, S>,
}

/// Chooses what a map is made with: see [`HashMap::builder`].
#[derive(Debug, Clone)]
pub struct HashMapBuilder<K, V, S = RandomState> {
    capacity: usize,
    hasher: S,
    hashes: Hashes,
    map: PhantomData<fn() -> (K, V)>,
}

impl<K, V> HashMap<K, V> {
    /// An empty map.
    ///
    /// # Panics
    /// If the process may have no more addresses.
    #[must_use]
    pub fn new() -> Self {
        Self::with_capacity(0)
    }

    /// An empty map with room for so many entries.
    ///
    /// # Panics
    /// As [`HashMap::new`].
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self::builder().capacity(capacity).build()
    }

    /// Chooses everything.
    ///
    /// ```
    /// use lookaside_cuckoo::{Hashes, HashMap};
    ///
    /// let map = HashMap::builder().capacity(1000).hashes(Hashes::Avalanching).build();
    /// map.pin().insert("one", 1);
    /// ```
    #[must_use]
    pub fn builder() -> HashMapBuilder<K, V> {
        // SipHash: every bit depends on the whole key.
        let hashes = Hashes::Avalanching;
        HashMapBuilder { capacity: 0, hasher: RandomState::new(), hashes, map: PhantomData }
    }
}

impl<K, V, S> HashMapBuilder<K, V, S> {
    /// Room for so many entries.
    #[must_use]
    pub fn capacity(self, capacity: usize) -> Self {
        HashMapBuilder { capacity, ..self }
    }

    /// With this hasher, of whose [hashes](HashMapBuilder::hashes) nothing is known.
    #[must_use]
    pub fn hasher<T>(self, hasher: T) -> HashMapBuilder<K, V, T> {
        HashMapBuilder { capacity: self.capacity, hasher, hashes: Hashes::Any, map: PhantomData }
    }

    /// What is known of the hasher's hashes. To be said behind [`hasher`](HashMapBuilder::hasher).
    #[must_use]
    pub fn hashes(self, hashes: Hashes) -> Self {
        HashMapBuilder { hashes, ..self }
    }

    /// The map.
    ///
    /// # Panics
    /// As [`HashMap::new`].
    #[must_use]
    pub fn build(self) -> HashMap<K, V, S> {
        HashMap { core: Core::new(self.capacity, self.hasher, self.hashes) }
    }
}

impl<K, V, S> HashMap<K, V, S> {
    /// An empty map with this hasher.
    ///
    /// # Panics
    /// As [`HashMap::new`].
    #[must_use]
    pub fn with_hasher(hasher: S) -> Self {
        Self::with_capacity_and_hasher(0, hasher)
    }

    /// An empty map with room for so many entries, and this hasher.
    ///
    /// # Panics
    /// As [`HashMap::new`].
    #[must_use]
    pub fn with_capacity_and_hasher(capacity: usize, hasher: S) -> Self {
        HashMap { core: Core::new(capacity, hasher, Hashes::Any) }
    }

    /// Its hasher.
    pub fn hasher(&self) -> &S {
        &self.core.hasher
    }

    /// Pins the map for this thread, and gives access to it: what is found stays until this is dropped or refreshed,
    /// and what was removed in the meantime is not freed before that.
    #[inline(always)]
    pub fn pin(&self) -> HashMapRef<'_, K, V, S> {
        HashMapRef::new(self.core.pin())
    }

    /// Entries. Exact when nobody is writing.
    #[must_use]
    pub fn len(&self) -> usize {
        self.core.table.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops what was removed or replaced and is held by no pin. Else threads do that by and by, each for what it has
    /// removed itself.
    pub fn collect(&self) {
        self.core.collect();
    }

    /// Bytes of the index, and of the memory for entries, as far as it may be in use.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.core.bytes()
    }
}

impl<K, V, S> HashMap<K, V, S>
where
    K: Hash + Eq,
    S: BuildHasher,
{
    /// What `see` makes of the value of a key. It is pinned while `see` runs, and needs no pin: for code that must not
    /// hold one, as between two awaits.
    ///
    /// ```
    /// use lookaside_cuckoo::HashMap;
    ///
    /// let names = HashMap::from([(1, "one".to_owned())]);
    /// assert_eq!(names.get_with(&1, |name| name.len()), Some(3));
    /// ```
    #[doc(alias = "view")]
    #[inline]
    pub fn get_with<Q, R>(&self, key: &Q, see: impl FnOnce(&V) -> R) -> Option<R>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.pin().get(key).map(see)
    }

    /// A copy of the value of a key.
    #[inline]
    pub fn get_cloned<Q>(&self, key: &Q) -> Option<V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        V: Clone,
    {
        self.get_with(key, V::clone)
    }

    /// Whether there is a key.
    #[inline]
    pub fn contains_key<Q>(&self, key: &Q) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.pin().contains_key(key)
    }
}
