//! Going through the table while others write: each entry that is there throughout is told once.
//!
//! Entries move, from bucket to bucket: a displacement may take one from where a walk has yet to come to where it has
//! been, and the walk would miss it, or the other way round, and it would be told twice. So a walk is registered, and
//! whoever moves an entry between the two parts tells it:
//!
//! ```text
//!   the walk:      lock a bucket; note that it was visited; copy its words, but those in `told`; unlock
//!                  at the end: those in `missed`, then the stash
//!   who moves:     under the locks of both buckets, if there are walks, for each of them
//!                    from a visited one to another:  into `told`
//!                    from another to a visited one:  out of `told`, or else into `missed`
//! ```
//!
//! So what is in a visited bucket has been told or is in `missed`, and what is in another one is the same if it is in
//! `told`. Nothing is taken out of `missed` before the end, although an entry that moves back might be told where the
//! walk finds it: the walk may have seen the last bucket by then, and a split be about to open the one it moves to.
//!
//! Both buckets of a move are locked, and a visit locks its bucket, so a move is either wholly before a visit of one of
//! its buckets or wholly behind it. *Whether there are walks* is asked of a counter, by a relaxed load: one that is
//! registered since and has visited one of the two buckets has unlocked it before the mover locked it, and the mover
//! sees the counter as that visit left it; one that has visited neither need not be told.
//!
//! A split moves to a bucket that is new, and so not visited, a merge from the last one. In the stash nothing moves. A
//! bucket is visited for a moment, and no lock is held while an entry is told.
//!
//! Rejected: *to read the buckets without locks*, as lookups do: an entry that is moved meanwhile is told twice or not
//! at all, and who removes what is old misses some; *to stop those who move*, for as long as somebody looks at each
//! entry.

use atomics::Ordering;

use crate::layout::{Bucket, Layout, SlotCell};
use crate::slot::{Location, Word};
use crate::stash::Stash;
use crate::table::{COUNTERS, Entries, MOST_SLOTS, Table};

/// The locations in a table: see [`Table::iter`].
#[derive(Debug)]
pub struct Locations<'t, L: Layout> {
    table: &'t Table<L>,
    number: usize,
    next: usize,
    /// Of the bucket visited last.
    found: [Option<Location>; MOST_SLOTS],
    /// What comes behind the buckets, once they have been visited.
    last: Option<std::vec::IntoIter<Location>>,
}

impl<L: Layout> Table<L> {
    /// Every location in the table, in no order. Others may write meanwhile: an entry that is there throughout is told
    /// once; one that is put in or removed meanwhile, once or not at all.
    ///
    /// Buckets are locked one at a time, for a moment each; none is while the caller has a location.
    pub fn iter(&self) -> Locations<'_, L> {
        Locations {
            table: self,
            number: self.walks.register(),
            next: 0,
            found: [None; MOST_SLOTS],
            last: None,
        }
    }

    /// Removes every entry that is there, and tells each; of those that are put in meanwhile, some.
    ///
    /// `hasher` is asked for few, which others are moving meanwhile.
    ///
    /// # Panics
    /// If `hasher` does.
    pub fn clear(&self, hasher: impl Entries, mut removed: impl FnMut(Location)) {
        let mut walk = self.iter();
        while walk.visit(|cell| cell.store(Word::EMPTY)) {
            // Their hashes are not known: evenly from all counters.
            let counter = &self.counters[walk.next % COUNTERS];
            counter.fetch_sub(walk.found.iter().flatten().count(), Ordering::Relaxed);
            walk.found.iter_mut().filter_map(Option::take).for_each(&mut removed);
        }
        let missed =
            self.walks.missed(walk.number).into_iter().filter(|&at| self.remove_exact(hasher.hash(at), at));
        missed.for_each(&mut removed);
        for (hash, at) in self.stash.iter().flat_map(Stash::all) {
            if self.remove_mixed(hash, &mut |other| other == at).is_some() {
                removed(at);
            }
        }
    }
}

impl<L: Layout> Locations<'_, L> {
    /// Visits the next bucket, and does something to the cell of each location found; false if there is none.
    fn visit(&mut self, touch: impl Fn(&SlotCell)) -> bool {
        let Locations { table, number, next: bucket, .. } = *self;
        // It may grow meanwhile. Whoever sees a bucket visited sees the geometry as it was then, or a later one.
        if bucket >= table.buckets() {
            return false;
        }
        let locks = table.lock([bucket]);
        table.walks.visit(number, bucket, |told| {
            for (found, cell) in self.found.iter_mut().zip(table.buckets[bucket].slots()) {
                let word = cell.load();
                let is_new = !word.is_empty() && !told.remove(&word.location());
                if is_new {
                    touch(cell);
                }
                *found = is_new.then(|| word.location());
            }
        });
        drop(locks);
        self.next = bucket + 1;
        true
    }
}

impl<L: Layout> Iterator for Locations<'_, L> {
    type Item = Location;

    fn next(&mut self) -> Option<Location> {
        loop {
            if let Some(last) = &mut self.last {
                return last.next();
            }
            if let Some(location) = self.found.iter_mut().find_map(Option::take) {
                return Some(location);
            }
            if !self.visit(|_| {}) {
                let mut last = self.table.walks.missed(self.number);
                last.extend(self.table.stash.iter().flat_map(Stash::all).map(|(_, location)| location));
                self.last = Some(last.into_iter());
            }
        }
    }
}

impl<L: Layout> std::iter::FusedIterator for Locations<'_, L> {}

impl<L: Layout> Drop for Locations<'_, L> {
    fn drop(&mut self) {
        self.table.walks.leave(self.number);
    }
}
