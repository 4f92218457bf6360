//! A hash table without chains, as google's `dense_hash_map` is built.
//!
//! A power of two of slots, at most half of them used, of 16 bytes: pointers to the key and to the record (the
//! key is in the record). A lookup probes a slot, then the one after it, then two further on, then three: a
//! triangle, which visits every slot. No hashes are kept, so every used slot on the way costs the key behind it.

use super::hash::{execute_hash, hash_of};
use super::keys::Key;
use super::processor::{Pen, Processor};
use super::records::Records;
use super::registers::{COUNT, HASH, RECORD, SLOT, WORD};
use super::{CODE_INDEX, Hash, Lookup};

/// The index's own hash.
const HASH_FUNCTION: Hash = Hash::Murmur;
const FREE: u32 = u32::MAX;
const SLOT_BYTES: u64 = 16;

/// The table.
#[derive(Debug, Clone)]
pub struct OpenAddressing {
    table: u64,
    slots: Vec<u32>,
}

impl OpenAddressing {
    /// A table that need not grow until it has so many records.
    #[must_use]
    pub fn new(records: &mut Records, capacity: u32) -> OpenAddressing {
        let slots = (u64::from(capacity.max(16)) * 2).next_power_of_two();
        let table = records.heap().allocate_table(slots * SLOT_BYTES);
        OpenAddressing { table, slots: vec![FREE; slots as usize] }
    }

    /// Slots.
    #[must_use]
    pub fn slots(&self) -> u64 {
        self.slots.len() as u64
    }

    fn probes(&self, key: Key) -> impl Iterator<Item = u64> + use<> {
        let (first, mask) = (hash_of(HASH_FUNCTION, &key.bytes()), self.slots() - 1);
        (0..=mask).scan(first, move |at, probe| {
            *at = at.wrapping_add(probe) & mask;
            Some(*at)
        })
    }
}

impl Lookup for OpenAddressing {
    fn insert(&mut self, records: &mut Records, record: u32) {
        let mut probes = self.probes(records.key(record));
        if let Some(slot) = probes.find(|&slot| self.slots[slot as usize] == FREE) {
            self.slots[slot as usize] = record;
        }
    }

    fn find<P: Processor>(&self, pen: &mut Pen<'_, P>, records: &Records, query: Key) -> Option<u32> {
        pen.at(CODE_INDEX).compute(HASH, &[HASH]);
        execute_hash(HASH_FUNCTION, pen);
        pen.at(CODE_INDEX + 64).compute(SLOT, &[HASH]).compute(COUNT, &[]);
        for slot in self.probes(query) {
            let record = self.slots[slot as usize];
            let address = self.table + slot * SLOT_BYTES;
            pen.at(CODE_INDEX + 128).compute(WORD, &[SLOT]).load(RECORD, WORD, address, 8);
            pen.branch(&[RECORD], record == FREE, CODE_INDEX + 512);
            if record == FREE {
                return None;
            }
            let equal = records.compare(pen, record, query);
            pen.at(CODE_INDEX + 192).branch(&[WORD], equal, CODE_INDEX + 320);
            if equal {
                pen.at(CODE_INDEX + 320).load(RECORD, SLOT, address + 8, 8);
                return Some(record);
            }
            pen.compute(COUNT, &[COUNT]).compute(SLOT, &[SLOT, COUNT]).compute(SLOT, &[SLOT]);
            pen.branch(&[COUNT], true, CODE_INDEX + 128);
        }
        None
    }

    fn execute_insert<P: Processor>(&self, pen: &mut Pen<'_, P>, records: &Records, record: u32) {
        let mut probes = self.probes(records.key(record));
        let slot = probes.find(|&slot| self.slots[slot as usize] == record).unwrap_or_default();
        let address = self.table + slot * SLOT_BYTES;
        pen.at(CODE_INDEX + 1024).chain(SLOT, &[1; 6]);
        pen.store(RECORD, SLOT, address, 8).store(RECORD, SLOT, address + 8, 8);
    }
}
