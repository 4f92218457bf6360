//! Experiments on the hash index: the paper's section 5.2, and two questions of our own (which layout, and what growth
//! costs).
//!
//! The baselines that the paper compares with are small and live here; the table under test is [`cuckoo::Table`].
//!
//! | module | idea |
//! |---|---|
//! | `records` | the records that tables index, their keys, and the hash that all of them use |
//! | `frozen` | an array in pages of a chosen kind |
//! | `engine` | what an experiment asks of a table |
//! | `optimistic` | the table under test |
//! | `chains`, `chaining` | baseline: memcached's table |
//! | `basic_cuckoo` | baseline: cuckoo hashing without tags, or with tags alone |
//! | `locking`, `comparison` | the steps between the baselines |
//! | `tables` | naming a table in a definition |
//! | `requests` | what is asked, drawn before the clock starts |
//! | `space` | kind `index-space`: Table 2 and Figure 4 |
//! | `throughput` | kind `index-throughput`: Table 1, Figures 5 to 7, the layouts |
//! | `growth` | kind `index-growth`: pauses |

mod basic_cuckoo;
mod chaining;
pub(crate) mod chains;
pub(crate) mod comparison;
mod engine;
mod frozen;
mod growth;
pub(crate) mod locking;
mod optimistic;
mod records;
mod requests;
mod space;
pub(crate) mod tables;
mod throughput;

pub use engine::{Anatomy, BATCH, Filling, Index, Insertion, Inspected, Operation, describe_pages};
pub use optimistic::Optimistic;
pub use records::{Key, Records};
pub use requests::{Division, Lookups, Mix};
pub use throughput::rate_of;

use crate::experiment::Laboratory;

/// Adds the kinds of experiment on the index.
pub(crate) fn add_kinds(laboratory: Laboratory) -> Laboratory {
    laboratory
        .with_kind("index-space", space::run)
        .with_kind("index-throughput", throughput::run)
        .with_kind("index-growth", growth::run)
}
