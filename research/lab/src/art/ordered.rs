//! Ordered maps: how they are asked, and letting several take turns.

use crate::experiment::{ExperimentError, expect, timed};
use crate::measure::turns;

/// Keys looked up at once in a batch.
pub const BATCH: usize = 32;
/// Entries of a range.
pub const RANGE: usize = 100;
/// What the record of a key that was not found counts as: more than any sum of records.
pub const ABSENT: u64 = 1 << 48;

/// How requests are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// One key at a time.
    Single,
    /// [`BATCH`] keys at a time.
    Batch,
    /// [`RANGE`] entries from each key on.
    Range,
}

impl Call {
    /// All of them.
    pub const ALL: [Call; 3] = [Call::Single, Call::Batch, Call::Range];
}

/// A map from keys to numbers of records.
pub trait Ordered<Q: ?Sized>: Send + Sync {
    /// Makes all requests: what their records sum up to, [`None`] if there is no such call.
    fn ask(&self, call: Call, requests: &Q) -> Option<u64>;
}

/// What records that were found, or not, sum up to.
#[inline(always)]
pub fn sum<'r>(found: impl Iterator<Item = Option<&'r u64>>) -> u64 {
    found.fold(0, |sum, record| sum + record.copied().unwrap_or(ABSENT))
}

/// What one thread asks for.
#[derive(Debug)]
pub struct Lot<Q> {
    /// The requests.
    pub requests: Q,
    /// So many.
    pub count: usize,
    /// What the records of their keys sum up to.
    pub expected: u64,
}

/// Makes these requests of one map, a lot on each thread: so many a second, or [`None`] if there is no such call.
/// Nobody knows beforehand what ranges show: `shown` is that of the first map that is asked, and all must show as much.
///
/// # Errors
/// [`ExperimentError::WrongAnswer`], or that there are fewer cores.
pub fn rate<Q: Sync>(
    (name, map): (&str, &dyn Ordered<Q>),
    call: Call,
    lots: &[Lot<Q>],
    shown: &mut Option<u64>,
) -> Result<Option<f64>, ExperimentError> {
    let mut rate = 0.0;
    let answers = timed(lots.len(), |thread| map.ask(call, &lots[thread].requests))?;
    for (lot, (found, seconds)) in lots.iter().zip(answers) {
        let Some(found) = found else { return Ok(None) };
        let expected = if call == Call::Range { *shown.get_or_insert(found) } else { lot.expected };
        expect(name, found, expected)?;
        rate += lot.count as f64 / seconds;
    }
    Ok(Some(rate))
}

/// Lets all maps take turns at the same requests, each after a warm-up: the rate of each.
///
/// # Errors
/// As [`rate`].
pub fn rates<Q: Sync>(
    maps: &[(&str, &dyn Ordered<Q>)],
    call: Call,
    [warm_up, timed]: [&[Lot<Q>]; 2],
    run: usize,
) -> Result<Vec<Option<f64>>, ExperimentError> {
    let mut rates = vec![None; maps.len()];
    let mut shown = [None; 2];
    for turn in turns(maps.len(), run) {
        rate(maps[turn], call, warm_up, &mut shown[0])?;
        rates[turn] = rate(maps[turn], call, timed, &mut shown[1])?;
    }
    Ok(rates)
}
