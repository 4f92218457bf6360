//! Guests in this process: programs whose instructions and addresses are made here, without an emulator.
//!
//! Each of the paper's programs (its Table II) has its counterpart: the data structure is really built, on a
//! modelled heap, so chains, depths and collisions are those of the keys; and a lookup executes, instruction by
//! instruction, what the compiled one does. Counts repeat exactly.
//!
//! | module | idea |
//! |---|---|
//! | `processor` | what executes a guest: a core, a machine without a clock, nobody |
//! | `heap`, `records`, `keys` | where things lie, what they are |
//! | `hash` | five hash functions |
//! | `chained`, `open_addressing`, `red_black`, `b_tree`, `dictionary` | indexes |
//! | `server` | what a server does around a lookup |
//! | `search_lookaside` | the software in front of an index, a model of `crates/lookaside` |
//! | `requests` | which records are asked for |
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

pub use sim_qemu::asked::{Container, Distribution, Hash, Variant};

pub use b_tree::BTree;
pub use chained::Chained;
pub use dictionary::Dictionary;
pub use flood::Collision;
pub use heap::{Heap, Order, Place};
pub(crate) use keys::mix;
pub use keys::{Key, Keys};
pub use open_addressing::OpenAddressing;
pub use processor::{Nobody, Pen, Processor, Register};
pub use program::{GuestError, Program, Shape};
pub use records::{Form, Records};
pub use red_black::RedBlackTree;
pub use search_lookaside::SearchLookaside;

/// An index of records by key.
pub trait Lookup {
    /// Puts a record in, without executing anything.
    fn insert(&mut self, records: &mut Records, record: u32);

    /// Looks a key up. The record's target stands in [`registers::RECORD`].
    fn find<P: Processor>(&self, pen: &mut Pen<'_, P>, records: &Records, query: Key) -> Option<u32>;

    /// Executes what putting a record in takes beyond the lookup before it. The record is in already.
    fn execute_insert<P: Processor>(&self, pen: &mut Pen<'_, P>, records: &Records, record: u32);
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
