//! Paging-structure caches: where a page walk may begin further down.
//!
//! Barr, Cox and Rixner, "Translation Caching: Skip, Don't Walk (the Page Table)" (ISCA 2010) compare the
//! ways to do it; this is what they call the split translation cache, Intel's: for each level above the
//! leaves a small cache from the bits of the address that lead to an entry, to the entry. All levels are
//! asked at once, and the deepest that knows the address wins; the walk reads only the entries below it.
//!
//! Only entries that name a table are kept; leaves are the TLB's business. `invlpg` empties these caches, as
//! on Intel's processors.

use serde::{Deserialize, Serialize};

use crate::lru::LruSets;

/// Entries kept of each level; zero is none. They are fully associative up to 32, beyond that 4-way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StructureCacheShape {
    /// Of level 2: each spans 2 MiB.
    pub level2: u32,
    /// Of level 3: each spans 1 GiB.
    pub level3: u32,
    /// Of level 4: each spans 512 GiB.
    pub level4: u32,
    /// Of level 5: each spans 256 TiB.
    pub level5: u32,
}

/// The caches of one page table.
#[derive(Debug, Clone)]
pub(crate) struct StructureCaches {
    /// Of the levels 2 to 5.
    levels: [Option<LruSets<()>>; 4],
}

impl StructureCaches {
    pub(crate) fn new(shape: &StructureCacheShape) -> StructureCaches {
        let level = |entries: u32| match entries as usize {
            0 => None,
            entries if entries <= 32 => Some(LruSets::new(1, entries)),
            entries => Some(LruSets::new(entries / 4, 4)),
        };
        let levels = [shape.level2, shape.level3, shape.level4, shape.level5].map(level);
        StructureCaches { levels }
    }

    fn key(address: u64, level: u32) -> u64 {
        address >> (12 + 9 * (level - 1))
    }

    /// How many of the `length` entries of a walk for `address` need not be read, in a table of so many levels.
    pub(crate) fn skip(&mut self, address: u64, levels: u32, length: usize) -> usize {
        // The last entry is the leaf, or says that nothing is mapped: it is always read.
        for depth in (0..length - 1).rev() {
            let level = levels - depth as u32;
            if let Some(cache) = &mut self.levels[level as usize - 2]
                && cache.get(StructureCaches::key(address, level)).is_some()
            {
                return depth + 1;
            }
        }
        0
    }

    /// Remembers the entries of a walk that were read.
    pub(crate) fn learn(&mut self, address: u64, levels: u32, read: std::ops::Range<usize>) {
        for depth in read.start..read.end.saturating_sub(1) {
            let level = levels - depth as u32;
            if let Some(cache) = &mut self.levels[level as usize - 2] {
                cache.put(StructureCaches::key(address, level), ());
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        self.levels.iter_mut().flatten().for_each(LruSets::clear);
    }
}
