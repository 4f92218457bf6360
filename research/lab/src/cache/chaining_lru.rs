//! A baseline: memcached 1.4, chaining and strict LRU.
//!
//! A get takes the locks that the paper lists (section 2.2): one for its key; the global one, to find the item and to
//! count itself as a reader of it; and, having read the item, the global one again, to move it to the front of the
//! list. A set does all its work under both. The item that goes is the oldest that nobody is reading, of the
//! [`MOST_TAILS`] oldest.

use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;

use pages::{MapError, PageKind};

use super::contestant::{Contestant, Holding, Value, Visitor};
use super::items::{Items, Layout, Number, buckets_for};
use super::recency_list::Recency;
use crate::index::chains::Chains;
use crate::index::comparison::Bytes;
use crate::index::locking::{Locking, Striped, acquire};
use crate::index::{Key, describe_pages};

/// How far from the list's end an eviction looks: memcached's number.
const MOST_TAILS: usize = 50;

/// The layout of its items.
pub(super) const LAYOUT: Layout = Layout { listed: true, chained: true };

/// The cache.
pub(super) struct ChainingLru {
    chains: Chains<Bytes>,
    items: Items,
    /// By bucket, so that requests for one key are never served at once.
    keys: Striped,
    global: Mutex<Recency>,
}

impl ChainingLru {
    /// A cache of `count` items, each padded to `bytes`, in pages of `kind`.
    pub(super) fn new(count: usize, bytes: usize, kind: PageKind) -> Result<ChainingLru, MapError> {
        Ok(ChainingLru {
            chains: Chains::new(buckets_for(count), kind)?,
            items: Items::new(count, LAYOUT, bytes, kind)?,
            keys: Striped::default(),
            global: Mutex::default(),
        })
    }

    /// An item to write to: a new one, or that of a victim. None if all candidates are being read.
    fn allocate(&self, recency: &mut Recency) -> Option<Number> {
        if let Some(unused) = recency.unused(&self.items) {
            return Some(unused);
        }
        let mut oldest = recency.list.oldest_first(&self.items).take(MOST_TAILS);
        let victim = oldest.find(|&item| self.items.references(item).load(Relaxed) == 0)?;
        let bucket = self.chains.bucket(&self.items.key(victim));
        let unlinked = self.chains.unlink(&self.items, bucket, victim.into());
        debug_assert!(unlinked, "what is in the list is in its chain");
        recency.list.remove(&self.items, victim);
        recency.evicted = true;
        Some(victim)
    }
}

impl Visitor for &ChainingLru {
    #[inline]
    fn get(&mut self, key: &Key) -> Option<Value> {
        let bucket = self.chains.bucket(key);
        let _key = self.keys.lock(bucket);
        let global = acquire(&self.global);
        let item = self.chains.find(&self.items, bucket, key)? as Number;
        let references = self.items.references(item);
        references.store(references.load(Relaxed) + 1, Relaxed);
        drop(global);
        let value = self.items.value(item);
        let mut global = acquire(&self.global);
        global.list.touch(&self.items, item);
        references.store(references.load(Relaxed) - 1, Relaxed);
        Some(value)
    }

    fn set(&mut self, key: &Key, value: &Value) -> bool {
        let bucket = self.chains.bucket(key);
        let _key = self.keys.lock(bucket);
        let mut global = acquire(&self.global);
        if let Some(item) = self.chains.find(&self.items, bucket, key) {
            let item = item as Number;
            self.items.write_value(item, value);
            global.list.touch(&self.items, item);
            return true;
        }
        let Some(item) = self.allocate(&mut global) else { return false };
        self.items.write_key(item, key);
        self.items.write_value(item, value);
        self.chains.link(&self.items, bucket, item.into());
        global.list.push(&self.items, item);
        true
    }
}

impl Contestant for ChainingLru {
    fn enter(&self) -> Box<dyn Visitor + '_> {
        Box::new(self)
    }

    fn holding(&self) -> Holding {
        Holding {
            items: acquire(&self.global).used,
            index: self.chains.bytes(),
            pages: describe_pages(self.items.region()),
        }
    }

    fn has_evicted(&self) -> bool {
        acquire(&self.global).evicted
    }
}
