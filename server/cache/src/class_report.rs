//! A slab class as statistics show it.

use crate::departure::Departure;
use crate::item::{Expiry, Item};

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

impl Tallies {
    /// An item of the class leaves at this second.
    pub(crate) fn count_departure(&mut self, item: Item<'_>, why: Departure, now: u32) {
        match why {
            Departure::Asked => {}
            Departure::Evicted => {
                self.evicted += 1;
                self.evicted_unfetched += u64::from(!item.is_fetched());
                self.evicted_expiring += u64::from(item.expiry() != Expiry::Never);
                self.evicted_age = now.saturating_sub(item.access().load().second(now));
            }
            Departure::Reclaimed | Departure::Swept => {
                let expired = item.expiry().has_passed(now);
                self.reclaimed += 1;
                self.swept += u64::from(why == Departure::Swept);
                self.expired_unfetched += u64::from(expired && !item.is_fetched());
            }
        }
    }
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
