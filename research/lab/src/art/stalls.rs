//! Kind `art-stalls`: the share of a lookup's time that it waits for translations, by skew (the paper's Figure 2).
//!
//! Estimated by the simulated machine: each access waits for its translation and then for its line, one after the
//! other, as lookups in a tree do, and the instructions between them take `other_cycles`. Neighbouring lookups, which a
//! real processor overlaps, are not; a share of what overlaps alike is the same share.

use serde::Deserialize;

use super::draws::{Draws, name_skew};
use super::grown::{Grown, Pages};
use super::keys::KeySet;
use super::simulated::{Observers, Simulation};
use crate::experiment::{ExperimentError, Session};

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    /// Keys in each tree, of 32 bits.
    keys: u64,
    /// Which.
    sets: Vec<KeySet>,
    /// The pages that they live in.
    pages: Vec<Pages>,
    /// The exponents of the distributions.
    skews: Vec<f64>,
    /// Cycles of a lookup besides its accesses.
    other_cycles: u64,
    /// What is simulated.
    simulated: Simulation,
}

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    session.announce(parameters.sets.len() * parameters.pages.len() * parameters.skews.len());
    for set in &parameters.sets {
        let keys = set.keys::<4>(parameters.keys)?;
        for &pages in &parameters.pages {
            let grown = Grown::new(&keys, pages)?;
            let name = format!("{}, {}", set.name(), pages.name());
            session.record_pages(&name, grown.pages());
            let mut largest: Vec<(String, f64)> = Vec::new();
            for &skew in &parameters.skews {
                let point = name_skew(skew);
                session.begin(format!("{name}, {point}"));
                let observers = Observers::new(&parameters.simulated, &mut Draws::new(&keys, skew)?)?;
                for observed in observers.observe(&grown, pages)? {
                    let other = parameters.other_cycles * observed.lookups;
                    let share = 100.0 * observed.statistics.translation_share(other);
                    let metric = format!("{}: waiting for translations", observed.machine);
                    session.record(&name, &point, metric, "%", share);
                    observed.record(&name, &point, session);
                    match largest.iter_mut().find(|(machine, _)| *machine == observed.machine) {
                        Some((_, most)) => *most = most.max(share),
                        None => largest.push((observed.machine, share)),
                    }
                }
                session.end();
            }
            for (machine, share) in largest {
                session.record(
                    &name,
                    "",
                    format!("{machine}: waiting for translations, at most"),
                    "%",
                    share,
                );
            }
        }
    }
    Ok(())
}
