//! What an experiment asks of a table, the same of every one.
//!
//! A table is measured by loops that belong to it: [`Index`]'s provided methods are compiled once for each table, so
//! that a lookup is a direct call, and the experiment pays one indirect call for millions of them. Each loop adds up
//! what it found; the experiment knows what that must be. An answer that is wrong stops the experiment.

use std::ops::Range;

use super::records::Key;
use crate::subject::{Call, Tally};

/// Keys that a caller hands over at once where it asks in batches: a multi-get of a usual size.
pub const BATCH: usize = 64;

/// A table of records by key.
pub trait Index: Sync {
    /// The record of that key.
    fn get(&self, key: &Key) -> Option<u64>;

    /// Puts a record in; its key is not in the table.
    fn insert(&self, record: u64) -> Insertion;

    /// Takes a record out, and says whether it was there: of tables that are asked to.
    fn remove(&self, _record: u64) -> bool {
        unreachable!("no experiment takes records out of this table")
    }

    /// Looks up all `keys`, one by one.
    fn get_each(&self, keys: &[Key]) -> Tally {
        let mut tally = Tally::default();
        for key in keys {
            tally.count(self.get(key));
        }
        tally
    }

    /// Looks up all `keys` in batches of [`BATCH`]; one by one where the table has no better way.
    fn get_batched(&self, keys: &[Key]) -> Tally {
        self.get_each(keys)
    }

    /// Puts `records` in, one by one, until one is refused.
    fn insert_each(&self, records: Range<u64>) -> Filling {
        let mut filling = Filling::default();
        for record in records {
            match self.insert(record) {
                Insertion::Done { displaced } => {
                    filling.inserted += 1;
                    filling.displaced += displaced as u64;
                }
                Insertion::TooFull => {
                    filling.refused = true;
                    break;
                }
            }
        }
        filling
    }

    /// Puts `records` in, in batches of [`BATCH`], until one is refused; one by one where the table has no better way.
    fn insert_batched(&self, records: Range<u64>) -> Filling {
        self.insert_each(records)
    }

    /// Carries out all `operations`: writes at once, lookups as `call` says.
    fn perform(&self, call: Call, operations: &[Operation]) -> Tally {
        let mut tally = Tally::default();
        let mut keys = Vec::with_capacity(BATCH);
        for operation in operations {
            match *operation {
                Operation::Get(key) if call == Call::Single => tally.count(self.get(&key)),
                Operation::Get(key) => {
                    keys.push(key);
                    if keys.len() == BATCH {
                        tally += self.get_batched(&keys);
                        keys.clear();
                    }
                }
                Operation::Insert(record) => {
                    tally.refused += u64::from(self.insert(record) == Insertion::TooFull)
                }
                Operation::Remove(record) => tally.refused += u64::from(!self.remove(record)),
            }
        }
        tally += self.get_batched(&keys);
        tally
    }
}

/// A table that can be looked into.
pub trait Inspected: Index {
    /// What the table is made of, now.
    fn anatomy(&self) -> Anatomy;
}

/// What became of an insert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Insertion {
    /// The record is in the table.
    Done {
        /// Others were moved to make room for it: so many.
        displaced: usize,
    },
    /// It is not: no room was found.
    TooFull,
}

/// Something to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Look a key up.
    Get(Key),
    /// Put a record in that is not there.
    Insert(u64),
    /// Take a record out that is there.
    Remove(u64),
}

/// What became of a loop of inserts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Filling {
    /// Records put in.
    pub inserted: u64,
    /// Others moved to make room for them.
    pub displaced: u64,
    /// Whether the loop ended because one was refused.
    pub refused: bool,
}

/// What a table is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Anatomy {
    /// Bytes of the index: without keys, where those lie outside, with what links them together, where it lies with
    /// them.
    pub bytes: usize,
    /// Records in it.
    pub entries: usize,
    /// The share of the slots in use; `None` for a table without slots.
    pub load: Option<f64>,
    /// Records in the fullest bucket; `None` where that means nothing.
    pub fullest: Option<usize>,
    /// The pages it lies in, as the kernel reports them.
    pub pages: String,
}

/// What the kernel gave a region: the kind of page, and for transparent huge pages the share of resident memory that
/// lies in them.
#[must_use]
pub fn describe_pages(region: &pages::Region) -> String {
    let kind = region.obtained();
    match region.census() {
        Some(census) if kind == pages::PageKind::Transparent && census.resident > 0 => {
            format!("{kind} {:.0} %", 100.0 * census.transparent_huge as f64 / census.resident as f64)
        }
        _ => kind.to_string(),
    }
}
