//! Experiments on the adaptive radix tree: the tables and figures of Wong, Feng, Xu, Lo and Kao, "TLB misses: the
//! missing issue of adaptive radix tree?", DaMoN 2015.
//!
//! | module | idea |
//! |---|---|
//! | `keys` | dense, sparse and random keys |
//! | `grown` | a tree full of them, in pages of a kind, as built or reorganised |
//! | `draws` | which records are asked for |
//! | `simulated` | the addresses of real lookups, on a simulated machine: TLB visits and misses, cache misses, stalls |
//! | `lookups` | kind `art-lookups`: Figures 2 to 4, Tables 2 and 3; batches, and what the access log costs |
//! | `memory` | kind `art-memory`: Table 4 |
//! | `reorganization_time` | kind `art-reorganize-time`: Figure 5 |
//! | `beside` | kind `art-beside`: readers and writers while the tree is reorganised |
//! | [`ordered`] | ordered maps that take turns, here and beside foreign trees |
//! | `texts` | words and paths |
//! | `strings` | kind `art-strings`: words and paths as keys |
//!
//! The paper counts with a processor's counters, which few virtual machines pass on. What it calls visits and misses
//! are therefore simulated here, and every such number carries the name of the simulated machine; throughputs and times
//! are measured.

mod beside;
mod draws;
mod grown;
mod keys;
mod lookups;
mod memory;
pub mod ordered;
mod reorganization_time;
mod simulated;
mod strings;
#[cfg(test)]
mod tests;
mod texts;

use serde::Deserialize;

use crate::experiment::Laboratory;

/// Adds the kinds of experiment on the tree.
pub(crate) fn add_kinds(laboratory: Laboratory) -> Laboratory {
    laboratory
        .with_kind("art-lookups", lookups::run)
        .with_kind("art-memory", memory::run)
        .with_kind("art-reorganize-time", reorganization_time::run)
        .with_kind("art-beside", beside::run)
        .with_kind("art-strings", strings::run)
}

/// A number of keys, and what it is called: a quick run has fewer under the same name.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// In words.
    pub name: String,
    /// The number.
    pub keys: u64,
}

/// Bits of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u32")]
enum Width {
    Bits32,
    Bits64,
}

impl Width {
    const fn name(self) -> &'static str {
        match self {
            Width::Bits32 => "32-bit",
            Width::Bits64 => "64-bit",
        }
    }
}

impl TryFrom<u32> for Width {
    type Error = String;

    fn try_from(bits: u32) -> Result<Width, String> {
        match bits {
            32 => Ok(Width::Bits32),
            64 => Ok(Width::Bits64),
            other => Err(format!("keys of {other} bits: there are keys of 32 and of 64")),
        }
    }
}
