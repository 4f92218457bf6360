//! Experiments on the Search Lookaside Buffer: the SLB paper's section 4, and questions of our own.
//!
//! | module | idea |
//! |---|---|
//! | `record` | what is looked up |
//! | `contestant` | an index alone, or with a table in front, and what is asked of it |
//! | `beside` | a buffer without a map, beside an index that keeps its own records |
//! | `visit` | a thread at one of them, and its loops |
//! | `indexes` | what an index is written as, once, to be alone and behind a map; the standard library's |
//! | `chaining` | the paper's chaining hash table |
//! | `bulk_chaining` | MICA's |
//! | `cuckoo_table` | ours |
//! | `radix_tree` | our adaptive radix tree |
//! | `items` | what tables of words store: the second unsafe page, beside those of the tables |
//! | `entrant`, `entrants` | naming an index in a definition: what one is, and ours |
//! | `model`, `history` | the tests that every index passes: of one thread, and of several |
//! | `draws` | which records are asked for |
//! | `stlt` | STLT-SW before an index, for one thread: the third unsafe page |
//! | `form` | how a table stands in front of an index, or none |
//! | `parameters` | what a definition of kind `slb-lookups` says |
//! | `rates` | what was measured, and the rows that it comes to |
//! | `lookups` | kind `slb-lookups`: Figures 7 to 13, the bars, STLT-SW beside it, and where it loses |
//! | `machine_limit` | what the machine can do: prefetched random lines |
//! | `warm_up` | kind `slb-warm-up`: how fast a table becomes as good as an ideal one |
//! | `twenty_lines` | what a programmer would write instead: the fourth unsafe page |
//! | `yardstick` | kind `slb-yardstick`: what every face is of the twenty lines |
//! | `life` | kind `slb-life`: what a map takes to be loaded, held and dropped |
//! | `locks` | kind `slb-locks`: the paper's striped locks (section 3.1.3) |
//! | `shared_writes` | kind `slb-shared-writes`: lines written a hit, the models of many cores and of two sockets |
//! | `on_paper` | kind `slb-on-paper`: Figure 9 at a size that does not fit |
//!
//! Foreign indexes are in `research/peers`, which brings its own entrants to [`lookups::run_with`].

pub(crate) mod beside;
mod bulk_chaining;
pub(crate) mod chaining;
mod contestant;
mod cuckoo_table;
mod draws;
mod entrant;
mod entrants;
mod form;
pub mod history;
pub mod indexes;
mod items;
mod life;
mod locks;
pub mod lookups;
mod machine_limit;
pub mod model;
mod on_paper;
mod parameters;
mod radix_tree;
mod rates;
mod record;
mod shared_writes;
mod stlt;
#[cfg(test)]
mod tests;
mod twenty_lines;
pub mod visit;
mod warm_up;
pub mod yardstick;

pub use contestant::{Abilities, Contestant, Make, OwnedIndex, SharedIndex, fill};
pub use entrant::{Entrant, Made, MakeBehindStlt, MakeFronted};
pub use entrants::own_entrants;
pub use lookaside::RwLock;
pub use record::{Key, Value};
pub use visit::{Answer, BATCH, Lot, Request, Visit, in_turn};

pub use crate::subject::{Call, Tally};

use crate::experiment::Laboratory;

/// Adds the kinds of experiment on the buffer.
pub(crate) fn add_kinds(laboratory: Laboratory) -> Laboratory {
    laboratory
        .with_kind("slb-lookups", lookups::run)
        .with_kind("slb-warm-up", warm_up::run)
        .with_kind("slb-yardstick", yardstick::run)
        .with_kind("slb-life", life::run)
        .with_kind("slb-locks", locks::run)
        .with_kind("slb-shared-writes", shared_writes::run)
        .with_kind("slb-on-paper", on_paper::run)
}
