//! What is asked of a cache: memcached's commands, as far as who replays them tells them apart.

/// What a command to a cache does.
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
