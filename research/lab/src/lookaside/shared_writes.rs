//! Kind `slb-shared-writes`: how often a lookup writes a line that other cores read, by how hits are counted.
//!
//! On two cores a counter that every hit raises costs little; on sixteen, each write takes the line of a hot bucket
//! away from fifteen caches. This counts the words of the Cache Table that lookups change: exact, and the same on any
//! machine. Which hits count is drawn here for each by itself, at the odds at which a map's readers count theirs in
//! turn.
//!
//! From that and costs, which the definition names, comes a model of many cores: a lookup takes as long as on one core,
//! and each word that it writes costs one transfer of the line, if another core has read it since. With several
//! sockets, of as many cores each, the line comes from another socket as often as the other core is there, and that
//! takes longer. What it leaves out: memory of another socket is farther, too, and the caches of all sockets hold more.
//! It is a model on paper: nothing ran on that many cores.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};

use lookaside::{Config, CounterPolicy, Pointer, Random, Slb};
use rand::distr::Distribution;
use serde::Deserialize;
use workload::popularity::Zipfian;

use super::draws::{Draws, Point};
use super::record::Key;
use crate::experiment::{ExperimentError, Session};

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    /// What is asked for, of which tables.
    points: Vec<Point>,
    /// Draws that warm the table.
    warm_up: usize,
    /// Draws that are counted.
    draws: usize,
    /// Cores of the model, in one socket.
    cores: u32,
    /// Sockets of the model.
    sockets: u32,
    /// Nanoseconds that a hit takes on one core.
    hit_nanoseconds: f64,
    /// Nanoseconds that a line takes from one core to another.
    transfer_nanoseconds: f64,
    /// Nanoseconds that a line takes from one socket to another.
    far_transfer_nanoseconds: f64,
}

impl Parameters {
    /// Hits in a nanosecond of all cores of so many sockets, if each hit writes so many words.
    fn modelled(&self, sockets: u32, writes: f64) -> f64 {
        let (in_one, all) = (f64::from(self.cores), f64::from(self.cores * sockets));
        let near = (in_one - 1.0) / all * self.transfer_nanoseconds;
        let far = (all - in_one) / all * self.far_transfer_nanoseconds;
        all / (self.hit_nanoseconds + writes * (near + far))
    }
}

/// Ways to count hits, and their names.
const POLICIES: [(&str, CounterPolicy); 3] = [
    ("every hit counted", CounterPolicy::EveryHit),
    ("counted to fifteen", CounterPolicy::Falling),
    ("never counted", CounterPolicy::Never),
];

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    session.announce(session.runs() * parameters.points.len() * POLICIES.len());
    for run in 0..session.runs() {
        for point in &parameters.points {
            for (name, counters) in POLICIES {
                session.begin(format!("{name}, {}", point.name));
                let table = Slb::new(&Config::with_size(point.bytes).counters(counters))?;
                let counted = count(parameters, &table, &Zipfian::new(point.range, 0.99)?, run as u64);
                let (hits, draws) = (counted.hits.max(1) as f64, parameters.draws.max(1) as f64);
                let per_hit = counted.writes_of_hits as f64 / hits;
                let per_lookup = (counted.writes_of_hits + counted.writes_of_misses) as f64 / draws;
                let mut record = |metric, unit, value| session.record(name, &point.name, metric, unit, value);
                record("words written a hit", "", per_hit);
                record("words written a lookup", "", per_lookup);
                record("hit ratio", "%", 100.0 * hits / draws);
                let socket = parameters.modelled(1, per_hit);
                let sockets = parameters.modelled(parameters.sockets, per_hit);
                record("model of many cores by one core", "x", socket * parameters.hit_nanoseconds);
                record("model of all sockets by one socket", "x", sockets / socket);
                session.end();
            }
        }
    }
    Ok(())
}

#[derive(Debug, Default)]
struct Counted {
    hits: u64,
    writes_of_hits: u64,
    writes_of_misses: u64,
}

/// The words of the line of this hash.
fn line(table: &Slb, hash: u64) -> &[AtomicU64; 8] {
    let (lines, number) = table.raw_lines();
    let at = ((hash & 0xffff_ffff) * number as u64) >> 32;
    // SAFETY: the layout is frozen: so many lines of eight atomic words, which live as long as the table.
    unsafe { &*lines.add(at as usize * 64).cast() }
}

fn count(parameters: &Parameters, table: &Slb, ranks: &Zipfian, run: u64) -> Counted {
    let (random, mut counted) = (Random::new(run), Counted::default());
    let mut draws = Draws::generators(run).next().expect("there are as many streams as one likes");
    let words = |hash| line(table, hash).each_ref().map(|word| word.load(Ordering::Relaxed));
    for draw in 0..parameters.warm_up + parameters.draws {
        let rank = ranks.sample(&mut draws);
        let pointer = Pointer::new(rank + 1).expect("ranks are few");
        let hash = u64::from_le_bytes(Key::<8>::of(rank).0);
        let before = words(hash);
        let hit = table.hit(hash, &random, |found| found == pointer).is_some();
        if !hit && table.wants(hash, &random) {
            table.insert(hash, pointer, &random);
        }
        if draw >= parameters.warm_up {
            let changed =
                before.iter().zip(words(hash)).filter(|(before, after)| **before != *after).count() as u64;
            counted.hits += u64::from(hit);
            *(if hit { &mut counted.writes_of_hits } else { &mut counted.writes_of_misses }) += changed;
        }
    }
    counted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_keep_cores_apart_and_sockets_more_so() {
        let model: Parameters = toml::from_str(
            "points = []\nwarm_up = 0\ndraws = 0\ncores = 4\nsockets = 2\nhit_nanoseconds = 10.0\n\
             transfer_nanoseconds = 40.0\nfar_transfer_nanoseconds = 100.0",
        )
        .unwrap();
        // Nobody writes: all cores are as fast as one.
        assert_eq!(model.modelled(1, 0.0), 4.0 / 10.0);
        assert_eq!(model.modelled(2, 0.0), 8.0 / 10.0);
        // Of the four that may have read a line last, three are others; of eight, three are near and four far.
        assert_eq!(model.modelled(1, 1.0), 4.0 / (10.0 + 30.0));
        assert_eq!(model.modelled(2, 1.0), 8.0 / (10.0 + 3.0 / 8.0 * 40.0 + 4.0 / 8.0 * 100.0));
    }
}
