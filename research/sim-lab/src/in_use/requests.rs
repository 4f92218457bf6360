//! Requests one by one, and what happens between them: a monitor decides whether the table is used (section III-F), an
//! attacker's keys collide (III-H), records move (III-F), pages do (III-D1).
//!
//! ```toml
//! container = "unordered_map"
//! requests = 100_000                       # that are counted; as many as 'before' says come first
//! monitor = { period = 20_000, trial = 1_000, settle = 250 }
//! columns = ["cycles", "speed-up"]         # of COLUMNS, below
//! tables = [{ name = "64 MB", bytes = 67_108_864 }]
//! [[parameters.measure]]                   # each configuration at each point: the fields of both, together
//! configurations = [{ name = "always on" }, { name = "monitored", uses = "monitored" }]
//! points = [{ name = "pays", table = "64 MB" }]
//! ```
//!
//! A case is compared with the same requests, moves and attacks without a table. Who comes next and what moves is drawn
//! from the request's number, the same for every way to look up.
//!
//! * **The monitor.** A request's cycles are those between the retirement of the last instruction before it and of its
//!   own last: what the counter of cycles shows the monitor. Reading that counter, and the monitor's own branch, are
//!   not simulated. Where `then` is given, it is asked for in turn with `distribution`, `every` so many requests.
//! * **The attacker** has stored `records` of his own (hash tables have room for a twentieth of their keys), and asks
//!   for them at random, with a `share` of all requests, in percent; the others ask as ever. With a known hash his keys
//!   collide as he likes; with a hash that has a secret they collide nowhere, and everybody pays for that hash.
//! * **Records.** Of a hundred requests, `moving_records` write theirs where there is room, change the index and tell
//!   the table with `insertSTLT`. The pages that records have left are not let go.
//! * **Pages.** In a thousand requests, `moving_pages` are withdrawn, as by the kernel's compaction or migration. Such
//!   a page goes into the IPB; when that is full, the table is brought up to date, which takes the whole table
//!   ([`sim::Core::unmap`]).

use serde::Deserialize;
use sim::stlt::{Monitor, MonitorShape};
use sim::{HitsAndMisses, Since};

use super::{Bench, Guests, Kind, Row, cycles_of};
use crate::error::RunError;
use crate::guest::{Collision, Container, Distribution, Hash, Pen, Variant, mix};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
    container: Container,
    #[serde(default)]
    before: u64,
    requests: u64,
    monitor: Option<MonitorShape>,
    columns: Vec<String>,
    tables: Vec<TableSize>,
    measure: Vec<Product>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableSize {
    name: String,
    bytes: u64,
}

/// Fields of cases, each with a name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Product {
    configurations: Vec<toml::Table>,
    points: Vec<toml::Table>,
}

/// Whether lookups go by the table.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Uses {
    Never,
    Always,
    Monitored,
}

/// What happens.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Case {
    uses: Uses,
    table: String,
    hash: Hash,
    distribution: Distribution,
    then: Option<Distribution>,
    every: Option<u64>,
    records: u32,
    share: u32,
    collision: Collision,
    moving_records: f64,
    moving_pages: f64,
}

impl Default for Case {
    fn default() -> Case {
        Case {
            uses: Uses::Always,
            table: String::new(),
            hash: Hash::Xxh3,
            distribution: Distribution::Zipf,
            then: None,
            every: None,
            records: 0,
            share: 0,
            collision: Collision::Nowhere,
            moving_records: 0.0,
            moving_pages: 0.0,
        }
    }
}

/// Names of a configuration and a point, and what happens there.
type Named = ([String; 2], Case);

/// Cycles and requests.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    cycles: u64,
    requests: u64,
}

impl Sum {
    fn mean(self) -> f64 {
        self.cycles as f64 / self.requests as f64
    }
}

/// What a run counted.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    others: Sum,
    attacker: Sum,
    with_table: u64,
    decisions: u64,
    looked_up: HitsAndMisses,
    overflows: u64,
}

impl Counted {
    fn all(&self) -> Sum {
        let (others, attacker) = (self.others, self.attacker);
        Sum { cycles: others.cycles + attacker.cycles, requests: others.requests + attacker.requests }
    }

    fn share(&self, count: u64) -> f64 {
        count as f64 / self.all().requests as f64
    }
}

/// A number of a run, beside the same without a table.
type Column = fn(&Counted, &Counted) -> f64;

/// Names, units and formulas. Where nobody of a kind asks, a number is none, and nothing is said.
const COLUMNS: [(&str, &str, Column); 10] = [
    ("cycles", "per request", |_, of| of.all().mean()),
    ("speed-up", "x", |alone, of| alone.all().mean() / of.all().mean()),
    ("everybody's speed-up", "x", |alone, of| alone.all().mean() / of.all().mean()),
    ("the others' speed-up", "x", |alone, of| alone.others.mean() / of.others.mean()),
    ("the others' cycles", "per request", |_, of| of.others.mean()),
    ("the attacker's speed-up", "x", |alone, of| alone.attacker.mean() / of.attacker.mean()),
    ("requests with the table", "%", |_, of| 100.0 * of.share(of.with_table)),
    ("decisions that changed", "", |_, of| of.decisions as f64),
    ("table misses", "%", |_, of| 100.0 * of.looked_up.misses as f64 / of.looked_up.total() as f64),
    ("updates of the table", "per million requests", |_, of| of.share(of.overflows) * 1e6),
];

impl Parameters {
    fn check(&self, case: &Case) -> Result<(), &'static str> {
        if case.uses == Uses::Monitored && self.monitor.is_none() {
            return Err("it is monitored: give it a 'monitor'");
        }
        if case.uses != Uses::Never && self.table_bytes(case).is_none() {
            return Err("give it a 'table', one of 'tables'");
        }
        if self.monitor.is_some_and(|shape| shape.settle >= shape.trial) {
            return Err("nothing of a trial would be counted: 'settle' is as long as 'trial'");
        }
        if case.then.is_some() != case.every.is_some() || case.every == Some(0) {
            return Err(
                "'then' says what is asked for in turn, 'every' how many requests a turn has: give both, or none",
            );
        }
        if case.share > 0 && case.records == 0 {
            return Err("an attacker has records: 'records' is 0");
        }
        if self.container == Container::Redis && case.moving_records > 0.0 {
            return Err("records of a server are several objects, which do not move together");
        }
        Ok(())
    }

    fn table_bytes(&self, case: &Case) -> Option<u64> {
        self.tables.iter().find(|table| table.name == case.table).map(|table| table.bytes)
    }

    fn columns(&self) -> impl Iterator<Item = &'static (&'static str, &'static str, Column)> {
        COLUMNS.iter().filter(|(name, ..)| self.columns.iter().any(|wanted| wanted == name))
    }

    fn run(&self, bench: &Bench, case: &Case, seed: u64) -> Result<Counted, RunError> {
        let variant = if case.uses == Uses::Never { Variant::Alone } else { Variant::Stlt };
        let &Case { distribution, hash, .. } = case;
        // Whoever has none may have any.
        let table_bytes = self.table_bytes(case).unwrap_or(1 << 20);
        let guests = Guests { container: self.container, variant, distribution, table_bytes, hash };
        let (mut program, mut core) = bench.warm(guests, seed)?;
        let first = program.load_further(case.records);
        program.collide(first, case.collision);
        let mut monitor = self.monitor.filter(|_| case.uses == Uses::Monitored).map(Monitor::new);
        let mut counted = Counted::default();
        let mut start = (program.fast_path(), core.machine().statistics().stlt);
        for request in 0..self.before + self.requests {
            if request == self.before {
                counted = Counted::default();
                start = (program.fast_path(), core.machine().statistics().stlt);
            }
            if let (Some(then), Some(every)) = (case.then, case.every)
                && request.is_multiple_of(every)
            {
                let turn = request / every;
                // Other requests than in the turns before.
                let seed = seed + (turn + 1) * 1_000_003;
                program.ask_for(if turn.is_multiple_of(2) { distribution } else { then }, seed)?;
            }
            let uses = monitor.as_ref().map_or(case.uses == Uses::Always, Monitor::uses_table);
            program.use_table(uses);
            let number = mix(seed ^ request << 20);
            let attacks = (number >> 32) % 100 < u64::from(case.share);
            let happens = |share: f64| ((number >> 32) as f64) < share * 2_f64.powi(32);
            let cycles = cycles_of(&mut core, |core| {
                if attacks {
                    program.get(&mut Pen::new(core), first + (number as u32) % case.records);
                } else if happens(case.moving_records / 100.0) {
                    program.rewrite(core);
                } else {
                    if happens(case.moving_pages / 1000.0) {
                        let address = program.records().target((number as u32) % bench.setting.keys);
                        core.unmap(address..address + 1);
                    }
                    program.run(core, 1);
                }
            });
            if let Some(monitor) = &mut monitor {
                monitor.took(cycles);
            }
            counted.with_table += u64::from(uses);
            let sum = if attacks { &mut counted.attacker } else { &mut counted.others };
            (sum.cycles, sum.requests) = (sum.cycles + cycles, sum.requests + 1);
        }
        counted.decisions = monitor.map_or(0, |monitor| monitor.switches());
        counted.looked_up = program.fast_path().since(&start.0);
        counted.overflows = core.machine().statistics().stlt.since(&start.1).overflows;
        Ok(counted)
    }
}

impl Kind for Parameters {
    /// Requests without a table, and all cases that are compared with them.
    type Case = (Case, Vec<Named>);

    fn cases(&self) -> Result<Vec<(Case, Vec<Named>)>, String> {
        if let Some(unknown) = self.columns.iter().find(|name| COLUMNS.iter().all(|known| known.0 != **name))
        {
            return Err(format!("there is no column '{unknown}'"));
        }
        let mut cases: Vec<(Case, Vec<Named>)> = Vec::new();
        for (point, configuration) in self.measure.iter().flat_map(|product| {
            let of = |point| product.configurations.iter().map(move |configuration| (point, configuration));
            product.points.iter().flat_map(of)
        }) {
            let mut fields = configuration.clone();
            let name_of = |table: &toml::Table| {
                let name = table.get("name").and_then(toml::Value::as_str);
                name.map(str::to_owned).ok_or("a configuration and a point each have a 'name'")
            };
            let names = [name_of(configuration)?, name_of(point)?];
            fields.extend(point.clone());
            fields.remove("name");
            let case: Case = fields.try_into().map_err(|error: toml::de::Error| error.to_string())?;
            self.check(&case)?;
            let Case { table, hash, collision, .. } = Case::default();
            let alone = Case { uses: Uses::Never, table, hash, collision, ..case.clone() };
            match cases.iter_mut().find(|(other, _)| *other == alone) {
                Some((_, compared)) => compared.push((names, case)),
                None => cases.push((alone, vec![(names, case)])),
            }
        }
        Ok(cases)
    }

    fn measure(
        &self,
        bench: &Bench,
        (alone, compared): &(Case, Vec<Named>),
        seed: u64,
    ) -> Result<Vec<Row>, RunError> {
        let alone = self.run(bench, alone, seed)?;
        let mut rows = Vec::new();
        for ([configuration, point], case) in compared {
            // Beside itself, a run has only its cycles to tell.
            let own = case.uses == Uses::Never;
            let of = if own { alone } else { self.run(bench, case, seed)? };
            let columns = self.columns().filter(|(name, ..)| !own || *name == "cycles");
            let numbers = columns.map(|&(name, unit, value)| (name, unit, value(&alone, &of)));
            let numbers = numbers.filter(|(.., value)| value.is_finite()).collect();
            rows.push(Row { configuration: configuration.clone(), point: point.clone(), numbers });
        }
        Ok(rows)
    }
}
