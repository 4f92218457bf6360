//! All that is counted and that `stats reset` sets to zero: what memcached's does. What is (items, bytes, pages, who is
//! connected), how it was started and when, stays.
//!
//! Nothing is set to zero, in truth: threads go on counting meanwhile, and a counter has one writer. What had been
//! counted is remembered and taken off whenever somebody asks. Whoever shows a counter takes it from here, so that none
//! is left out.

use cache::engine::ClassReport;

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

/// What has become of the items of a slab class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Departures {
    pub(crate) evicted: u64,
    pub(crate) evicted_unfetched: u64,
    pub(crate) reclaimed: u64,
    pub(crate) expired_unfetched: u64,
    pub(crate) swept: u64,
    pub(crate) evicted_expiring: u64,
    pub(crate) out_of_memory: u64,
}

impl Departures {
    pub(crate) fn of(report: &ClassReport) -> Self {
        let ClassReport {
            evicted,
            evicted_unfetched,
            reclaimed,
            expired_unfetched,
            swept,
            evicted_expiring,
            out_of_memory,
            ..
        } = *report;
        Departures {
            evicted,
            evicted_unfetched,
            reclaimed,
            expired_unfetched,
            swept,
            evicted_expiring,
            out_of_memory,
        }
    }

    fn since(self, earlier: Self) -> Self {
        Departures {
            evicted: self.evicted - earlier.evicted,
            evicted_unfetched: self.evicted_unfetched - earlier.evicted_unfetched,
            reclaimed: self.reclaimed - earlier.reclaimed,
            expired_unfetched: self.expired_unfetched - earlier.expired_unfetched,
            swept: self.swept - earlier.swept,
            evicted_expiring: self.evicted_expiring - earlier.evicted_expiring,
            out_of_memory: self.out_of_memory - earlier.out_of_memory,
        }
    }
}

impl Counted {
    /// What has been counted since.
    pub(crate) fn since(mut self, earlier: &Counted) -> Counted {
        for (departures, &earlier) in self.departures.iter_mut().zip(&earlier.departures) {
            *departures = departures.since(earlier);
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
