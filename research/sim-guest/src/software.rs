//! The table on a processor that has none: STLT-SW (`research/stlt-sw`), for one thread.

use stlt_sw::{Refused, Table};

#[derive(Debug)]
pub(crate) struct Software(Table);

/// Why there is none.
#[derive(Debug)]
pub(crate) enum Impossible {
    /// The numbers of rows and ways.
    Shape,
    /// There is no memory for so many.
    Memory,
}

impl Software {
    pub(crate) fn new(rows: u64, ways: u32) -> Result<Software, Impossible> {
        Table::new(rows, ways as usize).map(Software).map_err(|refused| match refused {
            Refused::Shape => Impossible::Shape,
            Refused::Memory(_) => Impossible::Memory,
        })
    }

    /// The address inserted with the integer, or with another one.
    pub(crate) fn get(&self, integer: u64) -> Option<usize> {
        usize::try_from(self.0.get(integer)?).ok()
    }

    /// Nothing but a removal, if the address needs more than 48 bits.
    pub(crate) fn insert(&mut self, integer: u64, address: usize) {
        self.0.insert(integer, address as u64);
    }

    pub(crate) fn remove(&mut self, integer: u64) {
        self.0.remove(integer);
    }
}
