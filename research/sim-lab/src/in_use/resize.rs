//! STLTresize in use: the table is cleared, because the kernel does not know the program's hash (section III-F).
//!
//! ```toml
//! containers = ["unordered_map"]
//! table_bytes = 67_108_864                   # before
//! to = ["half", "same", "double"]
//! after = [10_000, 100_000, 1_000_000]       # requests after the call, at which a window is measured
//! window = 10_000
//! ```
//!
//! ```text
//!   warm | window "before" | STLTresize | window "after 0" | ... | window "after 10000" | ...
//! ```
//!
//! Between two windows requests are replayed on the table, the last of them executed without a clock. What the call
//! itself costs stands apart from the windows: in cycles, in milliseconds, and as the number of requests that would
//! have been served meanwhile. "Requests until it is warm" are those until the table misses at most a tenth more often
//! than a table of its new size that was never resized, looked at in blocks of a hundredth of the keys.

use serde::Deserialize;
use sim::{Core, Since};

use super::{Bench, Guests, Kind, MILLION, Row, cycles_of};
use crate::error::RunError;
use crate::guest::{Container, Program, Variant};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
    containers: Vec<Container>,
    table_bytes: u64,
    to: Vec<To>,
    after: Vec<u64>,
    window: u64,
}

/// The new size.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum To {
    Half,
    Same,
    Double,
}

impl To {
    fn bytes(self, before: u64) -> u64 {
        match self {
            To::Half => before / 2,
            To::Same => before,
            To::Double => before * 2,
        }
    }

    fn name(self) -> &'static str {
        match self {
            To::Half => "to half the size",
            To::Same => "cleared",
            To::Double => "to twice the size",
        }
    }
}

/// Bytes of a row.
const ROW: u64 = 16;
/// How much more often than before it may miss and be called warm.
const WARM: f64 = 1.1;
/// Blocks of requests that are looked at, of the keys.
const BLOCKS: u32 = 100;
/// Requests, of the keys, after which nobody waits any longer.
const LONGEST: u32 = 32;

impl Kind for Parameters {
    type Case = (Container, To);

    fn cases(&self) -> Result<Vec<(Container, To)>, String> {
        let containers = self.containers.iter();
        Ok(containers.flat_map(|&container| self.to.iter().map(move |&to| (container, to))).collect())
    }

    fn measure(
        &self,
        bench: &Bench,
        &(container, to): &(Container, To),
        seed: u64,
    ) -> Result<Vec<Row>, RunError> {
        let guests = Guests::new(container, Variant::Stlt, self.table_bytes);
        let (mut program, mut core) = bench.warm(guests, seed)?;
        let mut rows = Vec::new();
        let mut add = |point: &str, numbers| {
            let configuration = format!("{}, {}", container.name(), to.name());
            rows.push(Row { configuration, point: point.into(), numbers });
        };
        let (missed, cycles) = window(&mut program, &mut core, self.window);
        add("before", vec![("table misses", "%", missed), ("cycles", "per request", cycles)]);
        let kernel = core.stlt_resize(to.bytes(self.table_bytes) / ROW)? as f64;
        let call = vec![
            ("cycles of the call", "million", kernel / MILLION),
            ("time of the call", "ms", bench.milliseconds(kernel)),
            ("requests that it keeps waiting", "", kernel / cycles),
        ];
        add("call", call);
        // The program's first instruction waits for the kernel: that is told already.
        program.run(&mut core, 1);
        let mut done = 1;
        for &point in [0].iter().chain(&self.after) {
            let behind = point.saturating_sub(done);
            let executed = behind.min(bench.setting.functional);
            program.replay(core.machine_mut(), behind - executed);
            if executed > 0 {
                program.run(core.machine_mut(), executed);
                core.resume();
            }
            let (missed, cycles) = window(&mut program, &mut core, self.window);
            let numbers = vec![("table misses", "%", missed), ("cycles", "per request", cycles)];
            add(&format!("after {point}"), numbers);
            done += behind + self.window;
        }
        let resized = Guests { table_bytes: to.bytes(self.table_bytes), ..guests };
        let until = until_warm(bench, resized, seed)?;
        add("call", vec![("requests until it is warm", "thousand", until / 1e3)]);
        Ok(rows)
    }
}

/// Misses of the table, of so many requests, in percent.
fn misses(program: &mut Program, requests: impl FnOnce(&mut Program)) -> f64 {
    let before = program.fast_path();
    requests(program);
    let counted = program.fast_path().since(&before);
    100.0 * counted.misses as f64 / counted.total() as f64
}

/// The table's misses, and a request's cycles.
fn window(program: &mut Program, core: &mut Core, requests: u64) -> (f64, f64) {
    let mut cycles = 0;
    let missed = misses(program, |program| {
        cycles = cycles_of(core, |core| program.run(core, requests));
    });
    (missed, cycles as f64 / requests as f64)
}

/// Requests that an empty table takes to miss hardly more often than it will in the end. Only the table is asked.
fn until_warm(bench: &Bench, guests: Guests, seed: u64) -> Result<f64, RunError> {
    let block = u64::from(bench.setting.keys / BLOCKS).max(1);
    let (mut program, mut machine) = crate::run::load(&bench.configuration(guests, seed)?)?;
    program.replay(&mut machine, bench.setting.warm_up);
    // Several blocks, because one is a sample.
    let warm = misses(&mut program, |program| program.replay(&mut machine, 10 * block));
    machine.stlt_resize(guests.table_bytes / ROW)?;
    let mut requests = 0;
    while requests < u64::from(LONGEST) * u64::from(bench.setting.keys) {
        let missed = misses(&mut program, |program| program.replay(&mut machine, block));
        requests += block;
        if missed <= WARM * warm {
            break;
        }
    }
    Ok(requests as f64)
}
