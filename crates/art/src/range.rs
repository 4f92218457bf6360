//! Entries in order: the keys that a scan comes by, with their values.

use std::fmt;
use std::iter::FusedIterator;
use std::ops::{Bound, RangeBounds};

use crate::core::Entries;
use crate::key::Key;
use crate::scan::Scan;

/// Entries in order, from both ends.
///
/// What is in the tree all the while is shown; what comes or goes meanwhile may be.
pub struct Range<'r, K: Key + ?Sized, V> {
    scan: Scan<'r, K, V>,
    core: &'r Entries<K, V>,
}

impl<K: Key + ?Sized, V> Entries<K, V> {
    /// The entries whose keys lie in a range, in order; from both ends.
    pub fn range<'r>(&'r self, keys: impl RangeBounds<&'r K>) -> Range<'r, K, V> {
        let bytes = |bound: Bound<&&'r K>| bound.map(|key| (*key).as_ref());
        self.range_of_bytes(bytes(keys.start_bound()), bytes(keys.end_bound()))
    }

    /// The entries whose keys lie between two bounds, in order, from both ends. Bounds may be of any length.
    pub fn range_of_bytes<'r>(&'r self, from: Bound<&'r [u8]>, to: Bound<&'r [u8]>) -> Range<'r, K, V> {
        Range { scan: Scan::between(self, from, to), core: self }
    }

    /// The entries whose keys begin with `prefix`, in order; from both ends.
    pub fn prefix<'r>(&'r self, prefix: &'r [u8]) -> Range<'r, K, V> {
        Range { scan: Scan::of_prefix(self, prefix), core: self }
    }

    /// All entries, in order; from both ends.
    pub fn iter(&self) -> Range<'_, K, V> {
        self.range_of_bytes(Bound::Unbounded, Bound::Unbounded)
    }

    /// The entry with the least key.
    #[must_use]
    pub fn first_key_value(&self) -> Option<(&K, &V)> {
        self.least().map(|leaf| self.entry(leaf))
    }

    /// The entry with the greatest key.
    #[must_use]
    pub fn last_key_value(&self) -> Option<(&K, &V)> {
        self.greatest().map(|leaf| self.entry(leaf))
    }
}

impl<'r, K: Key + ?Sized, V> Iterator for Range<'r, K, V> {
    type Item = (&'r K, &'r V);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        Some(self.core.entry(self.scan.next()?))
    }
}

impl<K: Key + ?Sized, V> DoubleEndedIterator for Range<'_, K, V> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        Some(self.core.entry(self.scan.next_back()?))
    }
}

impl<K: Key + ?Sized, V> FusedIterator for Range<'_, K, V> {}

impl<K: Key + ?Sized, V> fmt::Debug for Range<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Range").finish_non_exhaustive()
    }
}
