//! The page walker: which entries it reads, in which order, and what it finds.
//!
//! Natively a walk reads one entry a level, from the root to the leaf: four or five dependent reads, fewer
//! for large pages and where a paging-structure cache knows the way.
//!
//! In a virtual machine every address in the guest's table is itself translated by the host's (Bhargava,
//! Serebrin, Spadini and Manne, "Accelerating Two-Dimensional Page Walks for Virtualized Systems", ASPLOS
//! 2008):
//!
//! ```text
//!            host walk      host walk      host walk      host walk      host walk
//!                |              |              |              |              |
//!   guest:    level 4  -->   level 3  -->   level 2  -->   level 1  -->    data
//! ```
//!
//! With g levels in the guest and h in the host that is (g + 1)(h + 1) - 1 reads: 24 for four and four. A
//! nested TLB, from the guest's physical addresses to the host's pages, answers most of the host walks; a hit in the
//! guest's paging-structure cache skips whole columns. The TLB keeps the product of both translations, in the
//! smaller of the two page sizes.
//!
//! Entries are read through the caches, by the closure that the caller hands in. Reads of one walk depend on
//! each other, so it is enough to count how many were served by each level.

use serde::{Deserialize, Serialize};

use crate::cache::Level;
use crate::frames::Frames;
use crate::lru::LruSets;
use crate::page::{PageSize, Pte};
use crate::page_table::PageTable;
use crate::structure_caches::{StructureCacheShape, StructureCaches};

/// The host's side of nested paging.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NestedShape {
    /// Levels of the host's page table: 4 or 5.
    pub levels: u32,
    /// The host's pages.
    pub pages: PageSize,
    /// Entries of the nested TLB, fully associative; zero is none.
    pub tlb_entries: u32,
    /// The host's own paging-structure caches.
    #[serde(default)]
    pub structure_caches: StructureCacheShape,
}

/// How addresses are translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paging {
    /// Levels of the page table: 4 or 5.
    pub levels: u32,
    /// The size of pages where nothing else is said.
    pub pages: PageSize,
    /// How physical frames are chosen.
    pub frames: Frames,
    /// Paging-structure caches; without this there are none.
    #[serde(default)]
    pub structure_caches: StructureCacheShape,
    /// In a virtual machine: the host.
    #[serde(default)]
    pub nested: Option<NestedShape>,
}

/// What to do where nothing is mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFault {
    /// Map a page, as the operating system would on a first touch.
    Map,
    /// Give up: the simplified walker of `insertSTLT`, and prefetchers.
    GiveUp,
}

/// How many entries of a walk each level of the caches served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WalkReads {
    served: [u8; 4],
    /// Where the machine's log lists them.
    place: u32,
}

impl WalkReads {
    /// Entries that `level` served.
    #[must_use]
    pub const fn from(self, level: Level) -> u32 {
        self.served[level as usize] as u32
    }

    /// All entries.
    #[must_use]
    pub const fn total(self) -> u32 {
        let [l1, l2, l3, memory] = self.served;
        l1 as u32 + l2 as u32 + l3 as u32 + memory as u32
    }

    /// The same, and one more that `level` served.
    pub(crate) const fn with(mut self, level: Level) -> WalkReads {
        self.served[level as usize] += 1;
        self
    }

    pub(crate) const fn beginning_at(self, place: u32) -> WalkReads {
        WalkReads { place, ..self }
    }

    pub(crate) const fn place(self) -> u32 {
        self.place
    }
}

/// The end of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Walked {
    /// The translation, or [`Pte::NONE`].
    pub pte: Pte,
    /// What was read.
    pub reads: WalkReads,
    /// Whether a page had to be mapped first.
    pub faulted: bool,
    /// Whether a paging-structure cache spared the root.
    pub shortened: bool,
}

#[derive(Debug, Clone)]
struct Host {
    table: PageTable,
    pages: PageSize,
    tlb: Option<LruSets<Pte>>,
    structure_caches: StructureCaches,
}

impl Host {
    /// The host's translation of a guest-physical address.
    fn translate(&mut self, address: u64, read: &mut impl FnMut(u64)) -> Pte {
        // All of the host's pages are of one size: an entry reaches as far as a page.
        let page = self.pages.number(address);
        if let Some(pte) = self.tlb.as_mut().and_then(|tlb| tlb.get(page)) {
            return *pte;
        }
        self.table.map(address);
        let path = self.table.path(address);
        let addresses = path.addresses();
        let (levels, length) = (self.table.levels(), addresses.len());
        let skipped = self.structure_caches.skip(address, levels, length);
        addresses[skipped..].iter().for_each(|&entry| read(entry));
        self.structure_caches.learn(address, levels, skipped..length);
        if let Some(tlb) = &mut self.tlb {
            tlb.put(page, path.leaf);
        }
        path.leaf
    }
}

/// The walker and the tables it walks.
#[derive(Debug, Clone)]
pub struct Walker {
    table: PageTable,
    structure_caches: StructureCaches,
    host: Option<Host>,
}

impl Walker {
    /// A walker over empty tables.
    #[must_use]
    pub fn new(paging: &Paging, process: u8) -> Walker {
        let host = paging.nested.map(|nested| Host {
            table: PageTable::new(nested.levels, nested.pages, paging.frames, process),
            pages: nested.pages,
            tlb: (nested.tlb_entries > 0).then(|| LruSets::new(1, nested.tlb_entries as usize)),
            structure_caches: StructureCaches::new(&nested.structure_caches),
        });
        // Behind a host, the guest's frames are only numbers that the host scatters.
        let frames = if host.is_some() { Frames::Sequential {} } else { paging.frames };
        Walker {
            table: PageTable::new(paging.levels, paging.pages, frames, process),
            structure_caches: StructureCaches::new(&paging.structure_caches),
            host,
        }
    }

    /// The program's page table (in a virtual machine: the guest's).
    #[must_use]
    pub fn table(&self) -> &PageTable {
        &self.table
    }

    /// The same, to be changed.
    pub fn table_mut(&mut self) -> &mut PageTable {
        &mut self.table
    }

    /// Walks for `address`. `read` is given the physical address of each entry and says which level had it.
    pub fn walk(&mut self, address: u64, on_fault: OnFault, mut read: impl FnMut(u64) -> Level) -> Walked {
        let mut reads = WalkReads::default();
        let mut read = |entry: u64| reads = reads.with(read(entry));
        let mut path = self.table.path(address);
        let faulted = !path.leaf.is_present() && on_fault == OnFault::Map;
        if faulted {
            // The fault itself costs nothing here; the walk is that after the fault.
            self.table.map(address);
            path = self.table.path(address);
        }
        let addresses = path.addresses();
        let (levels, length) = (self.table.levels(), addresses.len());
        let skipped = self.structure_caches.skip(address, levels, length);
        for &entry in &addresses[skipped..] {
            match &mut self.host {
                None => read(entry),
                Some(host) => {
                    let pte = host.translate(entry, &mut read);
                    read(pte.translate(entry));
                }
            }
        }
        self.structure_caches.learn(address, levels, skipped..length);
        let mut pte = path.leaf;
        if let Some(host) = &mut self.host
            && pte.is_present()
        {
            let physical = pte.translate(address);
            let outer = host.translate(physical, &mut read);
            pte = Pte::new(outer.translate(physical), pte.size().min(outer.size()));
        }
        Walked { pte, reads, faulted, shortened: skipped > 0 }
    }

    /// Forgets what the paging-structure caches and the nested TLB know.
    pub fn forget(&mut self) {
        self.structure_caches.clear();
        if let Some(host) = &mut self.host {
            host.structure_caches.clear();
            if let Some(tlb) = &mut host.tlb {
                tlb.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paging() -> Paging {
        Paging {
            levels: 4,
            pages: PageSize::Small,
            frames: Frames::Sequential {},
            structure_caches: StructureCacheShape::default(),
            nested: None,
        }
    }

    fn small_host() -> NestedShape {
        let structure_caches = StructureCacheShape::default();
        NestedShape { levels: 4, pages: PageSize::Small, tlb_entries: 0, structure_caches }
    }

    fn reads(walker: &mut Walker, address: u64) -> u32 {
        walker.walk(address, OnFault::Map, |_| Level::L1).reads.total()
    }

    #[test]
    fn a_native_walk_reads_a_level_each() {
        for (levels, pages, expected) in [
            (4, PageSize::Small, 4),
            (5, PageSize::Small, 5),
            (4, PageSize::Large, 3),
            (4, PageSize::Giant, 2),
        ] {
            let mut walker = Walker::new(&Paging { levels, pages, ..paging() }, 0);
            assert_eq!(reads(&mut walker, 0x7000_1234), expected);
            assert_eq!(reads(&mut walker, 0x7000_1234), expected);
        }
    }

    #[test]
    fn a_nested_walk_reads_the_product_and_with_a_nested_tlb_only_the_guest_s_own_again() {
        for (guest, levels, tlb_entries, expected, again) in
            [(4, 4, 0, 24, 24), (5, 5, 0, 35, 35), (4, 5, 0, 29, 29), (4, 4, 16, 24, 4)]
        {
            let nested = Some(NestedShape { levels, tlb_entries, ..small_host() });
            let mut walker = Walker::new(&Paging { levels: guest, nested, ..paging() }, 0);
            assert_eq!(reads(&mut walker, 0x7000_1234), expected);
            assert_eq!(reads(&mut walker, 0x7000_1234), again);
        }
        // Large pages have a level less, on both sides.
        for (guest, host, expected) in [
            (PageSize::Small, PageSize::Large, 19),
            (PageSize::Large, PageSize::Large, 15),
            (PageSize::Giant, PageSize::Giant, 8),
        ] {
            let nested = Some(NestedShape { pages: host, ..small_host() });
            let mut walker = Walker::new(&Paging { pages: guest, nested, ..paging() }, 0);
            assert_eq!(reads(&mut walker, 0x1234_5678), expected, "{guest:?} on {host:?}");
        }
    }

    #[test]
    fn an_entry_of_the_nested_tlb_reaches_as_far_as_the_hosts_page() {
        // A hundred pages of the guest lie in as many small frames, all in one large page of the host's. Of 16
        // entries, one is enough; with small pages they are pushed out by the next walks.
        let walks = |pages| {
            let nested = NestedShape { pages, tlb_entries: 16, ..small_host() };
            let mut walker = Walker::new(&Paging { nested: Some(nested), ..paging() }, 0);
            let mut round = || (0..100).map(|page| reads(&mut walker, page << 12)).collect::<Vec<_>>();
            round();
            round()
        };
        assert_eq!(walks(PageSize::Large), [4; 100], "the guest's own entries only");
        // One host walk of four reads, for the page itself: the guest's tables are used all the time.
        assert_eq!(walks(PageSize::Small), [8; 100]);
    }

    #[test]
    fn the_product_of_two_sizes_is_the_smaller() {
        let nested = Some(small_host());
        let mut walker = Walker::new(&Paging { pages: PageSize::Large, nested, ..paging() }, 0);
        let one = walker.walk(0x20_0000, OnFault::Map, |_| Level::L1).pte;
        let two = walker.walk(0x20_1000, OnFault::Map, |_| Level::L1).pte;
        assert_eq!(one.size(), PageSize::Small);
        assert_ne!(one.frame(), two.frame());
    }

    #[test]
    fn structure_caches_leave_the_last_read() {
        let structure_caches = StructureCacheShape { level2: 2, level3: 2, level4: 2, level5: 2 };
        let mut walker = Walker::new(&Paging { structure_caches, ..paging() }, 0);
        assert_eq!(reads(&mut walker, 0), 4);
        assert_eq!(reads(&mut walker, 0x1000), 1, "same table of level 1");
        assert_eq!(reads(&mut walker, 0x20_0000), 2, "same table of level 2");
        assert_eq!(reads(&mut walker, 1 << 30), 3, "same table of level 3");
        assert_eq!(reads(&mut walker, 1 << 39), 4, "only the root is the same");
        walker.forget();
        assert_eq!(reads(&mut walker, 0), 4);
    }

    #[test]
    fn the_simplified_walker_gives_up() {
        let mut walker = Walker::new(&paging(), 0);
        let walked = walker.walk(0x5000, OnFault::GiveUp, |_| Level::L2);
        assert_eq!(walked.pte, Pte::NONE);
        assert_eq!(walked.reads.from(Level::L2), 1);
        assert!(!walked.faulted);
        assert!(walker.walk(0x5000, OnFault::Map, |_| Level::L2).faulted);
        assert!(walker.walk(0x5000, OnFault::GiveUp, |_| Level::L2).pte.is_present());
    }
}
