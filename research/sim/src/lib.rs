//! A processor's memory system, simulated: caches, TLBs, page walks, and the search translation lookaside table.
//!
//! Two questions are answered here that no processor at hand can be asked. *Where* was each access of a
//! program found: in which TLB, by which walk, in which cache? [`Machine`] says, exactly and without a clock,
//! some tens of millions of times a second. *When* would it have been there? [`Core`] puts a window of
//! instructions in flight on top. And the machine has what nobody can buy: the hardware of "Hardware-Based
//! Address-Centric Acceleration of Key-Value Store" (HPCA 2021), module [`stlt`].
//!
//! Machines are data ([`Profile`]): the ART paper's Sandy Bridge, the STLT paper's Gainestown, a server core
//! of today, or a TOML file.
//!
//! ```
//! use sim::{AccessKind, Machine, Profile, Since};
//!
//! let mut machine = Machine::new(&Profile::sandy_bridge())?;
//! let addresses = (0..100_000_u64).map(|n| (0x10_0000 + n * 7919 * 64 % (1 << 24), AccessKind::Load));
//! machine.replay(addresses.clone());
//! let warm = machine.statistics();
//! let lookups = machine.replay(addresses);
//!
//! let counted = machine.statistics().since(&warm);
//! let per_lookup = counted.per_lookup(lookups);
//! println!("TLB visits {}, TLB misses {}", per_lookup.tlb_visits, per_lookup.tlb_misses);
//! println!("misses of L1 {}, of L2 {}, of L3 {}", per_lookup.l1_misses, per_lookup.l2_misses, per_lookup.l3_misses);
//! println!("waiting for the TLB:   {:.1} %", 100.0 * counted.translation_share(0));
//! # assert_eq!(per_lookup.tlb_visits, 1.0);
//! # Ok::<(), sim::ProfileError>(())
//! ```
//!
//! | module | idea |
//! |---|---|
//! | `page`, `frames`, `page_table` | pages of three sizes, where they lie, the radix table |
//! | `lru`, `recency` | the array that every cache and TLB is made of |
//! | `tlb`, `translation_buffer` | translations that are at hand |
//! | `structure_caches`, `walker`, `walk_log` | translations that must be walked for, natively and under a host |
//! | `cache` | where lines are |
//! | `prefetch` | guesses: distance for translations, strides and VLDP for lines |
//! | `machine`, `statistics` | all of it together, and what it counted |
//! | `stlt` | the table, its two instructions and its system calls |
//! | `reservations`, `dram`, `predictor`, `core` | the clock: what overlaps, what queues, what was guessed wrong |
//! | `measurement` | what one run measured, as a file |
//! | `profile` | machines as data |
//!
//! Everything is written from the published papers that each file names.

#![forbid(unsafe_code)]

mod cache;
mod core;
mod dram;
mod frames;
mod lru;
mod machine;
mod measurement;
mod page;
mod page_table;
mod predictor;
pub mod prefetch;
mod profile;
mod recency;
mod reservations;
mod statistics;
pub mod stlt;
mod structure_caches;
mod tlb;
mod translation_buffer;
mod walk_log;
mod walker;

pub use cache::{
    CacheCounts, CacheShape, CacheShapes, Caches, HitsAndMisses, Inclusion, LINE_SHIFT, Level, MemoryCounts,
    Request,
};
pub use core::{BranchOutcome, Core, CoreStatistics, CycleStack, Instruction, MemoryAccess, Registers};
pub use frames::Frames;
pub use lru::LruSets;
pub use machine::{Access, AccessKind, Machine, Process, TranslatedBy};
pub use measurement::{Estimate, FORMAT, Measurement, MeasurementError, Window};
pub use page::{PageSize, Pte};
pub use page_table::{PageTable, Path};
pub use predictor::{BranchKind, Predictor};
pub use profile::{CoreShape, MemoryShape, PrefetchShapes, Profile, ProfileError, StltShape};
pub use statistics::{AccessCounts, ByLevel, PerLookup, Since, Statistics};
pub use structure_caches::StructureCacheShape;
pub use tlb::{Tlb, TlbArrayShape, TlbShape, TlbShapes};
pub use translation_buffer::TranslationBuffer;
pub use walker::{NestedShape, OnFault, Paging, WalkReads, Walked, Walker};
