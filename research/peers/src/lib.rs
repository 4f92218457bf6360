//! Foreign engines, for comparison only: nothing but the program that runs experiments depends on this crate.
//!
//! Its kinds of experiment are run as all others, by `lookaside-lab run`. `peers-index` compares the hash index
//! (`crates/cuckoo`) with the concurrent hash tables that a user might take instead, in the same process, with the same
//! keys, the same hash and, as far as the C library can be made to, the same kind of pages, each at its best call.
//!
//! | module | idea |
//! |---|---|
//! | [`engine`] | the engines by name |
//! | `maps` | those written in Rust |
//! | `libcuckoo` | the one written in C++: unsafe |
//! | [`comparison`] | kind `peers-index`: the experiment |
//! | [`mod@lookaside`] | indexes that people use, alone and behind a table, for the kind `slb-lookups` |
//! | [`maps_beside`] | kind `peers-maps`: our concurrent map beside foreign ones |
//! | [`lookaside::snapshot`] | kind `slb-lmdb`: a front before a read transaction of LMDB |
//! | [`alternatives`] | kind `slb-alternatives`: what one could take instead of a tree under a lock |
//! | [`yardstick`] | kind `slb-yardstick-cpp`: the faces for C++ and C beside a table of twenty lines |
//! | [`mod@art`] | kind `art-peers`: the adaptive radix tree beside other ordered maps |

#![deny(unsafe_code)]

pub mod alternatives;
pub mod art;
pub mod comparison;
pub mod engine;
#[cfg(libcuckoo)]
pub mod libcuckoo;
pub mod lookaside;
mod maps;
pub mod maps_beside;
pub mod yardstick;

use lab::experiment::Laboratory;

/// The laboratory with the kinds of experiment of this crate.
#[must_use]
pub fn laboratory() -> Laboratory {
    Laboratory::new()
        .with_kind("peers-index", comparison::run)
        .with_kind("peers-maps", maps_beside::run)
        .with_kind("slb-lookups", lookaside::run)
        .with_kind("slb-lmdb", lookaside::snapshot::run)
        .with_kind("slb-alternatives", alternatives::run)
        .with_kind("slb-yardstick-cpp", yardstick::run)
        .with_kind("art-peers", art::run)
}
