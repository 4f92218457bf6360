//! What an experiment asks of a cache, the same of every one.
//!
//! The workload is the paper's (section 5.3): look a key up, and where it is not there, store it. As in
//! `index::engine`, the loops belong to the caches, so that a get is a direct call and the experiment pays an indirect
//! one for many of them. A value can be told from its key; every get is checked.

use std::ops::AddAssign;

use crate::index::Key;

/// A value of 32 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Value(pub(super) [u64; 4]);

impl Value {
    /// The value that belongs to a key.
    #[inline]
    pub(super) fn of(key: &Key) -> Value {
        let [low, high] = key.to_words();
        Value([low ^ high, low.rotate_left(17), !high, low.wrapping_add(high)])
    }

    /// Its bytes.
    #[inline]
    pub(super) fn to_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (part, word) in bytes.chunks_exact_mut(8).zip(self.0) {
            part.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// The value of these bytes, if they are as many as one has.
    #[inline]
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Value> {
        let bytes: &[u8; 32] = bytes.try_into().ok()?;
        let word = |at: usize| bytes[8 * at..][..8].try_into().map(u64::from_ne_bytes);
        Some(Value([word(0).ok()?, word(1).ok()?, word(2).ok()?, word(3).ok()?]))
    }
}

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    /// A get, and where that misses, a set.
    Get,
    /// A set.
    Set,
}

/// A request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) key: Key,
    pub(super) verb: Verb,
}

/// What requests came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tally {
    /// Gets.
    pub(super) gets: u64,
    /// Gets that found nothing.
    pub(super) misses: u64,
    /// Gets that found another value than the key's.
    pub(super) wrong: u64,
    /// Sets that were refused.
    pub(super) refused: u64,
}

impl Tally {
    /// Gets that found nothing, in percent of all gets; 0 if there were none.
    pub(super) fn miss_ratio(&self) -> f64 {
        100.0 * self.misses as f64 / self.gets.max(1) as f64
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.gets += other.gets;
        self.misses += other.misses;
        self.wrong += other.wrong;
        self.refused += other.refused;
    }
}

/// A cache.
pub(super) trait Contestant: Sync {
    /// One thread's way in.
    fn enter(&self) -> Box<dyn Visitor + '_>;

    /// What is in it and what that takes.
    fn holding(&self) -> Holding;

    /// Whether an item has had to make way for another.
    fn has_evicted(&self) -> bool;
}

/// What is in a cache.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Holding {
    /// Items.
    pub(super) items: usize,
    /// Bytes of the index, which is not counted in the cache's size (paper, footnote 5).
    pub(super) index: usize,
    /// The pages that the items lie in, as the kernel reports them.
    pub(super) pages: String,
}

/// One thread's way into a cache.
pub(super) trait Visitor {
    /// The value of that key.
    fn get(&mut self, key: &Key) -> Option<Value>;

    /// Stores a value; false if there was no room.
    fn set(&mut self, key: &Key, value: &Value) -> bool;

    /// Carries out requests one by one.
    fn perform(&mut self, requests: &[Request]) -> Tally {
        let mut tally = Tally::default();
        for Request { key, verb } in requests {
            let value = Value::of(key);
            if *verb == Verb::Get {
                tally.gets += 1;
                match self.get(key) {
                    Some(found) => {
                        tally.wrong += u64::from(found != value);
                        continue;
                    }
                    None => tally.misses += 1,
                }
            }
            tally.refused += u64::from(!self.set(key, &value));
        }
        tally
    }

    /// Carries out requests, gets in batches where the cache has a call for that; else one by one.
    fn perform_batched(&mut self, requests: &[Request]) -> Tally {
        self.perform(requests)
    }
}
