//! Which keys are looked up how often.
//!
//! Each session samples its own lookups, every so many, into its own ring; a pass in the background empties the rings and
//! counts (Stoica and Ailamaki, DaMoN 2013; seed 003, section 5, who log "probabilistically ... to a dedicated circular
//! buffer"). The distance to the next sample is drawn anew each time, so that no pattern in the lookups is missed or hit
//! every time. A lookup that is not sampled pays for one counter of its own thread.
//!
//! A ring that is full forgets its oldest sample. While its ring is being emptied, a session drops its sample rather than
//! wait.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;

use crate::key::Key;

/// Lookups between samples, on average, where nothing else is said.
pub const DEFAULT_INTERVAL: u32 = 256;

/// Samples that a session's ring holds.
pub const RING: usize = 1 << 16;

type Ring<K> = Mutex<VecDeque<<K as ToOwned>::Owned>>;

/// The samples of all sessions at a tree.
pub struct AccessLog<K: Key + ?Sized> {
    /// Lookups between samples, on average; zero samples nothing.
    interval: Arc<AtomicU32>,
    rings: Mutex<Vec<Arc<Ring<K>>>>,
    /// Those of threads that look up without a session, from behind a map.
    #[cfg(feature = "lookaside")]
    samplers: thread_local::ThreadLocal<Sampler<K>>,
}

impl<K: Key + ?Sized> Default for AccessLog<K> {
    fn default() -> Self {
        AccessLog {
            interval: Arc::default(),
            rings: Mutex::default(),
            #[cfg(feature = "lookaside")]
            samplers: thread_local::ThreadLocal::default(),
        }
    }
}

impl<K: Key + ?Sized> AccessLog<K> {
    /// Samples one lookup in `interval` from now on, on average; none if it is zero, as at first.
    /// [`DEFAULT_INTERVAL`] costs next to nothing. Sessions notice within a few thousand lookups.
    pub fn sample_every(&self, interval: u32) {
        self.interval.store(interval, Ordering::Relaxed);
    }

    /// Lookups between samples, on average; zero if nothing is sampled.
    #[must_use]
    pub fn interval(&self) -> u32 {
        self.interval.load(Ordering::Relaxed)
    }

    pub(crate) fn join(&self) -> Sampler<K> {
        let ring = Arc::new(Ring::<K>::default());
        self.rings.lock().push(Arc::clone(&ring));
        // Any odd number will do that differs between sessions.
        let seed = Arc::as_ptr(&ring).addr() as u64 | 1;
        Sampler { ring, left: Cell::new(1), random: Cell::new(seed), interval: Arc::clone(&self.interval) }
    }

    /// Counts a lookup of a thread without a session, and samples it if it is its turn.
    #[cfg(feature = "lookaside")]
    #[inline(always)]
    pub(crate) fn saw(&self, key: &K) {
        if self.interval() > 0 {
            self.samplers.get_or(|| self.join()).saw(key);
        }
    }

    /// Empties the rings: what was sampled since the last time.
    #[must_use]
    pub fn drain(&self) -> Vec<K::Owned> {
        let mut rings = self.rings.lock();
        let samples = rings.iter().flat_map(|ring| std::mem::take(&mut *ring.lock())).collect();
        // Those of sessions that have ended.
        rings.retain(|ring| Arc::strong_count(ring) > 1);
        samples
    }

    /// Empties the rings and counts: keys with their samples, the most frequent first.
    #[must_use]
    pub fn frequencies(&self) -> Vec<(K::Owned, usize)> {
        let mut counts = HashMap::new();
        self.drain().into_iter().for_each(|key| *counts.entry(key).or_insert(0) += 1);
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_unstable_by(|(a, more), (b, fewer)| fewer.cmp(more).then_with(|| a.cmp(b)));
        counts
    }
}

/// One session's part in the log.
pub(crate) struct Sampler<K: Key + ?Sized> {
    ring: Arc<Ring<K>>,
    /// Lookups to the next sample.
    left: Cell<u32>,
    random: Cell<u64>,
    interval: Arc<AtomicU32>,
}

impl<K: Key + ?Sized> Sampler<K> {
    /// Lookups after which a session that samples nothing asks again.
    const IDLE: u32 = 4096;

    /// Counts a lookup, and samples it if it is its turn.
    #[inline(always)]
    pub(crate) fn saw(&self, key: &K) {
        let left = self.left.get() - 1;
        self.left.set(left);
        if left == 0 {
            self.sample(key);
        }
    }

    #[cold]
    fn sample(&self, key: &K) {
        let interval = self.interval.load(Ordering::Relaxed);
        if interval == 0 {
            self.left.set(Self::IDLE);
            return;
        }
        let mut random = self.random.get();
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        self.random.set(random);
        // Evenly between one and twice the interval: on average the interval.
        let range = u64::from(interval) * 2 - 1;
        self.left.set(1 + (((random >> 32) * range) >> 32) as u32);
        if let Some(mut ring) = self.ring.try_lock() {
            if ring.len() == RING {
                ring.pop_front();
            }
            ring.push_back(key.to_owned());
        }
    }
}

impl<K: Key + ?Sized> fmt::Debug for AccessLog<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessLog").field("interval", &self.interval()).finish_non_exhaustive()
    }
}
