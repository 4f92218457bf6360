//! What becomes of an insert, and what it took.

use std::fmt;

use crate::slot::Location;

/// What an insert had to do: for experiments and tests. All counts are bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Work {
    /// Entries moved to their other bucket.
    pub displaced: usize,
    /// Buckets split to make room.
    pub split: usize,
}

/// What became of [`Table::insert_or_get`](crate::Table::insert_or_get).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Insertion {
    /// The key was not there and is now.
    Inserted(Work),
    /// The key is there, at this location: nothing was changed.
    Occupied(Location),
}

/// What became of [`Table::insert_or_replace`](crate::Table::insert_or_replace).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upsertion {
    /// The key was not there and is now.
    Inserted(Work),
    /// The key was at this location, which is in the table no more.
    Replaced(Location),
}

/// No slot was found for a key: both of its buckets are full, and so were all that the search could reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TooFull {
    /// The table is full as a whole. One that grows says this only at its limit, or where its budget refuses memory.
    Table,
    /// The hashes of the keys are at fault, at any size of the table: both buckets of this key are full of keys of the
    /// very same hash, or less than half of the table's slots are in use, which even hashes always fill. See
    /// [`Hashes`](crate::Hashes).
    Hashes,
}

impl fmt::Display for TooFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TooFull::Table => "the table is too full for this key: remove entries, or make a larger table",
            TooFull::Hashes => {
                "too many keys share this key's hash, or its bits: give every key a 64-bit hash of its own, or let \
                 the table mix them (Hashes::Any)"
            }
        })
    }
}

impl std::error::Error for TooFull {}
