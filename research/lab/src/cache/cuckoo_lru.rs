//! A baseline: the cuckoo index with strict LRU (paper, section 5.3).
//!
//! A get finds its item without a lock, and then needs the global one, to move the item to the front of the list.
//! Between the two the item may have made way for another; so under the lock its key is compared once more, and its
//! value is read there. Sets are serialised by the same lock, as the paper's are.

use std::sync::Mutex;

use cuckoo::experiments::{FourWay, Search};
use cuckoo::{Config, Growth, Hashes, Location, Table};
use pages::PageKind;

use super::contestant::{Contestant, Holding, Value, Visitor};
use super::items::{Items, Layout, Number};
use super::recency_list::Recency;
use crate::experiment::ExperimentError;
use crate::index::locking::acquire;
use crate::index::{Key, describe_pages};

/// The layout of its items.
pub(super) const LAYOUT: Layout = Layout { listed: true, chained: false };

/// The cache.
pub(super) struct CuckooLru {
    table: Table<FourWay>,
    items: Items,
    global: Mutex<Recency>,
}

impl CuckooLru {
    /// A cache of `count` items in pages of `kind`, with the paper's index: four slots, two paths.
    pub(super) fn new(count: usize, kind: PageKind) -> Result<CuckooLru, ExperimentError> {
        let config = Config::new()
            .with_growth(Growth::Fixed)
            .with_search(Search::Walks(2))
            .with_hashes(Hashes::Avalanching)
            .with_pages(kind);
        let table = Table::with_capacity(count, &config)?;
        let items = Items::new(count, LAYOUT, LAYOUT.bytes(), kind)?;
        Ok(CuckooLru { table, items, global: Mutex::default() })
    }

    fn location(item: Number) -> Location {
        Location::new(item.into()).expect("items are numbered below 2^32")
    }

    #[inline]
    fn find(&self, key: &Key, hash: u64) -> Option<Number> {
        self.table.find(hash, |at| self.items.holds(at, key)).map(|at| at.get() as Number)
    }

    fn allocate(&self, recency: &mut Recency) -> Option<Number> {
        if let Some(unused) = recency.unused(&self.items) {
            return Some(unused);
        }
        let victim = recency.list.oldest_first(&self.items).next()?;
        let removed = self.table.remove_exact(self.items.key(victim).hash(), Self::location(victim));
        debug_assert!(removed, "what is in the list is in the index");
        recency.list.remove(&self.items, victim);
        recency.evicted = true;
        Some(victim)
    }
}

impl Visitor for &CuckooLru {
    #[inline]
    fn get(&mut self, key: &Key) -> Option<Value> {
        let hash = key.hash();
        loop {
            let item = self.find(key, hash)?;
            let mut global = acquire(&self.global);
            // What is written is written under the lock, and what has the key is in the list: nothing is freed but to
            // be written anew at once.
            if self.items.key(item).same(key) {
                global.list.touch(&self.items, item);
                return Some(self.items.value(item));
            }
        }
    }

    fn set(&mut self, key: &Key, value: &Value) -> bool {
        let hash = key.hash();
        let mut global = acquire(&self.global);
        if let Some(item) = self.find(key, hash) {
            self.items.write_value(item, value);
            global.list.touch(&self.items, item);
            return true;
        }
        let Some(item) = self.allocate(&mut global) else { return false };
        self.items.write_key(item, key);
        self.items.write_value(item, value);
        global.list.push(&self.items, item);
        let at = CuckooLru::location(item);
        self.table.insert_or_get(hash, at, |at| self.items.holds(at, key), &self.items).is_ok()
    }
}

impl Contestant for CuckooLru {
    fn enter(&self) -> Box<dyn Visitor + '_> {
        Box::new(self)
    }

    fn holding(&self) -> Holding {
        Holding {
            items: self.table.len(),
            index: self.table.bytes(),
            pages: describe_pages(self.items.region()),
        }
    }

    fn has_evicted(&self) -> bool {
        acquire(&self.global).evicted
    }
}
