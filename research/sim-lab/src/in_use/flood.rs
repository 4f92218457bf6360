//! Flooding with colliding keys: a share of the requests is an attacker's (section III-H).
//!
//! ```toml
//! container = "unordered_map"
//! table_bytes = 67_108_864
//! records = 20_000                       # the attacker's: hash tables have room for a twentieth of the keys
//! shares = [10, 50, 100]                 # of all requests, in percent; 0 is always measured
//! requests = 100_000
//! monitor = { period = 20_000, trial = 1_000, settle = 250 }
//! attacks = [
//!     { name = "no collisions", collision = "nowhere", hash = "xxh3" },
//!     { name = "one set", collision = "set", hash = "xxh3" },
//!     { name = "one integer", collision = "integer", hash = "xxh3" },
//!     { name = "a secret hash", collision = "nowhere", hash = "sip" },
//! ]
//! ```
//!
//! The attacker has stored records of his own, asks for them at random, and the others ask as ever, in between; who
//! comes next is drawn, the same for every way to look up. A speed-up is over the same requests without a table: the
//! others' compares their requests, "everybody's" all. With a known hash the attacker's keys collide as he likes; with
//! a hash that has a secret they collide nowhere, and everybody pays for that hash.

use serde::Deserialize;
use sim::stlt::{Monitor, MonitorShape};

use super::{Bench, Guests, Kind, Row, cycles_of};
use crate::error::RunError;
use crate::guest::{Collision, Container, Hash, Pen, Variant, mix};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
    container: Container,
    table_bytes: u64,
    records: u32,
    shares: Vec<u32>,
    requests: u64,
    monitor: MonitorShape,
    attacks: Vec<Attack>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Attack {
    name: String,
    collision: Collision,
    hash: Hash,
}

/// Cycles and requests.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    cycles: u64,
    requests: u64,
}

impl Sum {
    fn add(&mut self, cycles: u64) {
        self.cycles += cycles;
        self.requests += 1;
    }

    fn mean(self) -> f64 {
        self.cycles as f64 / self.requests as f64
    }
}

/// Of the others, and of the attacker.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    others: Sum,
    attacker: Sum,
}

impl Counted {
    fn all(self) -> Sum {
        Sum {
            cycles: self.others.cycles + self.attacker.cycles,
            requests: self.others.requests + self.attacker.requests,
        }
    }
}

impl Kind for Parameters {
    /// An attack, and its share of the requests, in percent.
    type Case = (u32, Attack);

    fn cases(&self) -> Result<Vec<(u32, Attack)>, &'static str> {
        if self.records == 0 {
            return Err("an attacker has records: 'records' is 0");
        }
        let shares = [0].iter().chain(&self.shares);
        Ok(shares.flat_map(|&share| self.attacks.iter().map(move |of| (share, of.clone()))).collect())
    }

    fn measure(
        &self,
        bench: &Bench,
        (share, attack): &(u32, Attack),
        seed: u64,
    ) -> Result<Vec<Row>, RunError> {
        let run = |variant, monitored| self.run(bench, (*share, attack), variant, monitored, seed);
        let before = run(Variant::Alone, false)?;
        let mut rows = Vec::new();
        for (monitored, way) in [(false, ""), (true, ", monitored")] {
            let with = run(Variant::Stlt, monitored)?;
            let mut numbers = vec![
                ("everybody's speed-up", "x", before.all().mean() / with.all().mean()),
                ("the others' speed-up", "x", before.others.mean() / with.others.mean()),
                ("the others' cycles", "per request", with.others.mean()),
                ("the attacker's speed-up", "x", before.attacker.mean() / with.attacker.mean()),
            ];
            // Where nobody of a kind asks, nothing is said.
            numbers.retain(|(_, _, value)| value.is_finite());
            let (configuration, point) = (format!("{}{way}", attack.name), format!("{share} %"));
            rows.push(Row { configuration, point, numbers });
        }
        Ok(rows)
    }
}

impl Parameters {
    fn run(
        &self,
        bench: &Bench,
        (share, attack): (u32, &Attack),
        variant: Variant,
        monitored: bool,
        seed: u64,
    ) -> Result<Counted, RunError> {
        let guests = Guests { hash: attack.hash, ..Guests::new(self.container, variant, self.table_bytes) };
        let (mut program, mut core) = bench.warm(guests, seed)?;
        let first = program.load_further(self.records);
        program.collide(first, attack.collision);
        let mut monitor = monitored.then(|| Monitor::new(self.monitor));
        let mut counted = Counted::default();
        // He has been at it for as long before he is measured as he is measured.
        for request in 0..2 * self.requests {
            let number = mix(seed ^ request << 20);
            let attacks = (number >> 32) % 100 < u64::from(share);
            if let Some(monitor) = &monitor {
                program.use_table(monitor.uses_table());
            }
            let cycles = cycles_of(&mut core, |core| {
                if attacks {
                    let record = first + (number as u32) % self.records;
                    program.get(&mut Pen::new(core), record);
                } else {
                    program.run(core, 1);
                }
            });
            if let Some(monitor) = &mut monitor {
                monitor.took(cycles);
            }
            if request >= self.requests {
                (if attacks { &mut counted.attacker } else { &mut counted.others }).add(cycles);
            }
        }
        Ok(counted)
    }
}
