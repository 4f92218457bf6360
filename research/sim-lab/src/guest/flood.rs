//! Keys that an attacker has chosen so that they collide in the table in front (section III-H).
//!
//! The paper's fast hash functions have no secret: who knows which is used can search, at home, for as many keys as he
//! likes whose integers agree in the set's number, or in the sub-integer as well. How he searches is of no interest
//! here: his keys' integers are simply what he wants. The hash of a lookup is executed all the same, and the index's
//! own hash is not attacked. A hash with a secret (SipHash) leaves him only [`Collision::Nowhere`].

use serde::Deserialize;

/// What the attacker has made of his keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Collision {
    /// Nothing: they are as other keys.
    Nowhere,
    /// All have one set, with every sub-integer there is.
    Set,
    /// All have one set and one sub-integer: each finds the record of another.
    Integer,
}

/// Where a flood goes: no key's in particular.
const TARGET: u64 = 0x5_a5a5_a5a5;
/// Bits of the sub-integer.
const SUB_INTEGER_BITS: u32 = 12;

/// An attacker's keys.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flood {
    /// The first of his records.
    pub(super) from: u32,
    pub(super) collision: Collision,
}

impl Flood {
    /// The integer of a record whose key's hash is `own`.
    pub(super) fn integer(self, record: u32, own: u64) -> u64 {
        match self.collision {
            Collision::Set if record >= self.from => {
                (TARGET << SUB_INTEGER_BITS) | (u64::from(record) % (1 << SUB_INTEGER_BITS))
            }
            Collision::Integer if record >= self.from => TARGET << SUB_INTEGER_BITS,
            _ => own,
        }
    }
}
