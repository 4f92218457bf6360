//! Kind `slb-warm-up`: how many draws a table needs, from empty, until it is nearly as good as an ideal one will be;
//! and how good it is in the end.
//!
//! A simulation of tables alone: there are no records and no index, and a pointer is the number of a rank. So tens of
//! millions of draws take seconds, and every admission can be tried.
//!
//! The *ideal* of so many entries knows how popular every record is: of those that were asked for so far it holds the
//! most popular. Its *steady* hit ratio is the share of the requests that go to the most popular ones of all. Counted
//! are the draws until the end of the first window of them in which the hit ratio is 90 % of that: the ideal's own
//! number, and each table's. What never gets there stands with all draws that were made.

use lookaside::{Admission, Buffer, Config, CounterPolicy, Pointer, Slb};
use rand::distr::Distribution;
use serde::Deserialize;
use stlt_sw::Table;
use workload::popularity::{Permutation, Zipfian};

use super::draws::{Draws, Point};
use crate::experiment::{ExperimentError, Session};

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    /// What is asked for, of which tables.
    points: Vec<Point>,
    /// Draws in all.
    draws: usize,
    /// Draws of a window.
    window: usize,
    /// The tables.
    tables: Vec<Choice>,
}

/// A table: the default, but for what is said.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Choice {
    name: String,
    /// The paper's table, where nothing else is said.
    #[serde(default)]
    paper: bool,
    /// STLT-SW instead, with four ways.
    #[serde(default)]
    stlt: bool,
    /// The share of the emissions that is logged, or enters.
    sampling: Option<f64>,
    /// Admission by log, with this threshold.
    threshold: Option<u8>,
    counters: Option<Counters>,
    newcomer: Option<u8>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Counters {
    EveryHit,
    Falling,
    Never,
}

impl Counters {
    fn policy(self) -> CounterPolicy {
        match self {
            Counters::EveryHit => CounterPolicy::EveryHit,
            Counters::Falling => CounterPolicy::Falling,
            Counters::Never => CounterPolicy::Never,
        }
    }
}

impl Choice {
    fn config(&self, bytes: usize) -> Config {
        let mut config = if self.paper { Config::paper(bytes) } else { Config::with_size(bytes) };
        config.admission = match (config.admission, self.threshold) {
            (Admission::Logged { threshold, sampling }, logged) => Admission::Logged {
                threshold: logged.unwrap_or(threshold),
                sampling: self.sampling.unwrap_or(sampling),
            },
            (_, Some(threshold)) => Admission::Logged { threshold, sampling: self.sampling.unwrap_or(1.0) },
            (Admission::Sampled { sampling }, None) => {
                Admission::Sampled { sampling: self.sampling.unwrap_or(sampling) }
            }
            (other, None) => other,
        };
        config.counters = self.counters.map_or(config.counters, Counters::policy);
        config.newcomer = self.newcomer.unwrap_or(config.newcomer);
        config
    }
}

/// What came of a cache.
#[derive(Debug, Clone, Copy)]
struct Course {
    /// Draws until the goal was reached.
    reached: Option<usize>,
    /// The hit ratio over the last quarter of the draws.
    last: f64,
}

const IDEAL: &str = "ideal";

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    session.announce(session.runs() * parameters.points.len() * (1 + parameters.tables.len()));
    for run in 0..session.runs() {
        for (number, point) in parameters.points.iter().enumerate() {
            session.begin(format!("ideal, {}", point.name));
            let ranks = Zipfian::new(point.range, 0.99)?;
            let places = Permutation::new(point.range, 5)?;
            let seed = (run * parameters.points.len() + number) as u64;
            let ranks = || drawn(&ranks, seed, parameters.draws);
            let capacity = Slb::new(&Config::with_size(point.bytes))?.capacity();
            let steady = steady(point.range, capacity as u64);
            let goal = 0.9 * steady;
            let mut ideal = Ideal::new(point.range as usize, capacity);
            let course = follow(parameters, goal, ranks(), |rank| ideal.holds(rank));
            let ideal_draws = record(session, parameters, IDEAL, &point.name, course, steady);
            session.end();
            for choice in &parameters.tables {
                session.begin(format!("{}, {}", choice.name, point.name));
                let course = if choice.stlt {
                    let table = Table::with_bytes(point.bytes, 4).map_err(ExperimentError::machine)?;
                    follow(parameters, goal, ranks(), simulated_rows(&table, &places))
                } else {
                    let buffer = Buffer::new(&choice.config(point.bytes))?;
                    follow(parameters, goal, ranks(), simulated(&buffer, &places))
                };
                let draws = record(session, parameters, &choice.name, &point.name, course, steady);
                session.record(&choice.name, &point.name, "draws by the ideal's", "x", draws / ideal_draws);
                session.end();
            }
        }
    }
    Ok(())
}

/// The share of the requests that go to the most popular `held` of `range`.
pub(super) fn steady(range: u64, held: u64) -> f64 {
    if held >= range {
        1.0
    } else {
        workload::popularity::zeta(held, 0.99) / workload::popularity::zeta(range, 0.99)
    }
}

/// The ranks that are drawn, the same for everybody.
fn drawn(ranks: &Zipfian, seed: u64, draws: usize) -> impl Iterator<Item = u64> {
    let mut random = Draws::generators(seed).next().expect("there are as many streams as one likes");
    (0..draws).map(move |_| ranks.sample(&mut random))
}

/// Asks `holds` for every rank, and watches how its answers get better.
fn follow(
    parameters: &Parameters,
    goal: f64,
    ranks: impl Iterator<Item = u64>,
    mut holds: impl FnMut(u64) -> bool,
) -> Course {
    let (mut reached, mut hits_in_window, mut last_hits) = (None, 0usize, 0usize);
    let last = parameters.draws / 4;
    for (draw, rank) in ranks.enumerate() {
        let hit = usize::from(holds(rank));
        hits_in_window += hit;
        if draw >= parameters.draws - last {
            last_hits += hit;
        }
        if (draw + 1).is_multiple_of(parameters.window) {
            if reached.is_none() && hits_in_window as f64 >= goal * parameters.window as f64 {
                reached = Some(draw + 1);
            }
            hits_in_window = 0;
        }
    }
    Course { reached, last: last_hits as f64 / last.max(1) as f64 }
}

fn record(
    session: &mut Session,
    parameters: &Parameters,
    name: &str,
    point: &str,
    course: Course,
    steady: f64,
) -> f64 {
    let draws = course.reached.unwrap_or(parameters.draws) as f64;
    session.record(name, point, "draws until 90 % of the ideal's steady hit ratio", "M", draws / 1e6);
    session.record(name, point, "hit ratio at last", "%", 100.0 * course.last);
    session.record(name, point, "hit ratio at last by the ideal's steady one", "x", course.last / steady);
    draws
}

/// A table, which is told of every rank and says whether it had it: looked up in, and emitted to, as by a map's reader.
fn simulated<'t>(buffer: &'t Buffer, places: &'t Permutation) -> impl FnMut(u64) -> bool + 't {
    buffer.monitor(false);
    let visit = buffer.pinned();
    move |rank| {
        let (hash, pointer) = (hash(rank, places), Pointer::new(rank + 1).expect("ranks are few"));
        let asks = visit.uses_table(1);
        debug_assert!(asks, "nobody watches");
        if visit.find_on_account(hash, |found| found == pointer).is_some() {
            return true;
        }
        visit.admit(&visit.ticket(hash), hash, pointer);
        false
    }
}

/// The same of STLT-SW.
fn simulated_rows<'t>(table: &'t Table, places: &'t Permutation) -> impl FnMut(u64) -> bool + 't {
    move |rank| {
        let hash = hash(rank, places);
        let there = table.get(hash) == Some(rank + 1);
        if !there {
            table.insert(hash, rank + 1);
        }
        there
    }
}

/// A bijection and a multiplication, twice: as even as a hash, and no two ranks alike.
fn hash(rank: u64, places: &Permutation) -> u64 {
    let mixed = (places.record(rank) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let hash = (mixed ^ mixed >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    hash ^ hash >> 32
}

/// The ideal cache: of the ranks seen so far, it holds the `capacity` most popular.
struct Ideal {
    seen: Vec<bool>,
    capacity: usize,
    held: usize,
    /// All seen ranks below this are held.
    bound: usize,
}

impl Ideal {
    fn new(range: usize, capacity: usize) -> Ideal {
        Ideal { seen: vec![false; range], capacity, held: 0, bound: range }
    }

    fn holds(&mut self, rank: u64) -> bool {
        let rank = rank as usize;
        if rank >= self.bound {
            return false;
        }
        if std::mem::replace(&mut self.seen[rank], true) {
            return true;
        }
        self.held += 1;
        while self.held > self.capacity {
            self.bound -= 1;
            self.held -= usize::from(self.seen[self.bound]);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ideal_holds_the_most_popular_of_what_it_has_seen() {
        let mut ideal = Ideal::new(10, 2);
        let answers: Vec<_> = [5, 7, 5, 7, 3, 7, 5, 3, 1, 5, 3, 1].map(|rank| ideal.holds(rank)).into();
        let expected = [false, false, true, true, false, false, true, true, false, false, true, true];
        assert_eq!(answers, expected);
    }

    #[test]
    fn the_steady_hit_ratio_is_the_share_of_the_hottest() {
        assert_eq!(steady(100, 100), 1.0);
        assert!((steady(10_000_000, 7_340_032) - 0.98).abs() < 0.01);
    }
}
