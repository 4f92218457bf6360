//! Kind `art-lookups`: trees in pages of several kinds, as built and reorganised, asked for keys in one way or several,
//! and shown to simulated machines (the paper's Figures 2 to 4 and Tables 2 and 3; batches, and what logging costs).
//!
//! For each set of keys there is a tree as built for every kind of page; for each skew, there is one more that has seen
//! some lookups, and whose hot paths were then laid together: the tree as built, where there was nothing to be moved.
//! All take turns, part by part, with keys drawn before the clock starts and after what was sampled; a gain is of one
//! run. Where a tree is asked in several *ways* (one key at a time, in batches, with its accesses logged), each way has
//! keys of its own: the caches would know those that another has just asked for.
//!
//! At the skews that are simulated too, the same trees are asked by a probe that tells simulated machines. The share of
//! a lookup's time that it waits for translations is estimated by them (`other_cycles`): each access waits for its
//! translation and then for its line, one after the other, as lookups in a tree do, and the instructions between them
//! take so long. Neighbouring lookups, which a real processor overlaps, are not; a share of what overlaps alike is the
//! same share.

use std::collections::BTreeMap;
use std::time::Duration;

use art::Reorganized;
use serde::Deserialize;

use super::draws::{Asked, Draws, name_skew};
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
    /// Bits of a key; 32 where nothing is said, and then rows say nothing either.
    bits: Option<Vec<Width>>,
    /// Which keys.
    sets: Vec<KeySet>,
    /// The pages that trees live in; gains are over the first.
    pages: Vec<Pages>,
    /// The exponents of the distributions.
    skews: Vec<f64>,
    /// Lookups in a run; none where trees are only simulated.
    #[serde(default)]
    lookups: usize,
    /// Lookups drawn at once, after which the next tree has its turn.
    #[serde(default)]
    part: usize,
    /// The ways that a tree is asked, besides one key at a time.
    #[serde(default)]
    ways: Vec<Way>,
    /// Also measure each tree reorganised.
    reorganized: Option<Learning>,
    /// Also simulate.
    simulated: Option<Simulation>,
    /// The skews that are simulated.
    #[serde(default)]
    simulated_skews: Vec<f64>,
    /// Cycles of a simulated lookup besides its accesses: also tell how long it waits for translations.
    other_cycles: Option<u64>,
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

    /// Asks a tree so: how long it took. What is logged must be what the sampling rate says.
    pub(super) fn ask<const N: usize>(
        self,
        grown: &Grown<N>,
        asked: &Asked<N>,
    ) -> Result<Duration, ExperimentError> {
        let Way::Logged(every) = self else {
            return match self {
                Way::Batch(batch) => grown.look_up_many(&asked.keys, asked.expected, batch.max(1)),
                _ => grown.look_up(&asked.keys, asked.expected),
            };
        };
        let (time, samples) = grown.look_up_logged(&asked.keys, asked.expected, every)?;
        let due = if every == 0 { 0.0 } else { asked.keys.len() as f64 / f64::from(every) };
        // Distances between samples are uniform up to twice their mean, so their sum is within a few deviations of it.
        if (samples as f64 - due).abs() <= 1.0 + 6.0 * due.sqrt() {
            return Ok(time);
        }
        Err(ExperimentError::wrong("an access log", format!("{samples} samples where {due:.0} were due")))
    }
}

/// A tree, how it is asked, and how that is named.
struct Contestant<'g, const N: usize> {
    grown: &'g Grown<N>,
    pages: Pages,
    reorganized: bool,
    /// Whether it then lies otherwise than the one as built, which it is if nothing was moved.
    has_moved: bool,
    way: Way,
    name: String,
}

/// The largest of what was found of a configuration, over all points: by its name and what it is called.
type Best = BTreeMap<(String, String), f64>;

fn raise(best: &mut Best, configuration: &str, metric: String, value: f64) {
    let most = best.entry((configuration.to_owned(), metric)).or_insert(f64::MIN);
    *most = most.max(value);
}

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let Parameters { sizes, bits, sets, skews, .. } = parameters;
    let widths = bits.clone().unwrap_or_else(|| vec![Width::Bits32]);
    session.announce(sizes.len() * widths.len() * sets.len() * skews.len() * (1 + session.runs()));
    let mut best = Best::new();
    for size in sizes {
        for &width in &widths {
            for &set in sets {
                let name = match bits {
                    Some(_) => format!("{} {}", set.name(), width.name()),
                    None => set.name().to_owned(),
                };
                match width {
                    Width::Bits32 => measure_set::<4>(parameters, size, set, &name, &mut best, session)?,
                    Width::Bits64 => measure_set::<8>(parameters, size, set, &name, &mut best, session)?,
                }
            }
        }
    }
    for ((name, metric), value) in best {
        let unit = if metric.starts_with("times") { "x" } else { "%" };
        session.record(&name, "", metric, unit, value);
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
        // Where only machines are simulated, whichever pages the kernel gave.
        if parameters.lookups == 0 || grown.has_its_pages() {
            built.push((pages, grown));
            continue;
        }
        for reorganized in [false, true].into_iter().take(1 + usize::from(parameters.reorganized.is_some())) {
            session.skip(&configuration(name, pages, reorganized), "this machine gives no such pages");
        }
    }
    for &skew in &parameters.skews {
        let point = match size.name.as_str() {
            "" => name_skew(skew),
            size => format!("{size}, {}", name_skew(skew)),
        };
        session.begin(format!("{name}, {point}: reorganising"));
        let mut draws = Draws::new(&keys, skew)?;
        let mut laid = Vec::new();
        if let Some(learning) = &parameters.reorganized {
            let seen = draws.next(learning.lookups);
            for &(pages, _) in &built {
                let grown = Grown::new(&keys, pages)?;
                let done = grown.learn_and_reorganize(&seen.keys, learning.sample_every, learning.samples);
                let moved = (done.nodes + done.leaves) as f64 / 1e6;
                let name = configuration(name, pages, true);
                session.record(&name, &point, "moved", "M nodes and leaves", moved);
                // Where nothing was moved, what a second tree would differ by is where its memory happens to lie.
                laid.push((done != Reorganized::default()).then_some(grown));
            }
        }
        session.end();
        let as_built = built.iter().map(|(pages, grown)| (*pages, grown, false, false));
        let reorganised = built.iter().zip(&laid).map(|((pages, as_built), laid)| {
            (*pages, laid.as_ref().unwrap_or(as_built), true, laid.is_some())
        });
        let mut contestants = Vec::new();
        for (pages, grown, reorganized, has_moved) in as_built.chain(reorganised) {
            for way in [Way::Single].into_iter().chain(parameters.ways.iter().copied()) {
                let mut name = configuration(name, pages, reorganized);
                if !parameters.ways.is_empty() {
                    name = format!("{name}: {}", way.name());
                }
                session.record_pages(&name, grown.pages());
                contestants.push(Contestant { grown, pages, reorganized, has_moved, way, name });
            }
        }
        if parameters.lookups > 0 {
            measure_point(parameters, &contestants, &mut draws, &point, best, session)?;
        }
        if let Some(simulation) = &parameters.simulated
            && (parameters.simulated_skews.contains(&skew) || parameters.lookups == 0)
        {
            let observers = Observers::new(simulation, &mut draws)?;
            for Contestant { name, grown, pages, .. } in &contestants {
                session.begin(format!("{name}, {point}: simulating"));
                for observed in observers.observe(grown, *pages)? {
                    if let Some(other) = parameters.other_cycles {
                        let share = 100.0 * observed.statistics.translation_share(other * observed.lookups);
                        let metric = format!("{}: waiting for translations", observed.machine);
                        raise(best, name, format!("{metric}, at most"), share);
                        session.record(name, &point, metric, "%", share);
                    }
                    observed.record(name, &point, session);
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
    for contestant in contestants.iter().filter(|contestant| contestant.way == Way::Single) {
        contestant.grown.look_up(&before.keys, before.expected)?;
    }
    for run in 0..session.runs() {
        let mut times = vec![Duration::ZERO; contestants.len()];
        let mut done = 0;
        session.begin(format!("{point}, run {} of {}", run + 1, session.runs()));
        for round in run.. {
            let part = parameters.part.min(parameters.lookups - done);
            if part == 0 {
                break;
            }
            let mut asked = draws.next(part);
            for turn in turns(contestants.len(), round) {
                times[turn] += contestants[turn].way.ask(contestants[turn].grown, &asked)?;
                if !parameters.ways.is_empty() {
                    asked = draws.next(part);
                }
            }
            done += part;
        }
        session.end();
        let rate = |at: usize| parameters.lookups as f64 / times[at].as_secs_f64().max(1e-9);
        for (at, contestant) in contestants.iter().enumerate() {
            let Contestant { name, pages, reorganized, has_moved, way, .. } = contestant;
            session.record(name, point, "lookups", "M/s", rate(at) / 1e6);
            let times = |reorganized, pages, way| {
                let is_it =
                    |it: &Contestant<'_, N>| (it.reorganized, it.pages, it.way) == (reorganized, pages, way);
                contestants.iter().position(is_it).map(|other| rate(at) / rate(other))
            };
            if *way != Way::Single
                && let Some(times) = times(*reorganized, *pages, Way::Single)
            {
                session.record(name, point, "times one at a time", "x", times);
            }
            if *has_moved && let Some(times) = times(false, *pages, *way) {
                gains[at].push(times);
                session.record(name, point, "times as built", "x", times);
            }
            let first = contestants[0].pages;
            if *pages != first
                && parameters.ways.is_empty()
                && let Some(times) = times(*reorganized, first, *way)
            {
                let metric = format!("gain over {}", first.name());
                session.record(name, point, metric, "%", 100.0 * (times - 1.0));
            }
        }
    }
    for (contestant, gains) in contestants.iter().zip(&gains).filter(|(_, gains)| !gains.is_empty()) {
        raise(best, &contestant.name, "times as built, at best".into(), Summary::of(gains).median);
    }
    Ok(())
}

fn configuration(keys: &str, pages: Pages, reorganized: bool) -> String {
    let reorganized = if reorganized { ", reorganised" } else { "" };
    format!("{keys}, {}{reorganized}", pages.name())
}
