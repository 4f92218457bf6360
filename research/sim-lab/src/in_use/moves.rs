//! Records that move (section III-F), and pages (section III-D1).
//!
//! ```toml
//! container = "unordered_map"
//! tables = [{ name = "64 MB", bytes = 67_108_864 }]
//! requests = 100_000
//! records = [0.0, 1.0, 10.0]             # percent of the requests that write their record elsewhere
//! pages = [0.0, 0.1, 1.0]                # pages that the kernel withdraws, in a thousand requests
//! ```
//!
//! A program that moves a record writes it where there is room, changes the index and tells the table with
//! `insertSTLT`. It does not let the pages go that records have left. A page that is withdrawn, as by the kernel's
//! compaction or migration, goes into the IPB; when that is full, the table is brought up to date, which takes the
//! whole table ([`sim::Core::unmap`]). Both are compared with the same moves without a table, which cost the same
//! beyond it.

use serde::Deserialize;

use sim::Since;

use super::{Bench, Guests, Kind, Row, cycles_of};
use crate::error::RunError;
use crate::guest::{Container, Variant, mix};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
    container: Container,
    tables: Vec<TableSize>,
    requests: u64,
    records: Vec<f64>,
    pages: Vec<f64>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TableSize {
    name: String,
    bytes: u64,
}

/// What moves.
#[derive(Debug, Clone, Copy)]
pub(super) enum Moving {
    /// Records, of so many requests in a hundred.
    Records(f64),
    /// Pages, so many in a thousand requests.
    Pages(f64),
}

impl Moving {
    fn describe(self) -> (&'static str, String) {
        match self {
            Moving::Records(percent) => ("records", format!("{percent} % of requests")),
            Moving::Pages(pages) => ("pages", format!("{pages} in 1000 requests")),
        }
    }

    /// Whether something moves in a request, for which `number` was drawn.
    fn happens(self, number: u64) -> bool {
        let share = match self {
            Moving::Records(percent) => percent / 100.0,
            Moving::Pages(pages) => pages / 1000.0,
        };
        ((number >> 32) as f64) < share * 2_f64.powi(32)
    }
}

impl Kind for Parameters {
    /// A table's name and bytes, and what moves.
    type Case = (TableSize, Moving);

    fn cases(&self) -> Result<Vec<(TableSize, Moving)>, &'static str> {
        if self.container == Container::Redis && !self.records.is_empty() {
            return Err(
                "records of a server are several objects, which do not move together: 'records' is for containers",
            );
        }
        let records = self.records.iter().map(|&percent| Moving::Records(percent));
        let pages = self.pages.iter().map(|&pages| Moving::Pages(pages));
        let all: Vec<Moving> = records.chain(pages).collect();
        Ok(self.tables.iter().flat_map(|table| all.iter().map(|&of| (table.clone(), of))).collect())
    }

    fn measure(
        &self,
        bench: &Bench,
        (table, moving): &(TableSize, Moving),
        seed: u64,
    ) -> Result<Vec<Row>, RunError> {
        let measured = |variant| {
            run(bench, Guests::new(self.container, variant, table.bytes), *moving, self.requests, seed)
        };
        let (alone, stlt) = (measured(Variant::Alone)?, measured(Variant::Stlt)?);
        let (what, point) = moving.describe();
        let numbers = vec![
            ("cycles", "per request", stlt.cycles),
            ("speed-up", "x", alone.cycles / stlt.cycles),
            ("table misses", "%", stlt.misses),
            ("updates of the table", "per million requests", stlt.overflows),
        ];
        Ok(vec![Row { configuration: format!("{what} move, {}", table.name), point, numbers }])
    }
}

struct Counted {
    cycles: f64,
    misses: f64,
    overflows: f64,
}

fn run(bench: &Bench, guests: Guests, moving: Moving, requests: u64, seed: u64) -> Result<Counted, RunError> {
    let (mut program, mut core) = bench.warm(guests, seed)?;
    let (looked_up, counted) = (program.fast_path(), core.machine().statistics().stlt);
    let mut cycles = 0;
    for request in 0..requests {
        let number = mix(seed ^ request << 20);
        let record = (number as u32) % bench.setting.keys;
        cycles += match moving {
            _ if !moving.happens(number) => cycles_of(&mut core, |core| program.run(core, 1)),
            Moving::Records(_) => cycles_of(&mut core, |core| program.rewrite(core)),
            Moving::Pages(_) => cycles_of(&mut core, |core| {
                let address = program.records().target(record);
                core.unmap(address..address + 1);
                program.run(core, 1);
            }),
        };
    }
    let looked_up = program.fast_path().since(&looked_up);
    let overflows = core.machine().statistics().stlt.overflows - counted.overflows;
    Ok(Counted {
        cycles: cycles as f64 / requests as f64,
        misses: 100.0 * looked_up.misses as f64 / looked_up.total() as f64,
        overflows: overflows as f64 / requests as f64 * 1e6,
    })
}
