//! An adaptive radix tree: an ordered index that is read without locks, with its nodes in pages of a chosen size.
//!
//! After Leis, Kemper and Neumann, "The adaptive radix tree: ARTful indexing for main-memory databases", ICDE 2013, and
//! Wong, Feng, Xu, Lo and Kao, "TLB misses: the missing issue of adaptive radix tree?", DaMoN 2015; and beyond them:
//!
//! - **Lookups never wait and never start anew.** What a node says of itself does not change; only slots do, one word
//!   at a time. (A scan looks for its first key again if that key's surroundings are emptied meanwhile.) So a reader
//!   needs no version of a node, only slots: see `lock`, the protocol page.
//! - **References of 32 bits** that tell the kind of what they lead to: a lookup asks for the one line of a large node
//!   that it needs, and for nothing before it.
//! - **Nodes in pages of their own**: 4 KiB, transparent 2 MiB, hugetlb 2 MiB or 1 GiB ([`PageKind`]).
//! - **Batches**: [`Reader::get_many`] walks many chains of lines at once.
//! - **Reorganisation in use**: what the second paper stops the tree for goes on here while others read and write
//!   ([`Tree::reorganize`]).
//!
//! ```
//! use lookaside_art::{Tree, encode};
//!
//! let tree = Tree::<[u8; 8], u64>::new()?;
//! let reader = tree.pin();
//! for number in 0..1000 {
//!     reader.insert(&encode::u64(number), number * number).unwrap();
//! }
//! assert_eq!(reader.get(&encode::u64(31)), Some(&961));
//! let mut squares = [None; 3];
//! reader.get_many(&[&encode::u64(1), &encode::u64(2), &encode::u64(2000)], &mut squares);
//! assert_eq!(squares, [Some(&1), Some(&4), None]);
//! let range: Vec<_> = reader.range(&encode::u64(10)..&encode::u64(13)).map(|(_, square)| *square).collect();
//! assert_eq!(range, [100, 121, 144]);
//! # Ok::<(), lookaside_art::CreateError>(())
//! ```
//!
//! One owner has a tree without locks, whose values may be changed in place:
//!
//! ```
//! use lookaside_art::{OwnedTree, encode};
//!
//! let mut due = OwnedTree::<[u8; 12], &str>::new()?;
//! due.insert(&encode::tuple_array(&(1700u32, 1i64)), "later").unwrap();
//! due.insert(&encode::tuple_array(&(900u32, 2i64)), "sooner").unwrap();
//! due.retain(|_, name| !name.is_empty());
//! let (key, name) = due.pop_first().unwrap();
//! assert_eq!((encode::to_tuple(&key), name), (Some((900u32, 2i64)), "sooner"));
//! # Ok::<(), lookaside_art::CreateError>(())
//! ```
//!
//! # Keys
//!
//! A key is `[u8; N]`, or `[u8]` of any length; [`encode`] makes such of numbers, strings and tuples. Keys may be
//! prefixes of each other: every node has a slot for the key that ends there, which comes before all others. The empty
//! key is a key.
//!
//! # Which face
//!
//! | face | for |
//! |---|---|
//! | [`Tree`] | any number of threads, each with a [`Reader`], whose page says at which moment each call happens |
//! | [`OwnedTree`] | one owner: no locks, no epochs; values are given back, not shown |
//! | [`Entries`] | what both dereference to: ranges, prefixes, first and last |
//! | `index` | the index behind a lookaside table: with the feature `lookaside` |
//!
//! # How it is built
//!
//! | module | idea |
//! |---|---|
//! | `lock` | the lock word, and why readers are right: read this page first |
//! | `kind`, `reference` | which nodes there are; 32 bits that say where and what |
//! | `node`, `search` | what nodes have, and finding a byte in one |
//! | `key`, `encode` | keys and leaves |
//! | `config`, `error`, `schedule` | what is chosen, and what is refused |
//! | `space`, `mixed`, `storage` | where nodes and leaves live |
//! | `fixed` | where what is freed later finds the storage of its tree |
//! | `census`, `fault` | what tests ask, that what is freed is not followed; what they refuse |
//! | `core` | the search |
//! | `write`, `store` | the changes; an entry becomes a leaf |
//! | `batch` | many keys |
//! | `order`, `queue`, `scan`, `range` | children in order; keys in order; entries in order |
//! | `memory` | what it occupies |
//! | `log`, `relocation`, `background` | which keys are hot; moving what is on their paths together; every so often |
//! | `index`, `view` | the tree behind a lookaside table, and what it shows there |
//! | `probe` | the addresses that a lookup touches |
//! | `tree`, `owned` | the faces |
//!
//! A module uses those of the floors below it:
//!
//! ```text
//!                             index
//!                       background   view
//!                           relocation
//!                          tree    owned
//!                             range
//!                      scan            store
//!          batch   memory   queue      write
//!                             core
//!                            storage
//!                         order   space
//!                          node
//!             encode   mixed   log   reference
//!   census config error fault fixed key kind lock probe schedule search
//! ```

#[cfg(not(loom))]
mod background;
#[cfg(not(loom))]
mod batch;
#[cfg(not(loom))]
mod census;
#[cfg(not(loom))]
mod config;
#[cfg(not(loom))]
mod core;
#[cfg(not(loom))]
pub mod encode;
#[cfg(not(loom))]
mod error;
#[cfg(all(feature = "fault-injection", not(loom)))]
pub mod fault;
#[cfg(not(loom))]
mod fixed;
#[cfg(all(feature = "lookaside", not(loom)))]
pub mod index;
#[cfg(not(loom))]
mod key;
#[cfg(not(loom))]
mod kind;
mod lock;
#[cfg(not(loom))]
mod log;
#[cfg(all(loom, test))]
mod loom_tests;
#[cfg(not(loom))]
mod memory;
#[cfg(not(loom))]
mod mixed;
#[cfg(not(loom))]
mod node;
#[cfg(not(loom))]
mod order;
#[cfg(not(loom))]
mod owned;
#[cfg(not(loom))]
mod probe;
#[cfg(not(loom))]
mod queue;
#[cfg(not(loom))]
mod range;
#[cfg(not(loom))]
mod reference;
#[cfg(not(loom))]
mod relocation;
#[cfg(not(loom))]
mod scan;
#[cfg(not(loom))]
mod schedule;
#[cfg(not(loom))]
mod search;
#[cfg(not(loom))]
mod space;
#[cfg(not(loom))]
mod storage;
#[cfg(not(loom))]
mod store;
#[cfg(not(loom))]
mod tree;
#[cfg(all(feature = "lookaside", not(loom)))]
mod view;
#[cfg(not(loom))]
mod write;

#[cfg(not(loom))]
mod face {
    pub use crate::background::Background;
    pub use crate::config::{Config, CreateError};
    pub use crate::core::Entries;
    pub use crate::error::{NotStored, Reason, TryInsertError};
    pub use crate::key::{Key, LeafLayout};
    pub use crate::kind::Kind;
    pub use crate::log::{AccessLog, DEFAULT_INTERVAL, LONGEST_SAMPLED, RING, share_of_lookups};
    pub use crate::memory::{Memory, NodeMemory};
    pub use crate::owned::OwnedTree;
    pub use crate::probe::{Probe, Unwatched};
    pub use crate::range::Range;
    pub use crate::relocation::{Assessment, Reorganization, Reorganized};
    pub use crate::schedule::Schedule;
    pub use crate::tree::{Reader, Session, Tree};
    pub use pages::{PageKind, Region};
}
#[cfg(not(loom))]
pub use face::*;

/// The program of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
