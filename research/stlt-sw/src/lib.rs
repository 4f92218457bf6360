//! STLT-SW: the Search Translation Lookaside Table, kept by software alone, for one thread.
//!
//! Ye and others' hardware table (HPCA 2021, sections III-C, III-E and IV-E) without its hardware: rows of 16 bytes in
//! sets of one, two, four or eight, found by ordinary loads. Experiments put it beside the Search Lookaside Buffer; why
//! it is in no library is said in docs/decisions/stlt-in-software.md. C has the same in
//! `research/sim-qemu/guests/stlt_software.h`.
//!
//! ```text
//!   row:   63        60 59            48 47                       0   63                     0
//!         +------------+----------------+--------------------------+  +----------------------+
//!         |  counter   |  sub-integer   |         address          |  |  page-table entry    |
//!         +------------+----------------+--------------------------+  +----------------------+
//! ```
//!
//! * The sub-integer is the integer's lowest 12 bits, which are compared. The bits above choose the set.
//! * A hit raises the row's 4-bit counter with probability 2^-x, x being what it is; so it is full after about 2^15
//!   hits, and stays so (section III-E, which lets it overflow, and says 2^17).
//! * Every miss is inserted: over the row of its sub-integer, a free one, or that of the smallest counter, of several
//!   one at random. There is no log.
//! * The second word is the page-table entry, which only the hardware can use; in software it is room that is lost. It
//!   stays, so that what the table costs in cache lines is what the paper measured.
//!
//! As in hardware, what stands in the row of an integer's sub-integer is the answer: who asks compares keys.

use std::cell::Cell;
use std::error::Error;
use std::fmt;

use pages::{Array, MapError, PageKind};

const SUB_INTEGER_BITS: u32 = 12;
const SUB_INTEGER: u64 = (1 << SUB_INTEGER_BITS) - 1;
const ADDRESS_BITS: u32 = 48;
const ADDRESS: u64 = (1 << ADDRESS_BITS) - 1;
const COUNTER_SHIFT: u32 = ADDRESS_BITS + SUB_INTEGER_BITS;
/// The largest counter.
const FULL: u64 = 15;
/// Bytes of a row.
const ROW: usize = 16;
/// Rows of a line.
const ROWS: usize = 4;

/// Two words a row. Aligned, so that a set of four is one line.
#[derive(Debug, Default)]
#[repr(C, align(64))]
struct Line([[Cell<u64>; 2]; ROWS]);

// SAFETY: cells of integers, for which zero is a value: empty rows. They need no drop.
#[allow(unsafe_code, reason = "a promise of the type, and the only one")]
unsafe impl pages::Zeroed for Line {}

/// Why there is no table.
#[derive(Debug, Clone, PartialEq)]
pub enum Refused {
    /// Rows are a power of two, ways 1, 2, 4 or 8, and there is a set at least.
    Shape,
    /// There is no memory for it.
    Memory(MapError),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Shape => {
                f.write_str("rows are a power of two, sets 1, 2, 4 or 8 rows: give it a set at least")
            }
            Refused::Memory(error) => write!(f, "no memory for the table: {error}"),
        }
    }
}

impl Error for Refused {}

/// The table.
#[derive(Debug)]
pub struct Table {
    lines: Array<Line>,
    rows: usize,
    ways: usize,
    random: Cell<u64>,
}

impl Table {
    /// An empty table of so many rows, so many to a set.
    ///
    /// # Errors
    /// [`Refused`]: there is no such table, or no memory.
    pub fn new(rows: u64, ways: usize) -> Result<Table, Refused> {
        if !rows.is_power_of_two() || !matches!(ways, 1 | 2 | 4 | 8) || rows < ways as u64 {
            return Err(Refused::Shape);
        }
        let rows =
            usize::try_from(rows).map_err(|_| Refused::Memory(MapError::TooLarge { bytes: usize::MAX }))?;
        // Asked to lie in 2 MiB pages, as the tables that it is compared with.
        let lines = Array::map(rows.div_ceil(ROWS), PageKind::Transparent).map_err(Refused::Memory)?;
        Ok(Table { lines, rows, ways, random: Cell::new(0x2545_f491_4f6c_dd1d) })
    }

    /// The largest that so many bytes have room for.
    ///
    /// # Errors
    /// As [`Table::new`].
    pub fn with_bytes(bytes: usize, ways: usize) -> Result<Table, Refused> {
        match (bytes / ROW).checked_ilog2() {
            Some(bits) => Table::new(1 << bits, ways),
            None => Err(Refused::Shape),
        }
    }

    #[inline(always)]
    fn first_row(&self, integer: u64) -> usize {
        ((integer >> SUB_INTEGER_BITS) as usize & (self.rows / self.ways - 1)) * self.ways
    }

    #[inline(always)]
    fn row(&self, row: usize) -> &Cell<u64> {
        &self.lines[row / ROWS].0[row % ROWS][0]
    }

    #[inline(always)]
    fn set(&self, integer: u64) -> impl Iterator<Item = &Cell<u64>> {
        let first = self.first_row(integer);
        (first..first + self.ways).map(|row| self.row(row))
    }

    /// The address that was inserted with the integer, or with another one.
    #[inline(always)]
    #[must_use]
    pub fn get(&self, integer: u64) -> Option<u64> {
        let row = self.set(integer).find(|row| is_of(row.get(), integer))?;
        let word = row.get();
        let counter = word >> COUNTER_SHIFT;
        if counter < FULL && (counter == 0 || self.draw() & ((1 << counter) - 1) == 0) {
            row.set(word + (1 << COUNTER_SHIFT));
        }
        Some(word & ADDRESS)
    }

    /// Asks for the memory that a call with this integer will touch.
    #[inline(always)]
    pub fn prefetch(&self, integer: u64) {
        let first = self.first_row(integer);
        for row in (0..self.ways).step_by(ROWS) {
            pages::prefetch(self.row(first + row));
        }
    }

    /// Keeps where the integer's record is. Only forgets what it had, if that needs more than 48 bits or none.
    pub fn insert(&self, integer: u64, address: u64) {
        if address == 0 || address > ADDRESS {
            return self.remove(integer);
        }
        let word = (integer & SUB_INTEGER) << ADDRESS_BITS | address;
        let known = self.set(integer).find(|row| is_of(row.get(), integer));
        known.unwrap_or_else(|| self.victim(integer)).set(word);
    }

    /// The free row of a set, or the coldest; of several one at random, by where the search begins.
    fn victim(&self, integer: u64) -> &Cell<u64> {
        let (first, start) = (self.first_row(integer), self.draw() as usize);
        let rows = (0..self.ways).map(|step| self.row(first + ((start + step) & (self.ways - 1))));
        let temperature = |row: &&Cell<u64>| (row.get() & ADDRESS != 0, row.get() >> COUNTER_SHIFT);
        rows.min_by_key(temperature).unwrap_or_else(|| self.row(first))
    }

    /// Forgets the integer's record.
    pub fn remove(&self, integer: u64) {
        if let Some(row) = self.set(integer).find(|row| is_of(row.get(), integer)) {
            row.set(0);
        }
    }

    /// Addresses that it has room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.rows
    }

    /// Bytes of its rows.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.rows * ROW
    }

    /// Xorshift (Marsaglia, 2003), shifted down: of its lowest bits the period is short.
    #[inline(always)]
    fn draw(&self) -> u64 {
        let mut random = self.random.get();
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        self.random.set(random);
        random >> 32
    }
}

/// Whether this is the row of the integer's sub-integer.
#[inline(always)]
fn is_of(word: u64, integer: u64) -> bool {
    (word >> ADDRESS_BITS ^ integer) & SUB_INTEGER == 0 && word & ADDRESS != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [usize; 4] = [1, 2, 4, 8];

    fn table(rows: u64, ways: usize) -> Table {
        Table::new(rows, ways).unwrap()
    }

    /// Integers of one set, told apart by the sub-integer.
    fn integer(key: u64) -> u64 {
        key + 1
    }

    fn address(key: u64) -> u64 {
        0x10_0000 + key
    }

    fn holds(table: &Table, key: u64) -> bool {
        table.get(integer(key)) == Some(address(key))
    }

    fn occupancy(table: &Table) -> usize {
        (0..table.rows).filter(|&row| table.row(row).get() & ADDRESS != 0).count()
    }

    fn counter(table: &Table, key: u64) -> u64 {
        let row = table.set(integer(key)).find(|row| is_of(row.get(), integer(key)));
        row.map_or(0, |row| row.get() >> COUNTER_SHIFT)
    }

    #[test]
    fn a_set_holds_as_many_as_it_has_ways() {
        for ways in ALL {
            let (table, many) = (table(64, ways), ways as u64);
            for key in 0..many {
                table.insert(integer(key), address(key));
                table.insert(integer(key), address(key));
            }
            assert!((0..many).all(|key| holds(&table, key)));
            table.insert(integer(many), address(many));
            assert_eq!((occupancy(&table), table.capacity(), table.bytes()), (ways, 64, 1024));
            assert_eq!((0..=many).filter(|&key| holds(&table, key)).count(), ways);
            assert!(holds(&table, many));
            // The other sets have not been touched.
            table.insert(integer(0) | 1 << SUB_INTEGER_BITS, address(500));
            assert_eq!(occupancy(&table), ways + 1);
        }
    }

    #[test]
    fn sets_do_not_overlap() {
        for ways in ALL {
            let table = table(64, ways);
            for set in 0..64 / ways as u64 {
                for key in 0..ways as u64 {
                    table.insert(set << SUB_INTEGER_BITS | integer(key), address(set << 8 | key));
                }
            }
            assert_eq!(occupancy(&table), 64);
        }
    }

    #[test]
    fn the_newer_record_takes_the_row_of_its_sub_integer() {
        for ways in ALL {
            let table = table(8, ways);
            table.insert(integer(0), address(0));
            table.insert(integer(0), address(7));
            assert_eq!((table.get(integer(0)), occupancy(&table)), (Some(address(7)), 1), "{ways} ways");
        }
    }

    #[test]
    fn counters_rise_to_fifteen_and_no_further() {
        let table = table(4, 4);
        table.insert(integer(0), address(0));
        let mut hits = 0u64;
        while counter(&table, 0) < FULL {
            assert!(holds(&table, 0));
            hits += 1;
            assert!(hits < 1 << 20);
        }
        // 1 + 2 + 4 + ... + 2^14 on average.
        assert!(hits > 8_000, "{hits}");
        for _ in 0..1 << 17 {
            assert!(holds(&table, 0), "the counter did not run over into anything");
        }
        assert_eq!(counter(&table, 0), FULL);
    }

    #[test]
    fn the_victim_is_the_row_of_the_smallest_counter() {
        for ways in [2, 4, 8] {
            for cold in 0..ways as u64 {
                let table = table(64, ways);
                for key in 0..ways as u64 {
                    table.insert(integer(key), address(key));
                    // The first hit always counts.
                    assert!(key == cold || holds(&table, key));
                }
                table.insert(integer(99), address(99));
                assert!(!holds(&table, cold) && holds(&table, 99));
                assert!((0..ways as u64).all(|key| key == cold || holds(&table, key)));
            }
        }
    }

    #[test]
    fn of_equally_cold_rows_each_may_be_the_victim() {
        let (table, mut gone) = (table(4, 4), [0; 4]);
        for _ in 0..400 {
            (0..5).for_each(|key| table.remove(integer(key)));
            (0..5).for_each(|key| table.insert(integer(key), address(key)));
            gone[(0..4).find(|&key| !holds(&table, key)).unwrap() as usize] += 1;
        }
        assert!(gone.iter().all(|&times| times > 50), "{gone:?}");
    }

    #[test]
    fn what_is_removed_is_not_found_and_others_are() {
        let table = table(64, 8);
        (0..3).for_each(|key| table.insert(integer(key), address(key)));
        // A hit raises a counter, which must not hide the row.
        assert!(holds(&table, 1));
        table.remove(integer(1));
        table.remove(integer(9));
        assert!(holds(&table, 0) && !holds(&table, 1) && holds(&table, 2));
        // No address, and one that does not fit: no row.
        table.insert(integer(0), 0);
        table.insert(integer(2), 1 << ADDRESS_BITS);
        assert_eq!(occupancy(&table), 0);
    }

    #[test]
    fn an_integer_without_a_sub_integer_does_not_find_empty_rows() {
        let table = table(4, 4);
        assert_eq!(table.get(0), None);
        table.insert(0, 1);
        assert_eq!(table.get(0), Some(1));
    }

    #[test]
    fn tables_that_cannot_be_are_refused() {
        for (rows, ways) in [(0, 1), (3, 1), (4, 8), (64, 3), (64, 0)] {
            assert_eq!(Table::new(rows, ways).unwrap_err(), Refused::Shape, "{rows}, {ways}");
        }
        assert!(matches!(Table::new(1 << 60, 4), Err(Refused::Memory(_))));
        assert!(matches!(Table::new(1 << 63, 4), Err(Refused::Memory(_))));
        let rows = |bytes| Table::with_bytes(bytes, 4).map(|table| table.capacity());
        assert_eq!([64, 127, 128, (1 << 21) - 1].map(rows), [Ok(4), Ok(4), Ok(8), Ok(1 << 16)]);
        assert_eq!([0, 15, 63].map(rows), [const { Err(Refused::Shape) }; 3]);
    }
}
