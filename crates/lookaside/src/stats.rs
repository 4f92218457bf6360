//! What a buffer counts: each thread for itself, on lines that no other thread writes.
//!
//! A number is changed by a load and a store, and by its own thread only. Any thread may load it meanwhile: so the sums
//! are there at any time, and nobody has to hand in what he has counted.
//!
//! Rejected: *sums that each visit adds to when it ends*: an atomic read-modify-write for each lookup of who pins for
//! each.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// What has happened so far. While others look up, some of it may be a moment old.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Counts {
            $($(#[$doc])* pub $name: u64,)*
        }

        /// The sum over all threads.
        #[derive(Debug, Default)]
        pub(crate) struct Totals {
            $($name: AtomicU64,)*
        }

        /// One thread's: changed by that thread only.
        #[derive(Debug, Default)]
        pub(crate) struct Tally {
            /// Lookups that the monitor let ask the table, and those that it did not: see [`crate::monitor_sampler`].
            pub(crate) asked: Number,
            pub(crate) passed: Number,
            /// At which of these it is to be asked again. No other thread loads that.
            pub(crate) asked_end: Cell<u64>,
            pub(crate) passed_end: Cell<u64>,
            /// Of `asked` and `passed`, those that are in the sums already, or that another has counted.
            pub(crate) told: [Number; 2],
            $(pub(crate) $name: Number,)*
        }

        impl Totals {
            /// Takes over what a thread has counted. By that thread.
            pub(crate) fn take(&self, tally: &Tally) {
                let counts = tally.counts();
                // Statistics: nothing is read through them.
                $(self.$name.fetch_add(counts.$name, Ordering::Relaxed); tally.$name.set(0);)*
                tally.leave_out();
            }

            pub(crate) fn counts(&self) -> Counts {
                Counts { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }

        impl Tally {
            /// What has been counted, and is in no sum yet.
            pub(crate) fn counts(&self) -> Counts {
                // The others first: hits are what is left of the lookups that asked.
                let mut counts = Counts { $($name: self.$name.get(),)* };
                let [asked, passed] = &self.told;
                counts.hits = counts.hits.wrapping_add(self.asked.get().wrapping_sub(asked.get()));
                // Seen in the middle of a lookup, there may be a miss more than there are lookups.
                counts.hits = u64::try_from(counts.hits.cast_signed()).unwrap_or(0);
                counts.bypassed = counts.bypassed.wrapping_add(self.passed.get().wrapping_sub(passed.get()));
                counts
            }
        }

        impl std::ops::AddAssign for Counts {
            fn add_assign(&mut self, other: Counts) {
                $(self.$name = self.$name.wrapping_add(other.$name);)*
            }
        }
    };
}

counters! {
    /// Lookups that the table answered.
    hits,
    /// Lookups that went on to the index.
    misses,
    /// Lookups that did not ask the table, because the monitor had switched it off.
    bypassed,
    /// Entries offered after a miss.
    offers,
    /// Of these, entries that were put in.
    admissions,
    /// Of those, entries that took another's place.
    evictions,
    /// Offers dropped because a write came between, or another thread was faster.
    refused_tickets,
    /// Writes that told the table.
    invalidations,
    /// Slots that they cleared.
    cleared,
    /// Writes that did without the index ([`Store::SUCCESSION`](crate::index::Store::SUCCESSION)).
    successions,
}

impl Counts {
    /// Share of the lookups that asked the table which it answered: 0 before the first.
    #[must_use]
    pub fn hit_ratio(&self) -> f64 {
        self.hits as f64 / (self.hits + self.misses).max(1) as f64
    }
}

/// A number of one thread's, which others may load. All relaxed: statistics.
#[derive(Debug, Default)]
pub(crate) struct Number(AtomicU64);

impl Number {
    #[inline(always)]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn set(&self, to: u64) {
        self.0.store(to, Ordering::Relaxed);
    }

    #[inline(always)]
    pub(crate) fn add(&self, more: u64) {
        self.set(self.get().wrapping_add(more));
    }
}

impl Tally {
    /// So many of the lookups that were let ask were no hits.
    #[inline]
    pub(crate) fn missed(&self, lookups: u64) {
        self.misses.add(lookups);
        // Those that asked are hits but for these. Below zero until they are added.
        self.hits.set(self.hits.get().wrapping_sub(lookups));
    }

    /// The lookups that were let ask or not so far are no business of the sums.
    pub(crate) fn leave_out(&self) {
        let [asked, passed] = &self.told;
        asked.set(self.asked.get());
        passed.set(self.passed.get());
    }
}
