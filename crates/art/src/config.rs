//! What a tree is made with, and why it may not be made.

use std::fmt;

use pages::{MapError, PageKind};

/// What a tree is made with.
///
/// ```
/// use lookaside_art::{Config, PageKind, Tree};
///
/// let tree = Tree::<[u8; 8], u64>::with(&Config { pages: PageKind::Transparent, ..Config::default() })?;
/// assert!(tree.is_empty());
/// # Ok::<(), lookaside_art::CreateError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The pages that nodes and leaves live in; a machine that lacks them gives the next smaller ones.
    pub pages: PageKind,
    /// Bytes of nodes that the tree may ever have; at most 8 GiB. Of base and transparent pages only addresses are
    /// claimed, so the default, which is the most, takes no memory. Where a process may not have as many addresses as it
    /// likes (`ulimit -v`), or has used them up, a tree begins with a megabyte of them and claims more as it grows. Pages of
    /// a hugetlb pool are claimed at once: say how many. Each kind of node, and each length of leaf, takes 64 KiB at a time and keeps it: less
    /// than a megabyte is soon used up.
    pub node_bytes: usize,
    /// Bytes of leaves that the tree may ever have; at most 32 GiB. As above.
    pub leaf_bytes: usize,
}

impl Default for Config {
    fn default() -> Self {
        // The interpreter of the language has no addresses to claim, and touches all that it is given.
        let (node_bytes, leaf_bytes) = if cfg!(miri) { (1 << 22, 1 << 22) } else { (8 << 30, 32 << 30) };
        Config { pages: PageKind::Base, node_bytes, leaf_bytes }
    }
}

/// A tree could not be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateError(pub(crate) MapError);

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no memory for a tree: {}", self.0)
    }
}

impl std::error::Error for CreateError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// An entry could not be put into a tree, which is as it was before. The value comes back.
#[derive(Clone, PartialEq, Eq)]
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
    /// There is no room for another node or leaf: remove entries, or make the tree with more [`Config::node_bytes`] and
    /// [`Config::leaf_bytes`], or allow the process more addresses (`ulimit -v`). Removing makes room for keys and nodes of the same size; what has been used for other sizes
    /// stays theirs, so a tree whose keys change their lengths needs room for the most that it ever has of each.
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
