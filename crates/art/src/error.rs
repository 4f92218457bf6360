//! Why an entry is not put into a tree. The value that was to be put in comes back with the reason.

use std::fmt;

/// There is no room for another node or leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exhausted;

/// An entry could not be put into a tree, which is as it was before. The value comes back.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotStored<V> {
    /// The value that was not stored.
    pub value: V,
    /// Why.
    pub reason: Reason,
}

/// Why an entry could not be put into a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// There is no room for another node or leaf: remove entries, or make the tree with more
    /// [`node_bytes`](crate::Config::node_bytes) and [`leaf_bytes`](crate::Config::leaf_bytes), or allow the process
    /// more addresses (`ulimit -v`). Removing makes room for keys and nodes of the same size; what has been used for
    /// other sizes stays theirs, so a tree whose keys change their lengths needs room for the most that it ever has of
    /// each.
    Full,
    /// The key has 2^32 - 1 bytes or more.
    KeyTooLong,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Full => {
                "the tree is full: remove entries, or make it with more room for nodes and leaves"
            }
            Reason::KeyTooLong => "the key is too long: use less than 4 GiB",
        })
    }
}

impl<V> fmt::Display for NotStored<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl<V> fmt::Debug for NotStored<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NotStored").field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl<V> std::error::Error for NotStored<V> {}

/// [`Reader::try_insert`](crate::Reader::try_insert) or [`OwnedTree::try_insert`](crate::OwnedTree::try_insert) has put
/// nothing into a tree, which is as it was before. The value comes back.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TryInsertError<'r, V> {
    /// There is an entry of this key.
    Occupied {
        /// Its value.
        current: &'r V,
        /// The value that was not stored.
        value: V,
    },
    /// There is no room for another entry, or the key is too long.
    NotStored(NotStored<V>),
}

impl<V> TryInsertError<'_, V> {
    /// The value that was not stored.
    pub fn into_value(self) -> V {
        match self {
            TryInsertError::Occupied { value, .. } => value,
            TryInsertError::NotStored(refused) => refused.value,
        }
    }
}

impl<V> From<NotStored<V>> for TryInsertError<'_, V> {
    fn from(refused: NotStored<V>) -> Self {
        TryInsertError::NotStored(refused)
    }
}

impl<V> fmt::Display for TryInsertError<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TryInsertError::Occupied { .. } => f.write_str("the key has an entry already"),
            TryInsertError::NotStored(refused) => refused.fmt(f),
        }
    }
}

impl<V> fmt::Debug for TryInsertError<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TryInsertError::Occupied { .. } => f.debug_struct("Occupied").finish_non_exhaustive(),
            TryInsertError::NotStored(refused) => refused.fmt(f),
        }
    }
}

impl<V> std::error::Error for TryInsertError<'_, V> {}
