//! The time of a hit, by what the policy notes of it.
//!
//! One engine for all, the cache under test, which has room for everything here; so what differs is the note. CLOCK,
//! SIEVE and S3-FIFO write into the item's mark, where that changes something: the engine writes for the very requests
//! for which the policy did. The others move the key in a list, behind a lock because threads share it: the engine
//! writes nothing then, and the simulated policy is asked beside it. The lists' links lie in a table by key. In an item
//! they would be near what a hit reads anyway, but its two neighbours would not.
//!
//! ```text
//! for 64 requests:
//!   store what missed                    not timed
//!   look up what hit, and note that      timed
//! ```
//!
//! A policy that hits more often finds more that is not in the processor's caches. So the same lookups are timed
//! without any note as well, and the difference is what the policy costs.
//!
//! Rejected: timing a cache that evicts, by subtracting what misses take: they take ten times as much, and evict.

use std::cell::Cell;
use std::hint::black_box;
use std::time::{Duration, Instant};

use cache::engine::{Cache, Chunks, Config, Entry, Policy, Position, Recency, Session, Verb};
use parking_lot::Mutex;

use super::cuckoo_clock::limit_for;
use super::eviction::{Answer, Eviction};
use crate::experiment::ExperimentError;
use crate::index::Key;

/// Requests that are taken apart into those that hit and those that miss: few of a small cache, for they change places.
const BLOCK: usize = 64;

thread_local! {
    /// Whether the next hit writes.
    static WRITES: Cell<bool> = const { Cell::new(false) };
}

/// A policy that writes where it is told to.
#[derive(Debug, Default)]
struct Told;

impl Policy for Told {
    const NAME: &'static str = "told";
    const NEWCOMER: Recency = Recency::NONE;

    fn hit(recency: Recency) -> Recency {
        Recency::new(recency.get() ^ u8::from(WRITES.get()))
    }

    fn victim(&mut self, _chunks: &Chunks<'_>) -> Option<Position> {
        None
    }
}

/// What is replayed: a part of a trace, and what came of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) requests: &'a [u32],
    pub(super) answers: &'a [Answer],
}

/// What notes a hit.
pub(super) enum Note<'a> {
    Nothing,
    /// The item's mark, for those requests that said so.
    Mark,
    Lists(&'a mut dyn Eviction),
}

/// The engine, with every key in it.
pub(super) struct Full<'a> {
    session: Session<Told>,
    sizes: &'a [u32],
    value: Vec<u8>,
}

impl<'a> Full<'a> {
    /// Of keys with so many bytes each, themselves included.
    pub(super) fn of(sizes: &'a [u32]) -> Result<Self, ExperimentError> {
        let bytes: usize = sizes.iter().map(|&size| size as usize).sum();
        let (key, mean) = (size_of::<Key>(), bytes / sizes.len().max(1));
        // Twice as much, for slab classes are not filled evenly.
        let limit = limit_for(2 * bytes.max(16 << 20), key, mean.saturating_sub(key))?;
        let value = vec![1; sizes.iter().copied().max().unwrap_or(0) as usize];
        let mut full = Full { session: Cache::new(Config::with_limit(limit))?.session(), sizes, value };
        (0..sizes.len() as u32).try_for_each(|number| full.store(number))?;
        Ok(full)
    }

    fn store(&mut self, number: u32) -> Result<(), ExperimentError> {
        let key = Key::of(u64::from(number)).0;
        let value = &self.value[..self.sizes[number as usize] as usize - key.len()];
        let stored = self.session.store(Verb::Set, Entry::new(&key), value);
        stored.map(drop).map_err(|error| ExperimentError::wrong(Told::NAME, error.to_string()))
    }

    /// Nanoseconds a hit.
    pub(super) fn time(&mut self, part: &Part<'_>, note: Note<'_>) -> Result<f64, ExperimentError> {
        let marks = matches!(note, Note::Mark);
        // Nobody else is here, but others would be.
        let lists = if let Note::Lists(lists) = note { Some(Mutex::new(lists)) } else { None };
        let (mut took, mut asked, mut found) = (Duration::ZERO, 0u32, 0u32);
        for (requests, answers) in part.requests.chunks(BLOCK).zip(part.answers.chunks(BLOCK)) {
            let all = || requests.iter().copied().zip(answers.iter().copied());
            for (number, _) in all().filter(|&(_, answer)| answer == Answer::Missed) {
                self.store(number)?;
                lists.as_ref().map(|lists| lists.lock().request(number));
            }
            let start = Instant::now();
            let pinned = self.session.pin();
            for (number, answer) in all().filter(|&(_, answer)| answer != Answer::Missed) {
                WRITES.set(marks && answer == Answer::Noted);
                asked += 1;
                let hit = pinned.get(&Key::of(u64::from(number)).0);
                found += u32::from(hit.is_some_and(|hit| black_box(hit.value_len()) > 0));
                if let Some(lists) = &lists {
                    lists.lock().request(number);
                }
            }
            took += start.elapsed();
        }
        if found != asked {
            return Err(ExperimentError::wrong(Told::NAME, format!("{found} of {asked} are there")));
        }
        Ok(took.as_nanos() as f64 / f64::from(asked.max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::eviction::Lru;
    use super::*;

    #[test]
    fn every_key_is_there_and_lists_see_every_request() {
        let sizes: Vec<u32> = (0..2000).map(|key| 17 + key).collect();
        let requests: Vec<u32> = (0..2000).chain(0..1500).collect();
        let answers: Vec<_> =
            (0..3500).map(|at| if at < 2000 { Answer::Missed } else { Answer::Noted }).collect();
        let part = Part { requests: &requests, answers: &answers };
        let mut full = Full::of(&sizes).unwrap();
        let mut lists = Lru::new(&sizes, u64::MAX);
        assert!(full.time(&part, Note::Nothing).unwrap() > 0.0);
        assert!(full.time(&part, Note::Mark).unwrap() > 0.0);
        assert!(full.time(&part, Note::Lists(&mut lists)).unwrap() > 0.0);
        assert_eq!(lists.items(), 2000);
    }

    #[test]
    fn a_hit_writes_where_it_is_told_to() {
        WRITES.set(true);
        assert_ne!(Told::hit(Recency::NONE), Recency::NONE);
        WRITES.set(false);
        assert_eq!(Told::hit(Recency::NONE), Recency::NONE);
    }
}
