//! What a buffer counts: by each thread for itself, and added up now and then.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::slb::Emission;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// What has happened so far, as far as the threads have told: each tells when its visit ends or is refreshed.
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

        /// One thread's, not yet told.
        #[derive(Debug, Default)]
        pub(crate) struct Tally {
            $(pub(crate) $name: Cell<u64>,)*
        }

        impl Totals {
            /// Takes over what a thread has counted.
            pub(crate) fn take(&self, tally: &Tally) {
                // Statistics: nothing is read through them.
                $(match tally.$name.take() {
                    0 => {}
                    count => { self.$name.fetch_add(count, Ordering::Relaxed); }
                })*
            }

            pub(crate) fn counts(&self) -> Counts {
                Counts { $($name: self.$name.load(Ordering::Relaxed),)* }
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
    emissions,
    /// Of these, entries that were put in.
    admissions,
    /// Of those, entries that took another's place.
    evictions,
    /// Emissions dropped because a write came between, or another thread was faster.
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

/// One more.
#[inline(always)]
pub(crate) fn count(cell: &Cell<u64>) {
    // Hits that are counted beforehand may be below zero until they are told: see `Seat::uses_table`.
    cell.set(cell.get().wrapping_add(1));
}

impl Tally {
    pub(crate) fn emitted(&self, outcome: Option<Emission>) {
        match outcome {
            None | Some(Emission::Contended) => count(&self.refused_tickets),
            Some(Emission::Admitted) => count(&self.admissions),
            Some(Emission::Replaced) => {
                count(&self.admissions);
                count(&self.evictions);
            }
            Some(Emission::Refused | Emission::Present) => {}
        }
    }
}
