//! Entries in order: the keys that a scan comes by, with their values.

use std::fmt;
use std::iter::FusedIterator;
use std::ops::{Bound, RangeBounds};

use crate::core::Core;
use crate::key::Key;
use crate::reference::Ref;
use crate::scan::Scan;

/// Entries in order, from both ends.
///
/// What is in the tree all the while is shown; what comes or goes meanwhile may be.
pub struct Range<'r, K: Key + ?Sized, V> {
    scan: Scan<'r, K, V>,
    core: &'r Core<K, V>,
}

impl<'r, K: Key + ?Sized, V> Range<'r, K, V> {
    /// Those whose keys lie in a range.
    pub(crate) fn of_keys(core: &'r Core<K, V>, keys: impl RangeBounds<&'r K>) -> Self {
        let bytes = |bound: Bound<&&'r K>| bound.map(|key| (*key).as_ref());
        Range::between(core, bytes(keys.start_bound()), bytes(keys.end_bound()))
    }

    /// Those whose keys lie between two bounds.
    pub(crate) fn between(core: &'r Core<K, V>, from: Bound<&'r [u8]>, to: Bound<&'r [u8]>) -> Self {
        Range { scan: Scan::between(core, from, to), core }
    }

    /// Those whose keys begin with `prefix`.
    pub(crate) fn of_prefix(core: &'r Core<K, V>, prefix: &'r [u8]) -> Self {
        Range { scan: Scan::of_prefix(core, prefix), core }
    }

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

impl<K: Key + ?Sized, V> fmt::Debug for Range<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Range").finish_non_exhaustive()
    }
}
