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
//! The attacker has stored records of his own, asks for them at random, and the others ask as ever, in between; who comes
//! next is drawn, the same for every way to look up. A speed-up is over the same requests without a table: the others'
//! compares their requests, "everybody's" all. With a known hash the attacker's keys collide as he likes; with a hash that
//! has a secret they collide nowhere, and everybody pays for that hash.

use serde::Deserialize;
use sim::stlt::{Monitor, MonitorShape};

use super::{Bench, Guests, Job, Sample, cycles_of};
use crate::guest::{Collision, Container, Hash, Pen, Variant, mix};
use crate::run::RunError;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
    container: Container,
    table_bytes: u64,
    records: u32,
    shares: Vec<u32>,
    requests: u64,
    monitor: Shape,
    attacks: Vec<Attack>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shape {
    period: u64,
    trial: u64,
    settle: u64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Attack {
    name: String,
    collision: Collision,
    hash: Hash,
}

/// An attack, as it is carried out.
#[derive(Debug, Clone, Copy)]
struct Flooded {
    guests: Guests,
    records: u32,
    collision: Collision,
    /// In percent.
    share: u32,
    requests: u64,
    monitor: Option<Shape>,
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

pub(super) fn jobs(parameters: Parameters) -> Result<Vec<Job>, &'static str> {
    if parameters.records == 0 {
        return Err("an attacker has records: 'records' is 0");
    }
    let mut jobs: Vec<Job> = Vec::new();
    for share in std::iter::once(0).chain(parameters.shares) {
        for attack in &parameters.attacks {
            let guests = Guests {
                hash: attack.hash,
                ..Guests::new(parameters.container, Variant::Stlt, parameters.table_bytes)
            };
            let flooded = Flooded {
                guests,
                records: parameters.records,
                collision: attack.collision,
                share,
                requests: parameters.requests,
                monitor: None,
            };
            let (name, shape) = (attack.name.clone(), parameters.monitor);
            jobs.push(Box::new(move |bench, seed| compare(bench, flooded, shape, &name, seed)));
        }
    }
    Ok(jobs)
}

fn compare(
    bench: &Bench,
    flooded: Flooded,
    shape: Shape,
    name: &str,
    seed: u64,
) -> Result<Vec<Sample>, RunError> {
    let alone = Guests { variant: Variant::Alone, ..flooded.guests };
    let before = run(bench, Flooded { guests: alone, ..flooded }, seed)?;
    let mut samples = Vec::new();
    for (monitor, way) in [(None, ""), (Some(shape), ", monitored")] {
        let with = run(bench, Flooded { monitor, ..flooded }, seed)?;
        let mut add = |metric, unit, value: f64| {
            // Where nobody of a kind asks, nothing is said.
            if value.is_finite() {
                let (configuration, point) = (format!("{name}{way}"), format!("{} %", flooded.share));
                samples.push(Sample { configuration, point, metric, unit, value });
            }
        };
        add("everybody's speed-up", "x", before.all().mean() / with.all().mean());
        add("the others' speed-up", "x", before.others.mean() / with.others.mean());
        add("the others' cycles", "per request", with.others.mean());
        add("the attacker's speed-up", "x", before.attacker.mean() / with.attacker.mean());
    }
    Ok(samples)
}

fn run(bench: &Bench, flooded: Flooded, seed: u64) -> Result<Counted, RunError> {
    let (mut program, mut core) = bench.warm(flooded.guests, seed)?;
    let first = program.load_further(flooded.records);
    program.collide(first, flooded.collision);
    let mut monitor = flooded.monitor.map(|shape| {
        Monitor::new(MonitorShape { period: shape.period, trial: shape.trial, settle: shape.settle })
    });
    let mut counted = Counted::default();
    // He has been at it for as long before he is measured as he is measured.
    for request in 0..2 * flooded.requests {
        let number = mix(seed ^ request << 20);
        let attacks = (number >> 32) % 100 < u64::from(flooded.share);
        if let Some(monitor) = &monitor {
            program.use_table(monitor.uses_table());
        }
        let cycles = cycles_of(&mut core, |core| {
            if attacks {
                let record = first + (number as u32) % flooded.records;
                program.get(&mut Pen::new(core), record);
            } else {
                program.run(core, 1);
            }
        });
        if let Some(monitor) = &mut monitor {
            monitor.took(cycles);
        }
        if request >= flooded.requests {
            (if attacks { &mut counted.attacker } else { &mut counted.others }).add(cycles);
        }
    }
    Ok(counted)
}
