//! The dictionary of a server like Redis: chains of entries, a power of two of buckets, SipHash.
//!
//! A bucket points to an entry, an entry to its key, its value and the next entry. No hashes are kept: every
//! entry on the way costs its key. New entries come first.

use super::hash::{execute_hash, hash_of};
use super::keys::Key;
use super::processor::{Pen, Processor};
use super::records::Records;
use super::registers::{HASH, RECORD, SLOT, WORD};
use super::{CODE_INDEX, Hash, Lookup};

/// The index's own hash.
const HASH_FUNCTION: Hash = Hash::Sip;
const NONE: u32 = u32::MAX;

/// The dictionary.
#[derive(Debug, Clone)]
pub struct Dictionary {
    table: u64,
    buckets: Vec<u32>,
    next: Vec<u32>,
}

impl Dictionary {
    /// A dictionary that need not grow until it has so many records.
    #[must_use]
    pub fn new(records: &mut Records, capacity: u32) -> Dictionary {
        let buckets = u64::from(capacity.max(4)).next_power_of_two();
        let table = records.heap().allocate_table(buckets * 8);
        Dictionary { table, buckets: vec![NONE; buckets as usize], next: Vec::new() }
    }

    fn bucket(&self, key: Key) -> usize {
        hash_of(HASH_FUNCTION, &key.bytes()) as usize & (self.buckets.len() - 1)
    }
}

impl Lookup for Dictionary {
    fn insert(&mut self, records: &mut Records, record: u32) {
        let bucket = self.bucket(records.key(record));
        debug_assert_eq!(record as usize, self.next.len(), "records come in order");
        self.next.push(std::mem::replace(&mut self.buckets[bucket], record));
    }

    fn find<P: Processor>(&self, pen: &mut Pen<'_, P>, records: &Records, query: Key) -> Option<u32> {
        // Whether it is being resized is looked at before and after.
        pen.at(CODE_INDEX).compute(HASH, &[HASH]).branch(&[HASH], false, CODE_INDEX + 512);
        execute_hash(HASH_FUNCTION, pen);
        let bucket = self.bucket(query);
        pen.at(CODE_INDEX + 64).compute(SLOT, &[HASH]);
        pen.load(RECORD, SLOT, self.table + bucket as u64 * 8, 8);
        let mut entry = self.buckets[bucket];
        loop {
            pen.at(CODE_INDEX + 128).branch(&[RECORD], entry == NONE, CODE_INDEX + 512);
            if entry == NONE {
                return None;
            }
            let equal = records.compare(pen, entry, query);
            pen.at(CODE_INDEX + 192).branch(&[WORD], equal, CODE_INDEX + 320);
            if equal {
                return Some(entry);
            }
            pen.load(RECORD, RECORD, records.target(entry) + 16, 8);
            entry = self.next[entry as usize];
        }
    }

    fn execute_insert<P: Processor>(&self, pen: &mut Pen<'_, P>, records: &Records, record: u32) {
        let bucket = self.bucket(records.key(record)) as u64;
        pen.at(CODE_INDEX + 1024).chain(SLOT, &[1; 6]).store(RECORD, SLOT, self.table + bucket * 8, 8);
    }
}
