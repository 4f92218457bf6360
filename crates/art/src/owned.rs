//! The tree of one owner: the same code, without locks to wait for and without epochs.
//!
//! It is changed through `&mut`, so the borrow checker keeps readers and changes apart, and what is removed is given back
//! at once.

#![allow(unsafe_code)]

use std::fmt;
use std::ops::{Bound, RangeBounds};

use crate::config::{Config, CreateError, NotStored};
use crate::core::Core;
use crate::key::Key;
use crate::memory::Memory;
use crate::probe::{Probe, Unwatched};
use crate::reference::Ref;
use crate::scan::Scan;
use crate::tree::Range;
use crate::write::{Alone, Inserted, Rule};

/// An adaptive radix tree from keys of type `K`, `[u8; N]` or `[u8]`, to values of type `V`, for one owner.
///
/// ```
/// use lookaside_art::{OwnedTree, encode};
///
/// let mut tree = OwnedTree::<[u8; 8], &str>::new()?;
/// tree.insert(&encode::i64(-753), "rome").unwrap();
/// tree.insert(&encode::i64(1789), "paris").unwrap();
/// assert_eq!(tree.get(&encode::i64(-753)), Some(&"rome"));
/// assert_eq!(tree.iter().rev().map(|(_, city)| *city).collect::<Vec<_>>(), ["paris", "rome"]);
/// # Ok::<(), lookaside_art::CreateError>(())
/// ```
///
/// It may go to another thread if its values may: all there is of it goes along, for what it removes it frees at once, and
/// nothing of it is left to be freed by others.
///
/// ```
/// use std::cell::Cell;
/// use lookaside_art::{OwnedTree, encode};
///
/// let mut tree = OwnedTree::<[u8; 8], Cell<u32>>::new()?;
/// tree.insert(&encode::u64(1), Cell::new(7)).unwrap();
/// let tree = std::thread::spawn(move || {
///     tree.get(&encode::u64(1)).unwrap().set(8);
///     tree
/// });
/// assert_eq!(tree.join().unwrap().get(&encode::u64(1)), Some(&Cell::new(8)));
/// # Ok::<(), lookaside_art::CreateError>(())
/// ```
///
/// ```compile_fail,E0277
/// fn goes_anywhere(_: impl Send) {}
/// goes_anywhere(lookaside_art::OwnedTree::<[u8], std::rc::Rc<u8>>::new());
/// ```
pub struct OwnedTree<K: Key + ?Sized, V> {
    pub(crate) core: Core<K, V>,
    entries: usize,
}

impl<K: Key + ?Sized, V> OwnedTree<K, V> {
    /// An empty tree in base pages.
    ///
    /// # Errors
    /// [`CreateError`] if not even addresses are to be had.
    pub fn new() -> Result<Self, CreateError> {
        OwnedTree::with(&Config::default())
    }

    /// An empty tree.
    ///
    /// # Errors
    /// [`CreateError`] if there is no memory for it.
    pub fn with(config: &Config) -> Result<Self, CreateError> {
        Ok(OwnedTree { core: Core::new(config).map_err(CreateError)?, entries: 0 })
    }

    fn entry(&self, leaf: Ref) -> (&K, &V) {
        (self.core.storage.key(leaf), self.core.storage.value(leaf))
    }

    /// Entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// What the tree occupies.
    #[must_use]
    pub fn memory(&self) -> Memory {
        self.core.memory()
    }

    /// The value of a key.
    #[inline(always)]
    pub fn get(&self, key: &K) -> Option<&V> {
        self.get_watched(key, &mut Unwatched)
    }

    /// The value of a key; `probe` is told of every piece of memory that is read on the way.
    #[inline(always)]
    pub fn get_watched(&self, key: &K, probe: &mut impl Probe) -> Option<&V> {
        let view = self.core.storage.view();
        Some(view.value(self.core.find_in(view, key, probe)?))
    }

    /// Whether there is such a key.
    #[must_use]
    pub fn contains(&self, key: &K) -> bool {
        self.core.find(key, &mut Unwatched).is_some()
    }

    /// The values of many keys: `values[i]` becomes that of `keys[i]`.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn get_many<'r>(&'r self, keys: &[&K], values: &mut [Option<&'r V>]) {
        assert_eq!(keys.len(), values.len(), "one answer a key");
        let storage = &self.core.storage;
        self.core.find_many(keys, |i, leaf| values[i] = leaf.map(|leaf| storage.value(leaf)));
    }

    /// Puts an entry in, and gives back the value that it replaced.
    ///
    /// # Errors
    /// [`NotStored`] if there is no room: then nothing has changed.
    pub fn insert(&mut self, key: &K, value: V) -> Result<Option<V>, NotStored<V>> {
        self.store(key, value, Rule::Any).map(|(_, old)| old)
    }

    /// Puts an entry in if its key is new; says whether it was.
    ///
    /// # Errors
    /// [`NotStored`] if there is no room: then nothing has changed.
    pub fn add(&mut self, key: &K, value: V) -> Result<bool, NotStored<V>> {
        self.store(key, value, Rule::Absent).map(|(stored, _)| stored == Inserted::New)
    }

    /// Puts an entry in if there is one of its key already, and gives back the value that it replaced.
    ///
    /// # Errors
    /// [`NotStored`] if there is no room: then nothing has changed.
    pub fn replace(&mut self, key: &K, value: V) -> Result<Option<V>, NotStored<V>> {
        if !self.contains(key) {
            return Ok(None);
        }
        self.store(key, value, Rule::Present).map(|(_, old)| old)
    }

    fn store(&mut self, key: &K, value: V, rule: Rule) -> Result<(Inserted, Option<V>), NotStored<V>> {
        let stored = self.core.store(key, value, rule, &Alone)?;
        let old = match stored {
            // SAFETY: it has left the tree, and was left to us.
            Inserted::Replaced(old) => Some(unsafe { self.core.storage.take_leaf(old) }),
            Inserted::New => {
                self.entries += 1;
                None
            }
            Inserted::Refused(_) => None,
        };
        Ok((stored, old))
    }

    /// Takes an entry out, and gives its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let leaf = self.core.remove(key, &Alone)?;
        self.entries -= 1;
        // SAFETY: it has left the tree, and was left to us.
        Some(unsafe { self.core.storage.take_leaf(leaf) })
    }

    /// Takes all entries out whose keys begin with `prefix`, and says how many; in time proportional to that.
    pub fn remove_prefix(&mut self, prefix: &[u8]) -> usize {
        let mut removed = 0;
        self.core.remove_prefix(prefix, &Alone, |_| removed += 1);
        self.entries -= removed;
        removed
    }

    /// The entries whose keys lie in a range, in order; from both ends.
    pub fn range<'r>(&'r self, keys: impl RangeBounds<&'r K>) -> Range<'r, K, V> {
        let bytes = |bound: Bound<&&'r K>| bound.map(|key| (*key).as_ref());
        self.range_of_bytes(bytes(keys.start_bound()), bytes(keys.end_bound()))
    }

    /// The entries whose keys lie between two bounds, in order, from both ends. Bounds may be of any length.
    pub fn range_of_bytes<'r>(&'r self, from: Bound<&'r [u8]>, to: Bound<&'r [u8]>) -> Range<'r, K, V> {
        Range { scan: Scan::between(&self.core, from, to), core: &self.core }
    }

    /// The entries whose keys begin with `prefix`, in order; from both ends.
    pub fn prefix<'r>(&'r self, prefix: &'r [u8]) -> Range<'r, K, V> {
        Range { scan: Scan::of_prefix(&self.core, prefix), core: &self.core }
    }

    /// All entries, in order; from both ends.
    pub fn iter(&self) -> Range<'_, K, V> {
        self.range_of_bytes(Bound::Unbounded, Bound::Unbounded)
    }

    /// The entry with the least key.
    #[must_use]
    pub fn first(&self) -> Option<(&K, &V)> {
        self.core.least().map(|leaf| self.entry(leaf))
    }

    /// The entry with the greatest key.
    #[must_use]
    pub fn last(&self) -> Option<(&K, &V)> {
        self.core.greatest().map(|leaf| self.entry(leaf))
    }
}

impl<K: Key + ?Sized, V> fmt::Debug for OwnedTree<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedTree").field("entries", &self.entries).finish_non_exhaustive()
    }
}
