//! What may stand before an index: nothing, the STLT's two instructions, or a table of `crates/lookaside`, its Search
//! Lookaside Buffer or its STLT-SW. Each is asked for the record of a key, and told of the record that the index had.
//!
//! The library's tables are asked by the form that threads share ([`Visit`]), whose hits take no lock. They know records by
//! their numbers, plus one, for a pointer is never zero; the hardware's knows addresses. The library's monitor is not asked:
//! what is compared is the table.

use lookaside::{Pointer, Table, Visit};
use sim_guest::Hints;

use crate::record::{Key, Record, hash};

/// What a table in front did.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) hits: u64,
    pub(crate) misses: u64,
}

/// The six lines of the paper's Figure 4: ask the table, compare the key, or else search the index and tell the table.
pub(crate) trait InFront<'r> {
    /// The record of a key; `search` asks the index for its number.
    fn lookup(
        &mut self,
        key: &Key,
        tally: &mut Tally,
        search: impl FnOnce() -> Option<u32>,
    ) -> Option<&'r Record>;
}

pub(crate) struct Nothing<'r>(pub(crate) &'r [Record]);

impl<'r> InFront<'r> for Nothing<'r> {
    #[inline(always)]
    fn lookup(&mut self, _: &Key, _: &mut Tally, search: impl FnOnce() -> Option<u32>) -> Option<&'r Record> {
        Some(&self.0[search()? as usize])
    }
}

/// The instructions; where no processor has them, what takes their place.
pub(crate) struct Hardware<'r> {
    pub(crate) hints: Hints<'r, Record>,
    pub(crate) records: &'r [Record],
}

impl<'r> InFront<'r> for Hardware<'r> {
    #[inline(always)]
    fn lookup(
        &mut self,
        key: &Key,
        tally: &mut Tally,
        search: impl FnOnce() -> Option<u32>,
    ) -> Option<&'r Record> {
        let hash = hash(key);
        if let Some(record) = self.hints.get(hash).filter(|record| record.key == *key) {
            tally.hits += 1;
            return Some(record);
        }
        tally.misses += 1;
        let record = &self.records[search()? as usize];
        self.hints.insert(hash, record);
        Some(record)
    }
}

/// A table of the library.
pub(crate) struct Library<'b, 'r, T: Table> {
    pub(crate) visit: Visit<'b, T>,
    pub(crate) records: &'r [Record],
}

impl<'r, T: Table> InFront<'r> for Library<'_, 'r, T> {
    #[inline(always)]
    fn lookup(
        &mut self,
        key: &Key,
        tally: &mut Tally,
        search: impl FnOnce() -> Option<u32>,
    ) -> Option<&'r Record> {
        let hash = hash(key);
        let record = |pointer: Pointer| &self.records[pointer.address() as usize - 1];
        if let Some(pointer) = self.visit.find(hash, |pointer| record(pointer).key == *key) {
            tally.hits += 1;
            return Some(record(pointer));
        }
        tally.misses += 1;
        let ticket = self.visit.ticket(hash);
        let number = search()?;
        if let Some(pointer) = Pointer::new(u64::from(number) + 1) {
            self.visit.emit_soon(&ticket, hash, pointer);
        }
        Some(&self.records[number as usize])
    }
}
