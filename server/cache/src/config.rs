//! What can be chosen when a cache is made, and why one may not be.

use std::fmt;

use cuckoo::CreateError as IndexError;
use pages::{MapError, PageKind};

/// The least memory that a cache works in: a few pages and an index.
pub const SMALLEST_LIMIT: usize = 1 << 20;

/// Whether items make way for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eviction {
    /// When memory is full, the policy chooses who goes.
    ByPolicy,
    /// When memory is full, nothing more is stored.
    Never,
}

/// What can be chosen when a cache is made.
#[derive(Debug, Clone)]
pub struct Config {
    /// Bytes for items and index together. Memory is given to items in pages of 64 KiB, each for chunks of one size:
    /// with a limit of less than about eight megabytes there are fewer pages than sizes, and items of many sizes waste
    /// some of it.
    pub limit: usize,
    /// Bytes that one item, key and value and header, may take: at most half of the limit.
    pub largest_item: usize,
    /// What happens when the memory is full.
    pub eviction: Eviction,
    /// The pages that items and index are to lie in.
    pub pages: PageKind,
    /// Bytes of a lookaside buffer's table before the index, beside the limit; 0: none. It pays where few keys, one for
    /// every eight or nine bytes of the table, get most of the lookups and the index is larger than the processor's
    /// caches.
    pub lookaside: usize,
    /// Items that the index has room for from the start, as far as an eighth of the limit goes; 0: it grows from the
    /// smallest. It grows without stopping anybody, so this saves no pause, but the work of growing. What is not used
    /// of it goes to items when these need memory.
    pub index_items: usize,
}

impl Config {
    /// A cache of `limit` bytes with items up to 1 MiB or half the limit, eviction, no lookaside buffer, and
    /// transparent huge pages where the limit is large enough for them to matter.
    #[must_use]
    pub fn with_limit(limit: usize) -> Config {
        // A huge page that is touched anywhere is resident everywhere: in a small cache that would be felt.
        let pages = if limit >= 64 << 20 { PageKind::Transparent } else { PageKind::Base };
        Config {
            limit,
            largest_item: (1 << 20).min(limit / 2),
            eviction: Eviction::ByPolicy,
            pages,
            lookaside: 0,
            index_items: 0,
        }
    }
}

/// Why a cache could not be made.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum CreateError {
    /// The limit is below [`SMALLEST_LIMIT`].
    LimitTooSmall {
        /// Bytes asked for.
        limit: usize,
    },
    /// The largest item would not fit into half of the limit, or would be empty.
    BadLargestItem {
        /// Bytes asked for.
        bytes: usize,
    },
    /// The memory for items was refused.
    Memory(MapError),
    /// The index could not be made.
    Index(IndexError),
    /// The thread that keeps the time was refused.
    Thread(std::io::ErrorKind),
    /// The lookaside buffer could not be made.
    Lookaside(lookaside::CreateError),
}

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CreateError::LimitTooSmall { limit } => {
                write!(f, "a limit of {limit} bytes is too small: ask for at least {SMALLEST_LIMIT}")
            }
            CreateError::BadLargestItem { bytes } => {
                write!(
                    f,
                    "an item of {bytes} bytes must fit into half of the limit: lower it or raise the limit"
                )
            }
            CreateError::Memory(error) => write!(f, "no memory for the items: {error}"),
            CreateError::Index(error) => write!(f, "no index: {error}"),
            CreateError::Thread(kind) => write!(f, "no thread to keep the time: {kind}"),
            CreateError::Lookaside(error) => write!(f, "no lookaside buffer: {error}"),
        }
    }
}

impl std::error::Error for CreateError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            CreateError::Memory(error) => Some(error),
            CreateError::Index(error) => Some(error),
            CreateError::Lookaside(error) => Some(error),
            _ => None,
        }
    }
}

impl From<MapError> for CreateError {
    fn from(error: MapError) -> Self {
        CreateError::Memory(error)
    }
}

impl From<lookaside::CreateError> for CreateError {
    fn from(error: lookaside::CreateError) -> Self {
        CreateError::Lookaside(error)
    }
}

impl From<IndexError> for CreateError {
    fn from(error: IndexError) -> Self {
        CreateError::Index(error)
    }
}
