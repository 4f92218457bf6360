//! The MemC3 engine: a cache of small items.
//!
//! After Fan, Andersen and Kaminsky, "MemC3: Compact and Concurrent MemCache with Dumber Caching and Smarter Hashing",
//! NSDI 2013, section 4, over the index of [`cuckoo`]. A lookup takes no lock, shares no counter, and writes nothing but, the
//! first time an item is used after the clock's hand has passed, one bit of it. An item costs eight bytes besides key and
//! value, and about ten in the index.
//!
//! Beyond the paper:
//!
//! - *A read returns whole values, always.* Items are not changed once they can be found, and their memory is not reused
//!   while somebody may be reading ([`mod@epoch`]). The paper's `GET` copies first and validates afterwards, and its published
//!   code does not validate what it sends.
//! - Writers run side by side. Memory moves between slab classes. Expired items go without being asked for. One limit
//!   holds for items and index together.
//! - A lookaside buffer may stand before the index ([`Config::lookaside`]).
//!
//! | module | idea |
//! |---|---|
//! | `cache`, `session`, `store` | what callers see: making one, reading, writing |
//! | `engine` | how an item comes into memory and leaves it |
//! | `epoch` | when memory may be reused: the protocol page |
//! | `front` | a lookaside buffer before the index: why it is never stale |
//! | `item` | eight bytes of header, and values too large for one chunk |
//! | `arena` | pages, chunks, marks |
//! | `slab`, `size_classes`, `pool` | who has which memory |
//! | `policy`, `clock` | who is evicted |
//! | `reclaim` | where memory comes from when no page is free |
//! | `stamp`, `flush` | compare-and-swap numbers; invisible at once |
//! | `housekeeping` | what happens without being asked for |
//!
//! # Bounds
//!
//! What is resident for items and index stays within the limit, but for two huge pages (4 MiB) that may be touched only in
//! part; beside it stand 32 bytes a page of 64 KiB and 32 KiB or so for each session and for the classes' lists, and the
//! lookaside buffer with its stripes, where there is one.

#[cfg(not(loom))]
mod arena;
#[cfg(not(loom))]
mod cache;
#[cfg(not(loom))]
mod clock;
#[cfg(not(loom))]
mod config;
#[cfg(not(loom))]
mod counters;
#[cfg(not(loom))]
mod engine;
mod epoch;
#[cfg(all(loom, test))]
mod epoch_loom_tests;
#[cfg(not(loom))]
mod flush;
#[cfg(not(loom))]
mod front;
#[cfg(not(loom))]
mod housekeeping;
#[cfg(not(loom))]
mod item;
#[cfg(not(loom))]
mod pace;
#[cfg(not(loom))]
mod policy;
#[cfg(not(loom))]
mod pool;
#[cfg(not(loom))]
mod reclaim;
#[cfg(not(loom))]
mod session;
#[cfg(not(loom))]
mod size_classes;
#[cfg(not(loom))]
mod slab;
#[cfg(not(loom))]
mod stamp;
#[cfg(not(loom))]
mod store;

#[cfg(not(loom))]
mod public {
    pub use crate::arena::PAGE;
    pub use crate::cache::{Cache, MemoryReport};
    pub use crate::clock::{Clock, CountingClock};
    pub use crate::config::{Config, CreateError, Eviction, SMALLEST_LIMIT};
    pub use crate::counters::Counts;
    pub use crate::engine::StoreError;
    pub use crate::housekeeping::{Housekeeper, Todo};
    pub use crate::item::{Expiry, MAX_KEY_LEN};
    pub use crate::policy::{Look, Policy, Position, Recency};
    pub use crate::session::{GROUP, Hit, Kept, Pinned, Session};
    pub use crate::slab::{Chunks, ClassReport};
    pub use crate::store::{Entry, Reservation, Stored, Updated, Verb};
}
#[cfg(not(loom))]
pub use public::*;
