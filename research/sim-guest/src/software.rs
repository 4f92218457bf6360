//! The table on a processor that has none: STLT-SW of `crates/lookaside`, for one thread.
//!
//! As in hardware, an insertion takes the row of its sub-integer if there is one; so the row is cleared first. And as there,
//! the sub-integer is the integer's lowest 12 bits, which may be the number of an index; that table takes it from the highest.

use lookaside::{Parameters, Pointer, Random, Stlt, StltConfig, Table, Ways};

/// Bytes of a row.
const ROW: u64 = 16;

#[derive(Debug)]
pub(crate) struct Software {
    table: Stlt,
    random: Random,
}

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
        let ways = match ways {
            1 => Ways::One,
            2 => Ways::Two,
            4 => Ways::Four,
            8 => Ways::Eight,
            _ => return Err(Impossible::Shape),
        };
        if !rows.is_power_of_two() || rows < ways as u64 {
            return Err(Impossible::Shape);
        }
        // A line at least.
        let bytes =
            rows.max(4).checked_mul(ROW).and_then(|bytes| bytes.try_into().ok()).ok_or(Impossible::Memory)?;
        let table =
            StltConfig { ways, ..StltConfig::with_size(bytes) }.create().map_err(|_| Impossible::Memory)?;
        Ok(Software { table, random: Random::new(rows) })
    }

    /// What the table takes for a hash: the sub-integer where it looks for it, and the set's bits below.
    fn hash(integer: u64) -> u64 {
        integer.rotate_right(12)
    }

    /// The address inserted with the integer, or with another one.
    pub(crate) fn get(&self, integer: u64) -> Option<usize> {
        let pointer = self.table.hit(Software::hash(integer), &self.random, |_| true)?;
        usize::try_from(pointer.address()).ok()
    }

    /// Nothing but a removal, if the address needs more than 48 bits.
    pub(crate) fn insert(&mut self, integer: u64, address: usize) {
        self.remove(integer);
        if let Some(pointer) = Pointer::new(address as u64) {
            self.table.insert(Software::hash(integer), pointer, &self.random);
        }
    }

    pub(crate) fn remove(&mut self, integer: u64) {
        self.table.clear(Software::hash(integer));
    }
}
