//! What a tree shows of itself while it stands behind a map: all of it but its changes.
//!
//! A map's table would not hear of an entry that comes or goes behind its back. So [`Onlooker`] has those calls of a
//! [`Reader`] that look at [`Entries`], and [`TreeView`] those of a [`Tree`] that leave its entries as they are:
//! reorganising is one of them, because entries move and stay the same.

use std::fmt;
use std::ops::Deref;

use crate::core::Entries;
use crate::key::Key;
use crate::log::AccessLog;
use crate::memory::Memory;
use crate::relocation::{Reorganization, Reorganized};
use crate::tree::{Reader, Tree};

/// A tree that stands behind a map: see [`lookaside::Map::view`].
pub struct TreeView<'t, K: Key + ?Sized, V>(&'t Tree<K, V>);

impl<K: Key + ?Sized, V> Clone for TreeView<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Key + ?Sized, V> Copy for TreeView<'_, K, V> {}

impl<'t, K: Key + ?Sized, V: Send + Sync + 'static> TreeView<'t, K, V> {
    /// Of this tree.
    pub(crate) fn of(tree: &'t Tree<K, V>) -> Self {
        TreeView(tree)
    }

    /// An onlooker for this thread.
    #[must_use]
    pub fn pin(self) -> Onlooker<'t, K, V> {
        Onlooker(self.0.pin())
    }

    /// As [`Tree::access_log`].
    #[must_use]
    pub fn access_log(self) -> &'t AccessLog<K> {
        self.0.access_log()
    }

    /// As [`Tree::memory`].
    #[must_use]
    pub fn memory(self) -> Memory {
        self.0.memory()
    }

    /// As [`Tree::regions`].
    #[must_use]
    pub fn regions(self) -> [&'t pages::Region; 2] {
        self.0.regions()
    }
}

impl<'t, K: Key + ?Sized, V: Clone + Send + Sync + 'static> TreeView<'t, K, V> {
    /// As [`Tree::reorganize`].
    pub fn reorganize(self) -> Reorganized {
        self.0.reorganize()
    }

    /// As [`Tree::reorganization`].
    #[must_use]
    pub fn reorganization(self, hottest_first: Vec<K::Owned>) -> Reorganization<'t, K, V> {
        self.0.reorganization(hottest_first)
    }
}

/// A thread that looks at a tree behind a map, with an epoch pinned: what it has been shown stays until it is dropped
/// or refreshed, as with a [`Reader`].
pub struct Onlooker<'t, K: Key + ?Sized, V>(Reader<'t, K, V>);

impl<K: Key + ?Sized, V: Send + Sync + 'static> Onlooker<'_, K, V> {
    /// As [`Reader::refresh`].
    pub fn refresh(&mut self) {
        self.0.refresh();
    }
}

impl<K: Key + ?Sized, V> Deref for Onlooker<'_, K, V> {
    type Target = Entries<K, V>;

    fn deref(&self) -> &Entries<K, V> {
        &self.0
    }
}

impl<K: Key + ?Sized, V> fmt::Debug for TreeView<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TreeView").finish_non_exhaustive()
    }
}

impl<K: Key + ?Sized, V> fmt::Debug for Onlooker<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Onlooker").finish_non_exhaustive()
    }
}
