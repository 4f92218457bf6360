//! What is asked of a cache, and what is asked of an index.
//!
//! Two vocabularies, because they are two interfaces: a cache is a memcached, with its commands; an index is a map,
//! with YCSB's operations but for scans.

/// One command to a cache. The names are memcached's, and those of Meta's leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum CacheOperation {
    /// Read a value.
    Get,
    /// Read a value together with the unique number that a compare-and-swap needs.
    Gets,
    /// Read a value; on a miss, one caller is allowed to fill it (Nishtala et al., NSDI 2013, section 3.2.1).
    GetLease,
    /// Store a value.
    Set,
    /// Store a value with the lease that a miss gave.
    SetLease,
    /// Store a value unless the key has one.
    Add,
    /// Store a value if the key has one.
    Replace,
    /// Extend a value at its end.
    Append,
    /// Extend a value at its beginning.
    Prepend,
    /// Store a value unless it changed since it was read.
    CompareAndSwap,
    /// Remove a value.
    Delete,
    /// Count upwards.
    Increment,
    /// Count downwards.
    Decrement,
    /// Give a value a new time to live.
    Touch,
}

impl CacheOperation {
    /// The operation that traces call `name`, in capitals or not, or `None`.
    ///
    /// ```
    /// use lookaside_workload::operation::CacheOperation;
    ///
    /// assert_eq!(CacheOperation::from_name(b"cas"), Some(CacheOperation::CompareAndSwap));
    /// assert_eq!(CacheOperation::from_name(b"GET_LEASE"), Some(CacheOperation::GetLease));
    /// assert_eq!(CacheOperation::from_name(b"fetch"), None);
    /// ```
    pub fn from_name(name: &[u8]) -> Option<CacheOperation> {
        const NAMES: [(&[u8], CacheOperation); 14] = [
            (b"get", CacheOperation::Get),
            (b"gets", CacheOperation::Gets),
            (b"get_lease", CacheOperation::GetLease),
            (b"set", CacheOperation::Set),
            (b"set_lease", CacheOperation::SetLease),
            (b"add", CacheOperation::Add),
            (b"replace", CacheOperation::Replace),
            (b"append", CacheOperation::Append),
            (b"prepend", CacheOperation::Prepend),
            (b"cas", CacheOperation::CompareAndSwap),
            (b"delete", CacheOperation::Delete),
            (b"incr", CacheOperation::Increment),
            (b"decr", CacheOperation::Decrement),
            (b"touch", CacheOperation::Touch),
        ];
        let (_, operation) = NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        Some(*operation)
    }

    /// Whether the operation asks for a value and changes nothing.
    pub fn is_read(self) -> bool {
        matches!(self, CacheOperation::Get | CacheOperation::Gets | CacheOperation::GetLease)
    }

    /// Whether the operation brings a value along.
    pub fn carries_value(self) -> bool {
        matches!(
            self,
            CacheOperation::Set
                | CacheOperation::SetLease
                | CacheOperation::Add
                | CacheOperation::Replace
                | CacheOperation::Append
                | CacheOperation::Prepend
                | CacheOperation::CompareAndSwap
        )
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
