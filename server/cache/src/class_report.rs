//! A slab class as statistics show it.

/// What has happened in a class since it was made.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tallies {
    pub(crate) evicted: u64,
    pub(crate) evicted_unfetched: u64,
    pub(crate) reclaimed: u64,
    pub(crate) expired_unfetched: u64,
    pub(crate) swept: u64,
    pub(crate) evicted_expiring: u64,
    pub(crate) evicted_age: u32,
    pub(crate) out_of_memory: u64,
}

/// A class as statistics show it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ClassReport {
    /// Bytes of a chunk.
    pub chunk_size: usize,
    /// Chunks in a page.
    pub chunks_per_page: usize,
    /// Pages of the class, those included that are being given up.
    pub pages: usize,
    /// Chunks that hold an item, are being written, or wait in limbo.
    pub used_chunks: usize,
    /// Chunks that are free to be used.
    pub free_chunks: usize,
    /// Chunks that wait in limbo; they are among the used.
    pub limbo_chunks: usize,
    /// Items evicted to make room.
    pub evicted: u64,
    /// Of these, items that nobody ever fetched.
    pub evicted_unfetched: u64,
    /// Items removed because they had expired or were flushed.
    pub reclaimed: u64,
    /// Of these, items that had expired and that nobody ever fetched.
    pub expired_unfetched: u64,
    /// Of the reclaimed, items that housekeeping removed, and nobody who wanted their memory or looked them up.
    pub swept: u64,
    /// Of the evicted, items that would have expired at some time.
    pub evicted_expiring: u64,
    /// Seconds since the item that was evicted last had been used.
    pub evicted_age: u32,
    /// Times that no memory was found.
    pub out_of_memory: u64,
}
