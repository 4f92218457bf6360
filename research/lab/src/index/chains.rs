//! Hash chains through entries: memcached's index (paper, section 2.1), for the table and for the caches that have it.
//!
//! An array of heads, and in each entry a link to the next entry of its bucket. A lookup walks the chain, one dependent
//! memory access an entry. Every call needs the lock of the key's bucket.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use pages::{Array, MapError, PageKind};

use super::comparison::Comparison;
use super::records::Key;

/// What chains go through: entries by their numbers.
pub(crate) trait Linked {
    /// Whether the entry has this key.
    fn has_key(&self, entry: u64, key: &Key, comparison: &impl Comparison) -> bool;

    /// The entry's link.
    fn link(&self, entry: u64) -> &AtomicU64;
}

/// The heads of the chains; links are an entry's number plus one, and zero for none.
pub(crate) struct Chains<K> {
    heads: Array<AtomicU64>,
    comparison: K,
}

impl<K: Comparison> Chains<K> {
    /// So many chains, a power of two; their heads in pages of `kind`.
    pub(crate) fn new(buckets: usize, kind: PageKind) -> Result<Chains<K>, MapError> {
        assert!(buckets.is_power_of_two(), "{buckets} buckets");
        Ok(Chains { heads: Array::map(buckets, kind)?, comparison: K::default() })
    }

    /// The heads. The links are the entries'.
    pub(crate) fn heads(&self) -> &Array<AtomicU64> {
        &self.heads
    }

    /// Bytes of the heads.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val::<[_]>(&self.heads)
    }

    #[inline]
    pub(crate) fn bucket(&self, key: &Key) -> usize {
        key.hash() as usize & (self.heads.len() - 1)
    }

    /// The entry of `key`.
    #[inline(always)]
    pub(crate) fn find(&self, entries: &impl Linked, bucket: usize, key: &Key) -> Option<u64> {
        let mut at = self.heads[bucket].load(Relaxed);
        while let Some(entry) = at.checked_sub(1) {
            if entries.has_key(entry, key, &self.comparison) {
                return Some(entry);
            }
            at = entries.link(entry).load(Relaxed);
        }
        None
    }

    /// Links an entry that is in no chain.
    #[inline]
    pub(crate) fn link(&self, entries: &impl Linked, bucket: usize, entry: u64) {
        entries.link(entry).store(self.heads[bucket].load(Relaxed), Relaxed);
        self.heads[bucket].store(entry + 1, Relaxed);
    }

    /// Takes an entry out of the chain of this bucket; false if it is not in it.
    pub(crate) fn unlink(&self, entries: &impl Linked, bucket: usize, entry: u64) -> bool {
        let mut link = &self.heads[bucket];
        while let Some(number) = link.load(Relaxed).checked_sub(1) {
            let next = entries.link(number);
            if number == entry {
                link.store(next.load(Relaxed), Relaxed);
                return true;
            }
            link = next;
        }
        false
    }

    /// The entries of each chain.
    pub(crate) fn lengths(&self, entries: &impl Linked) -> impl Iterator<Item = usize> {
        self.heads.iter().map(|head| {
            let next = |entry: &u64| entries.link(*entry).load(Relaxed).checked_sub(1);
            std::iter::successors(head.load(Relaxed).checked_sub(1), next).count()
        })
    }
}
