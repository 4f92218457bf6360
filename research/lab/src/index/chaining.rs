//! A baseline: memcached's hash table.
//!
//! An array of heads, and in each entry a link to the next entry of its bucket. A lookup walks the chain, one dependent
//! memory access an entry (paper, section 2.1). An insert puts the new entry at the head, without looking for another
//! with the same key, as memcached's own does: the cache has looked before.
//!
//! The link lies in the entry beside the key, as in memcached, so each table has entries of its own, 32 bytes with key,
//! link and padding. The link is counted as part of the index, as the paper counts it (Table 2).

use std::sync::atomic::{AtomicU64, Ordering};

use pages::{Array, MapError, PageKind};

use super::comparison::Comparison;
use super::engine::{Anatomy, Index, Insertion, Inspected, describe_pages};
use super::frozen::Frozen;
use super::locking::Locking;
use super::records::Key;

/// No further entry.
const END: u64 = 0;

#[repr(C, align(32))]
struct Entry {
    key: Key,
    /// The number of the next entry of the chain, plus one.
    link: AtomicU64,
}

/// The table: `K` compares keys, `L` keeps threads apart.
pub(crate) struct Chaining<K, L> {
    heads: Array<AtomicU64>,
    entries: Frozen<Entry>,
    comparison: K,
    locking: L,
}

impl<K: Comparison, L: Locking> Chaining<K, L> {
    /// A table of `buckets` buckets, a power of two, that can hold records 0 to `records`; all of it in pages of `kind`.
    pub(crate) fn new(buckets: usize, records: usize, kind: PageKind) -> Result<Self, MapError> {
        assert!(buckets.is_power_of_two(), "{buckets} buckets");
        Ok(Chaining {
            heads: Array::map(buckets, kind)?,
            entries: Frozen::make(records, kind, |record| Entry {
                key: Key::of(record),
                link: AtomicU64::new(END),
            })?,
            comparison: K::default(),
            locking: L::default(),
        })
    }

    #[inline]
    fn bucket(&self, key: &Key) -> usize {
        key.hash() as usize & (self.heads.len() - 1)
    }

    /// The entries of a chain.
    fn length(&self, head: &AtomicU64) -> usize {
        let (mut length, mut at) = (0, head.load(Ordering::Relaxed));
        while at != END {
            at = self.entries[at as usize - 1].link.load(Ordering::Relaxed);
            length += 1;
        }
        length
    }
}

impl<K: Comparison, L: Locking> Index for Chaining<K, L> {
    #[inline(always)]
    fn get(&self, key: &Key) -> Option<u64> {
        let bucket = self.bucket(key);
        let _locked = self.locking.lock(bucket);
        let mut at = self.heads[bucket].load(Ordering::Relaxed);
        while at != END {
            let entry = &self.entries[at as usize - 1];
            if self.comparison.same(&entry.key, key) {
                return Some(at - 1);
            }
            at = entry.link.load(Ordering::Relaxed);
        }
        None
    }

    #[inline]
    fn insert(&self, record: u64) -> Insertion {
        let entry = &self.entries[record as usize];
        let bucket = self.bucket(&entry.key);
        let _locked = self.locking.lock(bucket);
        entry.link.store(self.heads[bucket].load(Ordering::Relaxed), Ordering::Relaxed);
        self.heads[bucket].store(record + 1, Ordering::Relaxed);
        Insertion::Done { displaced: 0 }
    }

    fn remove(&self, record: u64) -> bool {
        let bucket = self.bucket(&self.entries[record as usize].key);
        let _locked = self.locking.lock(bucket);
        let mut link = &self.heads[bucket];
        loop {
            let at = link.load(Ordering::Relaxed);
            if at == END {
                return false;
            }
            let next = &self.entries[at as usize - 1].link;
            if at == record + 1 {
                link.store(next.load(Ordering::Relaxed), Ordering::Relaxed);
                return true;
            }
            link = next;
        }
    }
}

impl<K: Comparison, L: Locking> Inspected for Chaining<K, L> {
    fn anatomy(&self) -> Anatomy {
        let (mut entries, mut fullest) = (0, 0);
        for head in &*self.heads {
            let length = self.length(head);
            entries += length;
            fullest = fullest.max(length);
        }
        Anatomy {
            bytes: (self.heads.len() + entries) * size_of::<u64>(),
            entries,
            load: None,
            fullest: Some(fullest),
            pages: describe_pages(self.heads.region()),
        }
    }
}
