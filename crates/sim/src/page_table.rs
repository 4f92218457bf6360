//! The radix page table of x86-64: four or five levels of 512 entries, leaves at the three page sizes.
//!
//! ```text
//!   level:      5          4          3          2          1
//!          | 56..48   | 47..39   | 38..30   | 29..21   | 20..12   | 11..0  |
//!                                    1 GiB      2 MiB      4 KiB    leaves
//! ```
//!
//! (Intel 64 manual, volume 3, chapter on paging.) Every table has a physical frame, so every entry has a
//! physical address: those are what the walker reads through the caches. Mapping is on demand, by a policy
//! that says which ranges are in which size of page; where a range already holds a table of smaller pages, a
//! page that would need its slot falls back to the largest size that still fits, as an operating system does.

use std::ops::Range;

use crate::frames::{FrameAllocator, Frames};
use crate::page::{PageSize, Pte};

/// Entries of one table.
const FANOUT: usize = 512;
/// Marks an entry that names a table; the number of the table stands above bit 12.
const TABLE: u64 = 1 << 3;

/// The most levels that a table can have.
const MOST_LEVELS: usize = 5;

/// What a walk from the root finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    addresses: [u64; MOST_LEVELS],
    length: usize,
    /// The leaf, or [`Pte::NONE`].
    pub leaf: Pte,
}

impl Path {
    /// The physical addresses of the entries read, the root's first.
    #[must_use]
    pub fn addresses(&self) -> &[u64] {
        &self.addresses[..self.length]
    }
}

/// A page table, its frames and its policy.
#[derive(Debug, Clone)]
pub struct PageTable {
    levels: u32,
    /// Table `n` is `entries[n * 512..][..512]`.
    entries: Vec<u64>,
    /// Where each table lies.
    tables: Vec<u64>,
    frames: FrameAllocator,
    default: PageSize,
    /// Ranges with a size of their own; a later one goes before an earlier one.
    ranges: Vec<(Range<u64>, PageSize)>,
    mapped: u64,
}

impl PageTable {
    /// An empty table of `levels` levels (4 or 5) whose pages are `default`-sized where nothing else is said.
    /// Tables of different processes share no frames.
    #[must_use]
    pub fn new(levels: u32, default: PageSize, frames: Frames, process: u8) -> PageTable {
        let mut frames = FrameAllocator::new(frames, process);
        let root = frames.table();
        let levels = levels.clamp(4, MOST_LEVELS as u32);
        let entries = vec![0; FANOUT];
        PageTable { levels, entries, tables: vec![root], frames, default, ranges: Vec::new(), mapped: 0 }
    }

    /// The number of levels.
    #[must_use]
    pub fn levels(&self) -> u32 {
        self.levels
    }

    /// Pages that were mapped so far.
    #[must_use]
    pub fn mapped(&self) -> u64 {
        self.mapped
    }

    /// Bytes that the tables take.
    #[must_use]
    pub fn table_bytes(&self) -> u64 {
        self.tables.len() as u64 * PageSize::Small.bytes()
    }

    /// Pages that are mapped in `range` from now on are of `size`, if they lie in it whole.
    pub fn use_pages(&mut self, range: Range<u64>, size: PageSize) {
        self.ranges.push((range, size));
    }

    #[inline]
    fn slot(&self, table: usize, level: u32, address: u64) -> usize {
        table * FANOUT + (address >> (12 + 9 * (level - 1))) as usize % FANOUT
    }

    /// What a hardware walk for `address` reads and finds.
    #[must_use]
    pub fn path(&self, address: u64) -> Path {
        let mut path = Path { addresses: [0; MOST_LEVELS], length: 0, leaf: Pte::NONE };
        let mut table = 0;
        for level in (1..=self.levels).rev() {
            let slot = self.slot(table, level, address);
            path.addresses[path.length] = self.tables[table] + 8 * (slot % FANOUT) as u64;
            path.length += 1;
            let entry = self.entries[slot];
            if entry & TABLE == 0 {
                path.leaf = Pte::from_bits(entry);
                break;
            }
            table = (entry >> 12) as usize;
        }
        path
    }

    fn wanted(&self, address: u64) -> PageSize {
        for (range, size) in self.ranges.iter().rev() {
            let base = size.base(address);
            if range.start <= base && base.saturating_add(size.bytes()) <= range.end {
                return *size;
            }
        }
        self.default
    }

    /// Maps the page of `address` if it is not mapped, and says what it is mapped to.
    pub fn map(&mut self, address: u64) -> Pte {
        let wanted = self.wanted(address);
        let mut table = 0;
        for level in (1..=self.levels).rev() {
            let slot = self.slot(table, level, address);
            match self.entries[slot] {
                // A table below the wanted leaf level may be there already: then the page becomes a smaller one.
                0 if level <= wanted.leaf_level() => {
                    let size = PageSize::ALL[level as usize - 1];
                    let leaf = Pte::new(self.frames.page(address, size), size);
                    self.entries[slot] = leaf.bits();
                    self.mapped += 1;
                    return leaf;
                }
                0 => {
                    let next = self.tables.len();
                    self.tables.push(self.frames.table());
                    self.entries.resize(self.entries.len() + FANOUT, 0);
                    self.entries[slot] = (next as u64) << 12 | TABLE;
                    table = next;
                }
                entry if entry & TABLE != 0 => table = (entry >> 12) as usize,
                leaf => return Pte::from_bits(leaf),
            }
        }
        Pte::NONE
    }

    /// The entry of `address`, if it is mapped.
    #[must_use]
    pub fn entry(&self, address: u64) -> Option<Pte> {
        let leaf = self.path(address).leaf;
        leaf.is_present().then_some(leaf)
    }

    /// Unmaps every page that `range` touches, and says where each began and how large it was.
    pub fn unmap(&mut self, range: Range<u64>) -> Vec<(u64, PageSize)> {
        let mut gone = Vec::new();
        let mut address = range.start;
        while address < range.end {
            let step = self.unmap_step(address, &mut gone);
            match (address & !(step - 1)).checked_add(step) {
                Some(next) => address = next,
                None => break,
            }
        }
        gone
    }

    /// Clears the leaf of `address`; the bytes that were dealt with.
    fn unmap_step(&mut self, address: u64, gone: &mut Vec<(u64, PageSize)>) -> u64 {
        let mut table = 0;
        for level in (1..=self.levels).rev() {
            let slot = self.slot(table, level, address);
            let entry = self.entries[slot];
            let span = 1 << (12 + 9 * (level - 1));
            if entry == 0 {
                return span;
            }
            if entry & TABLE == 0 {
                self.entries[slot] = 0;
                let size = Pte::from_bits(entry).size();
                gone.push((size.base(address), size));
                return span;
            }
            table = (entry >> 12) as usize;
        }
        PageSize::Small.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_reads_one_entry_per_level_down_to_its_leaf() {
        for levels in [4, 5] {
            for size in PageSize::ALL {
                let mut table = PageTable::new(levels, size, Frames::Sequential, 0);
                assert_eq!(table.path(0x1234_5678).addresses().len(), 1, "an empty root ends the walk");
                let leaf = table.map(0x1234_5678);
                assert_eq!(leaf.size(), size);
                let path = table.path(0x1234_5678);
                assert_eq!(path.leaf, leaf);
                assert_eq!(path.addresses().len() as u32, levels + 1 - size.leaf_level());
            }
        }
    }

    #[test]
    fn neighbours_share_all_but_the_last_entry() {
        let mut table = PageTable::new(4, PageSize::Small, Frames::Random { seed: 1 }, 0);
        table.map(0x40_0000);
        table.map(0x40_1000);
        let (one, two) = (table.path(0x40_0000), table.path(0x40_1000));
        assert_eq!(one.addresses()[..3], two.addresses()[..3]);
        assert_eq!(one.addresses()[3] + 8, two.addresses()[3]);
        assert_eq!(table.mapped(), 2);
        assert_eq!(table.table_bytes(), 4 * 4096);
    }

    #[test]
    fn ranges_choose_the_size_and_fall_back() {
        let mut table = PageTable::new(4, PageSize::Small, Frames::Sequential, 0);
        table.map(0x20_0000);
        table.use_pages(0x20_0000..0x80_0000, PageSize::Large);
        assert_eq!(table.map(0x20_1000).size(), PageSize::Small, "a table of small pages is there");
        assert_eq!(table.map(0x40_1000).size(), PageSize::Large);
        assert_eq!(table.map(0x80_0000).size(), PageSize::Small, "outside");
    }

    #[test]
    fn unmapping_takes_what_the_range_touches() {
        let mut table = PageTable::new(4, PageSize::Small, Frames::Sequential, 0);
        table.use_pages(0x4000_0000..0x8000_0000, PageSize::Large);
        for address in [0x1000, 0x2000, 0x3000, 0x4000_0000, 0x4020_0000] {
            table.map(address);
        }
        assert_eq!(table.unmap(0x1800..0x3000), [(0x1000, PageSize::Small), (0x2000, PageSize::Small)]);
        assert_eq!(table.entry(0x2000), None);
        assert!(table.entry(0x3000).is_some());
        let gone = table.unmap(0..1 << 47);
        assert_eq!(
            gone,
            [(0x3000, PageSize::Small), (0x4000_0000, PageSize::Large), (0x4020_0000, PageSize::Large)]
        );
    }
}
