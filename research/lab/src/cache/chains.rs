//! Hash chains through the items: memcached's index (paper, section 2.1), as `index::chaining`, for items that come and go.
//!
//! Every call needs the lock of the key's bucket.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use pages::{Array, MapError, PageKind};

use super::items::{Items, Number};
use crate::index::Key;
use crate::index::comparison::Comparison;

/// The heads of the chains; links are an item's number plus one, and zero for none.
pub(super) struct Chains<K> {
    heads: Array<AtomicU64>,
    comparison: K,
}

impl<K: Comparison> Chains<K> {
    /// Chains for `items` items, of which there are at most 1.5 to a bucket, as in memcached; heads in pages of `kind`.
    pub(super) fn new(items: usize, kind: PageKind) -> Result<Chains<K>, MapError> {
        let buckets = (items / 3 * 2).max(1).next_power_of_two();
        Ok(Chains { heads: Array::map(buckets, kind)?, comparison: K::default() })
    }

    /// Bytes of the heads. The links are the items'.
    pub(super) fn bytes(&self) -> usize {
        size_of_val::<[_]>(&self.heads)
    }

    #[inline]
    pub(super) fn bucket(&self, key: &Key) -> usize {
        key.hash() as usize & (self.heads.len() - 1)
    }

    /// The item of `key`.
    #[inline]
    pub(super) fn find(&self, items: &Items, bucket: usize, key: &Key) -> Option<Number> {
        let mut at = self.heads[bucket].load(Relaxed);
        while let Some(number) = at.checked_sub(1) {
            let item = number as Number;
            if self.comparison.same(&items.key(item), key) {
                return Some(item);
            }
            at = items.link(item).load(Relaxed);
        }
        None
    }

    /// Links an item that is in no chain.
    #[inline]
    pub(super) fn link(&self, items: &Items, bucket: usize, item: Number) {
        items.link(item).store(self.heads[bucket].load(Relaxed), Relaxed);
        self.heads[bucket].store(u64::from(item) + 1, Relaxed);
    }

    /// Takes an item out of the chain of this bucket; false if it is not in it.
    pub(super) fn unlink(&self, items: &Items, bucket: usize, item: Number) -> bool {
        let mut link = &self.heads[bucket];
        while let Some(number) = link.load(Relaxed).checked_sub(1) {
            let next = items.link(number as Number);
            if number as Number == item {
                link.store(next.load(Relaxed), Relaxed);
                return true;
            }
            link = next;
        }
        false
    }
}
