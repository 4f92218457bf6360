//! Changing the limit of a cache in use.

use std::fmt;

use crate::cache::Cache;
use crate::policy::Policy;

/// Why a cache cannot have a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResizeError {
    /// It is too little for any cache, or for the largest item of this one.
    TooSmall {
        /// Bytes asked for.
        limit: usize,
        /// Bytes that it needs.
        least: usize,
    },
    /// It is more than the cache has claimed addresses for.
    TooLarge {
        /// Bytes asked for.
        limit: usize,
        /// Bytes that it can have.
        most: usize,
    },
}

impl fmt::Display for ResizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResizeError::TooSmall { limit, least } => {
                write!(f, "a limit of {limit} bytes is too small for this cache: ask for at least {least}")
            }
            ResizeError::TooLarge { limit, most } => {
                write!(
                    f,
                    "a cache in use grows to {most} bytes, not to {limit}: ask for less, or start it with more"
                )
            }
        }
    }
}

impl std::error::Error for ResizeError {}

impl<P: Policy> Cache<P> {
    /// Gives the cache another limit, while it is in use.
    ///
    /// # Errors
    /// [`ResizeError`]: the limit is as it was.
    pub fn resize(&self, limit: usize) -> Result<(), ResizeError> {
        let now = self.memory().limit;
        match limit.cmp(&now) {
            std::cmp::Ordering::Less => Err(ResizeError::TooSmall { limit, least: now }),
            std::cmp::Ordering::Equal => Ok(()),
            std::cmp::Ordering::Greater => Err(ResizeError::TooLarge { limit, most: now }),
        }
    }
}
