//! A concurrent hash map, and the index that it stands on: optimistic concurrent cuckoo hashing.
//!
//! [`HashMap`] is the map: keys and values of any type, all operations by shared reference, lookups that take no lock.
//!
//! ```
//! use lookaside_cuckoo::HashMap;
//!
//! let towns = HashMap::from([("rome", -753), ("paris", -52)]);
//! std::thread::scope(|scope| {
//!     scope.spawn(|| towns.pin().insert("berlin", 1237).is_none());
//! });
//! let towns = towns.pin();
//! assert_eq!((towns.get("berlin"), towns.len()), (Some(&1237), 3));
//! ```
//!
//! [`Table`] is the index, for who owns the entries himself: from keys to 48-bit [`Location`]s. After Fan, Andersen and
//! Kaminsky, "MemC3: Compact and Concurrent MemCache with Dumber Caching and Smarter Hashing", NSDI 2013, section 3;
//! and beyond it in three ways:
//!
//! - **Many writers.** The paper serialises them. Here a writer locks the two buckets of its key, and no more than
//!   three at any moment.
//! - **Growth.** The paper's table has the size it was made with. Ours grows one bucket at a time, in place, while
//!   readers and writers go on; its load stays level while it does, and no operation moves more than a handful of
//!   buckets.
//! - **Batches.** [`Table::find_many`] fetches the buckets of all keys together, then their entries.
//!
//! The table holds locations and short tags, never keys: the owner of the entries compares those, and tells their
//! hashes, by closures, as with hashbrown's `HashTable`. Readers take no lock, write nothing shared and never wait.
//!
//! ```
//! use std::hash::BuildHasher;
//!
//! use lookaside_cuckoo::{Config, Insertion, Location, Table};
//!
//! let towns = [("rome", -753), ("paris", -52), ("berlin", 1237)];
//! let hashing = std::hash::RandomState::new();
//! let name = |at: Location| towns[at.get() as usize].0;
//! let table: Table = Table::with_capacity(1000, &Config::default())?;
//! std::thread::scope(|scope| {
//!     for number in 0..towns.len() {
//!         let (table, hashing) = (&table, &hashing);
//!         scope.spawn(move || {
//!             let (town, at) = (towns[number].0, Location::new(number as u64).unwrap());
//!             let hasher = |at| hashing.hash_one(name(at));
//!             let inserted = table.insert_or_get(hashing.hash_one(town), at, |at| name(at) == town, hasher);
//!             assert!(matches!(inserted, Ok(Insertion::Inserted(_))));
//!         });
//!     }
//! });
//! let found = table.find(hashing.hash_one("paris"), |at| name(at) == "paris").unwrap();
//! assert_eq!(towns[found.get() as usize].1, -52);
//! # Ok::<(), lookaside_cuckoo::CreateError>(())
//! ```
//!
//! What an entry is behind its location, and when its memory may be used again, is its owner's concern: a reader may
//! have found the location just before it was removed.
//!
//! # How it is built
//!
//! | module | idea |
//! |---|---|
//! | `version` | the protocol between readers and writers, and why it is right: read this page first |
//! | `hash` | what a hash must be, and the mixing of those that are not |
//! | `slot` | the 64-bit word: tag, next bit, location |
//! | `layout` | four, seven or eight slots a bucket; where the version is |
//! | `geometry` | which two buckets a key may be in, at any number of buckets |
//! | `tags` | comparing a bucket's tags all at once |
//! | `config`, `outcome` | what is chosen, and what becomes of an insert |
//! | `table` | lookup, locks |
//! | `home` | writers that lock one bucket |
//! | `removal` | removal, replacement |
//! | `insert` | cuckoo paths |
//! | `growth` | splitting a bucket |
//! | `stash` | entries for which no bucket has room |
//! | `shrink` | merging one, and giving memory back |
//! | `spot` | changing an entry that has been found |
//! | `sweep` | removing what is not wanted any more, bucket after bucket |
//! | `batch` | many keys at once |
//! | `first` | one bucket instead of two, where most keys are in their first one |
//! | `walks`, `walk` | all keys, while others write |
//! | `slab` | memory for a map's entries |
//! | `once` | one thread makes a value, the others wait for it |
//! | `map` | the map: entries, pins, compounds |
//!
//! A module uses those of the floors below it:
//!
//! ```text
//!                 map
//!      slab      first      shrink    walk    once
//!            spot                           sweep
//!            batch    insert         removal
//!                growth              home
//!                 table
//!                 tags
//!   config  geometry  layout  outcome  stash  walks
//!           hash   slot   version
//! ```
//!
//! # Which size
//!
//! A table of a power of two of buckets fills to 98 % and more before [`TooFull`]; one of any other size, which is what
//! a growing table mostly is, to somewhat above 90 %, because buckets that have not been split yet are wanted by more
//! keys.

mod batch;
mod config;
#[cfg(any(not(loom), test))]
mod first;
mod geometry;
mod growth;
mod hash;
mod home;
mod insert;
mod layout;
#[cfg(all(loom, test))]
mod loom_tests;
#[cfg(not(loom))]
mod map;
#[cfg(any(not(loom), test))]
mod once;
mod outcome;
mod removal;
#[cfg(any(not(loom), test))]
mod shrink;
#[cfg(any(not(loom), test))]
mod slab;
mod slot;
mod spot;
mod stash;
mod sweep;
mod table;
mod tags;
mod version;
mod walk;
mod walks;

pub use config::{Config, CreateError, Growth, Linear};
#[cfg(not(loom))]
pub use equivalent::Equivalent;
pub use hash::Hashes;
#[cfg(not(loom))]
pub use map::{
    Compute, HashMap, HashMapBuilder, HashMapRef, IntoIter, Iter, Keys, OccupiedError, Operation, Values,
};
pub use outcome::{Insertion, TooFull, Upsertion, Work};
#[cfg(not(loom))]
pub use pages::{Budget, MapError, PageKind, Region};
pub use slot::Location;
pub use spot::{Held, Sighting, Spot};
pub use table::{Entries, Table};
pub use walk::Locations;

/// What only experiments choose, and tests look at: other layouts than the one that measured best, other searches,
/// bounds. Not a part of the interface that versions keep.
#[doc(hidden)]
pub mod experiments {
    pub use crate::config::Search;
    pub use crate::growth::{SPLITS_WHEN_FULL, SPLITS_WHEN_LOADED};
    pub use crate::layout::{DefaultLayout, EightWay, FourWay, Inline, Layout, SevenWay, Striped};
}

/// The program of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
