//! Other processes: TLBs, STB and IPB are emptied, and the IPB is filled again from the process's array (section
//! III-D1).
//!
//! ```toml
//! container = "unordered_map"
//! table_bytes = 67_108_864
//! slices = [0.1, 1.0, 10.0]               # milliseconds
//! switches = 20                           # of each process, that are measured
//! withdrawn = [0, 24]                     # pages in the IPB, which has room for 32
//! ```
//!
//! Two programs of one kind, with other keys and a table each, take turns on one core. Ways to look up: alone; with the
//! table, whose IPB's pages are kept in the process's array while another runs, as the paper has it; and with a kernel
//! that keeps no array and so brings the table up to date before it gives the core away. Pages are withdrawn once,
//! before anything is measured; their records are looked up the slow way until the IPB overflows.
//!
//! "Cycles lost" are a request's cycles beyond those of the same program that nobody interrupts, of those. The
//! scheduler itself is not simulated.

use serde::Deserialize;
use sim::Core;

use super::{Bench, Guests, Kind, MILLION, Row, cycles_of};
use crate::error::RunError;
use crate::guest::{Container, Program, Variant, mix};
use crate::run;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
    container: Container,
    table_bytes: u64,
    slices: Vec<f64>,
    switches: u64,
    withdrawn: Vec<u32>,
}

/// How lookups go, and what the kernel does about the IPB.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Alone,
    Array,
    Update,
}

impl Way {
    fn name(self, withdrawn: u32) -> String {
        match self {
            Way::Alone => "alone".into(),
            Way::Array => format!("STLT, {withdrawn} pages in the array"),
            Way::Update => "STLT, brought up to date at each switch".into(),
        }
    }
}

/// What was measured of both programs.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    requests: u64,
    cycles: u64,
    kernel: u64,
    switches: u64,
}

impl Counted {
    fn each(self) -> f64 {
        self.cycles as f64 / self.requests as f64
    }
}

impl Kind for Parameters {
    /// A slice, with all ways in it: each is compared with the first.
    type Case = f64;

    fn cases(&self) -> Result<Vec<f64>, String> {
        Ok(self.slices.clone())
    }

    fn measure(&self, bench: &Bench, &slice: &f64, seed: u64) -> Result<Vec<Row>, RunError> {
        let run = |way: Way, withdrawn, slice: Option<f64>| {
            let variant = if way == Way::Alone { Variant::Alone } else { Variant::Stlt };
            let guests = Guests::new(self.container, variant, self.table_bytes);
            take_turns(bench, guests, (way, withdrawn), slice, self.switches, seed)
        };
        let row = |configuration, numbers| Row { configuration, point: format!("{slice} ms"), numbers };
        let lost = |before: Counted, after: Counted| 100.0 * (after.each() / before.each() - 1.0);
        let undisturbed = run(Way::Alone, 0, None)?;
        let alone = run(Way::Alone, 0, Some(slice))?;
        let numbers =
            vec![("cycles", "per request", alone.each()), ("cycles lost", "%", lost(undisturbed, alone))];
        let mut rows = vec![row(Way::Alone.name(0), numbers)];
        let array = self.withdrawn.iter().map(|&withdrawn| (Way::Array, withdrawn));
        for (way, withdrawn) in array.chain([(Way::Update, 0)]) {
            let undisturbed = run(way, withdrawn, None)?;
            let counted = run(way, withdrawn, Some(slice))?;
            let numbers = vec![
                ("cycles", "per request", counted.each()),
                ("speed-up", "x", alone.each() / counted.each()),
                ("cycles lost", "%", lost(undisturbed, counted)),
                ("the kernel's cycles", "per switch", counted.kernel as f64 / counted.switches as f64),
            ];
            rows.push(row(way.name(withdrawn), numbers));
        }
        Ok(rows)
    }
}

/// Takes pages of records away from a program: as if the kernel had moved them elsewhere.
fn withdraw(program: &Program, core: &mut Core, pages: u32, seed: u64) {
    let records = program.records();
    for page in 0..u64::from(pages) {
        let record = mix(seed ^ page << 8) % u64::from(records.count());
        let address = records.target(record as u32);
        core.unmap(address..address + 1);
    }
}

fn take_turns(
    bench: &Bench,
    guests: Guests,
    (way, withdrawn): (Way, u32),
    slice: Option<f64>,
    switches: u64,
    seed: u64,
) -> Result<Counted, RunError> {
    let (first, mut core) = bench.warm(guests, seed)?;
    let cycles_of_slice = |milliseconds: f64| (milliseconds * bench.machine.gigahertz * MILLION) as u64;
    let mut programs = vec![first];
    withdraw(&programs[0], &mut core, withdrawn, seed);
    let mut waiting = core.machine().new_process(1);
    if slice.is_some() {
        // The other process, warmed in its turn.
        let other = bench.configuration(guests, seed + 1_000)?;
        let (mut program, machine) = run::load(&other)?;
        core.switch_to(&mut waiting);
        let table = machine.stlt().map(|table| (table.rows(), table.ways(), table.variant()));
        let machine = core.machine_mut();
        if let Some((rows, ways, variant)) = table {
            machine.stlt_alloc(rows, ways, variant)?;
        }
        run::warm_up(&mut program, machine, bench.lengths());
        core.resume();
        withdraw(&program, &mut core, withdrawn, seed);
        programs.insert(0, program);
    }
    let mut counted = Counted::default();
    // What the kernel took at the switch before, which the clock shows with the turn's first request: no slice is used
    // up by it.
    let mut owed = 0;
    let turns = slice.map_or(1, |_| 2 * switches + 2);
    for turn in 0..turns {
        // As long without any switch as all turns together.
        let length = slice.map_or(switches * cycles_of_slice(1.0), cycles_of_slice);
        let program = &mut programs[(turn % 2) as usize];
        let (mut requests, mut cycles) = (0, 0);
        while cycles < length + owed {
            cycles += cycles_of(&mut core, |core| program.run(core, 16));
            requests += 16;
        }
        let mut kernel = 0;
        if slice.is_some() {
            if way == Way::Update {
                kernel += core.stlt_update();
            }
            kernel += core.switch_to(&mut waiting);
        }
        owed = kernel;
        // In the first turn of each the caches are as the warm-up left them.
        if turn >= 2 || slice.is_none() {
            counted.requests += requests;
            counted.cycles += cycles;
            counted.kernel += kernel;
            counted.switches += 1;
        }
    }
    Ok(counted)
}
