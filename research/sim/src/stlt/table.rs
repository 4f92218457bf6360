//! The table: rows of 16 bytes in sets of one, two, four or eight (sections III-C and III-E, Figures 5 and 6).
//!
//! ```text
//!   row:   63        60 59            48 47                       0   63                     0
//!         +------------+----------------+--------------------------+  +----------------------+
//!         |  counter   |  sub-integer   |      virtual address     |  |   page-table entry   |
//!         +------------+----------------+--------------------------+  +----------------------+
//!
//!   integer:   | ... unused ... |  set number  |  sub-integer (12 lowest bits)  |
//! ```
//!
//! * `load` finds the row of the set with the integer's sub-integer. The address may be another key's: the
//!   program compares.
//! * The counter tells frequently used rows from others. It rises with probability 2^-x, x being what it is,
//!   and overflows to zero, which the paper calls benign.
//! * `insert` replaces the row with the same sub-integer; else a free one; else the row with the smallest
//!   counter, the first of equals. A new row's counter is 0.
//!
//! The software-only form has the same rows without a use for the second word; the form that keeps only
//! virtual addresses likewise.

use serde::{Deserialize, Serialize};

use crate::frames::mix;
use crate::page::Pte;

/// Bits of the sub-integer.
const SUB_INTEGER_BITS: u32 = 12;
/// Bits of an address.
pub(crate) const ADDRESS_BITS: u32 = 48;
const SUB_INTEGER: u64 = (1 << SUB_INTEGER_BITS) - 1;
const ADDRESS: u64 = (1 << ADDRESS_BITS) - 1;
const COUNTER_SHIFT: u32 = ADDRESS_BITS + SUB_INTEGER_BITS;
const MOST: u64 = 15;
/// Bytes of a row.
pub(crate) const ROW_BYTES: u64 = 16;

/// How much of the design is in hardware (section IV-E, Figure 19).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// All of it.
    #[default]
    Full,
    /// The instructions, but rows keep only virtual addresses: STLT-VA.
    VirtualOnly,
    /// Nothing: ordinary loads and stores on a table in the program's own memory, STLT-SW.
    Software,
}

/// Why a table is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// A set of so many rows does not exist.
    #[error("a set has 1, 2, 4 or 8 rows, not {0}")]
    Ways(u32),
    /// The rows do not make sets that bits of the integer can number.
    #[error("{rows} rows: the number must be a power of two between {ways} (one set) and 2^40")]
    Rows {
        /// Asked for.
        rows: u64,
        /// Of a set.
        ways: u32,
    },
    /// There is no memory for it.
    #[error("{rows} rows of 16 bytes: there is no memory to simulate them")]
    Memory {
        /// Asked for.
        rows: u64,
    },
    /// A process has one already.
    #[error("the process has an STLT already: resize or free it")]
    Exists,
    /// A process has none.
    #[error("the process has no STLT: allocate one first")]
    Absent,
}

/// A row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Row {
    word: u64,
    pte: Pte,
}

const _: () = assert!(size_of::<Row>() == ROW_BYTES as usize);

impl Row {
    const FREE: Row = Row { word: 0, pte: Pte::NONE };

    fn new(integer: u64, address: u64, pte: Pte) -> Row {
        Row { word: (integer & SUB_INTEGER) << ADDRESS_BITS | address & ADDRESS, pte }
    }

    /// The record's virtual address; 0 in a free row.
    #[must_use]
    pub fn address(self) -> u64 {
        self.word & ADDRESS
    }

    /// The entry that translates it.
    #[must_use]
    pub fn pte(self) -> Pte {
        self.pte
    }

    /// How often it was used, more or less logarithmically.
    #[must_use]
    pub fn counter(self) -> u64 {
        self.word >> COUNTER_SHIFT
    }

    fn is_for(self, integer: u64) -> bool {
        self.address() != 0 && self.word >> ADDRESS_BITS & SUB_INTEGER == integer & SUB_INTEGER
    }

    fn set_counter(&mut self, counter: u64) {
        self.word = self.word & !(MOST << COUNTER_SHIFT) | counter << COUNTER_SHIFT;
    }
}

/// Rows of a block.
const ROWS_OF_BLOCK: usize = 8;

/// The largest set there is: two lines of the host's cache, of which no set of fewer than eight rows needs the second.
/// In a vector of rows each set of four was a part of two lines, because what is allocated large begins sixteen bytes
/// behind a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(align(64))]
struct Block([Row; ROWS_OF_BLOCK]);

const _: () = assert!(size_of::<Block>() == 2 * 64);

/// A row that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Where it lies.
    pub place: u64,
    /// What it holds.
    pub row: Row,
    /// Whether its counter has just risen (or overflowed).
    pub counted: bool,
}

/// What an insertion took the place of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inserted {
    /// The integer's own row, or that of an integer with the same sub-integer.
    Replaced,
    /// A free row.
    Free,
    /// The row of another integer.
    Evicted,
}

/// An STLT. Two are equal if every row is, and the draws to come are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Those of the last block that are beyond `rows` are always free.
    blocks: Vec<Block>,
    rows: usize,
    ways: usize,
    variant: Variant,
    base: u64,
    random: u64,
}

impl Table {
    /// An empty table of `rows` rows that begins at address `base`: physical, or virtual for the software-only form.
    ///
    /// # Errors
    /// If there is no such set, or the rows are not a power of two with at least one set.
    pub fn new(rows: u64, ways: u32, variant: Variant, base: u64, seed: u64) -> Result<Table, TableError> {
        if !matches!(ways, 1 | 2 | 4 | 8) {
            return Err(TableError::Ways(ways));
        }
        if !rows.is_power_of_two() || rows < u64::from(ways) || rows > 1 << 40 {
            return Err(TableError::Rows { rows, ways });
        }
        let mut blocks = Vec::new();
        let count = (rows as usize).div_ceil(ROWS_OF_BLOCK);
        blocks.try_reserve_exact(count).map_err(|_| TableError::Memory { rows })?;
        blocks.resize(count, Block([Row::FREE; ROWS_OF_BLOCK]));
        Ok(Table { blocks, rows: rows as usize, ways: ways as usize, variant, base, random: mix(seed) | 1 })
    }

    /// Rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows as u64
    }

    /// Rows of a set.
    #[must_use]
    pub fn ways(&self) -> u32 {
        self.ways as u32
    }

    /// How much is in hardware.
    #[must_use]
    pub fn variant(&self) -> Variant {
        self.variant
    }

    #[inline]
    fn first(&self, integer: u64) -> usize {
        // Both are powers of two.
        let sets = self.rows >> self.ways.trailing_zeros();
        ((integer >> SUB_INTEGER_BITS) as usize & (sets - 1)) * self.ways
    }

    /// Where the integer's set lies.
    #[must_use]
    pub fn set_address(&self, integer: u64) -> u64 {
        self.base + self.first(integer) as u64 * ROW_BYTES
    }

    /// The rows of the integer's set.
    #[must_use]
    pub fn set(&self, integer: u64) -> &[Row] {
        let first = self.first(integer);
        &self.blocks[first / ROWS_OF_BLOCK].0[first % ROWS_OF_BLOCK..][..self.ways]
    }

    #[inline]
    fn row_mut(&mut self, place: usize) -> &mut Row {
        &mut self.blocks[place / ROWS_OF_BLOCK].0[place % ROWS_OF_BLOCK]
    }

    /// Asks the host for the rows of the integer's set.
    pub(super) fn prefetch(&self, integer: u64) {
        for line in self.set(integer).chunks(ROWS_OF_BLOCK / 2) {
            pages::prefetch(line);
        }
    }

    fn row_for(&self, integer: u64) -> Option<usize> {
        let row = self.set(integer).iter().position(|row| row.is_for(integer))?;
        Some(self.first(integer) + row)
    }

    /// The row for an integer. Its counter may rise.
    pub fn load(&mut self, integer: u64) -> Option<Found> {
        let place = self.row_for(integer)?;
        let draw = self.draw();
        let row = self.row_mut(place);
        let counter = row.counter();
        let counted = draw & ((1 << counter) - 1) == 0;
        if counted {
            row.set_counter((counter + 1) & MOST);
        }
        let row = *row;
        Some(Found { place: self.base + place as u64 * ROW_BYTES, row, counted })
    }

    /// Puts in a record's address and translation: where the row lies, and what it took the place of.
    pub fn insert(&mut self, integer: u64, address: u64, pte: Pte) -> (u64, Inserted) {
        let set = self.set(integer);
        let mut victim = 0;
        for (place, row) in set.iter().enumerate() {
            if row.is_for(integer) {
                victim = place;
                break;
            }
            let temperature = |row: &Row| (row.address() != 0, row.counter());
            if temperature(row) < temperature(&set[victim]) {
                victim = place;
            }
        }
        let inserted = match set[victim] {
            row if row.is_for(integer) => Inserted::Replaced,
            row if row.address() == 0 => Inserted::Free,
            _ => Inserted::Evicted,
        };
        let place = self.first(integer) + victim;
        *self.row_mut(place) = Row::new(integer, address, pte);
        (self.base + place as u64 * ROW_BYTES, inserted)
    }

    /// Frees the row for an integer, and says where it lay.
    pub fn remove(&mut self, integer: u64) -> Option<u64> {
        let place = self.row_for(integer)?;
        *self.row_mut(place) = Row::FREE;
        Some(self.base + place as u64 * ROW_BYTES)
    }

    /// Brings the translations up to date: `current` is asked for every row in use, is told where it lies, and says
    /// what its entry is to be; with [`Pte::NONE`] the row is freed. The number of rows that changed.
    pub fn scrub(&mut self, mut current: impl FnMut(u64, &Row) -> Pte) -> u64 {
        let mut changed = 0;
        let places = (self.base..).step_by(ROW_BYTES as usize);
        let rows = self.blocks.iter_mut().flat_map(|block| &mut block.0);
        for (place, row) in places.zip(rows).filter(|(_, row)| row.address() != 0) {
            let pte = current(place, row);
            if pte != row.pte {
                changed += 1;
                *row = if pte.is_present() { Row { pte, ..*row } } else { Row::FREE };
            }
        }
        changed
    }

    /// Rows in use.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.blocks.iter().flat_map(|block| &block.0).filter(|row| row.address() != 0).count() as u64
    }

    /// xorshift64* (Vigna, ACM Trans. Math. Softw. 42(4), 2016): the high bits are the good ones.
    fn draw(&mut self) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 40
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::PageSize;

    fn table(rows: u64, ways: u32) -> Table {
        Table::new(rows, ways, Variant::Full, 1 << 40, 1).expect("a legal shape")
    }

    fn pte() -> Pte {
        Pte::new(0x9000, PageSize::Small)
    }

    #[test]
    fn a_set_is_numbered_by_the_bits_above_the_sub_integer() {
        let table = table(1024, 4);
        // 256 sets of 64 bytes.
        assert_eq!(table.set_address(0xfff), 1 << 40);
        assert_eq!(table.set_address(0x1000), (1 << 40) + 64);
        assert_eq!(table.set_address(0x100 << 12), 1 << 40, "eight bits of set number");
    }

    #[test]
    fn what_is_inserted_is_loaded_by_its_sub_integer_alone() {
        let mut table = table(1024, 4);
        assert_eq!(table.load(0x5123), None);
        assert_eq!(table.insert(0x5123, 0x7f00_1234, pte()).1, Inserted::Free);
        let Found { place, row, counted } = table.load(0x5123).expect("it was inserted");
        assert!(counted, "the first hit of a row always counts");
        assert_eq!((place, row.address(), row.pte()), ((1 << 40) + 5 * 64, 0x7f00_1234, pte()));
        // A collision: another integer with the same set and sub-integer gives the same, wrong, address.
        assert_eq!(table.load(0x9910_0000_0000_5123).map(|found| found.row.address()), Some(0x7f00_1234));
        assert_eq!(table.load(0x5124), None);
        assert_eq!(table.insert(0x5123, 0x7f00_9999, pte()).1, Inserted::Replaced, "a record that moved");
        assert_eq!(table.used(), 1);
        assert_eq!(table.remove(0x5123), Some(place));
        assert_eq!(table.load(0x5123), None);
    }

    #[test]
    fn the_row_that_was_used_least_is_evicted() {
        let mut table = table(4, 4);
        for integer in 0..4 {
            table.insert(integer, 0x1000 + integer, pte());
        }
        // The first hit of a row always counts.
        for integer in [0, 1, 3] {
            table.load(integer);
        }
        assert_eq!(table.insert(9, 0x2000, pte()).1, Inserted::Evicted);
        assert_eq!(table.load(2), None);
        assert!([0, 1, 3, 9].into_iter().all(|integer| table.load(integer).is_some()));
    }

    #[test]
    fn a_counter_overflows_after_two_to_the_sixteen_updates_on_average() {
        let mut table = table(1, 1);
        table.insert(0, 0x1000, pte());
        let (mut updates, mut overflows, mut last) = (0_u64, 0_u64, 0);
        while overflows < 200 {
            updates += 1;
            let row = table.load(0).expect("the row").row;
            overflows += u64::from(row.counter() < last);
            last = row.counter();
        }
        let mean = updates as f64 / overflows as f64;
        // The last step dominates: one geometric waiting time of mean 2^15 and standard deviation as much;
        // the sum's is about 37 800, and that of the mean of 200 about 2 700. Five of those on either side.
        assert!((mean - 65_535.0).abs() < 13_500.0, "{mean}");
    }

    #[test]
    fn impossible_tables_are_refused() {
        let new = |rows, ways| Table::new(rows, ways, Variant::Full, 0, 0).map(|_| ());
        assert_eq!(new(64, 3), Err(TableError::Ways(3)));
        for (rows, ways) in [(0, 1), (100, 4), (4, 8)] {
            assert_eq!(new(rows, ways), Err(TableError::Rows { rows, ways }));
        }
        assert_eq!(new(8, 8), Ok(()));
    }

    #[test]
    fn a_set_is_whole_whatever_its_size() {
        for (rows, ways) in [(1, 1), (2, 1), (4, 2), (4, 4), (64, 1), (64, 2), (64, 4), (64, 8)] {
            let mut table = table(rows, ways);
            // As many of each set as it has rows, and then one more.
            let all = 0..rows;
            let integer = |row: u64| ((row / u64::from(ways)) << 12) + row % u64::from(ways);
            for row in all.clone() {
                let (place, inserted) = table.insert(integer(row), 0x1000 + row, pte());
                assert_eq!((place, inserted), ((1 << 40) + 16 * row, Inserted::Free));
                let set = table.set(integer(row));
                assert_eq!(
                    (set.len() as u32, set.as_ptr() as usize % 64 / 16),
                    (ways, row as usize / ways as usize * ways as usize % 4)
                );
            }
            let found = |row| table.load(integer(row)).map(|found| (found.place, found.row.address()));
            assert!(all.map(found).eq((0..rows).map(|row| Some(((1 << 40) + 16 * row, 0x1000 + row)))));
            assert_eq!(table.insert(integer(0) | 0x800, 0x9000, pte()).1, Inserted::Evicted);
            assert_eq!((table.used(), table.rows()), (rows, rows));
            assert_eq!(table.scrub(|_, _| Pte::NONE), rows);
            assert_eq!(table.used(), 0);
        }
    }
}
