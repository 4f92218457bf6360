//! What a tree is made with, and why it may not be made.

use std::fmt;

use pages::{MapError, PageKind};

/// What a tree is made with.
///
/// ```
/// use lookaside_art::{Config, PageKind, Tree};
///
/// let config = Config::new().with_pages(PageKind::Transparent);
/// let tree = Tree::<[u8; 8], u64>::with_config(&config)?;
/// assert!(tree.is_empty());
/// # Ok::<(), lookaside_art::CreateError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// The pages that nodes and leaves live in; a machine that lacks them gives the next smaller ones.
    pub pages: PageKind,
    /// Bytes of nodes that the tree may ever have; at most 8 GiB. Of base and transparent pages only addresses are
    /// claimed, so the default, which is the most, takes no memory. Where a process may not have as many addresses as
    /// it likes (`ulimit -v`), or has used them up, a tree begins with a megabyte of them and claims more as it grows.
    /// Pages of a hugetlb pool are claimed at once: say how many. Each kind of node, and each length of leaf, takes 64
    /// KiB at a time and keeps it: less than a megabyte is soon used up.
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

impl Config {
    /// The defaults: base pages, and room for the most that a tree can have.
    #[must_use]
    pub fn new() -> Config {
        Config::default()
    }

    /// With these [`pages`](Config::pages).
    #[must_use]
    pub fn with_pages(self, pages: PageKind) -> Config {
        Config { pages, ..self }
    }

    /// With at most so many [bytes of nodes](Config::node_bytes).
    #[must_use]
    pub fn with_node_bytes(self, node_bytes: usize) -> Config {
        Config { node_bytes, ..self }
    }

    /// With at most so many [bytes of leaves](Config::leaf_bytes).
    #[must_use]
    pub fn with_leaf_bytes(self, leaf_bytes: usize) -> Config {
        Config { leaf_bytes, ..self }
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
