//! What both maps have in common of the standard library's words: their iterator, and the size of a table that nobody
//! has chosen.

use std::fmt;
use std::iter::FusedIterator;

use crate::config::Config;
use crate::entry::{Found, Pin};
use crate::index::Walk;

/// Of a table made for few entries: a page.
const LEAST: usize = 4 << 10;

/// A table with room for so many entries, all of which are hot; of 32 MiB at most, which hold three and a half million.
pub(crate) fn config_for(entries: usize) -> Config {
    let most = Config::default();
    // Seven a line, and lines that are not full: entries fall into them at random.
    let size = entries.div_ceil(4).saturating_mul(64).clamp(LEAST, most.size);
    Config { size: size.next_power_of_two(), ..most }
}

/// The entries of a map, as they were when this was made.
pub struct Iter<'m, K: 'static, V: 'static>(std::vec::IntoIter<Found<'m, K, V>>);

impl<'m, K, V> Iter<'m, K, V> {
    /// A list of all entries, eight bytes each: no lock of the index is held while they are looked at.
    pub(crate) fn of(index: &impl Walk<K, V>, pin: &Pin<'m>) -> Iter<'m, K, V> {
        let mut entries = Vec::new();
        index.walk(pin, &mut |found| entries.push(found));
        Iter(entries.into_iter())
    }
}

impl<'m, K, V> Iterator for Iter<'m, K, V> {
    type Item = (&'m K, &'m V);

    fn next(&mut self) -> Option<(&'m K, &'m V)> {
        self.0.next().map(|found| (found.key(), found.value()))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<K, V> DoubleEndedIterator for Iter<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(|found| (found.key(), found.value()))
    }
}

impl<K, V> ExactSizeIterator for Iter<'_, K, V> {}

impl<K, V> FusedIterator for Iter<'_, K, V> {}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Iter<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.as_slice()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_room_for_what_it_was_made_for_and_is_neither_tiny_nor_huge() {
        for (entries, size) in [(0, 4 << 10), (1000, 16 << 10), (1 << 20, 16 << 20), (usize::MAX, 32 << 20)] {
            assert_eq!(config_for(entries).size, size, "{entries}");
        }
    }
}
