//! What can be chosen when a table is made.

use std::fmt;
#[cfg(not(loom))]
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

impl Default for Growth {
    /// As far as there are addresses.
    fn default() -> Self {
        Growth::Linear(Linear::default())
    }
}

/// The terms of growth.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Linear {
    /// Buckets that the table may have at most. Address space is claimed for all of them, memory for none; with
    /// [`Linear::UNLIMITED`] for 2^28 of them, or, where the process may not have so many, for a part of what there is.
    /// Pages of a hugetlb pool are claimed at once: say how many.
    pub limit: usize,
    /// Share of the slots in use above which inserts split buckets: 0.1 to 0.95. A higher load is denser and its
    /// inserts dearer.
    pub target_load: f64,
    /// Where the memory of new buckets is taken from; growth stops where it is refused.
    #[cfg(not(loom))]
    pub budget: Option<Arc<Budget>>,
}

impl Default for Linear {
    /// To as many buckets as there are addresses for, at the target load that measured best, without a budget.
    fn default() -> Self {
        Linear::up_to(Linear::UNLIMITED)
    }
}

impl Linear {
    /// No [`limit`](Linear::limit) but that of the process.
    pub const UNLIMITED: usize = usize::MAX;

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

    /// With this [`target_load`](Linear::target_load).
    #[must_use]
    pub fn with_target_load(self, target_load: f64) -> Linear {
        Linear { target_load, ..self }
    }

    /// With memory from this [`budget`](Linear::budget).
    #[cfg(not(loom))]
    #[must_use]
    pub fn with_budget(self, budget: Arc<Budget>) -> Linear {
        Linear { budget: Some(budget), ..self }
    }
}

/// What can be chosen when a table is made.
///
/// ```
/// use lookaside_cuckoo::{Config, Growth, Hashes, Linear, Table};
///
/// // Of at most a MiB, for keys whose hashes are good.
/// let limit = (1 << 20) / <Table>::BUCKET_BYTES;
/// let config = Config::new().with_growth(Growth::Linear(Linear::up_to(limit))).with_hashes(Hashes::Avalanching);
/// let table: Table = Table::with_buckets(16, &config)?;
/// # Ok::<(), lookaside_cuckoo::CreateError>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// How inserts search.
    #[doc(hidden)]
    pub search: Search,
    /// Whether the table grows.
    pub growth: Growth,
    /// What the hashes are that it is given.
    pub hashes: Hashes,
    /// The pages its buckets are to lie in.
    #[cfg(not(loom))]
    pub pages: PageKind,
    /// Whether keys that find no place go to a [stash](crate::stash), in a layout whose buckets can be marked.
    pub(crate) stashes: bool,
    /// Whether a key goes to its first bucket while that has room: see [`crate::first`].
    pub(crate) prefers_first: bool,
}

impl Default for Config {
    /// Growth, hashes of any shape, transparent huge pages.
    fn default() -> Self {
        Config {
            search: Search::BreadthFirst,
            growth: Growth::default(),
            hashes: Hashes::Any,
            #[cfg(not(loom))]
            pages: PageKind::Transparent,
            stashes: false,
            prefers_first: false,
        }
    }
}

impl Config {
    /// The defaults: growth, hashes of any shape, transparent huge pages.
    #[must_use]
    pub fn new() -> Config {
        Config::default()
    }

    /// With this [`growth`](Config::growth), or none.
    #[must_use]
    pub fn with_growth(self, growth: Growth) -> Config {
        Config { growth, ..self }
    }

    /// For [`hashes`](Config::hashes) of this kind.
    #[must_use]
    pub fn with_hashes(self, hashes: Hashes) -> Config {
        Config { hashes, ..self }
    }

    /// In [`pages`](Config::pages) of this kind.
    #[cfg(not(loom))]
    #[must_use]
    pub fn with_pages(self, pages: PageKind) -> Config {
        Config { pages, ..self }
    }

    /// With a stash, so that no insert is refused, and for lookups that ask for the first bucket first.
    #[must_use]
    pub(crate) fn for_a_map(self) -> Config {
        Config { stashes: true, prefers_first: true, ..self }
    }

    /// With this [`search`](Config::search).
    #[doc(hidden)]
    #[must_use]
    pub fn with_search(self, search: Search) -> Config {
        Config { search, ..self }
    }
}

/// Memory is taken from the budget in pieces of this many bytes.
#[cfg(not(loom))]
pub(crate) const PIECE: usize = 64 << 10;

#[cfg(not(loom))]
impl Config {
    pub(crate) fn budget(&self) -> Option<&Budget> {
        match &self.growth {
            Growth::Linear(linear) => linear.budget.as_deref(),
            Growth::Fixed => None,
        }
    }

    /// Takes so many bytes from the budget, rounded up to whole pieces; how many that were.
    pub(crate) fn take_from_budget(&self, bytes: usize) -> Result<usize, CreateError> {
        let Some(budget) = self.budget() else { return Ok(0) };
        let bytes = bytes.next_multiple_of(PIECE);
        if budget.try_take(bytes) { Ok(bytes) } else { Err(CreateError::OverBudget { bytes }) }
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
