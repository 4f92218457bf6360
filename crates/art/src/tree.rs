//! The tree that threads share.
//!
//! A [`Reader`] pins an epoch, once for as many operations as one likes: what it has been shown stays as long as it does. What
//! has left the tree is freed by a collector of the tree's own ([`atomics::reclaim`]), which is dropped before all else.
//! Values are shared, never changed in place; a new value is a new leaf.

#![allow(unsafe_code)]

use std::fmt;
use std::iter::FusedIterator;
use std::ops::{Bound, RangeBounds};
use std::sync::atomic::{AtomicUsize, Ordering};

use atomics::reclaim::{Collector, Guard};
use crossbeam_utils::CachePadded;

use crate::config::{Config, CreateError, NotStored, Reason};
use crate::core::Core;
use crate::key::Key;
use crate::log::{AccessLog, Sampler};
use crate::memory::Memory;
use crate::probe::{Probe, Unwatched};
use crate::reference::Ref;
use crate::scan::Scan;
use crate::space::Exhausted;
use crate::storage::{Placement, View};
use crate::write::{Discipline, Inserted, Rule};

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
/// assert_eq!(reader.first(), Some((&b"romulus"[..], &771)));
/// # Ok::<(), lookaside_art::CreateError>(())
/// ```
pub struct Tree<K: Key + ?Sized, V> {
    // Before the core: into its storage is freed what has left the tree.
    pub(crate) collector: Collector,
    pub(crate) core: Core<K, V>,
    pub(crate) log: AccessLog<K>,
    entries: CachePadded<AtomicUsize>,
}

impl<K: Key + ?Sized, V: Send + Sync + 'static> Tree<K, V> {
    /// An empty tree in base pages.
    ///
    /// # Errors
    /// [`CreateError`] if not even addresses are to be had.
    pub fn new() -> Result<Self, CreateError> {
        Tree::with(&Config::default())
    }

    /// An empty tree.
    ///
    /// # Errors
    /// [`CreateError`] if there is no memory for it.
    pub fn with(config: &Config) -> Result<Self, CreateError> {
        let core = Core::new(config).map_err(CreateError)?;
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

    /// Drops all values that were removed or replaced, by whichever thread, and gives their memory and that of nodes back to the
    /// tree; but for what a [`Reader`] holds back, of any thread, this one as well.
    ///
    /// Nobody has to call this. A thread that drops or refreshes its reader leaves at most 64 removed values waiting, none of
    /// them for longer than two refreshes, or 64 readers; and with the tree all are dropped.
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

    /// Lets go of what was shown, so that what has been removed can be given back: at once, if it is more than 64 values, and
    /// what is left of it the next time at the latest. While this thread has another reader of the tree, nothing is let go.
    #[inline]
    pub fn refresh(&mut self) {
        self.guard.refresh();
    }

    #[inline(always)]
    fn core(&self) -> &Core<K, V> {
        &self.tree.core
    }

    fn entry(&self, leaf: Ref) -> (&K, &V) {
        (self.core().storage.key(leaf), self.core().storage.value(leaf))
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
        Some(self.view.value(self.core().find_in(self.view, key, probe)?))
    }

    /// Whether there is such a key. The [access log](Tree::access_log) does not see it.
    #[must_use]
    pub fn contains(&self, key: &K) -> bool {
        self.core().find_in(self.view, key, &mut Unwatched).is_some()
    }

    /// The values of many keys: `values[i]` becomes that of `keys[i]`. Each is what [`Reader::get`] could have given during
    /// the call.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn get_many<'r>(&'r self, keys: &[&K], values: &mut [Option<&'r V>]) {
        assert_eq!(keys.len(), values.len(), "one answer a key");
        if let Some(sampler) = self.sampler {
            sampler.saw_many(keys);
        }
        self.core().find_many(keys, |i, leaf| values[i] = leaf.map(|leaf| self.view.value(leaf)));
    }

    /// Puts an entry in, and shows the value that it replaced.
    ///
    /// # Errors
    /// [`NotStored`] if there is no room: then nothing has changed.
    pub fn insert(&self, key: &K, value: V) -> Result<Option<&V>, NotStored<V>> {
        Ok(match self.store(key, value, Rule::Any)? {
            Inserted::Replaced(old) => Some(self.core().storage.value(old)),
            Inserted::New | Inserted::Refused(_) => None,
        })
    }

    /// Puts an entry in if its key is new; says whether it was.
    ///
    /// # Errors
    /// [`NotStored`] if there is no room: then nothing has changed.
    pub fn add(&self, key: &K, value: V) -> Result<bool, NotStored<V>> {
        Ok(self.store(key, value, Rule::Absent)? == Inserted::New)
    }

    /// Puts an entry in if there is one of its key already, and shows the value that it replaced.
    ///
    /// # Errors
    /// [`NotStored`] if there is no room: then nothing has changed.
    pub fn replace(&self, key: &K, value: V) -> Result<Option<&V>, NotStored<V>> {
        if !self.contains(key) {
            return Ok(None);
        }
        Ok(match self.store(key, value, Rule::Present)? {
            Inserted::Replaced(old) => Some(self.core().storage.value(old)),
            Inserted::New | Inserted::Refused(_) => None,
        })
    }

    fn store(&self, key: &K, value: V, rule: Rule) -> Result<Inserted, NotStored<V>> {
        let stored = self.core().store(key, value, rule, &self.guard)?;
        match stored {
            Inserted::New => {
                self.tree.entries.fetch_add(1, Ordering::Relaxed);
            }
            // SAFETY: it has left the tree, and was left to us. `V` is `Send` and `Sync`.
            Inserted::Replaced(old) => unsafe { Discipline::retire(&self.guard, &self.core().storage, old) },
            Inserted::Refused(_) => {}
        }
        Ok(stored)
    }

    /// Takes an entry out, and shows its value.
    pub fn remove(&self, key: &K) -> Option<&V> {
        let leaf = self.core().remove(key, &self.guard)?;
        self.tree.entries.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { Discipline::retire(&self.guard, &self.core().storage, leaf) };
        Some(self.core().storage.value(leaf))
    }

    /// Takes all entries out whose keys begin with `prefix`, and says how many; in time proportional to that.
    pub fn remove_prefix(&self, prefix: &[u8]) -> usize {
        let mut removed = 0;
        self.core().remove_prefix(prefix, &self.guard, |_| removed += 1);
        self.tree.entries.fetch_sub(removed, Ordering::Relaxed);
        removed
    }

    /// The entries whose keys lie in a range, in order; from both ends.
    pub fn range<'r>(&'r self, keys: impl RangeBounds<&'r K>) -> Range<'r, K, V> {
        let bytes = |bound: Bound<&&'r K>| bound.map(|key| (*key).as_ref());
        self.range_of_bytes(bytes(keys.start_bound()), bytes(keys.end_bound()))
    }

    /// The entries whose keys lie between two bounds, in order, from both ends. Bounds may be of any length.
    pub fn range_of_bytes<'r>(&'r self, from: Bound<&'r [u8]>, to: Bound<&'r [u8]>) -> Range<'r, K, V> {
        Range { scan: Scan::between(self.core(), from, to), core: self.core() }
    }

    /// The entries whose keys begin with `prefix`, in order; from both ends.
    pub fn prefix<'r>(&'r self, prefix: &'r [u8]) -> Range<'r, K, V> {
        Range { scan: Scan::of_prefix(self.core(), prefix), core: self.core() }
    }

    /// All entries, in order; from both ends.
    pub fn iter(&self) -> Range<'_, K, V> {
        self.range_of_bytes(Bound::Unbounded, Bound::Unbounded)
    }

    /// The entry with the least key.
    #[must_use]
    pub fn first(&self) -> Option<(&K, &V)> {
        self.core().least().map(|leaf| self.entry(leaf))
    }

    /// The entry with the greatest key.
    #[must_use]
    pub fn last(&self) -> Option<(&K, &V)> {
        self.core().greatest().map(|leaf| self.entry(leaf))
    }
}

impl<K: Key + ?Sized, V> Core<K, V> {
    /// Makes a leaf and puts it in.
    #[inline]
    pub(crate) fn store<D: Discipline>(
        &self,
        key: &K,
        value: V,
        rule: Rule,
        by: &D,
    ) -> Result<Inserted, NotStored<V>> {
        if key.as_ref().len() >= u32::MAX as usize {
            return Err(NotStored { value, reason: Reason::KeyTooLong });
        }
        let (mut value, mut made) = (Some(value), None);
        let make = |placement: Placement<'_>| {
            if let Some(leaf) = made {
                return Ok(leaf);
            }
            let leaf =
                self.storage.new_leaf(key, value.take().expect("there is a leaf or a value"), placement);
            let leaf = leaf.map_err(|refused| {
                value = Some(refused);
                Exhausted
            })?;
            made = Some(leaf);
            Ok(leaf)
        };
        let stored = self.insert(key, make, rule, by);
        if let Ok(stored @ (Inserted::New | Inserted::Replaced(_))) = stored {
            return Ok(stored);
        }
        // SAFETY: the leaf was not published.
        let unused = made.map(|leaf| unsafe { self.storage.take_leaf(leaf) }).or(value);
        stored.map_err(|Exhausted| NotStored {
            value: unused.expect("there is a leaf or a value"),
            reason: Reason::Full,
        })
    }

    pub(crate) fn least(&self) -> Option<Ref> {
        Scan::between(self, Bound::Unbounded, Bound::Unbounded).next()
    }

    pub(crate) fn greatest(&self) -> Option<Ref> {
        Scan::between(self, Bound::Unbounded, Bound::Unbounded).next_back()
    }
}

/// Entries in order, from both ends.
///
/// What is in the tree all the while is shown; what comes or goes meanwhile may be.
pub struct Range<'r, K: Key + ?Sized, V> {
    pub(crate) scan: Scan<'r, K, V>,
    pub(crate) core: &'r Core<K, V>,
}

impl<'r, K: Key + ?Sized, V> Range<'r, K, V> {
    #[inline(always)]
    fn entry(&self, leaf: Ref) -> (&'r K, &'r V) {
        let core = self.core;
        (core.storage.key(leaf), core.storage.value(leaf))
    }
}

impl<'r, K: Key + ?Sized, V> Iterator for Range<'r, K, V> {
    type Item = (&'r K, &'r V);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let leaf = self.scan.next()?;
        Some(self.entry(leaf))
    }
}

impl<K: Key + ?Sized, V> DoubleEndedIterator for Range<'_, K, V> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        let leaf = self.scan.next_back()?;
        Some(self.entry(leaf))
    }
}

impl<K: Key + ?Sized, V> FusedIterator for Range<'_, K, V> {}

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

impl<K: Key + ?Sized, V> fmt::Debug for Range<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Range").finish_non_exhaustive()
    }
}

/// Small enough for an interpreter that looks for undefined behaviour (`cargo miri test --lib`), which finds most of it in a
/// few steps; `tests/` go further.
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
