//! An index with each of the things that may stand before it, on the STLT paper's machine:
//! `cargo run --release -p lookaside-sim-qemu --example compare -- [unordered_map] [records]`.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use sim::{Measurement, Window};
use sim_qemu::guests::{Index, Simulated, Tools, Variant};
use sim_qemu::run::Run;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let index = arguments.next().unwrap_or_else(|| "unordered_map".into());
    let index = Index::named(&index).ok_or("redis, unordered_map, dense_hash_map, map or btree_map")?;
    let records: u64 = arguments.next().map_or(Ok(100_000), |records| records.parse())?;
    let profile = arguments.next().unwrap_or_else(|| "stlt_paper".into());
    let folder = std::env::temp_dir().join("lookaside-guests");
    std::fs::create_dir_all(&folder)?;
    let tools = Tools::find()?;
    let guest = tools.compile(index, &folder)?;
    let requests = folder.join(format!("requests-{}", std::process::id()));
    Run::new(index, Variant::Alone, records).write_requests(&requests)?;
    let result = Variant::ALL.iter().try_for_each(|&variant| {
        compare(&tools, &guest, &requests, &Run::new(index, variant, records), &profile, &folder)
    });
    std::fs::remove_file(&requests)?;
    result
}

fn compare(
    tools: &Tools,
    guest: &Path,
    requests: &Path,
    run: &Run,
    profile: &str,
    folder: &Path,
) -> Result<(), Box<dyn Error>> {
    let out = folder.join(format!("{}-{}.json", run.index.name(), run.variant.name()));
    let started = Instant::now();
    let output = tools.command(guest, requests, run, &Simulated::new(profile, &out))?.output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let measurement = Measurement::read(&out)?;
    let of = |quantity: fn(&Window) -> f64| measurement.estimate(quantity).mean;
    let cycles = measurement.estimate(Window::cycles);
    println!(
        "{:>8}: {:6.0} +- {:3.0} cycles, {:5.0} instructions, {:5.2} walks, {:5.2} lines from memory, {:5.2} % missed by the table, {:.1} s",
        run.variant.name(),
        cycles.mean,
        cycles.half_width.unwrap_or_default(),
        of(Window::instructions),
        of(Window::walks),
        of(Window::memory_reads),
        100.0 * of(|window| window.table_miss_rate().unwrap_or_default()),
        started.elapsed().as_secs_f64(),
    );
    Ok(())
}
