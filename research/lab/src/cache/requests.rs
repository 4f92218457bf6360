//! What is asked of a cache: the paper's workload (section 5.3). Keys are drawn by YCSB's Zipfian formula; so many in a
//! hundred requests are sets, the others gets, each followed by a set where it misses.
//!
//! Record numbers are ranks: record 0 is the hottest. Keys are made from them by a mix, so neighbours by rank are none
//! by key; who fills a cache beforehand does so in another order (`workload::popularity::Permutation`), so that they
//! are none in memory either.

use rand::distr::{Distribution, Uniform};
use workload::generator::{self, Xoshiro256PlusPlus};
use workload::popularity::{YCSB_THETA, Zipfian};

use super::contestant::{Request, Verb};
use crate::experiment::ExperimentError;
use crate::index::Key;

/// A stream of requests.
pub(super) struct Stream<'z> {
    popularity: &'z Zipfian,
    percent: Uniform<u32>,
    sets: u32,
    random: Xoshiro256PlusPlus,
}

/// YCSB's popularity over `records` records.
pub(super) fn popularity(records: u64) -> Result<Zipfian, ExperimentError> {
    Ok(Zipfian::new(records, YCSB_THETA)?)
}

impl<'z> Stream<'z> {
    /// A stream with `sets` sets in a hundred requests.
    pub(super) fn new(popularity: &'z Zipfian, sets: u32, random: Xoshiro256PlusPlus) -> Stream<'z> {
        let percent = Uniform::new(0, 100).expect("the range is not empty");
        Stream { popularity, percent, sets, random }
    }

    /// The next `count` requests, in the place of those that `requests` holds.
    pub(super) fn draw(&mut self, count: usize, requests: &mut Vec<Request>) {
        requests.clear();
        requests.extend((0..count).map(|_| {
            let is_set = self.percent.sample(&mut self.random) < self.sets;
            let key = Key::of(self.popularity.sample(&mut self.random));
            Request { key, verb: if is_set { Verb::Set } else { Verb::Get } }
        }));
    }
}

/// As many streams as there are threads, none of which meets another.
pub(super) fn streams(popularity: &Zipfian, sets: u32, seed: u64) -> impl Iterator<Item = Stream<'_>> {
    generator::streams(seed).map(move |random| Stream::new(popularity, sets, random))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_has_its_share_of_sets_and_its_hottest_key() {
        let popularity = popularity(1_000_000).unwrap();
        let mut requests = Vec::new();
        let mut all: Vec<_> = streams(&popularity, 5, 1).take(2).collect();
        all[0].draw(100_000, &mut requests);
        let sets = requests.iter().filter(|request| request.verb == Verb::Set).count();
        let hottest = requests.iter().filter(|request| request.key.same(&Key::of(0))).count();
        assert!((4_500..5_500).contains(&sets) && (6_000..7_000).contains(&hottest), "{sets} {hottest}");
        let first = requests.clone();
        all[1].draw(100_000, &mut requests);
        assert_ne!(first, requests);
    }
}
