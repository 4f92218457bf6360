//! What is asked of a cache, and what is asked of an index.
//!
//! Two vocabularies, because they are two interfaces: a cache is a memcached, with its commands; an index is a map,
//! with YCSB's operations but for scans.

/// What a command to a cache does, as far as who replays it tells commands apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CacheOperation {
    /// Reads a value.
    Get,
    /// Brings a value along, under whatever condition.
    Set,
    /// Removes a value.
    Delete,
    /// Changes a value, or its time to live, and brings none.
    Other,
}

impl CacheOperation {
    /// What the command that traces call `name` does, in capitals or not, or `None`. The names are memcached's, and
    /// those of Meta's leases (Nishtala et al., NSDI 2013, section 3.2.1).
    ///
    /// ```
    /// use lookaside_workload::operation::CacheOperation;
    ///
    /// assert_eq!(CacheOperation::from_name(b"cas"), Some(CacheOperation::Set));
    /// assert_eq!(CacheOperation::from_name(b"GET_LEASE"), Some(CacheOperation::Get));
    /// assert_eq!(CacheOperation::from_name(b"fetch"), None);
    /// ```
    pub fn from_name(name: &[u8]) -> Option<CacheOperation> {
        Some(match name.to_ascii_lowercase().as_slice() {
            b"get" | b"gets" | b"get_lease" => CacheOperation::Get,
            b"set" | b"set_lease" | b"add" | b"replace" | b"append" | b"prepend" | b"cas" => {
                CacheOperation::Set
            }
            b"delete" => CacheOperation::Delete,
            b"incr" | b"decr" | b"touch" => CacheOperation::Other,
            _ => return None,
        })
    }

    /// Whether it asks for a value and changes nothing.
    pub fn is_read(self) -> bool {
        self == CacheOperation::Get
    }
}

/// One operation on an index (Cooper et al., "Benchmarking cloud serving systems with YCSB", SoCC 2010, section 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IndexOperation {
    /// Look a record up.
    Read,
    /// Write a record that is there.
    Update,
    /// Write a record that is not there yet.
    Insert,
    /// Read a record, then write it.
    ReadModifyWrite,
}

/// One operation and the record that it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IndexRequest {
    /// What is asked.
    pub operation: IndexOperation,
    /// The record's number, from 0 in the order of insertion.
    pub record: u64,
}
