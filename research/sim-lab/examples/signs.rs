//! Every program with every table in front, at the size that is given:
//! `cargo run --release -p lookaside-sim-lab --example signs -- 100000`.
#![allow(clippy::print_stdout)]

use sim::{Profile, Window};
use sim_lab::configuration::{Configuration, FUNCTIONAL, Guest, Lengths, Table};
use sim_lab::guest::{Container, Distribution, Hash, Variant};
use sim_lab::run;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let keys: u32 = std::env::args().nth(1).unwrap_or_else(|| "100000".into()).parse()?;
    let lengths = Lengths {
        warm_up: u64::from(keys) * 8,
        functional: FUNCTIONAL,
        settle: 2_000,
        windows: 2,
        window: 8_000,
    };
    let bytes = (u64::from(keys) * 3 * 16).next_power_of_two();
    for container in Container::ALL {
        let mut alone = 0.0;
        for variant in
            [Variant::Alone, Variant::Known, Variant::StltSw, Variant::Slb, Variant::StltVa, Variant::Stlt]
        {
            let bytes = if variant == Variant::Slb { bytes * 5 / 2 } else { bytes };
            let run = run::run(&Configuration::new(
                Guest::InProcess,
                container,
                variant,
                (keys, 64, Distribution::Zipf),
                Table { bytes, ways: 4, hash: Hash::Xxh3 },
                lengths,
                1,
                &Profile::stlt_paper(),
            )?)?;
            let measured = &run.measurement;
            let mean = |quantity: fn(&Window) -> f64| measured.estimate(quantity).mean;
            let cycles = mean(Window::cycles);
            if variant == Variant::Alone {
                alone = cycles;
            }
            println!(
                "{:>15} {:>14}: {cycles:8.1} cycles, {:5.2} x, {:6.1} instructions, {:5.2} walks, {:5.2} reads, \
                 {:5.2} % table misses, {:.1} s",
                container.name(),
                variant.title(),
                alone / cycles,
                mean(Window::instructions),
                mean(Window::walks),
                mean(Window::memory_reads),
                100.0 * measured.windows[0].table_miss_rate().unwrap_or_default(),
                run.seconds
            );
        }
    }
    Ok(())
}
