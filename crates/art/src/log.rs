//! Which keys are looked up how often.
//!
//! Each session samples its own lookups, every so many, into its own ring; a pass in the background empties the rings
//! and counts (Stoica and Ailamaki, DaMoN 2013; Wong and others, DaMoN 2015, section 5, who log "probabilistically ...
//! to a dedicated circular buffer"). The distance to the next sample is drawn anew each time, so that no pattern in the
//! lookups is missed or hit every time. A lookup that is not sampled pays for one counter of its own thread.
//!
//! A ring that is full forgets its oldest sample. While its ring is being emptied, a session drops its sample rather
//! than wait. Keys that are very long are not sampled ([`LONGEST_SAMPLED`]), nor is [`crate::Entries::contains_key`],
//! nor writes. What a session has not had counted when it ends goes to one more ring, that of all sessions that have
//! ended: however many come and go, the log holds no more than a ring for each that is there, and one.
//!
//! Rejected: *a count in each reader*, with a session or without, so that a lookup asks neither for the session nor for
//! its count: lookups that are logged were no faster, and those that cannot be lost a fortieth; *whole visits instead
//! of lookups*, which would cost nothing: their samples come in bursts.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

#[cfg(feature = "lookaside")]
use atomics::reclaim::Collector;
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;

use crate::key::Key;

/// Lookups between samples, on average, where nothing else is said.
pub const DEFAULT_INTERVAL: u32 = 256;

/// Bytes of the longest keys that are sampled: a ring, which is bounded in samples, is bounded in bytes by it. Whoever
/// asks for keys of megabytes that are not there shall not fill the memory with them.
pub const LONGEST_SAMPLED: usize = 512;

/// Samples that a session's ring holds, and that of all sessions that have ended.
pub const RING: usize = 1 << 16;

type Samples<K> = VecDeque<<K as ToOwned>::Owned>;
type Ring<K> = Mutex<Samples<K>>;

/// The samples of all sessions at a tree.
pub struct AccessLog<K: Key + ?Sized> {
    shared: Arc<Shared<K>>,
    /// Those of threads that look up without a session, from behind a map; also of one whose thread-locals are being
    /// destroyed. Nothing is retired here.
    #[cfg(feature = "lookaside")]
    samplers: Collector<Sampler<K>>,
}

/// What a log and its sessions share.
struct Shared<K: Key + ?Sized> {
    /// Lookups between samples, on average; zero samples nothing.
    interval: CachePadded<AtomicU32>,
    rings: Mutex<Rings<K>>,
}

struct Rings<K: Key + ?Sized> {
    live: Vec<Arc<Ring<K>>>,
    ended: Samples<K>,
}

impl<K: Key + ?Sized> Default for AccessLog<K> {
    fn default() -> Self {
        let rings = Rings { live: Vec::new(), ended: VecDeque::new() };
        let shared = Arc::new(Shared { interval: CachePadded::default(), rings: Mutex::new(rings) });
        AccessLog {
            #[cfg(feature = "lookaside")]
            samplers: {
                let joined = Arc::clone(&shared);
                Collector::with_locals(move || joined.join())
            },
            shared,
        }
    }
}

impl<K: Key + ?Sized> AccessLog<K> {
    /// Samples one lookup in `interval` from now on, on average; none if it is zero, as at first. [`DEFAULT_INTERVAL`]
    /// costs no more than the counter of a session that samples nothing: a few per cent of a lookup. Sessions notice
    /// when their next sample is due, or within a few thousand lookups if none is.
    pub fn sample_every(&self, interval: u32) {
        self.shared.interval.store(interval, Ordering::Relaxed);
    }

    /// Lookups between samples, on average; zero if nothing is sampled.
    #[must_use]
    pub fn interval(&self) -> u32 {
        self.shared.interval.load(Ordering::Relaxed)
    }

    pub(crate) fn join(&self) -> Sampler<K> {
        self.shared.join()
    }

    /// Counts a lookup of a thread without a session, and samples it if it is its turn.
    #[cfg(feature = "lookaside")]
    #[inline(always)]
    pub(crate) fn saw(&self, key: &K) {
        if self.interval() > 0 {
            self.samplers.pin().local().saw(key);
        }
    }

    /// Empties the rings: what was sampled since the last time.
    #[must_use]
    pub fn drain(&self) -> Vec<K::Owned> {
        let mut rings = self.shared.rings.lock();
        let mut samples = Vec::from(std::mem::take(&mut rings.ended));
        rings.live.iter().for_each(|ring| samples.extend(std::mem::take(&mut *ring.lock())));
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

/// The share of lookups that go to keys that were sampled `samples` times or more, estimated from all that were
/// sampled: 0 to 1.
///
/// What was sampled seldom was sampled by chance: of keys asked for alike, of which a few were sampled once each, the
/// next lookup is hardly of one of these. The estimate is that of Good and Turing (I. J. Good, Biometrika 1953): keys
/// that were seen so many times are asked for as often as the samples are of keys seen once more than that. So it is
/// the share of the samples that are of keys sampled more than `samples` times. 0 if nothing was sampled.
///
/// ```
/// // One key is asked for in half of the lookups, and in the other half one of very many.
/// let mut sampled = vec![("hot", 500)];
/// sampled.extend(vec![("one of many", 1); 500]);
/// assert_eq!(lookaside_art::share_of_lookups(&sampled, 1), 0.5);
/// ```
#[must_use]
pub fn share_of_lookups<K>(frequencies: &[(K, usize)], samples: usize) -> f64 {
    let all: usize = frequencies.iter().map(|&(_, count)| count).sum();
    let more: usize = frequencies.iter().map(|&(_, count)| count).filter(|&count| count > samples).sum();
    more as f64 / all.max(1) as f64
}

impl<K: Key + ?Sized> Shared<K> {
    fn join(self: &Arc<Self>) -> Sampler<K> {
        let ring = Arc::new(Ring::<K>::default());
        self.rings.lock().live.push(Arc::clone(&ring));
        // Any odd number will do that differs between sessions.
        let seed = Arc::as_ptr(&ring).addr() as u64 | 1;
        Sampler { ring, left: Cell::new(1), random: Cell::new(seed), shared: Arc::clone(self) }
    }
}

/// One session's part in the log.
pub(crate) struct Sampler<K: Key + ?Sized> {
    ring: Arc<Ring<K>>,
    /// Lookups to the next sample.
    left: Cell<u64>,
    random: Cell<u64>,
    shared: Arc<Shared<K>>,
}

impl<K: Key + ?Sized> Sampler<K> {
    /// Lookups after which a session that samples nothing asks again.
    const IDLE: u64 = 4096;

    /// Counts a lookup, and samples it if it is its turn.
    #[inline(always)]
    pub(crate) fn saw(&self, key: &K) {
        let left = self.left.get() - 1;
        self.left.set(left);
        if left == 0 {
            self.sample(key);
        }
    }

    /// Counts lookups made together, and samples those whose turn it is.
    #[inline]
    pub(crate) fn saw_many(&self, keys: &[&K]) {
        let mut rest = keys;
        // Distances are at least one: each round leaves fewer.
        while rest.len() as u64 >= self.left.get() {
            let sampled = self.left.get() as usize - 1;
            self.sample(rest[sampled]);
            rest = &rest[sampled + 1..];
        }
        self.left.set(self.left.get() - rest.len() as u64);
    }

    #[cold]
    fn sample(&self, key: &K) {
        let interval = self.shared.interval.load(Ordering::Relaxed);
        if interval == 0 {
            self.left.set(Self::IDLE);
            return;
        }
        let mut random = self.random.get();
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        self.random.set(random);
        self.left.set(distance(interval, (random >> 32) as u32));
        if key.as_ref().len() > LONGEST_SAMPLED {
            return;
        }
        if let Some(mut ring) = self.ring.try_lock() {
            push(&mut ring, key.to_owned());
        }
    }
}

/// Lookups to the next sample: for even random numbers, evenly between one and twice the interval, on average the
/// interval.
fn distance(interval: u32, random: u32) -> u64 {
    let range = u64::from(interval) * 2 - 1;
    1 + ((u128::from(random) * u128::from(range)) >> 32) as u64
}

/// Adds a sample; a full ring forgets its oldest.
fn push<T>(ring: &mut VecDeque<T>, sample: T) {
    if ring.len() == RING {
        ring.pop_front();
    }
    ring.push_back(sample);
}

impl<K: Key + ?Sized> Drop for Sampler<K> {
    fn drop(&mut self) {
        let mut rings = self.shared.rings.lock();
        rings.live.retain(|ring| !Arc::ptr_eq(ring, &self.ring));
        let left = std::mem::take(&mut *self.ring.lock());
        left.into_iter().for_each(|sample| push(&mut rings.ended, sample));
    }
}

impl<K: Key + ?Sized> fmt::Debug for AccessLog<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessLog").field("interval", &self.interval()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_as_far_apart_as_was_asked_for() {
        for interval in [1, 2, 256, 1 << 31, (1 << 31) + 1, u32::MAX] {
            let ends = (distance(interval, 0), distance(interval, u32::MAX));
            let twice = 2 * u64::from(interval) - 1;
            // The greatest of 2^32 numbers reaches the end of the range, or the one before it if there are more.
            assert!(ends.0 == 1 && (twice - 1..=twice).contains(&ends.1), "{interval}: {ends:?}");
            assert_eq!(distance(interval, 1 << 31), 1 + twice / 2, "{interval}: half way");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "hundreds of thousands of samples")]
    fn sessions_that_have_ended_keep_no_more_than_one_ring() {
        let log = AccessLog::<[u8; 8]>::default();
        log.sample_every(1);
        let staying = log.join();
        for session in 0..100u64 {
            let sampler = log.join();
            (0..2000).for_each(|n| sampler.saw(&(session * 2000 + n).to_be_bytes()));
        }
        staying.saw(&[7; 8]);
        assert_eq!(log.shared.rings.lock().live.len(), 1, "rings of sessions that have ended are kept");
        let samples = log.drain();
        assert_eq!(samples.len(), RING + 1);
        // The newest of those that have ended, and that of the one that is there.
        assert_eq!(samples[RING - 1], 199_999u64.to_be_bytes());
        assert_eq!(samples[RING], [7; 8]);
        assert!(log.drain().is_empty());
    }
}
