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
//! | [`compilers`] | kind `slb-cpp-compilers`: the header for C++, by each compiler, for any x86-64 and for this one |
//! | [`mod@art`] | kind `art-peers`: the adaptive radix tree beside other ordered maps |

#![deny(unsafe_code)]

pub mod art;
pub mod comparison;
pub mod compilers;
pub mod engine;
#[cfg(libcuckoo)]
pub mod libcuckoo;
pub mod lookaside;
mod maps;

use lab::experiment::Laboratory;

/// The laboratory with the kinds of experiment of this crate.
#[must_use]
pub fn laboratory() -> Laboratory {
    Laboratory::new()
        .with_kind("peers-index", comparison::run)
        .with_kind("slb-lookups", lookaside::run)
        .with_kind("slb-cpp-compilers", compilers::run)
        .with_kind("art-peers", art::run)
}
