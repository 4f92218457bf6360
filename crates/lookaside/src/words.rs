//! What both maps have in common of the standard library's words: their iterators, and the size of a table that nobody
//! has chosen.

use std::borrow::Borrow;
use std::fmt;
use std::iter::{FusedIterator, from_fn};
use std::ops::{Bound, ControlFlow, RangeBounds};

use crate::config::Config;
use crate::entry::{Found, Pin};
use crate::index::{Scan, Walk};

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

/// Entries that a range reads from the index at first, and at most.
const READ: (usize, usize) = (16, 1024);

/// The entries in a range, in the index's order, which are read when they are asked for: a few at first, then more at a
/// time, each time from behind the last. So who takes ten of a million reads sixteen, and no lock of the index is held
/// while they are looked at.
pub(crate) fn range<'m, Q, K, V, R, I>(
    index: &'m I,
    pin: Pin<'m>,
    range: R,
) -> impl Iterator<Item = (&'m K, &'m V)>
where
    Q: ?Sized,
    K: Borrow<Q> + 'static,
    V: 'static,
    R: RangeBounds<Q>,
    I: Scan<Q, K, V>,
{
    let (mut read, mut given, mut most) = (Vec::<Found<'m, K, V>>::new(), 0, READ.0);
    from_fn(move || {
        // The last time there were fewer than were asked for, once there is no more.
        if given == read.len() && most > 0 {
            let last = read.last().copied();
            (read, given) = (Vec::with_capacity(most), 0);
            let from = last.map_or(range.start_bound(), |last| Bound::Excluded(last.key().borrow()));
            index.scan(from, range.end_bound(), &pin, &mut |found| {
                read.push(found);
                if read.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            most = if read.len() < most { 0 } else { READ.1.min(2 * most) };
        }
        let found = read.get(given)?;
        given += 1;
        Some((found.key(), found.value()))
    })
    .fuse()
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
