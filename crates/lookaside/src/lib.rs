//! The Search Lookaside Buffer: a small table of pointers to hot entries, in front of any index.
//!
//! A walk to an entry drags in cache lines and address translations that the answer never needed. The buffer remembers
//! where hot entries are: a hit costs one line of the table and the entry itself, whatever index stands behind it.
//!
//! Wu, Ni and Jiang, "Search Lookaside Buffer: Efficient Caching for Index Data Structures", SoCC 2017. The paper asks
//! its user to lock around each lookup and to keep the table equal to the index; here a hit takes no lock, and the map
//! does the rest.
//!
//! ```
//! use lookaside::Map;
//!
//! // In the order of its keys, where no index is named.
//! let map = Map::<u64, u64>::new();
//! for number in 0..1000 {
//!     map.insert(number, number * number);
//! }
//! assert_eq!(map.pin().get(&31), Some(&961)); // From the index, and admitted...
//! let reader = map.pin();
//! assert_eq!(reader.get(&31), Some(&961)); // ... so now from the table.
//! let mut squares = [None; 3];
//! reader.get_many(&[&1, &2, &2000], &mut squares);
//! assert_eq!(squares, [Some(&1), Some(&4), None]);
//! drop(reader);
//! assert_eq!(map.buffer().counts().hits, 1);
//! map.update(31, |square| square + 1); // A look and a change in one step.
//! assert_eq!(map.get_with(&31, |square| *square), Some(962));
//! ```
//!
//! # Which face
//!
//! | face | for |
//! |---|---|
//! | [`Map`] | an index that threads share: owns it and its entries, and cannot go stale |
//! | [`SharedBuffer`] | several maps behind one table |
//! | [`OwnedMap`] | an index that one thread has for itself: no epochs, no tickets |
//! | [`Front`] | an index that one keeps as it is: references that it lends, for as long as it is borrowed |
//! | [`Buffer`] | words and hashes only: for those who keep entries and consistency themselves, as the C interface |
//!
//! # How it is built
//!
//! Nine floors: a file stands on files of lower floors, and on none of its own or a higher one; but `owned` has an
//! error of `map`'s. Above them all is `serde_impls`, with the feature `serde`.
//!
//! ```text
//!   9                 map        owned                                  the safe faces
//!   8    words  shared         pinned          by_hand                  who is at the buffer
//!   7      +-------------- buffer ---------------+
//!   6      |                               thread_state   front         what a thread keeps; references
//!   5      atomic_table                                  wide
//!   4      slb                                           lent  lock
//!   3      log_table                                           index
//!   2      bucket     stripes         monitor_sampler          entry    hashing
//!   1      pointer    lines      single_flight monitor                  folding
//!          config     index_id   random        stats
//!
//!          the table             beside it     a thread        entries  keys
//! ```
//!
//! | module | idea |
//! |---|---|
//! | `pointer`, `bucket` | an address of 48 bits; a slot is one word, seven of them and their counters are a line |
//! | `config`, `index_id`, `random` | what can be chosen; an index's number at a shared table; cheap random numbers |
//! | `lines`, `log_table`, `slb` | memory by lines; the paper's two tables, and who may enter |
//! | `stripes` | the protocol that keeps the table equal to the index: read this page first |
//! | `atomic_table` | the table can be replaced while it is used |
//! | `stats` | what is counted, by each thread for itself |
//! | `monitor` | off where it does not pay, on again where it does |
//! | `monitor_sampler` | a thread's trials of that |
//! | `thread_state` | what a thread keeps while it is not pinned, too: all of these, and what waits to be admitted |
//! | `buffer` | a table, its stripes, its monitor and its threads' states together |
//! | `pinned`, `by_hand` | a thread at a buffer: among others, or with its own guards |
//! | `shared` | a buffer that only maps get at |
//! | `folding`, `hashing` | the default hash; what a hash must be |
//! | `entry`, `index`, `lock` | entries, their slabs, who frees them; what an index must do; an owner's under a lock |
//! | `single_flight`, `words` | one thread makes what several ask for; what both maps have of the standard's words |
//! | `map`, `owned` | the safe faces, their compounds and their words |
//! | `lent`, `wide`, `front` | references, and how slots keep them; a second word a slot; a safe table of them |

mod atomic_table;
mod bucket;
mod config;
mod index_id;
mod lines;
#[cfg_attr(not(feature = "paper"), allow(dead_code))]
mod log_table;
mod pointer;
mod random;
mod slb;
mod stripes;
mod wide;

#[cfg(not(loom))]
mod buffer;
#[cfg(not(loom))]
mod by_hand;
#[cfg(not(loom))]
mod entry;
#[cfg(not(loom))]
mod folding;
#[cfg(not(loom))]
mod front;
#[cfg(not(loom))]
mod hashing;
#[cfg(not(loom))]
pub mod index;
#[cfg(not(loom))]
mod lent;
#[cfg(not(loom))]
mod lock;
#[cfg(not(loom))]
mod map;
#[cfg(not(loom))]
mod monitor;
#[cfg(not(loom))]
mod monitor_sampler;
#[cfg(not(loom))]
mod owned;
#[cfg(not(loom))]
mod pinned;
#[cfg(all(feature = "serde", not(loom)))]
mod serde_impls;
#[cfg(not(loom))]
mod shared;
#[cfg(any(not(loom), test))]
mod single_flight;
#[cfg(not(loom))]
mod stats;
#[cfg(not(loom))]
mod thread_state;
#[cfg(not(loom))]
mod words;

#[cfg(all(test, loom))]
mod loom_compounds;
#[cfg(all(test, loom))]
mod loom_tests;

pub use config::{Admission, Config, CounterPolicy, CreateError};
pub use index_id::{IndexId, NoIdLeft};
pub use pages::{MapError, PageKind};
pub use pointer::Pointer;
pub use random::Random;
pub use slb::{Insertion, Slb};
pub use stripes::Ticket;

#[cfg(not(loom))]
pub use {
    buffer::{Buffer, Guard, Write},
    entry::{Found, Handle, Pin, Removed, Sought},
    equivalent::{Comparable, Equivalent},
    folding::{FoldingHasher, FoldingState, RandomState},
    front::Front,
    hashing::{Hashing, IntoHashing, mix},
    lent::Lent,
    lock::RwLock,
    map::{Computed, Map, MapRef, Mismatch, OccupiedError, Operation},
    monitor::Verdict,
    owned::OwnedMap,
    pinned::Pinned,
    shared::SharedBuffer,
    stats::Counts,
    thread_state::ThreadState,
    words::Iter,
};

/// The program of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
