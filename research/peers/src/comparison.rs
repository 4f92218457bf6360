//! Kind `peers-index`: our index beside the foreign engines.
//!
//! For each number of keys our table is made once, and each foreign engine after the other beside it: at a hundred
//! million keys they do not all fit. While an engine is there, it and ours take turns, run by run, so that their ratio
//! is of neighbouring moments; the ratio of each run is a sample of its own. Every loop is asked of fresh keys, after a
//! warm-up with others, and its answers are checked.
//!
//! What is compared is not the same in every respect. The foreign engines hold keys and values, ours holds locations of
//! 48 bits and compares keys where they lie, in an array of 16-byte records; the *memory per entry* of each counts all
//! that it needs to answer, ours with the records, as the growth of the process's resident memory.

use cuckoo::experiments::{DefaultLayout, Layout};
use cuckoo::{Config, Growth, Hashes};
use lab::experiment::{ExperimentError, Session, timed};
use lab::index::{Division, Index, Lookups, Mix, Optimistic, Records, rate_of};
use lab::measure::{Resident, name_threads, release_freed_memory, turns};
use lab::subject::Call;
use serde::Deserialize;

use crate::engine::Engine;

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Numbers of keys.
    keys: Vec<usize>,
    /// Numbers of threads.
    threads: Vec<usize>,
    /// Lookups of one thread in one timed part.
    operations: usize,
    /// The engines to compare with.
    engines: Vec<Engine>,
}

/// The names of our two calls.
const OURS: [&str; 2] = ["lookaside, get", "lookaside, get_many"];

/// Runs it.
///
/// # Errors
/// [`ExperimentError`]: the machine has too few cores or too little memory, or an engine answered wrongly.
pub fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let parts = parameters.threads.len() * 2;
    let steps = parameters.engines.len() * (1 + session.runs() * parts);
    session.announce(parameters.keys.len() * (1 + steps));
    for &keys in &parameters.keys {
        let set = format!("{} M keys", keys as f64 / 1e6);
        session.begin(format!("filling ours with {keys} keys"));
        let before = Resident::now();
        let records = Records::new(keys)?;
        // As Table::with_capacity.
        let buckets = (keys + keys / 16).div_ceil(DefaultLayout::SLOTS).next_power_of_two();
        let config = Config::new().with_growth(Growth::Fixed).with_hashes(Hashes::Avalanching);
        let ours = Optimistic::<DefaultLayout>::new(buckets, &config, &records)?;
        fill(session, &OURS, &ours, keys, &set, before)?;
        session.end();
        for &engine in &parameters.engines {
            session.begin(format!("filling {} with {keys} keys", engine.calls()[0]));
            release_freed_memory();
            let before = Resident::now();
            match engine.make(keys) {
                Ok(peer) => {
                    let [single, batched] = engine.calls();
                    fill(session, &[single, batched], &*peer, keys, &set, before)?;
                    session.end();
                    let ours: &dyn Index = &ours;
                    let mut calls = vec![
                        (OURS[0], ours, Call::Single),
                        (single, &*peer, Call::Single),
                        (OURS[1], ours, Call::Batch),
                    ];
                    if batched != single {
                        calls.push((batched, &*peer, Call::Batch));
                    }
                    let asked = (&*parameters.threads, parameters.operations);
                    take_turns(session, &calls, (keys, &set), asked, |session, rates, point, sign| {
                        // A single call beside a single call; a batch beside whichever of theirs is faster.
                        let best = rates[1].max(rates.get(3).copied().unwrap_or_default());
                        let mut record = |metric: &str, ratio| {
                            session.record(single, point, format!("{metric}, {sign}"), "", ratio);
                        };
                        record("our get / its get", rates[0] / rates[1]);
                        record("our get_many / its best", rates[2] / best);
                    })?;
                }
                Err(reason) => {
                    engine.calls().into_iter().for_each(|call| session.skip(call, reason.clone()));
                    session.end();
                }
            }
        }
    }
    Ok(())
}

/// Fills an engine from one thread, and records how fast and with how much memory.
pub(crate) fn fill(
    session: &mut Session,
    names: &[&'static str],
    index: &dyn Index,
    keys: usize,
    point: &str,
    before: Resident,
) -> Result<(), ExperimentError> {
    let name = names[0];
    let (filling, seconds) = timed(1, |_| index.insert_each(0..keys as u64))?[0];
    if filling.refused {
        return Err(ExperimentError::Machine(format!("{name} refused key {} of {keys}", filling.inserted)));
    }
    session.record(name, point, "construction", "M keys/s", keys as f64 / seconds / 1e6);
    let memory = Resident::now().since(before);
    session.record(name, point, "memory per entry", "B", memory.bytes as f64 / keys as f64);
    names.iter().for_each(|name| session.record_pages(name, memory.pages()));
    Ok(())
}

/// Lets all take turns at lookups of `keys` keys, of those that are there and of others. Of each turn's rates, with the
/// point and whether keys were there, `compare` records what they are beside each other.
pub(crate) fn take_turns(
    session: &mut Session,
    calls: &[(&str, &dyn Index, Call)],
    (keys, set): (usize, &str),
    (threads, operations): (&[usize], usize),
    compare: impl Fn(&mut Session, &[f64], &str, &str),
) -> Result<(), ExperimentError> {
    let mixes = [(Lookups::Positive, "positive"), (Lookups::Negative, "negative")];
    for run in 0..session.runs() {
        for &threads in threads {
            for (number, (lookups, sign)) in mixes.into_iter().enumerate() {
                let (mix, point) = (Mix::lookups(lookups), format!("{set}, {}", name_threads(threads)));
                let division = Division::new(keys, &[], operations, threads)?;
                session.begin(format!("{}, {sign} lookups, {point}", calls[1].0));
                let mut rates = vec![0.0; calls.len()];
                for turn in turns(calls.len(), run) {
                    let seed = (run * mixes.len() + number) as u64;
                    rates[turn] = rate_of(calls[turn], &mix, &division, operations, threads, seed)?;
                    let metric = format!("{sign} lookups");
                    session.record(calls[turn].0, &point, metric, "M/s", rates[turn] / 1e6);
                }
                compare(session, &rates, &point, sign);
                session.end();
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_answer_is_noticed() {
        let half = Engine::Standard.make(100).unwrap();
        half.insert_each(0..50);
        let whom = ("half", &*half, Call::Single);
        let mix = Mix::lookups(Lookups::Positive);
        let rate = |keys| rate_of(whom, &mix, &Division::new(keys, &[], 1000, 1).unwrap(), 1000, 1, 1);
        assert!(rate(50).unwrap() > 0.0);
        assert!(rate(100).unwrap_err().to_string().contains("instead of"));
    }
}
