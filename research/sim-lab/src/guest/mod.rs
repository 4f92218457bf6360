//! Guests in this process: programs whose instructions and addresses are made here, without an emulator.
//!
//! Each of the paper's programs (its Table II) has its counterpart: the data structure is really built, on a
//! modelled heap, so chains, depths and collisions are those of the keys; and a lookup executes, instruction by
//! instruction, what the compiled one does. Counts repeat exactly.
//!
//! | module | idea |
//! |---|---|
//! | `processor` | what executes a guest: a core, a machine without a clock, a trace, nobody |
//! | `heap`, `records`, `keys` | where things lie, what they are |
//! | `hash` | five hash functions |
//! | `chained`, `open_addressing`, `red_black`, `b_tree`, `dictionary` | indexes |
//! | `server` | what a server does around a lookup |
//! | `search_lookaside` | the software in front of an index, a model of `crates/lookaside` |
//! | `requests` | which records are asked for |
//! | `foresight` | what the host is asked for before they are executed |
//! | `flood` | keys that an attacker has chosen |
//! | `program` | all of that together: a lookup by each way |
//! | `batch` | the same for sixteen keys at a time |
//!
//! What is not the paper's: the layout of its kernels' keys and values is not published. Here an index leads to a
//! record that begins with its key; the trees keep the keys in their nodes as well. Real containers under an
//! emulator are the other kind of guest.

mod b_tree;
mod batch;
mod chained;
mod dictionary;
mod flood;
mod foresight;
mod hash;
mod heap;
mod keys;
mod open_addressing;
mod processor;
mod program;
mod records;
mod red_black;
mod requests;
mod search_lookaside;
mod server;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use b_tree::BTree;
pub use chained::Chained;
pub use dictionary::Dictionary;
pub use flood::Collision;
pub use foresight::Trail;
pub use hash::Hash;
pub use heap::{Heap, Order, Place};
pub(crate) use keys::mix;
pub use keys::{Key, Keys};
pub use open_addressing::OpenAddressing;
pub use processor::{Nobody, Pen, Processor, Recorder, Register};
pub use program::{GuestError, Program, Shape};
pub use records::{Form, Records};
pub use red_black::RedBlackTree;
pub use requests::Distribution;
pub use search_lookaside::SearchLookaside;

/// An index of records by key.
pub trait Lookup {
    /// Puts a record in, without executing anything.
    fn insert(&mut self, records: &mut Records, record: u32);

    /// Looks a key up. The record's target stands in [`registers::RECORD`].
    fn find<P: Processor>(&self, pen: &mut Pen<'_, P>, records: &Records, query: Key) -> Option<u32>;

    /// Follows a lookup that is yet to come: asks for the host's lines that the next step of its `trail` needs.
    fn follow(&self, key: Key, trail: &mut Trail);

    /// Executes what putting a record in takes beyond the lookup before it. The record is in already.
    fn execute_insert<P: Processor>(&self, pen: &mut Pen<'_, P>, records: &Records, record: u32);
}

/// A program of the paper's Table II, or one of this project's own indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Container {
    /// Chains: `unordered_map`.
    #[serde(rename = "unordered_map")]
    UnorderedMap,
    /// Open addressing: `dense_hash_map`.
    #[serde(rename = "dense_hash_map")]
    DenseHashMap,
    /// A red-black tree: `map`.
    #[serde(rename = "map")]
    Map,
    /// A B-tree: `btree`.
    #[serde(rename = "btree")]
    BTree,
    /// A server's dictionary and what stands around it: Redis.
    #[serde(rename = "redis")]
    Redis,
    /// This project's optimistic cuckoo table; under QEMU only, as those that follow.
    #[serde(rename = "cuckoo")]
    Cuckoo,
    /// Its adaptive radix tree.
    #[serde(rename = "art")]
    Art,
    /// The same, its hottest paths moved together after the load.
    #[serde(rename = "art-reorganised")]
    ArtReorganised,
    /// Its cache.
    #[serde(rename = "cache")]
    Cache,
}

impl Container {
    /// The paper's.
    pub const ALL: [Container; 5] = [
        Container::Redis,
        Container::UnorderedMap,
        Container::DenseHashMap,
        Container::Map,
        Container::BTree,
    ];
    /// Our own: compiled programs, which only QEMU runs.
    pub const OWN: [Container; 4] =
        [Container::Cuckoo, Container::Art, Container::ArtReorganised, Container::Cache];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Container::UnorderedMap => "unordered_map",
            Container::DenseHashMap => "dense_hash_map",
            Container::Map => "map",
            Container::BTree => "btree",
            Container::Redis => "redis",
            Container::Cuckoo => "cuckoo",
            Container::Art => "art",
            Container::ArtReorganised => "art-reorganised",
            Container::Cache => "cache",
        }
    }
}

/// How a key is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// By the index alone.
    Alone,
    /// By nobody: the record's address is known. What is left is what no table in front can save.
    Known,
    /// With a search lookaside buffer in front.
    Slb,
    /// With an STLT in software.
    StltSw,
    /// With an STLT that keeps virtual addresses only.
    StltVa,
    /// With an STLT.
    Stlt,
    /// With a search lookaside buffer, asked for sixteen keys at a time, with prefetches.
    SlbBatches,
    /// With an STLT, asked for sixteen keys at a time, with prefetches of their records.
    StltBatches,
}

impl Variant {
    /// All of them.
    pub const ALL: [Variant; 8] = [
        Variant::Alone,
        Variant::Known,
        Variant::Slb,
        Variant::StltSw,
        Variant::StltVa,
        Variant::Stlt,
        Variant::SlbBatches,
        Variant::StltBatches,
    ];

    /// As it is written in definitions and on command lines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Variant::Alone => "alone",
            Variant::Known => "known",
            Variant::Slb => "slb",
            Variant::StltSw => "stlt-sw",
            Variant::StltVa => "stlt-va",
            Variant::Stlt => "stlt",
            Variant::SlbBatches => "slb-batches",
            Variant::StltBatches => "stlt-batches",
        }
    }

    /// As it is written in reports.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Variant::Alone => "alone",
            Variant::Known => "address known",
            Variant::Slb => "SLB",
            Variant::StltSw => "STLT-SW",
            Variant::StltVa => "STLT-VA",
            Variant::Stlt => "STLT",
            Variant::SlbBatches => "SLB in batches",
            Variant::StltBatches => "STLT in batches",
        }
    }

    /// How much of an STLT there is, if there is one.
    #[must_use]
    pub const fn stlt(self) -> Option<sim::stlt::Variant> {
        match self {
            Variant::StltSw => Some(sim::stlt::Variant::Software),
            Variant::StltVa => Some(sim::stlt::Variant::VirtualOnly),
            Variant::Stlt | Variant::StltBatches => Some(sim::stlt::Variant::Full),
            Variant::Alone | Variant::Known | Variant::Slb | Variant::SlbBatches => None,
        }
    }

    /// Whether there is a search lookaside buffer.
    #[must_use]
    pub const fn is_slb(self) -> bool {
        matches!(self, Variant::Slb | Variant::SlbBatches)
    }

    /// Whether keys are looked up several at a time.
    #[must_use]
    pub const fn in_batches(self) -> bool {
        matches!(self, Variant::SlbBatches | Variant::StltBatches)
    }
}

/// Where the query's key lies: on the stack.
const QUERY_ADDRESS: u64 = 0x7fff_ffff_e000;
const CODE_PROGRAM: u64 = 0x40_0000;
const CODE_SERVER: u64 = 0x40_4000;
const CODE_INDEX: u64 = 0x40_8000;
const CODE_LOOKASIDE: u64 = 0x40_a000;
const CODE_COMPARE: u64 = 0x40_c000;
const CODE_RECORD: u64 = 0x40_d000;
const CODE_HASH: u64 = 0x41_0000;

/// What the guests use their registers for.
pub mod registers {
    use super::Register;

    /// The query's address, which is always there.
    pub const QUERY: Register = 1;
    /// The index's own hash.
    pub const HASH: Register = 2;
    /// A bucket, a slot, a place in a node.
    pub const SLOT: Register = 3;
    /// A node.
    pub const NODE: Register = 4;
    /// What was found.
    pub const RECORD: Register = 5;
    /// What was loaded last.
    pub const WORD: Register = 6;
    /// What else was.
    pub const OTHER: Register = 7;
    /// A number of something.
    pub const COUNT: Register = 8;
    /// The tag of the table in front.
    pub const TAG: Register = 9;
    /// What values are summed up in, and compared with.
    pub const VALUE: Register = 10;
    /// The integer for the table in front.
    pub const INTEGER: Register = 11;
    /// What a server computes meanwhile.
    pub const WORK: [Register; 4] = [12, 13, 14, 15];
}
