//! What is asked for: a [`Distribution`]'s requests, drawn from a seed.

use rand::Rng;
use rand::distr::Distribution as _;
use workload::DistributionError;
use workload::generator::{self, Xoshiro256PlusPlus};
use workload::popularity::{Latest, Popularity};

use super::Distribution;

/// Of so many requests, those that insert, on average.
pub(super) const fn inserts(distribution: Distribution, requests: u64) -> u64 {
    if matches!(distribution, Distribution::Latest) { requests / Distribution::INSERTS } else { 0 }
}

/// A request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    Get(u32),
    Insert,
}

#[derive(Debug, Clone)]
enum Draw {
    Fixed(Popularity),
    Latest(Latest),
}

/// Requests.
#[derive(Debug, Clone)]
pub(super) struct Requests {
    draw: Draw,
    random: Xoshiro256PlusPlus,
}

impl Requests {
    pub(super) fn new(
        distribution: Distribution,
        records: u32,
        seed: u64,
    ) -> Result<Requests, DistributionError> {
        let records = u64::from(records);
        let draw = match distribution.popularity(records, seed)? {
            Some(popularity) => Draw::Fixed(popularity),
            None => Draw::Latest(Latest::new(records, Distribution::THETA)?),
        };
        Ok(Requests { draw, random: generator::seeded(seed) })
    }

    pub(super) fn next(&mut self) -> Request {
        match &mut self.draw {
            Draw::Fixed(popularity) => Request::Get(popularity.sample(&mut self.random) as u32),
            Draw::Latest(latest) => {
                if self.random.next_u64().is_multiple_of(Distribution::INSERTS) {
                    latest.insert();
                    Request::Insert
                } else {
                    Request::Get(latest.sample(&mut self.random) as u32)
                }
            }
        }
    }
}
