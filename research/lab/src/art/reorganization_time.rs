//! Kind `art-reorganize-time`: how long it takes to lay the paths of all keys together, by the number of keys (the
//! paper's Figure 5).
//!
//! As in the paper, every key has its place in the order of frequencies, so every node and every leaf moves. The order
//! is a random one, whichever the skew: hot keys are strewn over all. Each run grows a tree of its own, since one that
//! has been reorganised lies otherwise.

use serde::Deserialize;
use workload::popularity::Permutation;

use super::Size;
use super::grown::{Grown, Pages};
use super::keys::KeySet;
use crate::experiment::{ExperimentError, Session};
use crate::measure::{Stopwatch, in_parallel};

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    /// Numbers of keys.
    sizes: Vec<Size>,
    /// Which keys, of 32 bits.
    sets: Vec<KeySet>,
    /// The pages that they live in.
    pages: Vec<Pages>,
}

/// Which order of frequencies: any.
const HOTTEST: u64 = 29;

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let forms: Vec<(KeySet, Pages)> = parameters
        .sets
        .iter()
        .flat_map(|&set| parameters.pages.iter().map(move |&pages| (set, pages)))
        .collect();
    session.announce(session.runs() * parameters.sizes.len() * forms.len());
    for size in &parameters.sizes {
        session.take_turns(forms.len(), &[()], |session, form, (), _| {
            let (set, pages) = forms[form];
            measure(size, set, pages, session)
        })?;
    }
    Ok(())
}

fn measure(size: &Size, set: KeySet, pages: Pages, session: &mut Session) -> Result<(), ExperimentError> {
    let (name, point) = (format!("{}, {}", set.name(), pages.name()), &size.name);
    session.begin(format!("{name}, {point}"));
    let keys = set.keys::<4>(size.keys)?;
    let grown = Grown::new(&keys, pages)?;
    let order = Permutation::new(size.keys, HOTTEST)?;
    let hottest: Vec<_> = (0..size.keys).map(|rank| keys[order.record(rank) as usize]).collect();
    let reorganize = |_| {
        let hottest = hottest.clone();
        let watch = Stopwatch::start();
        let done = grown.reorganize(hottest);
        (done, watch.elapsed().as_secs_f64())
    };
    let (done, seconds) = in_parallel(1, reorganize)?[0];
    if done.full || done.keys != keys.len() || done.leaves != keys.len() {
        let found = format!("{done:?} of {} keys", keys.len());
        return Err(ExperimentError::wrong("a reorganisation", found));
    }
    // All that was there is there.
    grown.look_up(&keys, (0..size.keys).sum())?;
    session.record(&name, point, "time", "s", seconds);
    session.record(&name, point, "time per key", "ns", 1e9 * seconds / size.keys as f64);
    session.record(&name, point, "nodes moved", "M", done.nodes as f64 / 1e6);
    let mib = grown.tree().memory().node_bytes() as f64 / f64::from(1 << 20);
    session.record(&name, point, "nodes", "MiB", mib);
    session.record_pages(&name, grown.pages());
    Ok(())
}
