//! What was counted, as one snapshot, and the difference of two of them.
//!
//! Every part counts for itself, always upwards. A window of a run, after its warm-up, is the difference
//! between the snapshots at its ends: nothing is ever reset, so nothing that is warm is touched.

use serde::{Deserialize, Serialize};

use crate::cache::{CacheCounts, HitsAndMisses, MemoryCounts};
use crate::stlt::StltCounts;

/// Counters that only rise.
pub trait Since {
    /// What was counted after `earlier`.
    #[must_use]
    fn since(&self, earlier: &Self) -> Self;
}

impl Since for u64 {
    fn since(&self, earlier: &u64) -> u64 {
        self - earlier
    }
}

/// Of structures whose every field is counted.
macro_rules! since {
    ($($name:ident { $($field:ident),* $(,)? })*) => {$(
        impl Since for $name {
            fn since(&self, earlier: &$name) -> $name {
                $name { $($field: self.$field.since(&earlier.$field)),* }
            }
        }
    )*};
}
pub(crate) use since;

/// Page-table entries read, by the level of the caches that had them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByLevel {
    /// First level.
    pub l1: u64,
    /// Second.
    pub l2: u64,
    /// Third.
    pub l3: u64,
    /// Memory.
    pub memory: u64,
}

impl ByLevel {
    /// All of them.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.l1 + self.l2 + self.l3 + self.memory
    }
}

/// Accesses of a program, and what it cost to translate them and to fetch them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessCounts {
    /// Loads.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
    /// Instruction fetches.
    pub fetches: u64,
    /// Page walks for loads and stores.
    pub data_walks: u64,
    /// Page walks for fetches.
    pub instruction_walks: u64,
    /// Page-table entries that those walks read.
    pub walk_reads: ByLevel,
    /// Translations that the STB had after the TLBs had missed.
    pub stb_hits: u64,
    /// Translations that the prefetch buffer had.
    pub prefetch_buffer_hits: u64,
    /// Translations that were prefetched.
    pub translations_prefetched: u64,
    /// Cycles spent on translations, one access after the other.
    pub translation_cycles: u64,
    /// Cycles spent on fetching what was translated, one access after the other.
    pub cache_cycles: u64,
}

/// A snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statistics {
    /// The program's accesses.
    pub accesses: AccessCounts,
    /// First TLB, data. Hits and misses together are what the ART paper calls TLB visits.
    pub data_tlb: HitsAndMisses,
    /// First TLB, instructions.
    pub instruction_tlb: HitsAndMisses,
    /// Second TLB.
    pub second_tlb: HitsAndMisses,
    /// Walks that a paging-structure cache shortened, and those that none did.
    pub structure_caches: HitsAndMisses,
    /// Pages mapped on first touch.
    pub page_faults: u64,
    /// Instruction cache.
    pub l1i: CacheCounts,
    /// Data cache.
    pub l1d: CacheCounts,
    /// Second level.
    pub l2: CacheCounts,
    /// Third level.
    pub l3: CacheCounts,
    /// Lines to and from memory.
    pub memory: MemoryCounts,
    /// The STLT.
    pub stlt: StltCounts,
}

since! {
    HitsAndMisses { hits, misses }
    CacheCounts { load, store, fetch, walk, written_back, prefetched, prefetched_used }
    MemoryCounts { reads, prefetches, writes }
    ByLevel { l1, l2, l3, memory }
    AccessCounts {
        loads, stores, fetches, data_walks, instruction_walks, walk_reads, stb_hits, prefetch_buffer_hits,
        translations_prefetched, translation_cycles, cache_cycles,
    }
    StltCounts {
        hits, absent, invalid, inserted, replaced, evicted, removed, refused, invalidations, overflows, scrubbed,
    }
    Statistics {
        accesses, data_tlb, instruction_tlb, second_tlb, structure_caches, page_faults, l1i, l1d, l2, l3, memory, stlt,
    }
}

/// The rows of the ART paper's Tables 2 and 3 that a machine without a clock can fill in, per lookup. Only
/// the program's loads and stores are counted at the caches, not the page walker's reads.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct PerLookup {
    /// Accesses that asked the first TLB.
    pub tlb_visits: f64,
    /// Accesses whose page had to be walked for.
    pub tlb_misses: f64,
    /// Accesses that missed the first cache.
    pub l1_misses: f64,
    /// And the second.
    pub l2_misses: f64,
    /// And the third.
    pub l3_misses: f64,
}

impl Statistics {
    /// What was counted, divided by the number of lookups; zeroes if that is 0.
    #[must_use]
    pub fn per_lookup(&self, lookups: u64) -> PerLookup {
        if lookups == 0 {
            return PerLookup::default();
        }
        let share = |count: u64| count as f64 / lookups as f64;
        let misses = |cache: &CacheCounts| share(cache.load.misses + cache.store.misses);
        PerLookup {
            tlb_visits: share(self.data_tlb.total()),
            tlb_misses: share(self.accesses.data_walks),
            l1_misses: misses(&self.l1d),
            l2_misses: misses(&self.l2),
            l3_misses: misses(&self.l3),
        }
    }

    /// The share of the time that accesses wait for their translation, if they are made one after the other
    /// and the program needs `other_cycles` besides them: the ART paper's Figure 2, estimated. Between 0 and
    /// 1; 0 if there is no time at all.
    #[must_use]
    pub fn translation_share(&self, other_cycles: u64) -> f64 {
        let accesses = &self.accesses;
        let all = accesses.translation_cycles + accesses.cache_cycles + other_cycles;
        if all == 0 { 0.0 } else { accesses.translation_cycles as f64 / all as f64 }
    }
}
