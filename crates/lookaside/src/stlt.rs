//! STLT-SW: the Search Translation Lookaside Table, kept by software alone.
//!
//! Ye and others' hardware table (HPCA 2021, sections III-C, III-E and IV-E) without its hardware: rows of 16 bytes in
//! sets of one, two, four or eight, found by ordinary loads.
//!
//! ```text
//!   row:   63        60 59            48 47                       0   63                     0
//!         +------------+----------------+--------------------------+  +----------------------+
//!         |  counter   |  sub-integer   |         pointer          |  |  page-table entry    |
//!         +------------+----------------+--------------------------+  +----------------------+
//! ```
//!
//! * A set is chosen by bits of the hash; the 12-bit sub-integer is compared with another part of it, its highest bits.
//! * A hit raises the row's 4-bit counter with probability 2^-x, x being what it is; so it is full after about 2^15 hits,
//!   and stays so (section III-E, which lets it overflow, and says 2^17).
//! * Every miss is inserted, over the row of the smallest counter. There is no log.
//! * The second word is the page-table entry, which only the hardware can use; in software it is room that is lost. It stays,
//!   so that what the table costs in cache lines is what the paper measured.
//!
//! The counter shares a word with what it counts, so raising it is a compare and swap that may fail: then this hit is not
//! counted.

use atomics::{AtomicU64, Ordering};
use pages::PageKind;

use crate::config::CreateError;
use crate::lines::Lines;
use crate::mark::Mark;
use crate::random::Random;
use crate::slb::warmest;
use crate::table::{Emission, Parameters, Table};
use crate::word::Pointer;

/// Bits of the sub-integer.
const SUB_INTEGER_BITS: u32 = 12;
/// Where the counter begins.
const COUNTER_SHIFT: u32 = Pointer::BITS + SUB_INTEGER_BITS;
/// The largest counter.
const MOST: u64 = 15;
/// Bytes of a row.
const ROW: usize = 16;

/// How many rows a hash can mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ways {
    /// Direct-mapped.
    One = 1,
    /// Two.
    Two = 2,
    /// Four, a line: the paper's choice.
    #[default]
    Four = 4,
    /// Eight, two lines.
    Eight = 8,
}

/// The parameters of an [`Stlt`].
#[derive(Debug, Clone, PartialEq)]
pub struct StltConfig {
    /// Bytes: the number of rows is a power of two, the largest that fits.
    pub size: usize,
    /// Rows in a set.
    pub ways: Ways,
    /// The pages that it is asked to lie in.
    pub pages: PageKind,
}

impl StltConfig {
    /// A four-way table of so many bytes.
    #[must_use]
    pub fn with_size(size: usize) -> StltConfig {
        StltConfig { size, ways: Ways::Four, pages: PageKind::Transparent }
    }
}

/// A set of four ways, or what comes to that: two words a row. Aligned, so that a set of four is one line.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Line([[AtomicU64; 2]; 4]);

// SAFETY: atomic integers, for all of which zero is a value: empty rows.
#[cfg(not(loom))]
#[allow(unsafe_code)]
unsafe impl pages::Zeroed for Line {}

/// The first word of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row(u64);

impl Row {
    const EMPTY: Row = Row(0);

    fn new(hash: u64, pointer: Pointer) -> Row {
        Row(sub_integer(hash) << Pointer::BITS | pointer.address())
    }

    fn counter(self) -> u64 {
        self.0 >> COUNTER_SHIFT
    }

    fn without_counter(self) -> Row {
        Row(self.0 & ((1 << COUNTER_SHIFT) - 1))
    }

    fn pointer(self) -> Option<Pointer> {
        Pointer::new(self.0 & ((1 << Pointer::BITS) - 1))
    }

    fn is_for(self, hash: u64) -> bool {
        self.without_counter().0 >> Pointer::BITS == sub_integer(hash)
    }
}

/// The highest bits: those that carry an index's number.
fn sub_integer(hash: u64) -> u64 {
    hash >> (64 - SUB_INTEGER_BITS)
}

/// The table.
#[derive(Debug)]
pub struct Stlt {
    lines: Lines<Line>,
    /// A power of two.
    rows: usize,
    ways: usize,
}

impl Stlt {
    #[cfg(not(loom))]
    fn lines(lines: usize, config: &StltConfig) -> Result<Lines<Line>, CreateError> {
        Ok(Lines::map(lines, config.pages)?)
    }

    #[cfg(loom)]
    fn lines(lines: usize, _config: &StltConfig) -> Result<Lines<Line>, CreateError> {
        Ok((0..lines).map(|_| Line::default()).collect())
    }

    #[inline(always)]
    fn first_row(&self, hash: u64) -> usize {
        (hash as usize & (self.rows / self.ways - 1)) * self.ways
    }

    #[inline(always)]
    fn cell(&self, row: usize) -> &AtomicU64 {
        &self.lines[row / 4].0[row % 4][0]
    }

    #[inline(always)]
    fn set(&self, hash: u64) -> impl Iterator<Item = (&AtomicU64, Row)> {
        let first = self.first_row(hash);
        (first..first + self.ways).map(|row| {
            let cell = self.cell(row);
            // pairs with the release in `exchange`: who sees a pointer sees the entry that was there when it was emitted.
            (cell, Row(cell.load(Ordering::Acquire)))
        })
    }

    fn all(&self) -> impl Iterator<Item = Row> {
        // pairs with the release in `exchange`, as in `set`: the hottest are shown as entries.
        (0..self.rows).map(|row| Row(self.cell(row).load(Ordering::Acquire)))
    }
}

fn exchange(cell: &AtomicU64, old: Row, new: Row) -> bool {
    // release pairs with the acquire in `set`; a failure tells nothing that anyone relies on.
    cell.compare_exchange(old.0, new.0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

impl Parameters for StltConfig {
    type Table = Stlt;

    fn create(&self) -> Result<Stlt, CreateError> {
        let ways = self.ways as usize;
        let fitting = self.size / ROW;
        let least = ways.max(4);
        if fitting < least {
            return Err(CreateError::TooSmall { size: self.size, least: least * ROW });
        }
        let rows = 1usize << (usize::BITS - 1 - fitting.leading_zeros());
        // Below the sub-integer there are 52 bits for the set.
        if rows > 1 << 40 {
            return Err(CreateError::TooLarge { size: self.size, bits: 44 });
        }
        Ok(Stlt { lines: Stlt::lines(rows / 4, self)?, rows, ways })
    }

    fn with_size_of(&self, size: usize) -> StltConfig {
        StltConfig { size, ..self.clone() }
    }
}

// SAFETY: rows are found by comparing the whole sub-integer, and changed by compare and swap only: a row is found while it
// is in its set, which is that of its hash, and `clear` and `forget` look at every row of that set.
#[allow(unsafe_code)]
unsafe impl Table for Stlt {
    type Config = StltConfig;

    #[inline(always)]
    fn find(&self, hash: u64, mut accept: impl FnMut(Pointer) -> bool) -> Option<(usize, Pointer)> {
        for (way, (_, row)) in self.set(hash).enumerate() {
            if row.is_for(hash)
                && let Some(pointer) = row.pointer()
                && accept(pointer)
            {
                return Some((way, pointer));
            }
        }
        None
    }

    /// Each one: how seldom a counter is raised is its own affair.
    fn counted(&self) -> u32 {
        u32::MAX
    }

    #[inline(always)]
    fn warm(&self, hash: u64, slot: usize, random: &Random) {
        let cell = self.cell(self.first_row(hash) + slot);
        // Relaxed: of the pointer nothing is made but the same word again.
        let row = Row(cell.load(Ordering::Relaxed));
        let counter = row.counter();
        if row.is_for(hash)
            && row.pointer().is_some()
            && counter < MOST
            && (counter == 0 || random.next() >> (64 - counter) == 0)
        {
            exchange(cell, row, Row(row.0 + (1 << COUNTER_SHIFT)));
        }
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        #[cfg(not(loom))]
        for row in (0..self.ways).step_by(4) {
            pages::prefetch(self.cell(self.first_row(hash) + row));
        }
        #[cfg(loom)]
        let _ = hash;
    }

    fn wants(&self, _hash: u64, _random: &Random) -> bool {
        true
    }

    fn insert(&self, hash: u64, pointer: Pointer, random: &Random) -> Emission {
        let new = Row::new(hash, pointer);
        let mut victim: Option<(&AtomicU64, Row)> = None;
        // Of equally cold rows one at random, by where the search begins.
        let start = random.below(self.ways as u32) as usize;
        let set: [Option<(&AtomicU64, Row)>; 8] = {
            let mut rows = self.set(hash);
            std::array::from_fn(|_| rows.next())
        };
        for (cell, row) in (0..self.ways).filter_map(|step| set[(start + step) % self.ways]) {
            if row.without_counter() == new {
                return Emission::Present;
            }
            let colder = |than: Row| {
                (row.pointer().is_some(), row.counter()) < (than.pointer().is_some(), than.counter())
            };
            if victim.is_none_or(|(_, than)| colder(than)) {
                victim = Some((cell, row));
            }
        }
        match victim {
            Some((cell, old)) if exchange(cell, old, new) => match old.pointer() {
                None => Emission::Admitted,
                Some(_) => Emission::Replaced,
            },
            _ => Emission::Contended,
        }
    }

    fn clear(&self, hash: u64) -> usize {
        let mut cleared = 0;
        for (cell, mut row) in self.set(hash) {
            while row.is_for(hash) && row.pointer().is_some() {
                cleared += usize::from(exchange(cell, row, Row::EMPTY));
                // pairs as in `set`.
                row = Row(cell.load(Ordering::Acquire));
            }
        }
        cleared
    }

    fn forget(&self, hash: u64, pointer: Pointer) {
        let sought = Row::new(hash, pointer);
        for (cell, mut row) in self.set(hash) {
            // A hit may raise the counter meanwhile.
            while row.without_counter() == sought && !exchange(cell, row, Row::EMPTY) {
                // pairs as in `set`.
                row = Row(cell.load(Ordering::Acquire));
            }
        }
    }

    fn capacity(&self) -> usize {
        self.rows
    }

    fn occupancy(&self) -> usize {
        self.all().filter(|row| row.pointer().is_some()).count()
    }

    fn hottest(&self, most: usize, mark: Mark) -> Vec<(Pointer, u8)> {
        // The sub-integer where the hash has it.
        let own = self.all().filter(|row| mark.is_on(row.0 >> Pointer::BITS << (64 - SUB_INTEGER_BITS)));
        warmest(own.filter_map(|row| Some((row.pointer()?, row.counter() as u8))), most)
    }

    fn bytes(&self) -> usize {
        self.rows * ROW
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const ALL: [Ways; 4] = [Ways::One, Ways::Two, Ways::Four, Ways::Eight];

    fn table(rows: usize, ways: Ways) -> Stlt {
        StltConfig { ways, ..StltConfig::with_size(rows * ROW) }.create().unwrap()
    }

    /// Hashes of one set, told apart by the sub-integer.
    fn hash(key: u64) -> u64 {
        (key + 1) << (64 - SUB_INTEGER_BITS)
    }

    fn pointer(key: u64) -> Pointer {
        Pointer::new(0x10_0000 + key).unwrap()
    }

    fn holds(table: &Stlt, random: &Random, key: u64) -> bool {
        table.hit(hash(key), random, |found| found == pointer(key)).is_some()
    }

    #[test]
    fn a_set_holds_as_many_as_it_has_ways() {
        let random = Random::new(1);
        for ways in ALL {
            let (table, many) = (table(64, ways), ways as u64);
            for key in 0..many {
                assert!(table.wants(hash(key), &random));
                assert_eq!(table.insert(hash(key), pointer(key), &random), Emission::Admitted);
                assert_eq!(table.insert(hash(key), pointer(key), &random), Emission::Present);
            }
            assert!((0..many).all(|key| holds(&table, &random, key)
                && table.peek(hash(key)).is_some_and(|(_, found)| found == pointer(key))));
            assert_eq!(table.insert(hash(many), pointer(many), &random), Emission::Replaced);
            assert_eq!((table.occupancy(), table.capacity()), (ways as usize, 64));
            assert_eq!((0..=many).filter(|&key| holds(&table, &random, key)).count(), ways as usize);
            // The other sets have not been touched.
            assert_eq!(table.insert(hash(0) | 1, pointer(500), &random), Emission::Admitted);
        }
    }

    #[test]
    fn sets_do_not_overlap() {
        let random = Random::new(1);
        for ways in ALL {
            let table = table(64, ways);
            let sets = 64 / ways as u64;
            for set in 0..sets {
                for key in 0..ways as u64 {
                    let outcome = table.insert(hash(key) | set, pointer(set << 8 | key), &random);
                    assert_eq!(outcome, Emission::Admitted);
                }
            }
            assert_eq!(table.occupancy(), 64);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "statistics of many steps, and no unsafe code")]
    fn counters_rise_to_fifteen_and_no_further() {
        let (table, random) = (table(4, Ways::Four), Random::new(1));
        table.insert(hash(0), pointer(0), &random);
        let mut hits = 0u64;
        while table.hottest(1, Mark::new(0, 0))[0].1 < 15 {
            assert!(holds(&table, &random, 0));
            hits += 1;
            assert!(hits < 1 << 20);
        }
        // 1 + 2 + 4 + ... + 2^14 on average.
        assert!(hits > 8_000, "{hits}");
        for _ in 0..1 << 17 {
            assert!(holds(&table, &random, 0));
        }
        assert_eq!(table.hottest(9, Mark::new(0, 0)), [(pointer(0), 15)]);
        assert_eq!(
            table.peek(hash(0)).map(|(_, found)| found),
            Some(pointer(0)),
            "the counter did not run over into anything"
        );
    }

    #[test]
    fn the_victim_is_the_row_of_the_smallest_counter() {
        let random = Random::new(1);
        for ways in [Ways::Two, Ways::Four, Ways::Eight] {
            for cold in 0..ways as u64 {
                let table = table(64, ways);
                for key in 0..ways as u64 {
                    table.insert(hash(key), pointer(key), &random);
                    // The first hit always counts.
                    assert!(key == cold || holds(&table, &random, key));
                }
                assert_eq!(table.insert(hash(99), pointer(99), &random), Emission::Replaced);
                assert!(!holds(&table, &random, cold) && holds(&table, &random, 99));
                assert!((0..ways as u64).all(|key| key == cold || holds(&table, &random, key)));
            }
        }
    }

    #[test]
    fn of_equally_cold_rows_each_may_be_the_victim() {
        let random = Random::new(1);
        let mut gone = [0; 4];
        for _ in 0..400 {
            let table = table(4, Ways::Four);
            (0..5).for_each(|key| {
                table.insert(hash(key), pointer(key), &random);
            });
            gone[(0..4).find(|&key| !holds(&table, &random, key)).unwrap() as usize] += 1;
        }
        assert!(gone.iter().all(|&times| times > 50), "{gone:?}");
    }

    #[test]
    fn clearing_forgets_all_of_a_sub_integer_and_forgetting_one_pointer() {
        let random = Random::new(1);
        let table = table(64, Ways::Eight);
        for key in 0..3 {
            table.insert(hash(7), pointer(key), &random);
            table.insert(hash(8), pointer(10 + key), &random);
        }
        // A hit raises a counter, which must not hide the row.
        assert!(table.hit(hash(8), &random, |found| found == pointer(11)).is_some());
        table.forget(hash(8), pointer(11));
        table.forget(hash(8), pointer(0));
        assert_eq!(table.occupancy(), 5);
        assert!(table.hit(hash(7), &random, |found| found == pointer(1)).is_some());
        assert_eq!(table.clear(hash(7)), 3);
        assert_eq!((table.clear(hash(7)), table.occupancy()), (0, 2));
        assert_eq!(table.hit(hash(8), &random, |found| found == pointer(12)), Some(pointer(12)));
        assert_eq!(table.hit(hash(7), &random, |_| true), None);
    }

    #[test]
    fn a_hash_without_a_sub_integer_does_not_find_empty_rows() {
        let (table, random) = (table(4, Ways::Four), Random::new(1));
        assert_eq!(table.hit(0, &random, |_| panic!("empty rows point nowhere")), None);
        assert_eq!((table.peek(0), table.clear(0)), (None, 0));
        assert_eq!(table.insert(0, pointer(1), &random), Emission::Admitted);
        assert_eq!(table.peek(0).map(|(_, found)| found), Some(pointer(1)));
    }
}
