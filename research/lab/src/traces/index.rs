//! The indexes that traces are replayed on: alone, and with a table in front.
//!
//! | name | index |
//! |---|---|
//! | `chaining` | the paper's concurrent chaining hash table, as large as its records need |
//! | `hash-set-under-lock` | the standard library's `HashSet` under one read-write lock |
//!
//! Here keys have one size and values have many, so that values are slices on the heap: alone and with a table alike.
//! The chaining table keeps its own records, and the table in front has pointers to them; the set is behind a map.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use lookaside::index::{Find, SharedDiscard, SharedStore};
use lookaside::{Config, Counts, CreateError, Map, RwLock};
use serde::Deserialize;

use super::requests::{Operation, Request};
use crate::experiment::ExperimentError;
use crate::lookaside::beside::{Beside, Record};
use crate::lookaside::chaining::Chaining;
use crate::measure::Stopwatch;
use crate::measure::epochs::{self, Guard};

/// A key.
pub(super) type Key = crate::lookaside::Key<24>;
/// A value.
type Value = Box<[u8]>;

/// The index of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum IndexName {
    Chaining,
    HashSetUnderLock,
}

/// What one thread's share of the requests came to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Outcome {
    pub(super) time: Duration,
    /// Values that are not those of their keys.
    pub(super) wrong: u64,
}

/// Something that requests are played to.
pub(super) trait Player: Sync {
    /// Carries out this thread's share of the requests: every `threads`-th, from number `thread` on.
    fn play(&self, requests: &[Request], thread: usize, threads: usize) -> Outcome;

    /// Empties the table in front, where there is one.
    fn empty_table(&self) -> Result<(), CreateError>;

    /// What the table has counted.
    fn counts(&self) -> Option<Counts>;
}

/// Makes a player when it is its turn.
type MakePlayer = Box<dyn FnOnce() -> Result<Box<dyn Player>, CreateError>>;

/// The players over an index with room for so many records, with a table of so many bytes: alone first.
pub(super) fn players(
    index: IndexName,
    records: usize,
    size: usize,
) -> Result<Vec<(&'static str, MakePlayer)>, ExperimentError> {
    let config = Config::with_size(size);
    let monitored = config.clone();
    Ok(match index {
        IndexName::Chaining => vec![
            ("alone", Box::new(move || Ok(Box::new(AloneOn(Chained::new(records))) as _))),
            ("SLB", Box::new(move || beside(records, &config, false))),
            ("SLB with monitor", Box::new(move || beside(records, &monitored, true))),
        ],
        IndexName::HashSetUnderLock => vec![
            ("alone", Box::new(|| Ok(Box::new(AloneOn(RwLock::new(HashSet::<Entry>::new()))) as _))),
            ("SLB", Box::new(move || behind(RwLock::new(HashSet::new()), &config, false))),
            ("SLB with monitor", Box::new(move || behind(RwLock::new(HashSet::new()), &monitored, true))),
        ],
    })
}

/// A value of this record: its bytes tell whose it is.
fn value_of(request: &Request) -> Value {
    vec![request.record as u8; request.size as usize].into()
}

/// Reads a value's first and last byte, and tells whether it is that of the request's key.
#[inline(always)]
fn is_right(request: &Request, value: &[u8]) -> bool {
    value.len() == request.size as usize
        && value
            .first()
            .zip(value.last())
            .is_none_or(|ends| ends == (&(request.record as u8), &(request.record as u8)))
}

/// The chaining table, of its own records.
type Chained = Chaining<24, Record<24, Value>>;

/// A record of the set alone.
struct Entry {
    key: Key,
    value: Value,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Entry {}

impl Hash for Entry {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

impl Borrow<Key> for Entry {
    fn borrow(&self) -> &Key {
        &self.key
    }
}

/// An index alone. What is found is shown, for it may not outlive a lock.
trait Alone: Sync {
    fn look(&self, key: &Key, guard: &Guard, see: impl FnOnce(&[u8]) -> bool) -> Option<bool>;
    fn set(&self, key: Key, value: Value);
    fn delete(&self, key: &Key);
}

impl Alone for Chained {
    #[inline(always)]
    fn look(&self, key: &Key, guard: &Guard, see: impl FnOnce(&[u8]) -> bool) -> Option<bool> {
        self.get(key, guard).map(|record| see(&record.1))
    }

    fn set(&self, key: Key, value: Value) {
        self.put((key, value));
    }

    fn delete(&self, key: &Key) {
        self.discard(key);
    }
}

impl Alone for RwLock<HashSet<Entry>> {
    #[inline(always)]
    fn look(&self, key: &Key, _guard: &Guard, see: impl FnOnce(&[u8]) -> bool) -> Option<bool> {
        self.read().get(key).map(|entry| see(&entry.value))
    }

    fn set(&self, key: Key, value: Value) {
        self.write().replace(Entry { key, value });
    }

    fn delete(&self, key: &Key) {
        self.write().remove(key);
    }
}

struct AloneOn<A>(A);

impl<A: Alone> Player for AloneOn<A> {
    fn play(&self, requests: &[Request], thread: usize, threads: usize) -> Outcome {
        let mut guard = epochs::pin();
        let mut wrong = 0;
        let watch = Stopwatch::start();
        let set = |request: &Request| self.0.set(request.key, value_of(request));
        for (at, request) in requests.iter().skip(thread).step_by(threads).enumerate() {
            if at % epochs::REQUESTS == 0 {
                guard.refresh();
            }
            match request.operation {
                Operation::Get => match self.0.look(&request.key, &guard, |value| is_right(request, value)) {
                    Some(right) => wrong += u64::from(!right),
                    None => set(request),
                },
                Operation::Set => set(request),
                Operation::Delete => self.0.delete(&request.key),
            }
        }
        Outcome { time: watch.elapsed(), wrong }
    }

    fn empty_table(&self) -> Result<(), CreateError> {
        Ok(())
    }

    fn counts(&self) -> Option<Counts> {
        None
    }
}

/// What a table in front does for whatever is behind or beside it, which a thread pins for as many requests as it
/// likes.
macro_rules! played_by_table {
    () => {
        fn play(&self, requests: &[Request], thread: usize, threads: usize) -> Outcome {
            let mut pinned = self.table.pin();
            let mut wrong = 0;
            let watch = Stopwatch::start();
            for (at, request) in requests.iter().skip(thread).step_by(threads).enumerate() {
                if at % epochs::REQUESTS == 0 {
                    pinned.refresh();
                }
                match request.operation {
                    Operation::Get => match pinned.get(&request.key) {
                        Some(value) => wrong += u64::from(!is_right(request, value)),
                        None => _ = pinned.insert(request.key, value_of(request)),
                    },
                    Operation::Set => _ = pinned.insert(request.key, value_of(request)),
                    Operation::Delete => _ = pinned.remove(&request.key),
                }
            }
            Outcome { time: watch.elapsed(), wrong }
        }

        fn empty_table(&self) -> Result<(), CreateError> {
            self.table.buffer().resize(self.size)
        }

        fn counts(&self) -> Option<Counts> {
            Some(self.table.buffer().counts())
        }
    };
}

/// A table in front, and its bytes.
struct Fronted<T> {
    table: T,
    size: usize,
}

/// The chaining table, a table beside it.
fn beside(records: usize, config: &Config, monitored: bool) -> Result<Box<dyn Player>, CreateError> {
    let table = Beside::<24, Chained>::new(Chained::new(records), config)?;
    table.buffer().monitor(monitored);
    Ok(Box::new(Fronted { table, size: config.size }))
}

impl Player for Fronted<Beside<24, Chained>> {
    played_by_table!();
}

/// An index behind a map.
fn behind<I>(index: I, config: &Config, monitored: bool) -> Result<Box<dyn Player>, CreateError>
where
    I: Find<Key, Key, Value> + SharedStore<Key, Value> + SharedDiscard<Key, Key, Value> + Sync + 'static,
{
    let table = Map::new(index, config)?;
    table.buffer().monitor(monitored);
    Ok(Box::new(Fronted { table, size: config.size }))
}

impl<I> Player for Fronted<Map<Key, Value, I>>
where
    I: Find<Key, Key, Value> + SharedStore<Key, Value> + SharedDiscard<Key, Key, Value> + Sync,
{
    played_by_table!();
}
