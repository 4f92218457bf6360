//! A cache of small items in a fixed amount of memory, shared by all threads of a program.
//!
//! ```
//! use std::time::Duration;
//!
//! use lookaside_cache::Cache;
//!
//! let cache = Cache::with_limit(64 << 20)?;
//! cache.set(b"greeting", b"hello", None)?;
//! cache.set(b"session:7", b"alice", Duration::from_secs(600))?;
//! assert_eq!(cache.get(b"greeting"), Some(b"hello".to_vec()));
//!
//! // All threads use one cache.
//! std::thread::scope(|scope| {
//!     scope.spawn(|| assert!(cache.get(b"session:7").is_some()));
//! });
//! assert!(cache.delete(b"session:7"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Cache`] has the whole face. It suits values of some bytes to some hundred kilobytes that can be made again: what
//! has not been used lately goes when memory is full.
//!
//! # The engine
//!
//! After Fan, Andersen and Kaminsky, "MemC3: Compact and Concurrent MemCache with Dumber Caching and Smarter Hashing",
//! NSDI 2013, section 4, over the index of [`cuckoo`]. A lookup takes no lock, shares no counter, and writes nothing
//! but, the first time an item is used after the clock's hand has passed, one bit of it, and once a minute when that
//! was. An item costs eight bytes besides key and value, and about ten in the index.
//!
//! Beyond the paper:
//!
//! - *A read returns whole values, always.* Items are not changed once they can be found, and their memory is not
//!   reused while somebody may be reading ([`mod@epoch`]). The paper's `GET` copies first and validates afterwards, and
//!   its published code does not validate what it sends.
//! - Writers run side by side. Memory moves between slab classes. Expired items go without being asked for. One limit
//!   holds for items and index together, and can be changed while the cache is in use.
//! - One key can be changed as a whole: look, decide, and do it only if nothing has changed (`Session::change`).
//! - A lookaside buffer may stand before the index ([`Builder::lookaside`]).
//!
//! # The files
//!
//! Each stands on some of those below it, and on none above.
//!
//! ```text
//!   callers          face           regions
//!                    cache
//!                    housekeeping   reservation   walk          prefault
//!                    resize         store         rewrite
//!                    ages           change
//!                    piece          publication
//!                                   batch
//!                                   session
//!   comes and goes   allocation
//!                    reclaim
//!                    departure
//!   of all           shared
//!   who has what     slab           search
//!                    verdict        clock
//!                                   policy        newcomer
//!                                   chunks
//!                    judge          page          front
//!                    flush          pool          index         class_report
//!   what lies where  unfinished
//!                    item           open_batch
//!                    size_classes
//!                    arena
//!   alone            recency  epoch  stamp  access  pace  config  counters  told
//! ```
//!
//! | file | idea |
//! |---|---|
//! | `face` | the cache as a program uses it |
//! | `cache`, `session`, `store`, `reservation` | the engine as a server uses it: made, read, written, in pieces |
//! | `batch`, `open_batch` | writes that come together: what is done once for all; what a session keeps meanwhile |
//! | `change`, `publication`, `newcomer` | one key changed as a whole; how an item comes into the index, numbered |
//! | `rewrite` | a value of the same length, written over a copy |
//! | `walk`, `ages`, `piece` | all items in bounded steps; the oldest of a class; a piece of a page |
//! | `resize` | another limit for a cache in use |
//! | `housekeeping` | what happens without being asked for |
//! | `prefault` | memory that is there before it is needed |
//! | `allocation`, `departure` | how an item gets memory, how it leaves |
//! | `reclaim`, `search`, `verdict` | where memory comes from when no page is free: what is dead, which page may go |
//! | `shared` | what all sessions share |
//! | `slab`, `page`, `pool`, `pace` | who has which memory, and how fast it is used up |
//! | `policy`, `chunks`, `clock`, `recency` | who is evicted: the contract, what a policy sees, one and another |
//! | `judge`, `flush` | who is dead; invisible at once |
//! | `regions` | which memory is what, for those who count what is written |
//! | `told` | evictions, for whoever wants to hear of them |
//! | `front`, `index` | a lookaside buffer before the index: why it is never stale; what the index asks of items |
//! | `item`, `unfinished` | eight bytes of header, and values too large for one chunk; the same while it is written |
//! | `arena`, `size_classes` | pages, chunks, marks; how large chunks are |
//! | `epoch` | when memory may be reused: the protocol page |
//! | `stamp`, `access` | compare-and-swap numbers; when an item was used last, and who is to fetch it anew |
//!
//! # Bounds
//!
//! What is resident for items and index stays within the limit, but for two huge pages (4 MiB) that may be touched only
//! in part; beside it stand 28 bytes a page of 64 KiB, 32 KiB of counters, 32 KiB or so for each session and for the
//! classes' lists, and the lookaside buffer with its stripes, where there is one. Addresses are claimed for several
//! times as much ([`Cache::resize`](crate::engine::Cache::resize)).

mod access;
#[cfg(not(loom))]
mod ages;
#[cfg(not(loom))]
mod allocation;
#[cfg(not(loom))]
mod arena;
#[cfg(not(loom))]
mod batch;
#[cfg(not(loom))]
mod cache;
#[cfg(not(loom))]
mod change;
#[cfg(not(loom))]
mod chunks;
#[cfg(not(loom))]
mod class_report;
#[cfg(not(loom))]
mod clock;
#[cfg(not(loom))]
mod config;
#[cfg(not(loom))]
mod counters;
#[cfg(not(loom))]
mod departure;
mod epoch;
#[cfg(all(loom, test))]
mod epoch_loom_tests;
#[cfg(not(loom))]
mod face;
#[cfg(not(loom))]
mod flush;
#[cfg(not(loom))]
mod front;
#[cfg(not(loom))]
mod housekeeping;
#[cfg(not(loom))]
mod index;
#[cfg(not(loom))]
mod item;
#[cfg(all(loom, test))]
mod item_loom_tests;
#[cfg(not(loom))]
mod judge;
#[cfg(not(loom))]
mod newcomer;
#[cfg(not(loom))]
mod open_batch;
#[cfg(not(loom))]
mod pace;
#[cfg(not(loom))]
mod page;
#[cfg(not(loom))]
mod piece;
#[cfg(not(loom))]
mod policy;
#[cfg(not(loom))]
mod pool;
#[cfg(not(loom))]
mod prefault;
#[cfg(not(loom))]
mod publication;
#[cfg(not(loom))]
mod recency;
#[cfg(not(loom))]
mod reclaim;
#[cfg(not(loom))]
mod regions;
#[cfg(not(loom))]
mod reservation;
#[cfg(not(loom))]
mod resize;
#[cfg(not(loom))]
mod rewrite;
#[cfg(not(loom))]
mod search;
#[cfg(not(loom))]
mod session;
#[cfg(not(loom))]
mod shared;
#[cfg(not(loom))]
mod size_classes;
#[cfg(not(loom))]
mod slab;
mod stamp;
#[cfg(not(loom))]
mod store;
#[cfg(not(loom))]
mod told;
#[cfg(not(loom))]
mod unfinished;
#[cfg(not(loom))]
mod verdict;
#[cfg(not(loom))]
mod walk;

#[cfg(not(loom))]
pub use crate::{
    allocation::StoreError,
    config::{CreateError, SMALLEST_LIMIT},
    face::{Builder, Cache, Swapped},
    item::MAX_KEY_LEN,
};

/// The engine under [`Cache`]: for servers, which drive time and housekeeping themselves, and for experiments, which
/// bring policies of their own. It may change with any release.
#[cfg(not(loom))]
#[doc(hidden)]
pub mod engine {
    pub use crate::allocation::StoreError;
    pub use crate::arena::PAGE;
    pub use crate::cache::{Cache, MemoryReport};
    pub use crate::change::{Change, Changed, Put, Value};
    pub use crate::chunks::{Chunks, Look, Position};
    pub use crate::class_report::{ClassReport, Departures};
    pub use crate::clock::{Clock, CountingClock};
    pub use crate::config::{Config, CreateError, Eviction, SMALLEST_LIMIT};
    pub use crate::counters::Counts;
    pub use crate::housekeeping::{Housekeeper, Reassigned, Todo};
    pub use crate::index::GROUP;
    pub use crate::item::{Expiry, MAX_KEY_LEN};
    pub use crate::policy::Policy;
    pub use crate::prefault::Prefaulter;
    pub use crate::publication::{Stored, Verb};
    pub use crate::recency::Recency;
    pub use crate::regions::Region;
    pub use crate::reservation::{Commit, Reservation};
    pub use crate::resize::ResizeError;
    pub use crate::session::{Hit, Kept, Pinned, Session};
    pub use crate::store::{Entry, Updated};
    pub use crate::told::Evicted;
    pub use crate::walk::Walk;
}

/// The program of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
