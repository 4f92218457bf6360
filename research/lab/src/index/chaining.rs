//! A baseline: memcached's hash table.
//!
//! [`Chains`], with entries of its own. An insert puts the new entry at the head, without looking for another with the
//! same key, as memcached's own does: the cache has looked before.
//!
//! The link lies in the entry beside the key, as in memcached, so each table has entries of its own, 32 bytes with key,
//! link and padding. The link is counted as part of the index, as the paper counts it (Table 2).

use std::sync::atomic::AtomicU64;

use pages::{MapError, PageKind};

use super::chains::{Chains, Linked};
use super::comparison::Comparison;
use super::engine::{Anatomy, Index, Insertion, Inspected, describe_pages};
use super::frozen::Frozen;
use super::locking::Locking;
use super::records::Key;

#[repr(C, align(32))]
struct Entry {
    key: Key,
    link: AtomicU64,
}

impl Linked for Frozen<Entry> {
    #[inline]
    fn has_key(&self, entry: u64, key: &Key, comparison: &impl Comparison) -> bool {
        comparison.same(&self[entry as usize].key, key)
    }

    #[inline]
    fn link(&self, entry: u64) -> &AtomicU64 {
        &self[entry as usize].link
    }
}

/// The table: `K` compares keys, `L` keeps threads apart.
pub(crate) struct Chaining<K, L> {
    chains: Chains<K>,
    entries: Frozen<Entry>,
    locking: L,
}

impl<K: Comparison, L: Locking> Chaining<K, L> {
    /// A table of `buckets` buckets, a power of two, that can hold records 0 to `records`; all of it in pages of
    /// `kind`.
    pub(crate) fn new(buckets: usize, records: usize, kind: PageKind) -> Result<Self, MapError> {
        let entry = |record| Entry { key: Key::of(record), link: AtomicU64::new(0) };
        Ok(Chaining {
            chains: Chains::new(buckets, kind)?,
            entries: Frozen::make(records, kind, entry)?,
            locking: L::default(),
        })
    }

    #[inline]
    fn bucket_of(&self, record: u64) -> usize {
        self.chains.bucket(&self.entries[record as usize].key)
    }
}

impl<K: Comparison, L: Locking> Index for Chaining<K, L> {
    #[inline(always)]
    fn get(&self, key: &Key) -> Option<u64> {
        let bucket = self.chains.bucket(key);
        let _locked = self.locking.lock(bucket);
        self.chains.find(&self.entries, bucket, key)
    }

    #[inline]
    fn insert(&self, record: u64) -> Insertion {
        let bucket = self.bucket_of(record);
        let _locked = self.locking.lock(bucket);
        self.chains.link(&self.entries, bucket, record);
        Insertion::Done { displaced: 0 }
    }

    fn remove(&self, record: u64) -> bool {
        let bucket = self.bucket_of(record);
        let _locked = self.locking.lock(bucket);
        self.chains.unlink(&self.entries, bucket, record)
    }
}

impl<K: Comparison, L: Locking> Inspected for Chaining<K, L> {
    fn anatomy(&self) -> Anatomy {
        let (entries, fullest) = self
            .chains
            .lengths(&self.entries)
            .fold((0, 0), |(entries, fullest), length| (entries + length, fullest.max(length)));
        Anatomy {
            bytes: self.chains.bytes() + entries * size_of::<u64>(),
            entries,
            load: None,
            fullest: Some(fullest),
            pages: describe_pages(self.chains.heads().region()),
        }
    }
}
