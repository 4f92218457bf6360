//! What can be chosen when a table is made.

use std::fmt;
use std::sync::Arc;

#[cfg(not(loom))]
use pages::{Budget, MapError, PageKind};

use crate::hash::Hashes;

/// How an insert looks for an empty slot when both of its buckets are full.
///
/// Every search is made before anything is moved, is bounded, and reads no keys (paper, section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Search {
    /// Random walks, this many side by side, until one of them meets an empty slot: the paper's section 3.2.2 and its
    /// Table 2, where it is 1, 2 or 3. A walk gives up after 500 displacements in all.
    Walks(usize),
    /// All buckets one displacement away, then all that are two away, and so on, up to 512 buckets. Finds a shortest
    /// path, so few entries move, and the buckets of a level are fetched together.
    BreadthFirst,
}

/// Whether the table may become larger than it was made.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Growth {
    /// Never: an insert that finds no path is [`crate::TooFull`].
    Fixed,
    /// One bucket at a time, as inserts need room.
    Linear(Linear),
}

/// The terms of growth.
#[derive(Debug, Clone)]
pub struct Linear {
    /// Buckets that the table may have at most. Address space is claimed for all of them, memory for none.
    pub limit: usize,
    /// Share of the slots in use above which inserts split buckets: 0.1 to 0.95. A higher load is denser and its
    /// inserts dearer.
    pub target_load: f64,
    /// Where the memory of new buckets is taken from; growth stops where it is refused.
    #[cfg(not(loom))]
    pub budget: Option<Arc<Budget>>,
}

impl Linear {
    /// Growth to `limit` buckets at the target load that measured best, without a budget.
    #[must_use]
    pub fn up_to(limit: usize) -> Linear {
        Linear {
            limit,
            target_load: 0.9,
            #[cfg(not(loom))]
            budget: None,
        }
    }
}

/// What can be chosen when a table is made.
#[derive(Debug, Clone)]
pub struct Config {
    /// How inserts search.
    pub search: Search,
    /// Whether the table grows.
    pub growth: Growth,
    /// What the hashes are that it is given.
    pub hashes: Hashes,
    /// The pages its buckets are to lie in.
    #[cfg(not(loom))]
    pub pages: PageKind,
}

impl Default for Config {
    /// Breadth-first search, fixed size, hashes of any shape, transparent huge pages.
    fn default() -> Self {
        Config {
            search: Search::BreadthFirst,
            growth: Growth::Fixed,
            hashes: Hashes::Any,
            #[cfg(not(loom))]
            pages: PageKind::Transparent,
        }
    }
}

/// Why a table could not be made.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum CreateError {
    /// A table of no buckets was asked for, or a limit below the initial size.
    NoRoom,
    /// More buckets than any hash could tell apart.
    TooMany {
        /// Buckets asked for.
        buckets: usize,
    },
    /// The target load was not between 0.1 and 0.95.
    BadTargetLoad(f64),
    /// A search by no walks, or by more than 8.
    BadWalks(usize),
    /// The budget did not allow the initial buckets.
    #[cfg(not(loom))]
    OverBudget {
        /// Bytes the initial buckets need.
        bytes: usize,
    },
    /// The memory was refused.
    #[cfg(not(loom))]
    Memory(MapError),
}

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CreateError::NoRoom => {
                f.write_str("ask for at least one bucket, and a limit not below the initial size")
            }
            CreateError::TooMany { buckets } => {
                write!(f, "{buckets} buckets are more than 2^40: ask for fewer")
            }
            CreateError::BadTargetLoad(load) => {
                write!(f, "a target load of {load} is not within 0.1 to 0.95")
            }
            CreateError::BadWalks(walks) => write!(f, "a search by {walks} walks: choose 1 to 8"),
            #[cfg(not(loom))]
            CreateError::OverBudget { bytes } => {
                write!(
                    f,
                    "the initial buckets need {bytes} bytes, more than the budget allows: start smaller"
                )
            }
            #[cfg(not(loom))]
            CreateError::Memory(error) => write!(f, "no memory for the buckets: {error}"),
        }
    }
}

impl std::error::Error for CreateError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            #[cfg(not(loom))]
            CreateError::Memory(error) => Some(error),
            _ => None,
        }
    }
}

#[cfg(not(loom))]
impl From<MapError> for CreateError {
    fn from(error: MapError) -> Self {
        CreateError::Memory(error)
    }
}
