//! The tree of one owner: the same code, without locks to wait for and without epochs.
//!
//! It is changed through `&mut`, so the borrow checker keeps readers and changes apart, and what is removed is given
//! back at once.

#![allow(unsafe_code)]

use std::borrow::Borrow;
use std::fmt;
use std::ops::{Bound, Deref};
use std::panic::{RefUnwindSafe, UnwindSafe};

use crate::config::{Config, CreateError};
use crate::core::Entries;
use crate::error::{NotStored, TryInsertError};
use crate::key::Key;
use crate::probe::{Probe, Unwatched};
use crate::reference::Ref;
use crate::scan::Scan;
use crate::store::Stored;
use crate::write::{Alone, Discipline, Rule};

/// Entries that [`OwnedTree::retain`] takes out together: so many that it does not count that the scan begins anew.
const TOGETHER: usize = 64;

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
/// It may go to another thread if its values may: all there is of it goes along, for what it removes it frees at once,
/// and nothing of it is left to be freed by others.
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
    pub(crate) core: Entries<K, V>,
    entries: usize,
}

impl<K: Key + ?Sized, V> OwnedTree<K, V> {
    /// An empty tree in base pages.
    ///
    /// # Errors
    /// [`CreateError`] if not even addresses are to be had.
    pub fn new() -> Result<Self, CreateError> {
        OwnedTree::with_config(&Config::default())
    }

    /// An empty tree.
    ///
    /// # Errors
    /// [`CreateError`] if there is no memory for it.
    pub fn with_config(config: &Config) -> Result<Self, CreateError> {
        Ok(OwnedTree { core: Entries::new(config).map_err(CreateError)?, entries: 0 })
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

    /// The values of many keys: `values[i]` becomes that of `keys[i]`.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn get_many<'r>(&'r self, keys: &[&K], values: &mut [Option<&'r V>]) {
        assert_eq!(keys.len(), values.len(), "one answer a key");
        let storage = &self.core.storage;
        self.core.find_many(keys, |i, leaf| values[i] = leaf.map(|leaf| storage.value(leaf)));
    }

    /// The value of a key, to be changed.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let leaf = self.core.find(key, &mut Unwatched)?;
        Some(self.value_mut(leaf))
    }

    fn value_mut(&mut self, leaf: Ref) -> &mut V {
        // SAFETY: a leaf of the tree, which is borrowed as a whole: nobody else looks at its values.
        unsafe { &mut *self.core.storage.value_address(leaf) }
    }

    /// Puts an entry in, and gives back the value that it replaced.
    ///
    /// # Errors
    /// [`NotStored`] if there is no room: then nothing has changed.
    pub fn insert(&mut self, key: &K, value: V) -> Result<Option<V>, NotStored<V>> {
        let stored = self.store(key, value, Rule::Any)?;
        Ok(self.take_replaced(stored))
    }

    /// Puts an entry in if its key is new, and shows its value there.
    ///
    /// ```
    /// use lookaside_art::OwnedTree;
    ///
    /// let mut tree = OwnedTree::<[u8], u32>::new()?;
    /// *tree.try_insert(b"rome", 752).unwrap() += 1;
    /// assert_eq!(tree.try_insert(b"rome", 509).unwrap_err().into_value(), 509);
    /// assert_eq!(tree.get(b"rome"), Some(&753));
    /// # Ok::<(), lookaside_art::CreateError>(())
    /// ```
    ///
    /// # Errors
    /// [`TryInsertError::Occupied`] if there is an entry of this key, [`TryInsertError::NotStored`] if there is no
    /// room: then nothing has changed, and the value comes back.
    pub fn try_insert(&mut self, key: &K, value: V) -> Result<&mut V, TryInsertError<'_, V>> {
        match self.store(key, value, Rule::Absent)? {
            Stored::New(leaf) | Stored::Replaced(leaf) => Ok(self.value_mut(leaf)),
            Stored::Refused(present, value) => {
                Err(TryInsertError::Occupied { current: self.core.storage.value(present), value })
            }
        }
    }

    /// Puts an entry in if there is one of its key already, and gives back the value that it replaced.
    ///
    /// # Errors
    /// [`NotStored`] if there is no room: then nothing has changed.
    pub fn replace(&mut self, key: &K, value: V) -> Result<Option<V>, NotStored<V>> {
        if !self.contains_key(key) {
            return Ok(None);
        }
        let stored = self.store(key, value, Rule::Present)?;
        Ok(self.take_replaced(stored))
    }

    #[inline]
    fn store(&mut self, key: &K, value: V, rule: Rule) -> Result<Stored<V>, NotStored<V>> {
        let stored = self.core.store(key, value, rule, &Alone)?;
        self.entries += usize::from(matches!(stored, Stored::New(_)));
        Ok(stored)
    }

    /// The value that a new one has replaced.
    #[inline]
    fn take_replaced(&mut self, stored: Stored<V>) -> Option<V> {
        let Stored::Replaced(old) = stored else { return None };
        // SAFETY: it has left the tree, and was left to us.
        Some(unsafe { self.core.storage.take_leaf(old) })
    }

    /// Takes an entry out, and gives its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let leaf = self.core.remove(key, &Alone)?;
        self.entries -= 1;
        // SAFETY: it has left the tree, and was left to us.
        Some(unsafe { self.core.storage.take_leaf(leaf) })
    }

    /// Takes the entry with the least key out, and gives it.
    ///
    /// ```
    /// use lookaside_art::{OwnedTree, encode};
    ///
    /// let mut due = OwnedTree::<[u8; 8], &str>::new()?;
    /// due.insert(&encode::u64(1700), "later").unwrap();
    /// due.insert(&encode::u64(900), "sooner").unwrap();
    /// assert_eq!(due.pop_first(), Some((encode::u64(900), "sooner")));
    /// assert_eq!(due.pop_last(), Some((encode::u64(1700), "later")));
    /// assert_eq!(due.pop_first(), None);
    /// # Ok::<(), lookaside_art::CreateError>(())
    /// ```
    pub fn pop_first(&mut self) -> Option<(K::Owned, V)> {
        self.pop(Entries::least)
    }

    /// Takes the entry with the greatest key out, and gives it.
    pub fn pop_last(&mut self) -> Option<(K::Owned, V)> {
        self.pop(Entries::greatest)
    }

    fn pop(&mut self, end: impl Fn(&Entries<K, V>) -> Option<Ref>) -> Option<(K::Owned, V)> {
        let leaf = end(&self.core)?;
        let key = self.core.storage.key(leaf).to_owned();
        // Nobody else is there: it goes.
        self.remove(Borrow::borrow(&key)).map(|value| (key, value))
    }

    /// Takes all entries out for which `keep` is false, which is asked in the order of the keys, and may change the
    /// values of those that stay.
    ///
    /// If it panics, what it has refused before is gone, and all else is there.
    ///
    /// ```
    /// use lookaside_art::{OwnedTree, encode};
    ///
    /// let mut tree = OwnedTree::<[u8; 4], u32>::new()?;
    /// (0..6).for_each(|n| assert!(tree.insert(&encode::u32(n), n).unwrap().is_none()));
    /// tree.retain(|_, number| {
    ///     *number *= 10;
    ///     *number % 20 == 0
    /// });
    /// assert_eq!(tree.iter().map(|(_, number)| *number).collect::<Vec<_>>(), [0, 20, 40]);
    /// # Ok::<(), lookaside_art::CreateError>(())
    /// ```
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        // The last entry that stays, from which the scan goes on when those that were refused behind it are gone.
        let mut last: Option<Ref> = None;
        loop {
            let mut refused = Refused { tree: &mut *self, leaves: [Ref::NULL; TOGETHER], count: 0 };
            let core = &refused.tree.core;
            let from = last.map_or(Bound::Unbounded, |leaf| Bound::Excluded(core.storage.key(leaf).as_ref()));
            let mut scan = Scan::between(core, from, Bound::Unbounded);
            while refused.count < refused.leaves.len() {
                let Some(leaf) = scan.next() else { return };
                // SAFETY: a leaf of the tree, which is borrowed as a whole: nobody else looks at its values, this scan
                // neither.
                let value = unsafe { &mut *core.storage.value_address(leaf) };
                if keep(core.storage.key(leaf), value) {
                    last = Some(leaf);
                } else {
                    refused.leaves[refused.count] = leaf;
                    refused.count += 1;
                }
            }
        }
    }

    /// Takes all entries out.
    ///
    /// ```
    /// let mut tree = lookaside_art::OwnedTree::<[u8], u32>::new()?;
    /// tree.insert(b"rome", 753).unwrap();
    /// tree.clear();
    /// assert!(tree.is_empty());
    /// # Ok::<(), lookaside_art::CreateError>(())
    /// ```
    pub fn clear(&mut self) {
        self.remove_prefix(&[]);
    }

    /// Takes all entries out whose keys begin with `prefix`, and says how many; in time proportional to that.
    pub fn remove_prefix(&mut self, prefix: &[u8]) -> usize {
        let mut removed = 0;
        self.core.remove_prefix(prefix, &Alone, |_| removed += 1);
        self.entries -= removed;
        removed
    }
}

impl<K: Key + ?Sized, V> Deref for OwnedTree<K, V> {
    type Target = Entries<K, V>;

    #[inline(always)]
    fn deref(&self) -> &Entries<K, V> {
        &self.core
    }
}

/// Entries that are to go when the scan that has come by them is at rest, for it stands on nodes that go with them;
/// also if the caller's code panics.
struct Refused<'t, K: Key + ?Sized, V> {
    tree: &'t mut OwnedTree<K, V>,
    leaves: [Ref; TOGETHER],
    count: usize,
}

impl<K: Key + ?Sized, V> Drop for Refused<'_, K, V> {
    fn drop(&mut self) {
        let OwnedTree { core, entries } = &mut *self.tree;
        for &leaf in &self.leaves[..self.count] {
            if core.remove_leaf(leaf, &Alone) {
                *entries -= 1;
                // SAFETY: it has left the tree, and was left to us.
                unsafe { Alone.retire(&core.storage, leaf) };
            }
        }
    }
}

// As of a `Tree`.
impl<K: Key + ?Sized, V: UnwindSafe> UnwindSafe for OwnedTree<K, V> {}
impl<K: Key + ?Sized, V: RefUnwindSafe> RefUnwindSafe for OwnedTree<K, V> {}

impl<K: Key + ?Sized, V> fmt::Debug for OwnedTree<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedTree").field("entries", &self.entries).finish_non_exhaustive()
    }
}
