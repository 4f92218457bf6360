//! What has happened, counted without sharing.
//!
//! Each session counts in its own cache lines, with plain loads and stores that no other thread makes; who wants the sums
//! adds them up. A session that ends leaves its counts behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use parking_lot::Mutex;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Counts since the cache was made, summed over all sessions.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[non_exhaustive]
        pub struct Counts {
            $($(#[$doc])* pub $name: u64,)*
        }

        /// The counts of one session.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $($name: AtomicU64,)*
        }

        impl Counters {
            $(
                #[inline]
                pub(crate) fn $name(&self, by: u64) {
                    // Relaxed and not a read-modify-write: only this session writes it.
                    self.$name.store(self.$name.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
                }
            )*

            fn add_to(&self, counts: &mut Counts) {
                $(counts.$name = counts.$name.wrapping_add(self.$name.load(Ordering::Relaxed));)*
            }
        }
    };
}

counters! {
    /// Keys looked up and found.
    hits,
    /// Keys looked up and not found, for whatever reason.
    misses,
    /// Of the misses, keys whose item had expired.
    expired,
    /// Of the misses, keys whose item was flushed.
    flushed,
    /// Items that became visible.
    stored,
    /// Bytes of items that became visible: header, key and value.
    bytes_stored,
    /// Items that were replaced, deleted, evicted or reclaimed.
    removed,
    /// Bytes of these.
    bytes_removed,
}

/// The counters of all sessions.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    sessions: Mutex<(Vec<Arc<CachePadded<Counters>>>, Counts)>,
}

impl Registry {
    pub(crate) fn join(&self) -> Arc<CachePadded<Counters>> {
        let counters = Arc::new(CachePadded::new(Counters::default()));
        self.sessions.lock().0.push(counters.clone());
        counters
    }

    pub(crate) fn leave(&self, counters: &Arc<CachePadded<Counters>>) {
        let mut sessions = self.sessions.lock();
        let (present, past) = &mut *sessions;
        present.retain(|other| !Arc::ptr_eq(other, counters));
        counters.add_to(past);
    }

    pub(crate) fn counts(&self) -> Counts {
        let sessions = self.sessions.lock();
        let mut counts = sessions.1;
        sessions.0.iter().for_each(|counters| counters.add_to(&mut counts));
        counts
    }
}
