//! Iterators: see [`crate::walk`] for what they promise while others write.

use std::fmt;
use std::iter::FusedIterator;
use std::vec;

use super::core::Walk;

/// The entries of a map that is pinned: see [`HashMapRef::iter`](super::HashMapRef::iter).
pub struct Iter<'p, K, V>(pub(super) Walk<'p, K, V>);

/// Its keys: see [`HashMapRef::keys`](super::HashMapRef::keys).
pub struct Keys<'p, K, V>(pub(super) Iter<'p, K, V>);

/// Its values: see [`HashMapRef::values`](super::HashMapRef::values).
pub struct Values<'p, K, V>(pub(super) Iter<'p, K, V>);

/// The entries of a map that is given up.
#[derive(Debug)]
pub struct IntoIter<K, V>(pub(super) vec::IntoIter<(K, V)>);

impl<'p, K, V> Iterator for Iter<'p, K, V> {
    type Item = (&'p K, &'p V);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|entry| entry.pair())
    }
}

impl<'p, K, V> Iterator for Keys<'p, K, V> {
    type Item = &'p K;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(key, _)| key)
    }
}

impl<'p, K, V> Iterator for Values<'p, K, V> {
    type Item = &'p V;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(_, value)| value)
    }
}

impl<K, V> Iterator for IntoIter<K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<K, V> FusedIterator for Iter<'_, K, V> {}
impl<K, V> FusedIterator for Keys<'_, K, V> {}
impl<K, V> FusedIterator for Values<'_, K, V> {}
impl<K, V> FusedIterator for IntoIter<K, V> {}
impl<K, V> ExactSizeIterator for IntoIter<K, V> {}

impl<K, V> fmt::Debug for Iter<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").finish_non_exhaustive()
    }
}

impl<K, V> fmt::Debug for Keys<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

impl<K, V> fmt::Debug for Values<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Values").finish_non_exhaustive()
    }
}
