//! Kind `art-lookups`: trees in pages of several kinds, as built and reorganised, asked for the same keys (the paper's
//! Figure 3 and Table 2, Figure 4 and Table 3).
//!
//! For each set of keys there is a tree as built for every kind of page; for each skew, there is one more that has seen
//! some lookups, and whose hot paths were then laid together: the tree as built, where there was nothing to be moved.
//! All take turns, part by part, with keys drawn before the clock starts and after what was sampled; a gain is of one
//! run. At the skews that are simulated too, the same trees are asked by a probe that tells simulated machines.

use std::collections::BTreeMap;
use std::time::Duration;

use art::Reorganized;
use serde::Deserialize;

use super::draws::{Draws, name_skew};
use super::grown::{Grown, Pages};
use super::keys::KeySet;
use super::simulated::{Observers, Simulation};
use super::{Size, Width};
use crate::experiment::{ExperimentError, Session};
use crate::measure::{Summary, turns};

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    /// Numbers of keys.
    sizes: Vec<Size>,
    /// Bits of a key.
    bits: Vec<Width>,
    /// Which keys.
    sets: Vec<KeySet>,
    /// The pages that trees live in; gains are over the first.
    pages: Vec<Pages>,
    /// The exponents of the distributions.
    skews: Vec<f64>,
    /// Lookups in a run.
    lookups: usize,
    /// Lookups drawn at once, after which the next tree has its turn.
    part: usize,
    /// Also measure each tree reorganised.
    reorganized: Option<Learning>,
    /// Also simulate.
    simulated: Option<Simulation>,
    /// The skews that are simulated.
    #[serde(default)]
    simulated_skews: Vec<f64>,
}

/// What a tree is reorganised by.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Learning {
    /// Lookups that are seen.
    pub(super) lookups: usize,
    /// One in so many is sampled, on average.
    pub(super) sample_every: u32,
    /// Samples that make a key hot.
    pub(super) samples: usize,
}

/// A tree and how it is named.
struct Contestant<'g, const N: usize> {
    grown: &'g Grown<N>,
    pages: Pages,
    reorganized: bool,
    /// Whether it then lies otherwise than the one as built, which it is if nothing was moved.
    has_moved: bool,
    name: String,
}

/// What each reorganised tree gains at the point where it gains most: the median of the runs there.
type Best = BTreeMap<String, f64>;

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let Parameters { sizes, bits, sets, skews, .. } = parameters;
    session.announce(sizes.len() * bits.len() * sets.len() * skews.len() * (1 + session.runs()));
    let mut best = Best::new();
    for size in sizes {
        for &width in bits {
            for &set in sets {
                let name = format!("{} {}", set.name(), width.name());
                match width {
                    Width::Bits32 => measure_set::<4>(parameters, size, set, &name, &mut best, session)?,
                    Width::Bits64 => measure_set::<8>(parameters, size, set, &name, &mut best, session)?,
                }
            }
        }
    }
    for (name, gain) in best {
        session.record(&name, "", "times as built, at best", "x", gain);
    }
    Ok(())
}

fn measure_set<const N: usize>(
    parameters: &Parameters,
    size: &Size,
    set: KeySet,
    name: &str,
    best: &mut Best,
    session: &mut Session,
) -> Result<(), ExperimentError> {
    session.begin(format!("{name}, {}: growing", size.name));
    let keys = set.keys::<N>(size.keys)?;
    let mut built = Vec::new();
    for &pages in &parameters.pages {
        let grown = Grown::new(&keys, pages)?;
        if grown.has_its_pages() {
            built.push((pages, grown));
            continue;
        }
        for reorganized in [Some(false), parameters.reorganized.as_ref().map(|_| true)].into_iter().flatten()
        {
            session.skip(&configuration(name, pages, reorganized), "this machine gives no such pages");
        }
    }
    for &skew in &parameters.skews {
        let point = format!("{}, {}", size.name, name_skew(skew));
        session.begin(format!("{name}, {point}: reorganising"));
        let mut draws = Draws::new(&keys, skew)?;
        let mut laid = Vec::new();
        if let Some(learning) = &parameters.reorganized {
            let seen = draws.next(learning.lookups);
            for &(pages, _) in &built {
                let grown = Grown::new(&keys, pages)?;
                let done = grown.learn_and_reorganize(&seen.keys, learning.sample_every, learning.samples);
                let moved = (done.nodes + done.leaves) as f64 / 1e6;
                session.record(
                    &configuration(name, pages, true),
                    &point,
                    "moved",
                    "M nodes and leaves",
                    moved,
                );
                // Where nothing was moved, what a second tree would differ by is where its memory happens to lie.
                laid.push((done != Reorganized::default()).then_some(grown));
            }
        }
        session.end();
        let contestant = |pages, grown, reorganized, has_moved| Contestant {
            grown,
            pages,
            reorganized,
            has_moved,
            name: configuration(name, pages, reorganized),
        };
        let as_built = built.iter().map(|(pages, grown)| contestant(*pages, grown, false, false));
        let reorganised = built.iter().zip(&laid).map(|((pages, as_built), laid)| {
            contestant(*pages, laid.as_ref().unwrap_or(as_built), true, laid.is_some())
        });
        let contestants: Vec<_> = as_built.chain(reorganised).collect();
        for contestant in &contestants {
            session.record_pages(&contestant.name, contestant.grown.pages());
        }
        measure_point(parameters, &contestants, &mut draws, &point, best, session)?;
        if let Some(simulation) = &parameters.simulated
            && parameters.simulated_skews.contains(&skew)
        {
            let observers = Observers::new(simulation, &mut draws)?;
            for contestant in &contestants {
                session.begin(format!("{}, {point}: simulating", contestant.name));
                for observed in observers.observe(contestant.grown, contestant.pages)? {
                    observed.record(&contestant.name, &point, session);
                }
            }
        }
    }
    Ok(())
}

/// All runs at one point.
fn measure_point<const N: usize>(
    parameters: &Parameters,
    contestants: &[Contestant<'_, N>],
    draws: &mut Draws<'_, N>,
    point: &str,
    best: &mut Best,
    session: &mut Session,
) -> Result<(), ExperimentError> {
    let mut gains = vec![Vec::new(); contestants.len()];
    // Each once, untimed: caches are warm, and pages that were never read are there.
    let before = draws.next(parameters.part);
    for contestant in contestants {
        contestant.grown.look_up(&before.keys, before.expected)?;
    }
    for run in 0..session.runs() {
        let mut times = vec![Duration::ZERO; contestants.len()];
        let mut done = 0;
        session.begin(format!("{point}, run {} of {}", run + 1, session.runs()));
        for round in run.. {
            let asked = draws.next(parameters.part.min(parameters.lookups - done));
            if asked.keys.is_empty() {
                break;
            }
            for turn in turns(contestants.len(), round) {
                times[turn] += contestants[turn].grown.look_up(&asked.keys, asked.expected)?;
            }
            done += asked.keys.len();
        }
        session.end();
        let rate = |at: usize| parameters.lookups as f64 / times[at].as_secs_f64().max(1e-9);
        for (at, contestant) in contestants.iter().enumerate() {
            let name = &contestant.name;
            session.record(name, point, "lookups", "M/s", rate(at) / 1e6);
            let beside = |reorganized, pages| {
                contestants.iter().position(|it| (it.reorganized, it.pages) == (reorganized, pages))
            };
            if contestant.has_moved
                && let Some(built) = beside(false, contestant.pages)
            {
                gains[at].push(rate(at) / rate(built));
                session.record(name, point, "times as built", "x", rate(at) / rate(built));
            }
            let first = contestants[0].pages;
            if contestant.pages != first
                && let Some(regular) = beside(contestant.reorganized, first)
            {
                let gain = 100.0 * (rate(at) / rate(regular) - 1.0);
                session.record(name, point, format!("gain over {}", first.name()), "%", gain);
            }
        }
    }
    for (contestant, gains) in contestants.iter().zip(&gains).filter(|(_, gains)| !gains.is_empty()) {
        let most = best.entry(contestant.name.clone()).or_insert(f64::MIN);
        *most = most.max(Summary::of(gains).median);
    }
    Ok(())
}

fn configuration(keys: &str, pages: Pages, reorganized: bool) -> String {
    let reorganized = if reorganized { ", reorganised" } else { "" };
    format!("{keys}, {}{reorganized}", pages.name())
}
