//! The walks that are going on ([`crate::walk`]), and who moves an entry past them: what was missed, what was told.
//!
//! A table that grows behind a walk moves half of what the walk has told, and each of these is looked for again when
//! the walk comes to it. So what was told is ordered. Rejected: *a list*, with which a walk of a growing map took a
//! time that went with the square of its length; *a hash table*, whose own growth the insert of somebody else would
//! wait for.

use std::collections::BTreeSet;

use atomics::{AtomicUsize, Mutex, Ordering};

use crate::slot::Location;

/// The walks that are going on.
#[derive(Debug)]
pub(crate) struct Walks {
    /// How many.
    active: AtomicUsize,
    list: Mutex<Vec<Progress>>,
}

#[derive(Debug)]
struct Progress {
    /// No two have the same.
    number: usize,
    /// Buckets below this were visited.
    next: usize,
    /// Moved from where the walk has yet to come to where it has been. Told at the end, wherever they are by then.
    missed: Vec<Location>,
    /// Now where the walk has yet to come, and told already, or among the missed.
    told: BTreeSet<Location>,
}

impl Walks {
    pub(crate) fn new() -> Walks {
        Walks { active: AtomicUsize::new(0), list: Mutex::new(Vec::new()) }
    }

    /// Tells the walks that an entry is moved, by who holds the locks of both buckets.
    #[inline]
    pub(crate) fn moves(&self, location: Location, from: usize, to: usize) {
        if self.active.load(Ordering::Relaxed) != 0 {
            self.tell(location, from, to);
        }
    }

    #[cold]
    fn tell(&self, location: Location, from: usize, to: usize) {
        for walk in self.list.lock().iter_mut() {
            match (from < walk.next, to < walk.next) {
                (true, false) => _ = walk.told.insert(location),
                (false, true) if !walk.told.remove(&location) => walk.missed.push(location),
                _ => {}
            }
        }
    }

    /// One walk more: its number.
    pub(crate) fn register(&self) -> usize {
        let mut list = self.list.lock();
        let number = list.iter().map(|walk| walk.number + 1).max().unwrap_or(0);
        list.push(Progress { number, next: 0, missed: Vec::new(), told: BTreeSet::new() });
        self.active.fetch_add(1, Ordering::Relaxed);
        number
    }

    /// The walk comes to a bucket, which is locked. `look` is given what it has told already and finds there once more.
    pub(crate) fn visit(&self, number: usize, bucket: usize, look: impl FnOnce(&mut BTreeSet<Location>)) {
        let mut list = self.list.lock();
        let walk =
            list.iter_mut().find(|walk| walk.number == number).expect("registered until it is dropped");
        walk.next = bucket + 1;
        look(&mut walk.told);
    }

    /// What was moved past the walk.
    pub(crate) fn missed(&self, number: usize) -> Vec<Location> {
        let mut list = self.list.lock();
        let walk = list.iter_mut().find(|walk| walk.number == number);
        walk.map(|walk| std::mem::take(&mut walk.missed)).unwrap_or_default()
    }

    /// The walk is over.
    pub(crate) fn leave(&self, number: usize) {
        self.list.lock().retain(|walk| walk.number != number);
        self.active.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Once, an entry was no more among the missed when it had moved back to where the walk had yet to come. A walk
    /// that had just seen the last bucket did not come there: the entry was in a bucket that a split was opening.
    #[test]
    fn what_was_missed_is_told_wherever_it_is_at_the_end() {
        let location = Location::new(7).unwrap();
        let walks = Walks::new();
        let number = walks.register();
        let is_told_already = |bucket| {
            let mut is_told = false;
            walks.visit(number, bucket, |told| is_told = told.remove(&location));
            is_told
        };
        assert!(!is_told_already(0));
        walks.moves(location, 2, 0);
        assert!(!is_told_already(1) && !is_told_already(2));
        walks.moves(location, 0, 3);
        assert_eq!(walks.missed(number), [location]);
        assert!(is_told_already(3), "it would be told twice, should the walk come to the new bucket");
        walks.leave(number);
    }
}
