//! What may stand before an index: nothing, the STLT's two instructions, the Search Lookaside Buffer of
//! `crates/lookaside`, or STLT-SW. Each is asked for the record of a key, and told of the record that the index had.
//!
//! The library's table is asked by the form that threads share ([`Pinned`]), whose hits take no lock. It knows records
//! by their numbers, plus one, for a pointer is never zero, and so does STLT-SW; the hardware's table knows addresses.
//! The library's monitor is not asked: what is compared is the table.

use lookaside::{Pinned, Pointer};
use sim_guest::Hints;
use stlt_sw::Table;

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

/// The hardware's table, kept by software alone.
pub(crate) struct Software<'r> {
    pub(crate) table: Table,
    pub(crate) records: &'r [Record],
}

impl<'r> InFront<'r> for Software<'r> {
    #[inline(always)]
    fn lookup(
        &mut self,
        key: &Key,
        tally: &mut Tally,
        search: impl FnOnce() -> Option<u32>,
    ) -> Option<&'r Record> {
        let hash = hash(key);
        let known = self.table.get(hash).map(|number| &self.records[number as usize - 1]);
        if let Some(record) = known.filter(|record| record.key == *key) {
            tally.hits += 1;
            return Some(record);
        }
        tally.misses += 1;
        let number = search()?;
        self.table.insert(hash, u64::from(number) + 1);
        Some(&self.records[number as usize])
    }
}

/// The library's table.
pub(crate) struct Library<'b, 'r> {
    pub(crate) visit: Pinned<'b>,
    pub(crate) records: &'r [Record],
}

impl<'r> InFront<'r> for Library<'_, 'r> {
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
