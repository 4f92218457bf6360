//! How the baselines keep threads apart: the steps of the paper's Figure 5.
//!
//! *Unlocked*: not at all, for one thread (Figure 5a). *Global*: one mutex for the whole table, as memcached 1.4 had
//! it. *Striped*: one of 8192 mutexes, by bucket ("+bucket lock"), each on a cache line of its own.
//!
//! The words of the baselines are atomics that are loaded and stored relaxed, plain moves on today's processors, so a
//! lock is all that orders them, and a missing one makes them wrong, not undefined.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crossbeam_utils::CachePadded;

/// As many as the paper has version counters.
const STRIPES: usize = 8192;

/// A way to keep threads apart.
pub(crate) trait Locking: Sync + Default {
    /// Held while a bucket, or two, are used.
    type Guard<'l>
    where
        Self: 'l;

    /// Locks a bucket.
    fn lock(&self, bucket: usize) -> Self::Guard<'_>;

    /// Locks two buckets, which may be one.
    fn lock_both(&self, first: usize, second: usize) -> Self::Guard<'_>;
}

/// No locks.
#[derive(Debug, Default)]
pub(crate) struct Unlocked;

/// One lock.
#[derive(Debug, Default)]
pub(crate) struct Global(Mutex<()>);

/// Locks by bucket.
#[derive(Debug)]
pub(crate) struct Striped(Box<[CachePadded<Mutex<()>>]>);

/// Locks, whatever has become of who held it before.
pub(crate) fn acquire<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic leaves nothing half done here that later requests would not notice as a wrong answer.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Locking for Unlocked {
    type Guard<'l> = ();

    #[inline]
    fn lock(&self, _bucket: usize) {}

    #[inline]
    fn lock_both(&self, _first: usize, _second: usize) {}
}

impl Locking for Global {
    type Guard<'l> = MutexGuard<'l, ()>;

    #[inline]
    fn lock(&self, _bucket: usize) -> Self::Guard<'_> {
        acquire(&self.0)
    }

    #[inline]
    fn lock_both(&self, _first: usize, _second: usize) -> Self::Guard<'_> {
        acquire(&self.0)
    }
}

impl Default for Striped {
    fn default() -> Self {
        Striped((0..STRIPES).map(|_| CachePadded::default()).collect())
    }
}

impl Locking for Striped {
    type Guard<'l> = (MutexGuard<'l, ()>, Option<MutexGuard<'l, ()>>);

    #[inline]
    fn lock(&self, bucket: usize) -> Self::Guard<'_> {
        (acquire(&self.0[bucket % STRIPES]), None)
    }

    #[inline]
    fn lock_both(&self, first: usize, second: usize) -> Self::Guard<'_> {
        let (first, second) = (first % STRIPES, second % STRIPES);
        // Always the lower one first: two threads that want the same two cannot wait for each other.
        let lower = acquire(&self.0[first.min(second)]);
        (lower, (first != second).then(|| acquire(&self.0[first.max(second)])))
    }
}
