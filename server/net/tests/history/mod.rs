//! What could have been read: a check of everything that several clients have written and read, after the fact.
//!
//! Every write and every read has a beginning and an end on one clock that all clients share. A read may show what a
//! write has left unless another write began after that one had ended and ended before the read began; and no write may
//! be seen before it began. Taking away is a write that leaves nothing, and a flush takes away every key at once.
//!
//! Values say themselves what they are: their key, the number of the write, and a body that follows from it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// The clock, and the numbers of writes.
#[derive(Default)]
pub(crate) struct Clock {
    ticks: AtomicU64,
    writes: AtomicU64,
}

impl Clock {
    pub(crate) fn tick(&self) -> u64 {
        self.ticks.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// A number that no other write has.
    pub(crate) fn number(&self) -> u64 {
        self.writes.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// When something happened: after the one and before the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// What one client has done.
#[derive(Default)]
pub(crate) struct Log {
    /// Key, number of the write or none for a deletion, time.
    pub(crate) writes: Vec<(u32, Option<u64>, Span)>,
    /// Key, number of the write that was seen, or none.
    pub(crate) reads: Vec<(u32, Option<u64>, Span)>,
    pub(crate) flushes: Vec<Span>,
}

/// Whether what is not there must have been taken away by somebody.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Eviction {
    Possible,
    Impossible,
}

/// Everything that was done to one key.
#[derive(Default)]
struct Writes {
    /// By the end of each: when it ended, and the last beginning of all up to this one.
    last_beginnings: Vec<(u64, u64)>,
    /// When each number was written.
    values: HashMap<u64, Span>,
    /// When it was taken away, by the end.
    deletions: Vec<Span>,
}

impl Writes {
    fn new(mut all: Vec<(Option<u64>, Span)>) -> Writes {
        all.sort_unstable_by_key(|(_, write)| write.to);
        let mut writes = Writes::default();
        let mut last = 0;
        for (number, write) in all {
            last = last.max(write.from);
            writes.last_beginnings.push((write.to, last));
            match number {
                Some(number) => drop(writes.values.insert(number, write)),
                None => writes.deletions.push(write),
            }
        }
        writes
    }

    /// Whether this could be read at that time: the write that has left it, or one of them.
    fn explain(&self, seen: Option<u64>, read: Span) -> bool {
        // The last beginning of a write that was over when the read began: what had ended before that was gone by then.
        let over = self.last_beginnings.partition_point(|(to, _)| *to < read.from);
        let gone_before = if over == 0 { 0 } else { self.last_beginnings[over - 1].1 };
        let could_be_seen = |write: &Span| write.from < read.to && write.to >= gone_before;
        match seen {
            Some(number) => self.values.get(&number).is_some_and(could_be_seen),
            None => {
                let recent = self.deletions.partition_point(|write| write.to < gone_before);
                self.deletions[recent..].iter().any(could_be_seen)
            }
        }
    }
}

/// Panics if anything was read that could not have been.
pub(crate) fn check(logs: &[Log], eviction: Eviction) {
    // Before all there was nothing.
    let mut of_all_keys = vec![(None, Span { from: 0, to: 0 })];
    of_all_keys.extend(logs.iter().flat_map(|log| &log.flushes).map(|span| (None, *span)));
    let mut by_key: HashMap<u32, Vec<(Option<u64>, Span)>> = HashMap::new();
    for (key, number, span) in logs.iter().flat_map(|log| &log.writes) {
        by_key.entry(*key).or_insert_with(|| of_all_keys.clone()).push((*number, *span));
    }
    let by_key: HashMap<u32, Writes> =
        by_key.into_iter().map(|(key, writes)| (key, Writes::new(writes))).collect();
    let never_written = Writes::new(of_all_keys);
    for (key, seen, read) in logs.iter().flat_map(|log| &log.reads) {
        let writes = by_key.get(key).unwrap_or(&never_written);
        let evicted = seen.is_none() && eviction == Eviction::Possible;
        assert!(
            evicted || writes.explain(*seen, *read),
            "key {key}: {seen:?} was read during {read:?}; written {:?}; taken away {:?}",
            seen.and_then(|number| writes.values.get(&number)),
            writes.deletions.iter().rfind(|write| write.to < read.from),
        );
    }
}

/// The value that a write of this number stores.
pub(crate) fn value(key: u32, number: u64, len: usize) -> Vec<u8> {
    let mut value = format!("{key} {number} {len}:").into_bytes();
    let mut state = number | 1;
    value.resize_with(value.len() + len, || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    });
    value
}

/// The number of the write that has stored this value under this key; panics if no write ever has.
pub(crate) fn number_in(key: u32, stored: &[u8]) -> u64 {
    let colon = stored.iter().position(|byte| *byte == b':').expect("a value that says what it is");
    let head = std::str::from_utf8(&stored[..colon]).expect("text");
    let numbers: Vec<u64> = head.split(' ').map(|number| number.parse().expect("a number")).collect();
    assert_eq!(numbers[0], u64::from(key), "a value of another key");
    assert!(stored == value(key, numbers[1], numbers[2] as usize), "a torn value: {head}");
    numbers[1]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(writes: &[(Option<u64>, u64, u64)], read: (Option<u64>, u64, u64)) -> [Log; 1] {
        let span = |from, to| Span { from, to };
        [Log {
            writes: writes.iter().map(|(number, from, to)| (0, *number, span(*from, *to))).collect(),
            reads: vec![(0, read.0, span(read.1, read.2))],
            flushes: Vec::new(),
        }]
    }

    fn fails(logs: [Log; 1]) -> bool {
        std::panic::catch_unwind(|| check(&logs, Eviction::Impossible)).is_err()
    }

    #[test]
    fn what_can_be_read_and_what_cannot() {
        // One after the other: only the last.
        let writes = [(Some(1), 1, 2), (Some(2), 3, 4)];
        assert!(!fails(log(&writes, (Some(2), 5, 6))));
        assert!(fails(log(&writes, (Some(1), 5, 6))));
        assert!(fails(log(&writes, (None, 5, 6))));
        assert!(fails(log(&writes, (Some(3), 5, 6))));
        // While the second one is under way: both, but not what was before the first.
        assert!(!fails(log(&[(Some(1), 1, 2), (Some(2), 3, 8)], (Some(1), 5, 6))));
        assert!(!fails(log(&[(Some(1), 1, 2), (Some(2), 3, 8)], (Some(2), 5, 6))));
        assert!(fails(log(&[(Some(1), 1, 2), (Some(2), 3, 8)], (None, 5, 6))));
        // Two at the same time: either, whichever came last.
        assert!(!fails(log(&[(Some(1), 1, 4), (Some(2), 2, 3)], (Some(1), 5, 6))));
        assert!(!fails(log(&[(Some(1), 1, 4), (Some(2), 2, 3)], (Some(2), 5, 6))));
        // Not before it began; nothing, if nothing was written, or it was taken away.
        assert!(fails(log(&[(Some(1), 7, 8)], (Some(1), 5, 6))));
        assert!(!fails(log(&[(Some(1), 7, 8)], (None, 5, 6))));
        assert!(!fails(log(&[(Some(1), 1, 2), (None, 3, 4)], (None, 5, 6))));
        assert!(fails(log(&[(Some(1), 1, 2), (None, 3, 4)], (Some(1), 5, 6))));
    }

    #[test]
    fn values_say_what_they_are() {
        let stored = value(7, 12, 100);
        assert_eq!(number_in(7, &stored), 12);
        let mut torn = stored.clone();
        *torn.last_mut().expect("not empty") ^= 1;
        assert!(std::panic::catch_unwind(|| number_in(7, &torn)).is_err());
        assert!(std::panic::catch_unwind(|| number_in(8, &stored)).is_err());
    }
}
