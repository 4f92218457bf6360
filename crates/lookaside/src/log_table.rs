//! The Log Table: how often keys that are not in the Cache Table have been asked for.
//!
//! Section 3.3.2 and Figure 6 of the SLB paper. A bucket is a line: fifteen 4-byte hash tags, a circular log, and where
//! it begins. An offer is appended, over the oldest once the log is full; a key whose tag stands in its log more
//! often than a threshold says is hot. Two keys with one tag make each other look hotter, which hardly ever happens and
//! costs one wrong admission.
//!
//! ```text
//!   0       4       8                      60      64
//!  +-------+-------+-- . . . --+----------+-------+
//!  | tag 0 | tag 1 |           | tag 14   | head  |
//!  +-------+-------+-- . . . --+----------+-------+
//! ```
//!
//! The bucket is chosen by the low half of the hash and the tag is the high half, so that they say different things.
//! All accesses are relaxed and no line is locked: two appends at once may become one, which is what sampling does
//! anyway.

use atomics::{AtomicU32, Ordering};

use crate::bucket::index;
use crate::lines::Lines;

/// Tags in a bucket.
pub(crate) const TAGS: usize = 15;

#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Log {
    tags: [AtomicU32; TAGS],
    head: AtomicU32,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Log>() == 64 && align_of::<Log>() == 64);

// SAFETY: atomic integers, for all of which zero is a value: a log without tags.
#[cfg(not(loom))]
#[allow(unsafe_code)]
unsafe impl pages::Zeroed for Log {}

/// The table.
#[derive(Debug)]
pub(crate) struct LogTable(Lines<Log>);

impl LogTable {
    pub(crate) fn new(lines: Lines<Log>) -> LogTable {
        LogTable(lines)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.len() * 64
    }

    /// Appends a key's tag to its log, and counts how often the tag stands there now.
    pub(crate) fn append(&self, hash: u64) -> usize {
        let log = &self.0[index(hash, self.0.len())];
        // Zero is no tag: it is what an empty log is made of.
        let tag = ((hash >> 32) as u32).max(1);
        let head = log.head.load(Ordering::Relaxed) as usize % TAGS;
        log.tags[head].store(tag, Ordering::Relaxed);
        log.head.store((head as u32 + 1) % TAGS as u32, Ordering::Relaxed);
        log.tags.iter().filter(|cell| cell.load(Ordering::Relaxed) == tag).count()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn table(lines: usize) -> LogTable {
        LogTable::new(Lines::map(lines, pages::PageKind::Base).unwrap())
    }

    #[test]
    fn a_log_remembers_the_last_fifteen_offers_of_its_keys() {
        let table = table(1);
        let hash = |key: u64| (key + 1) << 32;
        for times in 1..=15 {
            assert_eq!(table.append(hash(7)), times);
        }
        assert_eq!(table.append(hash(7)), 15, "the sixteenth is written over the first");
        for other in 0..14 {
            assert_eq!(table.append(hash(100 + other)), 1);
        }
        assert_eq!(table.append(hash(7)), 1, "fourteen others and itself");
    }

    #[test]
    fn a_tag_that_would_be_zero_is_told_from_an_empty_log() {
        let table = table(4);
        assert_eq!(table.append(0), 1);
        assert_eq!(table.append(0), 2);
    }
}
