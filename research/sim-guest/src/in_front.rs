//! What may stand before an index: nothing, the STLT's two instructions, the Search Lookaside Buffer of
//! `crates/lookaside`, or STLT-SW. Each is asked for the record of a key, and told of the record that the index had.
//!
//! The library's table is asked by the form that threads share ([`Pinned`]), whose hits take no lock. It knows records
//! by their numbers, plus one, for a pointer is never zero, and so does STLT-SW; the hardware's table knows addresses.
//! The library's monitor is not asked: what is compared is the table.

use lookaside::{Pinned, Pointer, Ticket};
use stlt_sw::Table;

use crate::hardware::Hints;
use crate::record::{Key, Record, hash};

pub(crate) trait InFront<'r> {
    /// What it wants back when the index has found what it had not.
    type Missed;
    /// Whether it answers anything.
    const IS_TABLE: bool = true;

    /// The record of a key, if it has that.
    fn find(&mut self, key: &Key) -> Result<&'r Record, Self::Missed>;

    /// The index had it, under this number.
    fn found(&mut self, missed: Self::Missed, number: u32, record: &'r Record);
}

pub(crate) struct Nothing;

impl<'r> InFront<'r> for Nothing {
    type Missed = ();
    const IS_TABLE: bool = false;

    #[inline(always)]
    fn find(&mut self, _: &Key) -> Result<&'r Record, ()> {
        Err(())
    }

    #[inline(always)]
    fn found(&mut self, (): (), _: u32, _: &'r Record) {}
}

impl<'r> InFront<'r> for Hints<'r> {
    type Missed = u64;

    #[inline(always)]
    fn find(&mut self, key: &Key) -> Result<&'r Record, u64> {
        let hash = hash(key);
        self.get(hash).filter(|record| record.key == *key).ok_or(hash)
    }

    #[inline(always)]
    fn found(&mut self, hash: u64, _: u32, record: &'r Record) {
        self.insert(hash, record);
    }
}

/// The hardware's table, kept by software alone.
pub(crate) struct Software<'r> {
    pub(crate) table: Table,
    pub(crate) records: &'r [Record],
}

impl<'r> InFront<'r> for Software<'r> {
    type Missed = u64;

    #[inline(always)]
    fn find(&mut self, key: &Key) -> Result<&'r Record, u64> {
        let hash = hash(key);
        let known = self.table.get(hash).map(|number| &self.records[number as usize - 1]);
        known.filter(|record| record.key == *key).ok_or(hash)
    }

    #[inline(always)]
    fn found(&mut self, hash: u64, number: u32, _: &'r Record) {
        self.table.insert(hash, u64::from(number) + 1);
    }
}

/// The library's table.
pub(crate) struct Library<'b, 'r> {
    pub(crate) visit: Pinned<'b>,
    pub(crate) records: &'r [Record],
}

impl<'r> InFront<'r> for Library<'_, 'r> {
    type Missed = (u64, Ticket);

    #[inline(always)]
    fn find(&mut self, key: &Key) -> Result<&'r Record, (u64, Ticket)> {
        let hash = hash(key);
        let record = |pointer: Pointer| &self.records[pointer.address() as usize - 1];
        let found = self.visit.find(hash, |pointer| record(pointer).key == *key);
        found.map(record).ok_or_else(|| (hash, self.visit.ticket(hash)))
    }

    #[inline(always)]
    fn found(&mut self, (hash, ticket): (u64, Ticket), number: u32, _: &'r Record) {
        if let Some(pointer) = Pointer::new(u64::from(number) + 1) {
            self.visit.admit_soon(&ticket, hash, pointer);
        }
    }
}
