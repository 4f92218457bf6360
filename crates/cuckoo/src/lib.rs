//! An index from keys to locations by optimistic concurrent cuckoo hashing.
//!
//! After Fan, Andersen and Kaminsky, "MemC3: Compact and Concurrent MemCache with Dumber Caching and Smarter Hashing",
//! NSDI 2013, section 3; and beyond it in three ways:
//!
//! - **Many writers.** The paper serialises them. Here a writer locks the two buckets of its key, and no more than three at
//!   any moment.
//! - **Growth.** The paper's table has the size it was made with. Ours grows one bucket at a time, in place, while readers
//!   and writers go on; its load stays level while it does, and no operation moves more than a handful of buckets.
//! - **Batches.** [`Table::get_many`] fetches the buckets of all keys together, then their entries.
//!
//! The table holds 48-bit [`Location`]s and short tags, never keys: the owner of the entries compares those ([`Entries`]).
//! Readers take no lock, write nothing shared and never wait.
//!
//! | module | idea |
//! |---|---|
//! | `hash` | what a hash must be, and the mixing of those that are not |
//! | `slot` | the 64-bit word: tag, next bit, location |
//! | `layout` | four, seven or eight slots a bucket; where the version is |
//! | `geometry` | which two buckets a key may be in, at any number of buckets |
//! | `version` | the protocol between readers and writers, and why it is right |
//! | `tags` | comparing a bucket's tags all at once |
//! | `table` | lookup, removal, replacement |
//! | `insert` | cuckoo paths |
//! | `growth` | splitting a bucket |
//! | `shrink` | merging one, and giving memory back |
//! | `batch` | many keys at once |
//!
//! # Which size
//!
//! A table of a power of two of buckets fills to 98 % and more before [`TooFull`]; one of any other size, which is what a
//! growing table mostly is, to somewhat above 90 %, because buckets that have not been split yet are wanted by more keys.

mod batch;
mod config;
mod geometry;
mod growth;
mod hash;
mod insert;
mod layout;
#[cfg(all(loom, test))]
mod loom_tests;
#[cfg(any(not(loom), test))]
mod shrink;
mod slot;
mod table;
mod tags;
mod version;

pub use config::{Config, CreateError, Growth, Linear, Search};
pub use growth::{SPLITS_WHEN_FULL, SPLITS_WHEN_LOADED};
pub use hash::Hashes;
pub use insert::{Insertion, TooFull, Upsertion, Work};
pub use layout::{EightWay, FourWay, Inline, Layout, SevenWay, Striped};
pub use slot::Location;
pub use table::{Entries, Table};

/// The layout that measured best: see `layout`.
pub type DefaultLayout = SevenWay;

/// The program of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
