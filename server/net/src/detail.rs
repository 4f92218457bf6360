//! `stats detail`: gets, hits, sets and deletes by the prefix of their key, which is what stands before a delimiter.
//!
//! Each worker counts for itself, in a table that only `stats detail dump` shares with it; memcached has one table
//! under one lock. A key without the delimiter is not counted, as there. The number of prefixes is bounded, so that
//! clients who make up prefixes cost no more than [`MOST_PREFIXES`]: what comes beyond is not counted.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// Prefixes that one worker counts.
pub(crate) const MOST_PREFIXES: usize = 4096;

/// What was done with the keys of a prefix.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Uses {
    pub(crate) gets: u64,
    pub(crate) hits: u64,
    pub(crate) sets: u64,
    pub(crate) deletes: u64,
}

impl Uses {
    fn add(&mut self, more: &Uses) {
        self.gets += more.gets;
        self.hits += more.hits;
        self.sets += more.sets;
        self.deletes += more.deletes;
    }
}

type Table = HashMap<Box<[u8]>, Uses>;

/// One worker's counts.
pub(crate) struct Prefixes {
    delimiter: u8,
    table: Arc<Mutex<Table>>,
}

impl Prefixes {
    /// Counts a use of a key, if it has a prefix.
    pub(crate) fn note(&self, key: &[u8], count: impl FnOnce(&mut Uses)) {
        let Some(end) = key.iter().position(|&byte| byte == self.delimiter) else { return };
        let prefix = &key[..end];
        // Nobody else writes here: it is free, but while somebody reads the counts.
        let mut table = self.table.lock();
        if let Some(uses) = table.get_mut(prefix) {
            count(uses);
        } else if table.len() < MOST_PREFIXES {
            count(table.entry(prefix.into()).or_default());
        }
    }
}

/// The counts of all workers.
pub(crate) struct AllPrefixes {
    delimiter: u8,
    tables: Mutex<Vec<Arc<Mutex<Table>>>>,
}

impl AllPrefixes {
    pub(crate) fn new(delimiter: u8) -> Self {
        AllPrefixes { delimiter, tables: Mutex::default() }
    }

    /// What ends a prefix.
    pub(crate) fn delimiter(&self) -> u8 {
        self.delimiter
    }

    /// A table for one worker.
    pub(crate) fn join(&self) -> Prefixes {
        let table = Arc::<Mutex<Table>>::default();
        self.tables.lock().push(table.clone());
        Prefixes { delimiter: self.delimiter, table }
    }

    /// All that was counted, by prefix.
    pub(crate) fn sums(&self) -> Vec<(Box<[u8]>, Uses)> {
        let mut sums = Table::new();
        for table in self.tables.lock().iter() {
            for (prefix, uses) in table.lock().iter() {
                sums.entry(prefix.clone()).or_default().add(uses);
            }
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        sums
    }

    /// Forgets all that was counted.
    pub(crate) fn clear(&self) {
        for table in self.tables.lock().iter() {
            table.lock().clear();
        }
    }

    /// Appends a line for each prefix, as memcached writes them.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        for (prefix, uses) in self.sums() {
            let Uses { gets, hits, sets, deletes } = uses;
            out.extend_from_slice(b"PREFIX ");
            out.extend_from_slice(&prefix);
            out.extend_from_slice(format!(" get {gets} hit {hits} set {sets} del {deletes}\r\n").as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_workers_count_is_one_table() {
        let all = AllPrefixes::new(b':');
        let (one, other) = (all.join(), all.join());
        one.note(b"user:1", |uses| uses.gets += 1);
        other.note(b"user:2:3", |uses| uses.hits += 1);
        one.note(b":", |uses| uses.sets += 1);
        one.note(b"none", |uses| uses.sets += 1);
        let mut out = Vec::new();
        all.write(&mut out);
        let lines = b"PREFIX  get 0 hit 0 set 1 del 0\r\nPREFIX user get 1 hit 1 set 0 del 0\r\n";
        assert_eq!(out, lines, "{}", out.escape_ascii());
        all.clear();
        assert!(all.sums().is_empty());
    }

    #[test]
    fn made_up_prefixes_cost_no_more_than_so_many() {
        let all = AllPrefixes::new(b'/');
        let one = all.join();
        for number in 0..2 * MOST_PREFIXES {
            one.note(format!("{number}/x").as_bytes(), |uses| uses.gets += 1);
        }
        one.note(b"0/again", |uses| uses.gets += 1);
        let sums = all.sums();
        assert_eq!(sums.len(), MOST_PREFIXES);
        assert_eq!(sums[0].1.gets, 2);
    }
}
