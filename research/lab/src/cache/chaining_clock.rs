//! A baseline: chaining with CLOCK, and what else the paper gave that one: locks by bucket, huge pages, keys compared
//! as integers (section 5.3).
//!
//! A get holds the lock of its bucket, and sets the item's bit. The bits lie beside the items, one each, in a bitmap
//! (section 4). A set that finds its key writes in place. Another one first gets itself an item, from the hand if there
//! is none left: the hand has a lock of its own, and takes the victim out of its chain under the lock of the victim's
//! bucket. From then on nobody can read the victim, because all reading is done under that lock. A newcomer's bit is
//! set: CLOCK, as textbooks have it, counts the load of a page as a use of it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use pages::{MapError, PageKind};

use super::contestant::{Contestant, Holding, Value, Visitor};
use super::items::{Items, Layout, Number, buckets_for};
use crate::index::chains::Chains;
use crate::index::comparison::Integers;
use crate::index::locking::{Locking, Striped, acquire};
use crate::index::{Key, describe_pages};

/// The layout of its items.
pub(super) const LAYOUT: Layout = Layout { listed: false, chained: true };

/// The cache.
pub(super) struct ChainingClock {
    chains: Chains<Integers>,
    items: Items,
    buckets: Striped,
    bits: Box<[AtomicU64]>,
    hand: Mutex<Hand>,
}

#[derive(Default)]
struct Hand {
    at: Number,
    used: usize,
    /// Items that were taken by a set and not needed after all.
    spare: Vec<Number>,
    evicted: bool,
}

impl ChainingClock {
    /// A cache of `count` items in pages of `kind`.
    pub(super) fn new(count: usize, kind: PageKind) -> Result<ChainingClock, MapError> {
        Ok(ChainingClock {
            chains: Chains::new(buckets_for(count), kind)?,
            items: Items::new(count, LAYOUT, LAYOUT.bytes(), kind)?,
            buckets: Striped::default(),
            bits: (0..count.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            hand: Mutex::default(),
        })
    }

    fn bit(&self, item: Number) -> (&AtomicU64, u64) {
        (&self.bits[item as usize / 64], 1 << (item % 64))
    }

    /// The item has been used. Written only if that was not known, so that a hot item's line stays clean.
    #[inline]
    fn touch(&self, item: Number) {
        let (bits, bit) = self.bit(item);
        if bits.load(Ordering::Relaxed) & bit == 0 {
            bits.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// An item that is in no chain and nobody else's.
    fn allocate(&self) -> Number {
        let mut hand = acquire(&self.hand);
        if let Some(spare) = hand.spare.pop() {
            return spare;
        }
        if hand.used < self.items.count() {
            hand.used += 1;
            return (hand.used - 1) as Number;
        }
        loop {
            let item = hand.at;
            hand.at = if item as usize + 1 < self.items.count() { item + 1 } else { 0 };
            let (bits, bit) = self.bit(item);
            if bits.load(Ordering::Relaxed) & bit != 0 {
                bits.fetch_and(!bit, Ordering::Relaxed);
                continue;
            }
            // If the item belongs to a set that has not linked it yet, it is in no chain, whatever its key looks like.
            let bucket = self.chains.bucket(&self.items.key(item));
            let _locked = self.buckets.lock(bucket);
            if self.chains.unlink(&self.items, bucket, item.into()) {
                hand.evicted = true;
                return item;
            }
        }
    }

    /// Writes in place if the key is there. Needs the lock of the bucket.
    fn overwrite(&self, bucket: usize, key: &Key, value: &Value) -> bool {
        let found = self.chains.find(&self.items, bucket, key);
        if let Some(item) = found {
            let item = item as Number;
            self.items.write_value(item, value);
            self.touch(item);
        }
        found.is_some()
    }
}

impl Visitor for &ChainingClock {
    #[inline]
    fn get(&mut self, key: &Key) -> Option<Value> {
        let bucket = self.chains.bucket(key);
        let _locked = self.buckets.lock(bucket);
        let item = self.chains.find(&self.items, bucket, key)? as Number;
        self.touch(item);
        Some(self.items.value(item))
    }

    fn set(&mut self, key: &Key, value: &Value) -> bool {
        let bucket = self.chains.bucket(key);
        let locked = self.buckets.lock(bucket);
        if self.overwrite(bucket, key, value) {
            return true;
        }
        drop(locked);
        let item = self.allocate();
        self.items.write_key(item, key);
        self.items.write_value(item, value);
        let locked = self.buckets.lock(bucket);
        let outpaced = self.overwrite(bucket, key, value);
        if !outpaced {
            self.chains.link(&self.items, bucket, item.into());
            self.touch(item);
        }
        // The hand's lock is never waited for under that of a bucket.
        drop(locked);
        if outpaced {
            acquire(&self.hand).spare.push(item);
        }
        true
    }
}

impl Contestant for ChainingClock {
    fn enter(&self) -> Box<dyn Visitor + '_> {
        Box::new(self)
    }

    fn holding(&self) -> Holding {
        let hand = acquire(&self.hand);
        Holding {
            items: hand.used - hand.spare.len(),
            index: self.chains.bytes(),
            pages: describe_pages(self.items.region()),
        }
    }

    fn has_evicted(&self) -> bool {
        acquire(&self.hand).evicted
    }
}
