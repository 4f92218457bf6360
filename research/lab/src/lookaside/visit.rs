//! A thread's visit to what is measured, and the loops that all visits have in common.
//!
//! A [`Visit`] is pinned or locked once for millions of requests: a guard, a map's reader, a map of one owner. Its
//! loops are compiled for each kind of it, so that a lookup is a direct call; warming up and what is timed are one
//! call, so that whoever pins or watches does so once.

use std::time::Duration;

use super::record::{Key, Value};
use crate::measure::{Stopwatch, epochs};
use crate::subject::{Call, Tally};

/// Keys that a caller hands over at once where it asks in batches.
pub const BATCH: usize = 16;

/// Something to do, where not everything is a lookup. In memory a struct of C, as its key.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Request<const N: usize> {
    /// The key.
    pub key: Key<N>,
    /// The record it is the key of.
    pub record: u64,
    /// Whether the record is to be written: replaced by an equal one.
    pub set: bool,
}

/// What a thread asks for.
#[derive(Debug, Clone, Copy)]
pub enum Lot<'l, const N: usize> {
    /// Lookups.
    Keys(&'l [Key<N>]),
    /// Lookups and writes.
    Requests(&'l [Request<N>]),
    /// Lookups and writes that change a value in its place, and no index; one key at a time.
    Renewals(&'l [Request<N>]),
}

/// What came of a call.
#[derive(Debug, Clone, Copy, Default)]
pub struct Answer {
    /// What the timed requests found.
    pub tally: Tally,
    /// How long they took.
    pub time: Duration,
}

/// A thread that has pinned or locked what is measured.
pub trait Visit<const N: usize> {
    /// Shows the value of a key.
    fn look<R>(&self, key: &Key<N>, see: impl FnOnce(&Value) -> R) -> Option<R>;

    /// Reads the values of up to [`BATCH`] keys.
    #[inline(always)]
    fn look_many(&self, keys: &[&Key<N>], tally: &mut Tally) {
        keys.iter().for_each(|key| tally.count(self.look(key, Value::read)));
    }

    /// Puts a record in, in the place of the one of an equal key.
    fn set(&mut self, request: &Request<N>);

    /// Lets go of what was replaced meanwhile.
    fn refresh(&mut self) {}
}

/// Reads the values that a call for many finds.
#[inline(always)]
pub fn count_many<'v, const N: usize>(
    keys: &[&Key<N>],
    tally: &mut Tally,
    get_many: impl FnOnce(&[&Key<N>], &mut [Option<&'v Value>]),
) {
    let mut values = [None; BATCH];
    let values = &mut values[..keys.len()];
    get_many(keys, values);
    values.iter().for_each(|value| tally.count(value.map(Value::read)));
}

/// Answers the first lot and then, with the clock running, the other.
pub fn in_turn<const N: usize>(visit: &mut impl Visit<N>, call: Call, lots: [Lot<'_, N>; 2]) -> Answer {
    answer(visit, call, lots[0]);
    visit.refresh();
    let watch = Stopwatch::start();
    let tally = answer(visit, call, lots[1]);
    Answer { tally, time: watch.elapsed() }
}

fn answer<const N: usize>(visit: &mut impl Visit<N>, call: Call, lot: Lot<'_, N>) -> Tally {
    let mut tally = Tally::default();
    match lot {
        Lot::Keys(keys) => look_up(visit, call, keys, &mut tally),
        Lot::Requests(requests) => {
            for requests in requests.chunks(epochs::REQUESTS) {
                carry_out(visit, call, requests, &mut tally);
                visit.refresh();
            }
        }
        Lot::Renewals(requests) => {
            for request in requests {
                if !request.set {
                    tally.count(visit.look(&request.key, Value::read));
                } else if visit.look(&request.key, |value| value.renew(request.record)).is_none() {
                    tally.refused += 1;
                }
            }
        }
    }
    tally
}

#[inline(always)]
fn look_up<const N: usize>(visit: &impl Visit<N>, call: Call, keys: &[Key<N>], tally: &mut Tally) {
    match call {
        Call::Single => keys.iter().for_each(|key| tally.count(visit.look(key, Value::read))),
        Call::Batch => {
            for keys in keys.chunks(BATCH) {
                // The first again behind the last.
                let asked: [&Key<N>; BATCH] =
                    std::array::from_fn(|place| keys.get(place).unwrap_or(&keys[0]));
                visit.look_many(&asked[..keys.len()], tally);
            }
        }
    }
}

/// Writes at once, lookups as the call says.
#[inline(always)]
fn carry_out<const N: usize>(
    visit: &mut impl Visit<N>,
    call: Call,
    requests: &[Request<N>],
    tally: &mut Tally,
) {
    let mut asked = Vec::with_capacity(BATCH);
    for request in requests {
        if request.set {
            visit.set(request);
        } else if call == Call::Single {
            tally.count(visit.look(&request.key, Value::read));
        } else {
            asked.push(request.key);
            if asked.len() == BATCH {
                look_up(visit, call, &asked, tally);
                asked.clear();
            }
        }
    }
    look_up(visit, call, &asked, tally);
}
