//! The tree that threads share.
//!
//! A [`Reader`] pins an epoch, once for as many operations as one likes: what it has been shown stays as long as it
//! does. What has left the tree is freed by a collector of the tree's own ([`atomics::reclaim`]), which is dropped
//! before all else. Values are shared, never changed in place; a new value is a new leaf.

#![allow(unsafe_code)]

use std::fmt;
use std::ops::{Bound, Deref};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};

use atomics::reclaim::{Collector, Guard};
use crossbeam_utils::CachePadded;

use crate::config::{Config, CreateError};
use crate::core::Entries;
use crate::error::{NotStored, TryInsertError};
use crate::key::Key;
use crate::log::{AccessLog, Sampler};
use crate::memory::Memory;
use crate::probe::{Probe, Unwatched};
use crate::reference::Ref;
use crate::scan::Scan;
use crate::storage::View;
use crate::store::Stored;
use crate::write::{Discipline, Rule};

/// An adaptive radix tree from keys of type `K`, `[u8; N]` or `[u8]`, to values of type `V`, for any number of threads.
///
/// ```
/// use lookaside_art::{Tree, encode};
///
/// let tree = Tree::<[u8], u32>::new()?;
/// let reader = tree.pin();
/// reader.insert(encode::text("rome"), 753).unwrap();
/// reader.insert(encode::text("romulus"), 771).unwrap();
/// assert_eq!(reader.get(b"rome"), Some(&753));
/// assert_eq!(reader.prefix(b"rom").map(|(_, year)| *year).collect::<Vec<_>>(), [753, 771]);
/// assert_eq!(reader.remove(b"rome"), Some(&753));
/// assert_eq!(reader.first_key_value(), Some((&b"romulus"[..], &771)));
/// # Ok::<(), lookaside_art::CreateError>(())
/// ```
pub struct Tree<K: Key + ?Sized, V> {
    // Before the core: into its storage is freed what has left the tree.
    pub(crate) collector: Collector,
    pub(crate) core: Entries<K, V>,
    pub(crate) log: AccessLog<K>,
    entries: CachePadded<AtomicUsize>,
}

impl<K: Key + ?Sized, V: Send + Sync + 'static> Tree<K, V> {
    /// An empty tree in base pages.
    ///
    /// # Errors
    /// [`CreateError`] if not even addresses are to be had.
    pub fn new() -> Result<Self, CreateError> {
        Tree::with_config(&Config::default())
    }

    /// An empty tree.
    ///
    /// # Errors
    /// [`CreateError`] if there is no memory for it.
    pub fn with_config(config: &Config) -> Result<Self, CreateError> {
        let core = Entries::new(config).map_err(CreateError)?;
        Ok(Tree {
            collector: Collector::new(),
            core,
            log: AccessLog::default(),
            entries: CachePadded::default(),
        })
    }

    /// A reader, and writer, for this thread. See [`Reader`].
    #[must_use]
    pub fn pin(&self) -> Reader<'_, K, V> {
        Reader::at(self, None)
    }

    /// A session of this thread, whose readers' accesses are sampled into the access log while there is one: see
    /// [`Tree::access_log`]. To be kept, not made for each lookup.
    #[must_use]
    pub fn session(&self) -> Session<'_, K, V> {
        Session { tree: self, sampler: self.log.join() }
    }

    /// The log of which keys are looked up how often.
    #[must_use]
    pub fn access_log(&self) -> &AccessLog<K> {
        &self.log
    }

    /// Entries, approximately: exact when nobody is changing the tree.
    #[must_use]
    pub fn len(&self) -> usize {
        // Those who take out may count before those who put in.
        self.entries.load(Ordering::Relaxed).cast_signed().max(0).cast_unsigned()
    }

    /// Whether there are none, approximately.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops all values that were removed or replaced, by whichever thread, and gives their memory and that of nodes
    /// back to the tree; but for what a [`Reader`] holds back, of any thread, this one as well.
    ///
    /// Nobody has to call this. A thread that drops or refreshes its reader leaves at most 64 removed values waiting,
    /// none of them for longer than two refreshes, or 64 readers; and with the tree all are dropped.
    pub fn collect(&self) {
        self.collector.collect();
    }

    /// What the tree occupies.
    #[must_use]
    pub fn memory(&self) -> Memory {
        self.core.memory()
    }

    /// The pages that nodes live in, and those that leaves live in, as the kernel gave them.
    #[must_use]
    pub fn regions(&self) -> [&pages::Region; 2] {
        [self.core.storage.nodes.region(), self.core.storage.leaves.region()]
    }
}

/// A thread at a tree, for as long as it likes: its accesses are sampled.
pub struct Session<'t, K: Key + ?Sized, V> {
    tree: &'t Tree<K, V>,
    sampler: Sampler<K>,
}

impl<K: Key + ?Sized, V: Send + Sync + 'static> Session<'_, K, V> {
    /// A reader whose accesses are sampled.
    #[must_use]
    pub fn pin(&self) -> Reader<'_, K, V> {
        Reader::at(self.tree, Some(&self.sampler))
    }
}

/// A thread at a tree, with an epoch pinned: what it has been shown stays until it is dropped or refreshed.
///
/// Long-lived ones hold back the memory of what is removed: refresh them now and then.
///
/// # With other threads at the tree
///
/// Each call but those of several entries is as if it had happened at one moment while it ran (it is linearizable):
///
/// - [`get`](Reader::get), [`contains_key`](Entries::contains_key) and each key of [`get_many`](Reader::get_many): a
///   moment at which the key had this value, or none.
/// - [`insert`](Reader::insert), [`try_insert`](Reader::try_insert), [`replace`](Reader::replace) and
///   [`remove`](Reader::remove): the change of one word in the tree; or, where nothing was changed, a moment at which
///   the key had the entry that was in the way, or none.
/// - [`remove_prefix`](Reader::remove_prefix) and [`clear`](Reader::clear): the change of the one word that all of it
///   hangs on. Others see all of the entries or none.
/// - [`pop_first`](Reader::pop_first) and [`pop_last`](Reader::pop_last): that of the entry's removal. It was the
///   first, or the last, at a moment before that, and others may have put one before it, or behind it, since.
/// - [`retain`](Reader::retain): none for the whole. Each removal is a call of its own.
/// - [`first_key_value`](Entries::first_key_value), [`last_key_value`](Entries::last_key_value),
///   [`iter`](Entries::iter), [`range`](Entries::range) and [`prefix`](Entries::prefix): none for the whole. What is in
///   the tree all the while is shown; what comes or goes meanwhile may be.
///
/// No call waits for a reader; those that change something wait for others that are changing the same node, for a
/// handful of stores. Why this is so: the module `lock`.
pub struct Reader<'t, K: Key + ?Sized, V> {
    pub(crate) tree: &'t Tree<K, V>,
    guard: Guard<'t>,
    /// For all lookups: what each copied for itself was three of its loads.
    view: View<'t, K, V>,
    sampler: Option<&'t Sampler<K>>,
}

impl<'t, K: Key + ?Sized, V: Send + Sync + 'static> Reader<'t, K, V> {
    #[inline(always)]
    fn at(tree: &'t Tree<K, V>, sampler: Option<&'t Sampler<K>>) -> Self {
        let view = tree.core.storage.view();
        Reader { tree, guard: tree.collector.pin(), view, sampler }
    }

    /// Lets go of what was shown, so that what has been removed can be given back: at once, if it is more than 64
    /// values, and what is left of it the next time at the latest. While this thread has another reader of the tree,
    /// nothing is let go.
    #[inline]
    pub fn refresh(&mut self) {
        self.guard.refresh();
    }

    /// The value of a key.
    #[inline(always)]
    pub fn get(&self, key: &K) -> Option<&V> {
        self.get_watched(key, &mut Unwatched)
    }

    /// The value of a key; `probe` is told of what is read in nodes and in the leaf on the way.
    #[inline(always)]
    pub fn get_watched(&self, key: &K, probe: &mut impl Probe) -> Option<&V> {
        if let Some(sampler) = self.sampler {
            sampler.saw(key);
        }
        Some(self.view.value(self.find_in(self.view, key, probe)?))
    }

    /// The values of many keys: `values[i]` becomes that of `keys[i]`. Each is what [`Reader::get`] could have given
    /// during the call.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn get_many<'r>(&'r self, keys: &[&K], values: &mut [Option<&'r V>]) {
        assert_eq!(keys.len(), values.len(), "one answer a key");
        if let Some(sampler) = self.sampler {
            sampler.saw_many(keys);
        }
        self.find_many(keys, |i, leaf| values[i] = leaf.map(|leaf| self.view.value(leaf)));
    }

    /// Puts an entry in, and shows the value that it replaced.
    ///
    /// # Errors
    /// [`NotStored`] if there is no room: then nothing has changed.
    pub fn insert(&self, key: &K, value: V) -> Result<Option<&V>, NotStored<V>> {
        Ok(match self.store(key, value, Rule::Any)? {
            Stored::Replaced(old) => Some(self.storage.value(old)),
            Stored::New(_) | Stored::Refused(..) => None,
        })
    }

    /// Puts an entry in if its key is new, and shows its value there.
    ///
    /// ```
    /// use lookaside_art::{Tree, TryInsertError};
    ///
    /// let tree = Tree::<[u8], u32>::new()?;
    /// let reader = tree.pin();
    /// assert_eq!(reader.try_insert(b"rome", 753).unwrap(), &753);
    /// let refused = reader.try_insert(b"rome", 509).unwrap_err();
    /// assert!(matches!(refused, TryInsertError::Occupied { current: 753, value: 509, .. }));
    /// # Ok::<(), lookaside_art::CreateError>(())
    /// ```
    ///
    /// # Errors
    /// [`TryInsertError::Occupied`] if there is an entry of this key, [`TryInsertError::NotStored`] if there is no
    /// room: then nothing has changed, and the value comes back.
    pub fn try_insert(&self, key: &K, value: V) -> Result<&V, TryInsertError<'_, V>> {
        let storage = &self.storage;
        match self.store(key, value, Rule::Absent)? {
            Stored::New(leaf) | Stored::Replaced(leaf) => Ok(storage.value(leaf)),
            Stored::Refused(present, value) => {
                Err(TryInsertError::Occupied { current: storage.value(present), value })
            }
        }
    }

    /// Puts an entry in if there is one of its key already, and shows the value that it replaced.
    ///
    /// # Errors
    /// [`NotStored`] if there is no room: then nothing has changed.
    pub fn replace(&self, key: &K, value: V) -> Result<Option<&V>, NotStored<V>> {
        if !self.contains_key(key) {
            return Ok(None);
        }
        Ok(match self.store(key, value, Rule::Present)? {
            Stored::Replaced(old) => Some(self.storage.value(old)),
            Stored::New(_) | Stored::Refused(..) => None,
        })
    }

    #[inline]
    fn store(&self, key: &K, value: V, rule: Rule) -> Result<Stored<V>, NotStored<V>> {
        let stored = self.tree.core.store(key, value, rule, &self.guard)?;
        match stored {
            Stored::New(_) => {
                self.tree.entries.fetch_add(1, Ordering::Relaxed);
            }
            // SAFETY: it has left the tree, and was left to us. `V` is `Send` and `Sync`.
            Stored::Replaced(old) => unsafe { Discipline::retire(&self.guard, &self.storage, old) },
            Stored::Refused(..) => {}
        }
        Ok(stored)
    }

    /// Takes an entry out, and shows its value.
    pub fn remove(&self, key: &K) -> Option<&V> {
        let leaf = self.tree.core.remove(key, &self.guard)?;
        self.removed(leaf);
        Some(self.storage.value(leaf))
    }

    /// Counts and retires a leaf that this thread has just taken out.
    fn removed(&self, leaf: Ref) {
        self.tree.entries.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: it has left the tree, and was left to us. `V` is `Send` and `Sync`.
        unsafe { Discipline::retire(&self.guard, &self.storage, leaf) };
    }

    /// Takes the entry with the least key out, and shows it.
    ///
    /// Of several threads that do so each gets an entry of its own. One that others put before it meanwhile may stay.
    ///
    /// ```
    /// use lookaside_art::{Tree, encode};
    ///
    /// let due = Tree::<[u8; 8], &str>::new()?;
    /// let reader = due.pin();
    /// reader.insert(&encode::u64(1700), "later").unwrap();
    /// reader.insert(&encode::u64(900), "sooner").unwrap();
    /// assert_eq!(reader.pop_first(), Some((&encode::u64(900), &"sooner")));
    /// assert_eq!(due.len(), 1);
    /// # Ok::<(), lookaside_art::CreateError>(())
    /// ```
    pub fn pop_first(&self) -> Option<(&K, &V)> {
        self.pop(Entries::least)
    }

    /// Takes the entry with the greatest key out, and shows it; as [`Reader::pop_first`].
    pub fn pop_last(&self) -> Option<(&K, &V)> {
        self.pop(Entries::greatest)
    }

    fn pop(&self, end: impl Fn(&Entries<K, V>) -> Option<Ref>) -> Option<(&K, &V)> {
        loop {
            // With whatever value it has when it goes.
            let key = self.storage.key(end(self)?);
            if let Some(leaf) = self.tree.core.remove(key, &self.guard) {
                self.removed(leaf);
                return Some(self.entry(leaf));
            }
        }
    }

    /// Takes all entries out for which `keep` is false.
    ///
    /// It is asked in the order of the keys, and what goes is what it was shown: an entry whose value is replaced, or
    /// which is moved, while `keep` looks at it, is shown again as it is now. No lock is held meanwhile, so that it may
    /// use the tree. If it panics, what it has refused before is gone, and all else is there.
    ///
    /// ```
    /// use lookaside_art::{Tree, encode};
    ///
    /// let tree = Tree::<[u8; 4], u32>::new()?;
    /// let reader = tree.pin();
    /// (0..10).for_each(|n| assert!(reader.insert(&encode::u32(n), n * n).unwrap().is_none()));
    /// reader.retain(|_, square| square % 2 == 0);
    /// assert_eq!(reader.iter().map(|(_, square)| *square).collect::<Vec<_>>(), [0, 4, 16, 36, 64]);
    /// # Ok::<(), lookaside_art::CreateError>(())
    /// ```
    pub fn retain(&self, mut keep: impl FnMut(&K, &V) -> bool) {
        let mut scan = Scan::between(self, Bound::Unbounded, Bound::Unbounded);
        while let Some(mut leaf) = scan.next() {
            loop {
                let (key, value) = self.entry(leaf);
                if keep(key, value) {
                    break;
                }
                if self.remove_leaf(leaf, &self.guard) {
                    self.removed(leaf);
                    break;
                }
                let Some(now) = self.find(key, &mut Unwatched) else { break };
                leaf = now;
            }
        }
    }

    /// Takes all entries out.
    ///
    /// ```
    /// let tree = lookaside_art::Tree::<[u8], u32>::new()?;
    /// tree.pin().insert(b"rome", 753).unwrap();
    /// tree.pin().clear();
    /// assert!(tree.is_empty());
    /// # Ok::<(), lookaside_art::CreateError>(())
    /// ```
    pub fn clear(&self) {
        self.remove_prefix(&[]);
    }

    /// Takes all entries out whose keys begin with `prefix`, and says how many; in time proportional to that.
    pub fn remove_prefix(&self, prefix: &[u8]) -> usize {
        let mut removed = 0;
        self.tree.core.remove_prefix(prefix, &self.guard, |_| removed += 1);
        self.tree.entries.fetch_sub(removed, Ordering::Relaxed);
        removed
    }
}

impl<K: Key + ?Sized, V> Deref for Reader<'_, K, V> {
    type Target = Entries<K, V>;

    #[inline(always)]
    fn deref(&self) -> &Entries<K, V> {
        &self.tree.core
    }
}

// A panic in code of the user's, which a tree calls, leaves the tree whole.
impl<K: Key + ?Sized, V: RefUnwindSafe> UnwindSafe for Tree<K, V> {}
impl<K: Key + ?Sized, V: RefUnwindSafe> RefUnwindSafe for Tree<K, V> {}
impl<K: Key + ?Sized, V: RefUnwindSafe> UnwindSafe for Reader<'_, K, V> {}
impl<K: Key + ?Sized, V: RefUnwindSafe> RefUnwindSafe for Reader<'_, K, V> {}

impl<K: Key + ?Sized, V> fmt::Debug for Tree<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree").field("entries", &self.entries).finish_non_exhaustive()
    }
}

impl<K: Key + ?Sized, V> fmt::Debug for Reader<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("tree", &self.tree).finish_non_exhaustive()
    }
}

impl<K: Key + ?Sized, V> fmt::Debug for Session<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("tree", &self.tree).finish_non_exhaustive()
    }
}

/// Small enough for an interpreter that looks for undefined behaviour (`cargo miri test --lib`), which finds most of it
/// in a few steps; `tests/` go further.
#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::OwnedTree;

    /// Keys below a node of every kind, one a prefix of others, and one that lies on the heap.
    fn keys() -> Vec<Vec<u8>> {
        let fans = [(1, 3u8), (2, 9), (3, 20), (4, 60)];
        let fan = |(first, bytes): (u8, u8)| (0..bytes).map(move |byte| vec![first, 9, 9, byte * 3, 1]);
        fans.into_iter().flat_map(fan).chain([vec![], vec![1, 9], vec![7; 600]]).collect()
    }

    #[test]
    fn one_owner_inserts_scans_and_removes() {
        let mut tree = OwnedTree::<[u8], Box<usize>>::new().unwrap();
        let mut model = BTreeMap::new();
        for (number, key) in keys().into_iter().enumerate() {
            assert_eq!(tree.insert(&key, Box::new(number)).unwrap(), None);
            model.insert(key, Box::new(number));
        }
        assert!(tree.iter().eq(model.iter().map(|(key, number)| (&key[..], number))));
        assert!(
            tree.range(&[2][..]..)
                .rev()
                .eq(model.range(vec![2]..).rev().map(|(key, number)| (&key[..], number)))
        );
        for key in keys().iter().step_by(2) {
            assert_eq!(tree.remove(key), model.remove(key));
        }
        let several = keys();
        let several: Vec<&[u8]> = several.iter().map(Vec::as_slice).collect();
        let mut found = vec![None; several.len()];
        tree.get_many(&several, &mut found);
        assert!(several.iter().zip(&found).all(|(key, found)| *found == model.get(*key)));
        assert_eq!(tree.remove_prefix(&[4]), model.keys().filter(|key| key.starts_with(&[4])).count());
    }

    #[test]
    fn others_read_while_one_writes_and_moves() {
        let tree = Tree::<[u8], Box<usize>>::new().unwrap();
        let keys = keys();
        let (stay, change) = keys.split_at(keys.len() / 2);
        stay.iter().for_each(|key| assert!(tree.pin().insert(key, Box::new(key.len())).unwrap().is_none()));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut reader = tree.pin();
                for key in stay.iter().chain(stay) {
                    assert_eq!(reader.get(key).map(|length| **length), Some(key.len()));
                    reader.refresh();
                }
                assert!(reader.iter().count() >= stay.len());
            });
            let mut reorganization = tree.reorganization(stay.to_vec());
            for key in change {
                assert_eq!(tree.pin().insert(key, Box::new(key.len())).unwrap(), None);
                let _ = reorganization.step(4);
            }
            for key in change {
                assert_eq!(tree.pin().remove(key).map(|length| **length), Some(key.len()));
            }
        });
        assert_eq!((tree.len(), tree.pin().iter().count()), (stay.len(), stay.len()));
        // What was removed or moved is given back; what is not is a leak.
        tree.collect();
        assert_eq!(tree.memory().leaves, stay.len());
    }
}
