//! Running one configuration, here or under QEMU.
//!
//! ```text
//!   load       records and index are built; nothing is executed
//!   warm-up    requests without a clock: the table in front alone; then caches, TLBs and page tables, too
//!   settle     requests with the clock, not counted
//!   windows    requests with the clock; a window is the difference of what was counted at its ends
//! ```

use std::time::Instant;

use serde::{Deserialize, Serialize};
use sim::{Core, FORMAT, Machine, Measurement, Since, Window};

use crate::configuration::{Configuration, ConfigurationError, Guest, Lengths};
use crate::error::RunError;
use crate::guest::{Hash, Program, Shape};
use crate::qemu::Qemu;

/// Bytes of an STLT's row.
const ROW: u64 = 16;

/// A run that is finished.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// What was run.
    pub configuration: Configuration,
    /// The builds of QEMU, plugin and guest, where compiled programs ran ([`Qemu::identity`]).
    pub programs: Option<String>,
    /// What was measured.
    pub measurement: Measurement,
    /// How long it took, in seconds.
    pub seconds: f64,
}

/// Runs a configuration.
///
/// # Errors
/// If its guest or its machine cannot be made, or what it needs is not installed.
pub fn run(configuration: &Configuration) -> Result<Run, RunError> {
    configuration.check()?;
    let started = Instant::now();
    let (programs, measurement) = match configuration.guest {
        Guest::InProcess => {
            let (program, machine) = load(configuration)?;
            (None, measure(configuration, program, machine))
        }
        Guest::Qemu => {
            let qemu = Qemu::find()?;
            let programs = qemu.identity(configuration.container)?;
            (Some(programs), qemu.run(configuration)?)
        }
    };
    let seconds = started.elapsed().as_secs_f64();
    Ok(Run { configuration: configuration.clone(), programs, measurement, seconds })
}

/// The loaded guest of a configuration, and its machine with the table in place.
///
/// # Errors
/// If either cannot be made.
pub fn load(configuration: &Configuration) -> Result<(Program, Machine), RunError> {
    Ok((Program::new(shape(configuration)?)?, machine(configuration)?))
}

/// Only what was checked can be counted.
fn shape(configuration: &Configuration) -> Result<Shape, ConfigurationError> {
    configuration.check()?;
    let (table, lengths) = (configuration.table, configuration.lengths);
    let windows = u64::from(lengths.windows) * lengths.window;
    Ok(Shape {
        requests: lengths.warm_up + lengths.settle + windows,
        container: configuration.container,
        variant: configuration.variant,
        keys: configuration.keys,
        value_bytes: configuration.value_bytes,
        distribution: configuration.distribution,
        hash: table.map_or(Hash::Xxh3, |table| table.hash),
        slb_bytes: table.map_or(0, |table| table.bytes),
        seed: configuration.seed,
    })
}

fn machine(configuration: &Configuration) -> Result<Machine, RunError> {
    let mut machine = Machine::new(&configuration.machine)?;
    if let (Some(variant), Some(table)) = (configuration.variant.stlt(), configuration.table) {
        machine.stlt_alloc(table.bytes / ROW, table.ways, variant)?;
    }
    Ok(machine)
}

/// Performs a run's warm-up.
pub fn warm_up(program: &mut Program, machine: &mut Machine, lengths: Lengths) {
    program.replay(machine, lengths.replayed());
    program.run(machine, lengths.warm_up - lengths.replayed());
}

fn measure(configuration: &Configuration, mut program: Program, mut machine: Machine) -> Measurement {
    let lengths = configuration.lengths;
    warm_up(&mut program, &mut machine, lengths);
    let mut core = Core::with_machine(machine);
    core.resume();
    program.run(&mut core, lengths.settle);
    let mut windows = Vec::new();
    for _ in 0..lengths.windows {
        let before = (core.statistics(), core.machine().statistics(), program.fast_path());
        program.run(&mut core, lengths.window);
        let counted = program.fast_path().since(&before.2);
        windows.push(Window {
            operations: lengths.window,
            fast_path: configuration.table.is_some().then_some(counted),
            core: core.statistics().since(&before.0),
            memory: core.machine().statistics().since(&before.1),
        });
    }
    Measurement {
        format: FORMAT,
        machine: configuration.machine.name.clone(),
        guest: configuration.container.name().into(),
        variant: configuration.variant.name().into(),
        seed: configuration.seed,
        windows,
    }
}
