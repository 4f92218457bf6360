//! What the machine can do: a loop that prefetches and then reads the lines that a lookup in a batch cannot do without.
//!
//! A lookup that hits reads one line of the table, and the entry that it names: its key and its value. Here the table
//! is a region of as many bytes as were asked for (one that fits itself may lie in fewer), and the entries are a region
//! of as many records, in such pages as the allocator gives; groups of as many as a batch has ask for all their lines
//! and then read them. There are no keys, no comparisons, no misses: nothing that looks anything up is faster.
//!
//! Two forms: lines that are all alike popular, and lines as popular as the records, of which the hot ones stay in the
//! processor's caches.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pages::{Array, PageKind};

use super::visit::BATCH;
use crate::experiment::ExperimentError;
use crate::measure::Stopwatch;

/// Bytes of an entry with a key of 24 bytes and a value of 64, and what the allocator adds.
const ENTRY: usize = 128;
/// Words of it that a lookup reads: its key, the first and the last word of its value.
const READ: [usize; 4] = [0, 2, 3, 10];

/// Regions of the size of a table and of the records.
pub(super) struct Regions {
    table: Array<AtomicU64>,
    entries: Vec<AtomicU64>,
}

impl Regions {
    /// A table of `bytes`, and `records` entries.
    pub(super) fn new(bytes: usize, records: usize) -> Result<Regions, ExperimentError> {
        let table = Array::<AtomicU64>::map(bytes.max(4096) / 8, PageKind::Transparent)?;
        // Memory that was never written is one page of zeros.
        table.iter().for_each(|word| word.store(1, Ordering::Relaxed));
        let entries = (0..records * ENTRY / 8).map(|_| AtomicU64::new(1)).collect();
        Ok(Regions { table, entries })
    }

    /// Reads a table's line and an entry's for each of these records, a batch at a time, and says how long it took.
    pub(super) fn read(&self, records: &[u32]) -> Duration {
        let lines = self.table.len() / 8;
        let entries = self.entries.len() / (ENTRY / 8);
        // Mixed as a hash would: which line a record's is.
        let line = |record: u32| {
            ((u64::from(record).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize * lines) >> 32
        };
        let entry = |record: u32| record as usize % entries * (ENTRY / 8);
        let watch = Stopwatch::start();
        let mut sum = 0u64;
        for records in records.chunks(BATCH) {
            for &record in records {
                pages::prefetch(&raw const self.table[line(record) * 8]);
                pages::prefetch(&raw const self.entries[entry(record)]);
                pages::prefetch(&raw const self.entries[entry(record) + 8]);
            }
            for &record in records {
                sum = sum.wrapping_add(self.table[line(record) * 8].load(Ordering::Relaxed));
                for word in READ {
                    sum = sum.wrapping_add(self.entries[entry(record) + word].load(Ordering::Relaxed));
                }
            }
        }
        black_box(sum);
        watch.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_has_its_lines() {
        let regions = Regions::new(1 << 16, 1000).unwrap();
        let records: Vec<u32> = (0..1000).collect();
        assert!(regions.read(&records) > Duration::ZERO);
    }
}
