//! Strict LRU: a doubly linked list through the items, the one used last in front (paper, section 4).
//!
//! Every use moves an item to the front, which writes to up to five items' lines; so every use needs the lock that the
//! list lies behind.

use std::sync::atomic::Ordering::Relaxed;

use super::items::{Items, Number};

/// The ends of the list; links are an item's number plus one, and zero for none.
#[derive(Debug, Default)]
pub(super) struct RecencyList {
    newest: u64,
    oldest: u64,
}

/// What the lock of a cache with strict LRU guards.
#[derive(Debug, Default)]
pub(super) struct Recency {
    pub(super) list: RecencyList,
    /// Items that have been used at all.
    pub(super) used: usize,
    pub(super) evicted: bool,
}

impl Recency {
    /// An item that nobody has used yet, if there is one.
    pub(super) fn unused(&mut self, items: &Items) -> Option<Number> {
        (self.used < items.count()).then(|| {
            self.used += 1;
            (self.used - 1) as Number
        })
    }
}

fn number(link: u64) -> Option<Number> {
    link.checked_sub(1).map(|number| number as Number)
}

impl RecencyList {
    /// Puts an item in front that is not in the list.
    pub(super) fn push(&mut self, items: &Items, item: Number) {
        let link = u64::from(item) + 1;
        items.newer(item).store(0, Relaxed);
        items.older(item).store(self.newest, Relaxed);
        match number(self.newest) {
            Some(newest) => items.newer(newest).store(link, Relaxed),
            None => self.oldest = link,
        }
        self.newest = link;
    }

    /// Takes an item out.
    pub(super) fn remove(&mut self, items: &Items, item: Number) {
        let (newer, older) = (items.newer(item).load(Relaxed), items.older(item).load(Relaxed));
        match number(newer) {
            Some(newer) => items.older(newer).store(older, Relaxed),
            None => self.newest = older,
        }
        match number(older) {
            Some(older) => items.newer(older).store(newer, Relaxed),
            None => self.oldest = newer,
        }
    }

    /// Moves an item to the front.
    #[inline]
    pub(super) fn touch(&mut self, items: &Items, item: Number) {
        if self.newest != u64::from(item) + 1 {
            self.remove(items, item);
            self.push(items, item);
        }
    }

    /// Items, the one used longest ago first.
    pub(super) fn oldest_first<'i>(&self, items: &'i Items) -> impl Iterator<Item = Number> + use<'i> {
        std::iter::successors(number(self.oldest), |&item| number(items.newer(item).load(Relaxed)))
    }
}
