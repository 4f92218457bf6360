//! Kind `art-calls`: one tree, asked in several ways: one key at a time, in batches of several sizes, with its accesses
//! logged.
//!
//! All ways take turns, part by part, with keys of their own, drawn before the clock starts; a ratio is of one run, to
//! one key at a time by a reader that logs nothing. What is logged is counted after each part, untimed: it must be what
//! the sampling rate says.

use std::time::Duration;

use serde::Deserialize;

use super::draws::{Asked, Draws, name_skew};
use super::grown::{Grown, Pages};
use super::keys::KeySet;
use super::{Size, Width};
use crate::experiment::{ExperimentError, Session};
use crate::measure::turns;

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    /// Numbers of keys.
    sizes: Vec<Size>,
    /// Bits of a key.
    bits: Width,
    /// Which keys.
    sets: Vec<KeySet>,
    /// The pages that trees live in.
    pages: Vec<Pages>,
    /// The exponents of the distributions.
    skews: Vec<f64>,
    /// Lookups in a run.
    lookups: usize,
    /// Lookups drawn at once, after which the next way has its turn.
    part: usize,
    /// The ways, besides one key at a time.
    ways: Vec<Way>,
}

/// How a tree is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Way {
    /// One key at a time.
    Single,
    /// So many at once.
    Batch(usize),
    /// One key at a time, one in so many sampled on average; none, if it is zero.
    Logged(u32),
}

impl Way {
    fn name(self) -> String {
        match self {
            Way::Single => "one at a time".into(),
            Way::Batch(keys) => format!("batches of {keys}"),
            Way::Logged(0) => "in a session, nothing logged".into(),
            Way::Logged(every) => format!("one in {every} logged"),
        }
    }
}

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let Parameters { sizes, sets, pages, skews, .. } = parameters;
    session.announce(sizes.len() * sets.len() * pages.len() * (1 + skews.len() * session.runs()));
    for size in sizes {
        for &set in sets {
            match parameters.bits {
                Width::Bits32 => measure_set::<4>(parameters, size, set, session)?,
                Width::Bits64 => measure_set::<8>(parameters, size, set, session)?,
            }
        }
    }
    Ok(())
}

fn measure_set<const N: usize>(
    parameters: &Parameters,
    size: &Size,
    set: KeySet,
    session: &mut Session,
) -> Result<(), ExperimentError> {
    let keys = set.keys::<N>(size.keys)?;
    let ways: Vec<Way> = [Way::Single].into_iter().chain(parameters.ways.iter().copied()).collect();
    for &pages in &parameters.pages {
        let tree = format!("{} {}, {}", set.name(), parameters.bits.name(), pages.name());
        session.begin(format!("{tree}, {}: growing", size.name));
        let grown = Grown::new(&keys, pages)?;
        let names: Vec<String> = ways.iter().map(|way| format!("{tree}: {}", way.name())).collect();
        names.iter().for_each(|name| session.record_pages(name, grown.pages()));
        session.end();
        for &skew in &parameters.skews {
            let point = format!("{}, {}", size.name, name_skew(skew));
            let mut draws = Draws::new(&keys, skew)?;
            // Once untimed: caches are warm.
            let before = draws.next(parameters.part);
            grown.look_up(&before.keys, before.expected)?;
            for run in 0..session.runs() {
                session.begin(format!("{tree}, {point}, run {} of {}", run + 1, session.runs()));
                let times = measure_run(parameters, &grown, &ways, &mut draws, run)?;
                for ((name, way), time) in names.iter().zip(&ways).zip(&times) {
                    let rate = parameters.lookups as f64 / time.as_secs_f64().max(1e-9);
                    session.record(name, &point, "lookups", "M/s", rate / 1e6);
                    if *way != Way::Single {
                        let times_single = times[0].as_secs_f64() / time.as_secs_f64().max(1e-9);
                        session.record(name, &point, "times one at a time", "x", times_single);
                    }
                }
                session.end();
            }
        }
    }
    Ok(())
}

/// How long each way took for the lookups of a run.
fn measure_run<const N: usize>(
    parameters: &Parameters,
    grown: &Grown<N>,
    ways: &[Way],
    draws: &mut Draws<'_, N>,
    run: usize,
) -> Result<Vec<Duration>, ExperimentError> {
    let mut times = vec![Duration::ZERO; ways.len()];
    let mut left = parameters.lookups;
    for round in run.. {
        let part = parameters.part.min(left);
        if part == 0 {
            break;
        }
        for turn in turns(ways.len(), round) {
            times[turn] += ask(grown, ways[turn], &draws.next(part))?;
        }
        left -= part;
    }
    Ok(times)
}

/// Asks a tree in one way: how long it took.
pub(super) fn ask<const N: usize>(
    grown: &Grown<N>,
    way: Way,
    asked: &Asked<N>,
) -> Result<Duration, ExperimentError> {
    match way {
        Way::Single => grown.look_up(&asked.keys, asked.expected),
        Way::Batch(batch) => grown.look_up_many(&asked.keys, asked.expected, batch.max(1)),
        Way::Logged(every) => {
            let (time, samples) = grown.look_up_logged(&asked.keys, asked.expected, every)?;
            let due = if every == 0 { 0.0 } else { asked.keys.len() as f64 / f64::from(every) };
            // Distances between samples are uniform up to twice their mean, so their sum is within a few deviations of
            // it.
            if (samples as f64 - due).abs() <= 1.0 + 6.0 * due.sqrt() {
                return Ok(time);
            }
            let found = format!("{samples} samples where {due:.0} were due");
            Err(ExperimentError::wrong("an access log", found))
        }
    }
}
