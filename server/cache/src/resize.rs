//! Another limit for a cache in use.
//!
//! *More.* Items, what is known of their pages, and the index lie in reservations of addresses, made with room for
//! several times the limit ([`crate::shared`]). So a higher limit is a number, and holds at once.
//!
//! *Less.* The number changes at once, too: nobody gets a page any more who could evict instead. Then housekeeping
//! empties the cache in steps:
//!
//! ```text
//! step:
//!   pages of nobody, and those with nothing on them, go back to the machine
//!   while the limit is exceeded, for a few pages:
//!     the index gives up what it has beyond its share, or a page of dead items is cleared, or else
//!     the oldest page of the class with the oldest items is emptied          if the cache evicts
//!     what that leaves goes back to the machine
//! ```
//!
//! As much as is given back the limit in force falls; so what is resident never grows meanwhile. A page that is being
//! read, or written, follows later. A page that has been used much is spared a few times, as when a class takes pages
//! of another one, but not for ever.
//!
//! Of the holes that this leaves between items the kernel would make huge pages after a while, and so fill them with
//! memory again. So a cache that was given a lower limit once gets no more huge pages for items; it keeps those that it
//! has.
//!
//! Rejected: *regions that are chained*: every location would have to say in which one it lies, and every lookup to
//! ask.

use std::fmt;

use crate::config::SMALLEST_LIMIT;
use crate::counters::Counters;
use crate::policy::Policy;
use crate::reclaim::Extent;
use crate::shared::Engine;

/// Pages that a step empties at the most: small items make a page cost a tenth of a millisecond, and who serves on the
/// core of who does this waits for the step's end.
const EMPTIED_A_STEP: usize = 1;
/// Pages that a step gives back at the most each time. The pool is locked meanwhile.
const GIVEN_A_STEP: usize = 8;

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
    /// It is more than the cache has addresses for.
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

impl<P: Policy> Engine<P> {
    /// Sets another limit.
    pub(crate) fn resize(&self, limit: usize) -> Result<(), ResizeError> {
        let (least, most) = (SMALLEST_LIMIT.max(2 * self.config.largest_item), self.most);
        if limit < least {
            return Err(ResizeError::TooSmall { limit, least });
        }
        if limit > most {
            return Err(ResizeError::TooLarge { limit, most });
        }
        if limit < self.pool.limit() {
            self.arena.region().make_no_more_huge_pages();
        }
        self.pool.set_limit(limit);
        Ok(())
    }

    /// Takes a step from what the cache has to the limit, if that was lowered; true if it got nearer.
    pub(crate) fn give_up_some(&self, counters: &Counters) -> bool {
        let before = self.pool.excess();
        if before == 0 {
            return false;
        }
        for _ in 0..=EMPTIED_A_STEP {
            self.collect_spare();
            let exceeds = self.pool.give_up_excess(&self.arena, GIVEN_A_STEP);
            if !exceeds || !self.free_some(counters) {
                break;
            }
        }
        self.pool.excess() < before
    }

    /// Frees a page, or a piece of the index, for whoever wants it; false if nothing can go now.
    fn free_some(&self, counters: &Counters) -> bool {
        self.shrink_index()
            || self.clear_dead(Extent::Bounded, counters)
            // Whoever is pinned holds back what was emptied: more would be emptied in vain.
            || self.evicts() && self.has_emptied() && self.empty_oldest_page(counters)
    }
}
