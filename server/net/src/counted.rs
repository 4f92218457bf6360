//! All that is counted and that `stats reset` sets to zero: what memcached's does. What is (items, bytes, pages, who is
//! connected), how it was started and when, stays.
//!
//! Nothing is set to zero, in truth: threads go on counting meanwhile, and a counter has one writer. What had been
//! counted is remembered and taken off whenever somebody asks. Whoever shows a counter takes it from here, so that none
//! is left out.

use cache::engine::Departures;

use crate::connections::Arrivals;
use crate::metrics::{ClassSums, Sums, SumsByClass};
use crate::watch::Logged;

/// What has been counted since the start, or since a reset.
#[derive(Clone, Default)]
pub(crate) struct Counted {
    pub(crate) sums: Sums,
    pub(crate) by_class: SumsByClass,
    pub(crate) cache: cache::engine::Counts,
    pub(crate) arrivals: Arrivals,
    pub(crate) pages_moved: u64,
    /// Of `watch`.
    pub(crate) logged: Logged,
    /// Listings of keys that were begun.
    pub(crate) dumps: u64,
    /// By slab class; empty before the first reset.
    pub(crate) departures: Vec<Departures>,
}

impl Counted {
    /// What has been counted since.
    pub(crate) fn since(mut self, earlier: &Counted) -> Counted {
        for (departures, &earlier) in self.departures.iter_mut().zip(&earlier.departures) {
            *departures = *departures - earlier;
        }
        Counted {
            sums: self.sums - earlier.sums,
            by_class: self.by_class.since(&earlier.by_class),
            cache: self.cache - earlier.cache,
            arrivals: Arrivals {
                accepted: self.arrivals.accepted - earlier.arrivals.accepted,
                rejected: self.arrivals.rejected - earlier.arrivals.rejected,
                pauses: self.arrivals.pauses - earlier.arrivals.pauses,
                paused_us: self.arrivals.paused_us - earlier.arrivals.paused_us,
            },
            pages_moved: self.pages_moved - earlier.pages_moved,
            departures: self.departures,
            logged: Logged {
                dropped: self.logged.dropped - earlier.logged.dropped,
                written: self.logged.written - earlier.logged.written,
                skipped: self.logged.skipped - earlier.logged.skipped,
                sent: self.logged.sent - earlier.logged.sent,
            },
            dumps: self.dumps - earlier.dumps,
        }
    }

    /// What has become of the items of a class.
    pub(crate) fn departures(&self, class: usize) -> Departures {
        self.departures[class]
    }

    /// One of these counts, of all classes.
    pub(crate) fn all_departures(&self, count: impl Fn(&Departures) -> u64) -> u64 {
        self.departures.iter().map(count).sum()
    }

    /// What has been asked of the items of a class.
    pub(crate) fn class(&self, class: usize) -> ClassSums {
        self.by_class.of(class)
    }
}
