//! What traces are replayed on: the paper's concurrent chaining hash table, as large as its records need, alone and
//! with a table beside it.
//!
//! Here keys have one size and values have many, so that values are slices on the heap. The chaining table keeps its
//! own records, and the table beside it has pointers to them.

use std::time::Duration;

use lookaside::{Config, Counts, CreateError};

use super::requests::{Key, Operation, Request};
use crate::lookaside::beside::{Beside, Record, Records, Session};
use crate::lookaside::chaining::Chaining;
use crate::measure::Stopwatch;
use crate::measure::epochs::{self, Guard};
/// A value.
type Value = Box<[u8]>;
/// The index, of its own records.
type Chained = Chaining<24, Record<24, Value>>;

/// What one thread's share of the requests came to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Outcome {
    pub(super) time: Duration,
    /// Values that are not those of their keys.
    pub(super) wrong: u64,
}

/// Something that requests are played to.
pub(super) enum Player {
    /// The index alone.
    Alone(Chained),
    /// The index, and a table of so many bytes beside it.
    Beside(Box<Beside<24, Chained>>, usize),
}

impl Player {
    /// All of them.
    pub(super) const NAMES: [&str; 3] = ["alone", "SLB", "SLB with monitor"];

    /// The one of this number, with room for so many records, and a table of so many bytes.
    pub(super) fn make(number: usize, records: usize, bytes: usize) -> Result<Player, CreateError> {
        let index = Chained::new(records);
        if number == 0 {
            return Ok(Player::Alone(index));
        }
        let beside = Beside::new(index, &Config::with_size(bytes))?;
        beside.buffer().monitor(number == 2);
        Ok(Player::Beside(Box::new(beside), bytes))
    }

    /// Carries out this thread's share of the requests: every `threads`-th, from number `thread` on.
    pub(super) fn play(&self, requests: &[Request], thread: usize, threads: usize) -> Outcome {
        let share = requests.iter().skip(thread).step_by(threads);
        match self {
            Player::Alone(index) => play(&mut Guarded { index, guard: epochs::pin() }, share),
            Player::Beside(beside, _) => play(&mut beside.pin(), share),
        }
    }

    /// Empties the table beside the index, where there is one.
    pub(super) fn empty_table(&self) -> Result<(), CreateError> {
        match self {
            Player::Alone(_) => Ok(()),
            Player::Beside(beside, bytes) => beside.buffer().resize(*bytes),
        }
    }

    /// What the table has counted.
    pub(super) fn counts(&self) -> Option<Counts> {
        match self {
            Player::Alone(_) => None,
            Player::Beside(beside, _) => Some(beside.buffer().counts()),
        }
    }
}

/// A thread that has pinned the index.
trait Visit {
    fn get(&self, key: &Key) -> Option<&[u8]>;
    fn set(&self, key: Key, value: Value);
    fn delete(&self, key: &Key);
    fn refresh(&mut self);
}

struct Guarded<'i> {
    index: &'i Chained,
    guard: Guard,
}

impl Visit for Guarded<'_> {
    #[inline(always)]
    fn get(&self, key: &Key) -> Option<&[u8]> {
        self.index.get(key, &self.guard).map(|record| &*record.1)
    }

    fn set(&self, key: Key, value: Value) {
        self.index.put_record((key, value), &self.guard);
    }

    fn delete(&self, key: &Key) {
        self.index.discard_record(key);
    }

    fn refresh(&mut self) {
        self.guard.refresh();
    }
}

impl Visit for Session<'_, 24, Chained> {
    #[inline(always)]
    fn get(&self, key: &Key) -> Option<&[u8]> {
        Session::get(self, key).map(|value| &**value)
    }

    fn set(&self, key: Key, value: Value) {
        self.insert(key, value);
    }

    fn delete(&self, key: &Key) {
        self.remove(key);
    }

    fn refresh(&mut self) {
        Session::refresh(self);
    }
}

#[inline(always)]
fn play<'r>(visit: &mut impl Visit, requests: impl Iterator<Item = &'r Request>) -> Outcome {
    let mut wrong = 0;
    let watch = Stopwatch::start();
    for (at, request) in requests.enumerate() {
        if at % epochs::REQUESTS == 0 {
            visit.refresh();
        }
        match request.operation {
            Operation::Get => match visit.get(&request.key) {
                Some(value) => wrong += u64::from(!is_right(request, value)),
                None => visit.set(request.key, value_of(request)),
            },
            Operation::Set => visit.set(request.key, value_of(request)),
            Operation::Delete => visit.delete(&request.key),
        }
    }
    Outcome { time: watch.elapsed(), wrong }
}

/// A value of this record: its bytes tell whose it is.
fn value_of(request: &Request) -> Value {
    vec![request.record as u8; request.size as usize].into()
}

/// Reads a value's first and last byte, and tells whether it is that of the request's key.
#[inline(always)]
fn is_right(request: &Request, value: &[u8]) -> bool {
    let byte = request.record as u8;
    let ends = value.first().zip(value.last());
    value.len() == request.size as usize && ends.is_none_or(|ends| ends == (&byte, &byte))
}
