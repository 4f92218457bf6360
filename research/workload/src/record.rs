//! One request of a trace, recorded or generated.

use crate::key::Key;
use crate::operation::CacheOperation;

/// One row of a trace. Sizes and times, which some formats tell as well, are not read: what is replayed has its sizes
/// from a published distribution, so that it is the same whichever trace it follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// What was asked for.
    pub key: Key,
    /// What was asked.
    pub operation: CacheOperation,
    /// How many times in this row, at least once.
    pub count: u32,
}

impl Record {
    /// A read.
    pub(crate) fn get(key: Key) -> Record {
        Record { key, operation: CacheOperation::Get, count: 1 }
    }
}
