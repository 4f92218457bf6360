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
//! A larger page of which a part is unmapped is split.

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
        PageTable { levels, entries, tables: vec![root], frames, default, ranges: Vec::new() }
    }

    /// The number of levels.
    #[must_use]
    pub fn levels(&self) -> u32 {
        self.levels
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

    /// Unmaps every page that `range` touches, and says where each began and how large it was. Of a larger page
    /// that lies in the range only in part, the rest stays where it is, in pages of the next size below (as Linux
    /// does): the larger one's translation is gone all the same.
    pub fn unmap(&mut self, range: Range<u64>) -> Vec<(u64, PageSize)> {
        let mut gone = Vec::new();
        let mut address = range.start;
        while address < range.end {
            let (slot, span) = self.lowest(address);
            let start = address & !(span - 1);
            let leaf = Pte::from_bits(self.entries[slot]);
            if leaf.is_present() {
                let whole = range.start <= start && start.saturating_add(span) <= range.end;
                let parted = if whole { None } else { self.split(slot, leaf) };
                // The parts of a page that was withdrawn already need not be withdrawn once more.
                let withdrawn = |&(base, size): &(u64, PageSize)| size.base(address) == base;
                if !gone.last().is_some_and(withdrawn) {
                    gone.push((start, leaf.size()));
                }
                if parted.is_some() {
                    continue;
                }
                self.entries[slot] = 0;
            }
            // Behind the last page there is nothing, and no range goes on.
            address = start.saturating_add(span);
        }
        gone
    }

    /// Every page that `range` touches: where it begins, and how large it is.
    #[must_use]
    pub fn pages(&self, range: Range<u64>) -> Vec<(u64, PageSize)> {
        let mut pages = Vec::new();
        let mut address = range.start;
        while address < range.end {
            let (slot, span) = self.lowest(address);
            let start = address & !(span - 1);
            let leaf = Pte::from_bits(self.entries[slot]);
            if leaf.is_present() {
                pages.push((start, leaf.size()));
            }
            // Behind the last page there is nothing, and no range goes on.
            address = start.saturating_add(span);
        }
        pages
    }

    /// The entry at which the walk for `address` ends, and the bytes that it spans.
    fn lowest(&self, address: u64) -> (usize, u64) {
        let (mut table, mut level) = (0, self.levels);
        loop {
            let slot = self.slot(table, level, address);
            let entry = self.entries[slot];
            if entry & TABLE == 0 || level == 1 {
                return (slot, 1 << (12 + 9 * (level - 1)));
            }
            table = (entry >> 12) as usize;
            level -= 1;
        }
    }

    /// Makes pages of the next size below out of a larger one: the same bytes at the same place. Nothing, if there
    /// is no smaller size.
    fn split(&mut self, slot: usize, leaf: Pte) -> Option<()> {
        let smaller = PageSize::ALL[(leaf.size() as usize).checked_sub(1)?];
        let table = self.tables.len();
        self.tables.push(self.frames.table());
        let frames = (0..FANOUT as u64).map(|part| leaf.frame() + part * smaller.bytes());
        self.entries.extend(frames.map(|frame| Pte::new(frame, smaller).bits()));
        self.entries[slot] = (table as u64) << 12 | TABLE;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_reads_one_entry_per_level_down_to_its_leaf() {
        for levels in [4, 5] {
            for size in PageSize::ALL {
                let mut table = PageTable::new(levels, size, Frames::Sequential {}, 0);
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
        assert_eq!(table.tables.len(), 4);
    }

    #[test]
    fn ranges_choose_the_size_and_fall_back() {
        let mut table = PageTable::new(4, PageSize::Small, Frames::Sequential {}, 0);
        table.map(0x20_0000);
        table.use_pages(0x20_0000..0x80_0000, PageSize::Large);
        assert_eq!(table.map(0x20_1000).size(), PageSize::Small, "a table of small pages is there");
        assert_eq!(table.map(0x40_1000).size(), PageSize::Large);
        assert_eq!(table.map(0x80_0000).size(), PageSize::Small, "outside");
    }

    #[test]
    fn unmapping_takes_what_the_range_touches() {
        let mut table = PageTable::new(4, PageSize::Small, Frames::Sequential {}, 0);
        table.use_pages(0x4000_0000..0x8000_0000, PageSize::Large);
        for address in [0x1000, 0x2000, 0x3000, 0x4000_0000, 0x4020_0000] {
            table.map(address);
        }
        assert_eq!(table.unmap(0x1800..0x3000), [(0x1000, PageSize::Small), (0x2000, PageSize::Small)]);
        assert_eq!(table.entry(0x2000), None);
        assert!(table.entry(0x3000).is_some());
        let rest =
            [(0x3000, PageSize::Small), (0x4000_0000, PageSize::Large), (0x4020_0000, PageSize::Large)];
        assert_eq!(table.pages(0..1 << 47), rest);
        assert_eq!(table.pages(0x4000_1000..0x4000_2000), rest[1..2]);
        assert_eq!(table.unmap(0..1 << 47), rest);
        assert_eq!(table.pages(0..1 << 47), []);
    }

    #[test]
    fn a_part_of_a_large_page_leaves_the_rest_where_it_is() {
        for (size, base) in [(PageSize::Large, 0x4020_0000), (PageSize::Giant, 0x8000_0000_u64)] {
            let mut table = PageTable::new(4, size, Frames::Random { seed: 3 }, 0);
            let frame = table.map(base).frame();
            let gone = table.unmap(base + 0x5000..base + 0x7000);
            assert_eq!(gone, [(base, size)], "one translation is withdrawn");
            for page in [0, 4, 7, 511] {
                let address = base + (page << 12) + 0x123;
                let entry = table.entry(address).expect("it was not unmapped");
                assert_eq!(entry.translate(address), frame + (page << 12) + 0x123, "{size:?}, page {page}");
                assert_eq!(entry.size(), PageSize::Small, "its neighbours are small now");
            }
            for page in [5, 6] {
                assert_eq!(table.entry(base + (page << 12)), None, "{size:?}, page {page}");
            }
            if size == PageSize::Giant {
                let far = table.entry(base + (7 << 21)).expect("it was not unmapped");
                assert_eq!((far.size(), far.frame()), (PageSize::Large, frame + (7 << 21)));
            }
            // The whole goes as a whole, whatever it has become.
            table.unmap(base..base + size.bytes());
            assert_eq!(table.pages(0..1 << 47), []);
        }
    }
}
