//! What is asked for: a [`Distribution`]'s requests, drawn from a seed.
//!
//! A long warm-up is drawn once for all who perform it ([`Requests::draw_ahead`]): clones share what was drawn.

use std::sync::Arc;

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
    /// Records that are asked for next, or [`INSERT`]; of them, those up to `taken` were.
    ahead: Arc<[u32]>,
    taken: usize,
}

/// No record has this number.
const INSERT: u32 = u32::MAX;

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
        Ok(Requests { draw, random: generator::seeded(seed), ahead: Arc::default(), taken: 0 })
    }

    /// Draws so many of the next requests at once, or a gigabyte of them; the others are drawn as they come. Before any
    /// are taken.
    pub(super) fn draw_ahead(&mut self, requests: u64) {
        const MOST: u64 = 1 << 28;
        debug_assert_eq!(self.taken, self.ahead.len(), "what was drawn ahead before is taken first");
        let drawn = (0..requests.min(MOST)).map(|_| match self.draw() {
            Request::Get(record) => record,
            Request::Insert => INSERT,
        });
        self.ahead = drawn.collect();
        self.taken = 0;
    }

    pub(super) fn next(&mut self) -> Request {
        match self.ahead.get(self.taken) {
            Some(&drawn) => {
                self.taken += 1;
                if drawn == INSERT { Request::Insert } else { Request::Get(drawn) }
            }
            None => self.draw(),
        }
    }

    fn draw(&mut self) -> Request {
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
