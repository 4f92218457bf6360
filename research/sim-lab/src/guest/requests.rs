//! What is asked for: YCSB's distributions, drawn from a seed.
//!
//! *zipf* is YCSB's scrambled one, whose hottest records lie anywhere (Table V's miss rates follow from it, and
//! not from a plain one); *plain* is Zipf's own, over as many ranks as there are records, each a record's that may lie
//! anywhere; *latest* asks for what was inserted last, and every twentieth request inserts.
//!
//! The two differ in their tails. YCSB draws a rank among ten thousand million and hashes it to a record, so each record is
//! many ranks', and hardly one is asked for as seldom as the last of a plain distribution.
//!
//! A long warm-up is drawn once for all who perform it ([`Requests::draw_ahead`]): clones share what was drawn.

use std::sync::Arc;

use rand::Rng;
use rand::distr::Distribution as _;
use serde::{Deserialize, Serialize};
use workload::DistributionError;
use workload::generator::{self, Xoshiro256PlusPlus};
use workload::popularity::{Latest, Popularity};

/// Which records are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// Zipfian with the exponent 0.99, strewn as YCSB does it.
    Zipf,
    /// Zipfian with the exponent 0.99 over the records, each of which has one rank.
    Plain,
    /// The newest, by a Zipfian distance; one request in twenty inserts.
    Latest,
    /// All alike.
    Uniform,
}

/// The exponent.
const THETA: f64 = 0.99;
/// One request in so many inserts, of those that ask for the latest.
const INSERTS: u64 = 20;

impl Distribution {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Distribution::Zipf => "zipf",
            Distribution::Plain => "plain zipf",
            Distribution::Latest => "latest",
            Distribution::Uniform => "uniform",
        }
    }

    /// Of so many requests, those that insert, on average.
    #[must_use]
    pub const fn inserts(self, requests: u64) -> u64 {
        match self {
            Distribution::Latest => requests / INSERTS,
            Distribution::Zipf | Distribution::Plain | Distribution::Uniform => 0,
        }
    }
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
        let draw = match distribution {
            Distribution::Zipf => Draw::Fixed(Popularity::scrambled(records, THETA)?),
            Distribution::Plain => Draw::Fixed(Popularity::permuted(records, THETA, seed)?),
            Distribution::Uniform => Draw::Fixed(Popularity::uniform(records)?),
            Distribution::Latest => Draw::Latest(Latest::new(records, THETA)?),
        };
        Ok(Requests { draw, random: generator::seeded(seed), ahead: Arc::default(), taken: 0 })
    }

    /// Draws so many of the next requests at once, or a gigabyte of them; the others are drawn as they come. Before any are taken.
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
                if self.random.next_u64().is_multiple_of(INSERTS) {
                    latest.insert();
                    Request::Insert
                } else {
                    Request::Get(latest.sample(&mut self.random) as u32)
                }
            }
        }
    }
}
