//! A slab class as statistics show it.

use std::ops::Sub;

use crate::item::{Expiry, Item};

/// Why an item leaves the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Departure {
    /// Somebody replaced or deleted it.
    Asked,
    /// It had to make way.
    Evicted,
    /// It was dead.
    Reclaimed,
    /// It was dead, and housekeeping has found it.
    Swept,
}

/// What has become of the items of a class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Departures {
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
    /// Times that no memory was found.
    pub out_of_memory: u64,
}

impl Sub for Departures {
    type Output = Departures;

    /// What has become of them since.
    fn sub(self, earlier: Departures) -> Departures {
        Departures {
            evicted: self.evicted - earlier.evicted,
            evicted_unfetched: self.evicted_unfetched - earlier.evicted_unfetched,
            reclaimed: self.reclaimed - earlier.reclaimed,
            expired_unfetched: self.expired_unfetched - earlier.expired_unfetched,
            swept: self.swept - earlier.swept,
            evicted_expiring: self.evicted_expiring - earlier.evicted_expiring,
            out_of_memory: self.out_of_memory - earlier.out_of_memory,
        }
    }
}

/// What has happened in a class since it was made.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tallies {
    pub(crate) departures: Departures,
    pub(crate) evicted_age: u32,
}

impl Tallies {
    /// An item of the class leaves at this second.
    pub(crate) fn count_departure(&mut self, item: Item<'_>, why: Departure, now: u32) {
        let counts = &mut self.departures;
        match why {
            Departure::Asked => {}
            Departure::Evicted => {
                counts.evicted += 1;
                counts.evicted_unfetched += u64::from(!item.is_fetched());
                counts.evicted_expiring += u64::from(item.expiry() != Expiry::Never);
                self.evicted_age = now.saturating_sub(item.access().load().second(now));
            }
            Departure::Reclaimed | Departure::Swept => {
                let expired = item.expiry().has_passed(now);
                counts.reclaimed += 1;
                counts.swept += u64::from(why == Departure::Swept);
                counts.expired_unfetched += u64::from(expired && !item.is_fetched());
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
    /// What has become of its items.
    pub departures: Departures,
    /// Seconds since the item that was evicted last had been used.
    pub evicted_age: u32,
}
