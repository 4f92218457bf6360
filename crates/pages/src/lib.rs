//! Regions of memory by page size.
//!
//! Translating an address costs as much as fetching the data it names once the page tables no longer fit the
//! caches (Wong, Feng, Xu, Lo and Kao, "TLB misses: the missing issue of adaptive radix tree?", DaMoN 2015, section 4,
//! Table 2; on a virtual machine every step of the walk is itself translated). So
//! page size is a choice here, not an accident of the allocator: 4 KiB, transparent 2 MiB, hugetlb 2 MiB or
//! hugetlb 1 GiB. A machine that cannot give the kind that was asked for gives the next smaller one, and the
//! [`Region`] says which it was, as the kernel reports it or its settings have it, not as we assumed it.
//!
//! ```
//! use lookaside_pages::{PageKind, Region};
//!
//! let region = Region::map(1 << 20, PageKind::Transparent)?;
//! assert!(region.len() >= 1 << 20);
//! println!("asked for {}, got {}", region.asked(), region.obtained());
//! # Ok::<(), lookaside_pages::MapError>(())
//! ```
//!
//! A table of what may begin as zero, in safe code, of which only what is touched takes memory; and a limit that
//! several of them share:
//!
//! ```
//! use std::sync::atomic::{AtomicU64, Ordering};
//!
//! use lookaside_pages::{Array, Budget, PageKind};
//!
//! let budget = Budget::new(1 << 20);
//! assert!(budget.try_take(8 * 1000));
//! let counters = Array::<AtomicU64>::reserve(1 << 30, PageKind::Base)?;
//! counters[999].fetch_add(7, Ordering::Relaxed);
//! assert_eq!(counters[999].load(Ordering::Relaxed) + counters[1 << 29].load(Ordering::Relaxed), 7);
//! # Ok::<(), lookaside_pages::MapError>(())
//! ```
//!
//! | module | idea |
//! |---|---|
//! | `kind` | the four kinds of page and the order in which they fall back |
//! | `region` | mapping, guarding, growing, releasing: the only module that asks the kernel for memory |
//! | `gap` | where a region has room to grow |
//! | `smaps` | reading back what the kernel really gave |
//! | `transparent` | whether the kernel's settings grant transparent huge pages |
//! | `array` | a region seen as a slice of words that zero bytes are valid for |
//! | `budget` | one limit that an index and its entries share |
//! | `prefetch` | the one instruction that every batched lookup is made of |
//! | `fault` | for tests, with the feature `fault-injection`: the n-th mapping is refused |
//!
//! A module uses those of the floors below it:
//!
//! ```text
//!                 array
//!                 region
//!   fault  gap  kind  smaps  transparent      budget  prefetch
//! ```

mod array;
mod budget;
#[cfg(feature = "fault-injection")]
pub mod fault;
mod gap;
mod kind;
mod prefetch;
mod region;
mod smaps;
mod transparent;

pub use array::{Array, Zeroed};
pub use budget::Budget;
pub use kind::{PageKind, UnknownPageKind};
pub use prefetch::prefetch;
pub use region::{MapError, Region};
pub use smaps::Census;

/// The program of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
