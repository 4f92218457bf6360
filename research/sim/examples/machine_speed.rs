//! How fast the simulator is: `cargo run --release -p lookaside-sim --example machine_speed`. With `-- window` only what has a
//! clock is run: on a machine that others use, too, its processor time (`time`) is a better measure than the rates.
#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::Instant;

use sim::{AccessKind, BranchKind, BranchOutcome, Core, Instruction, Machine, MemoryAccess};
use sim::{Profile, ProfileError, Registers};

/// A line congruential generator's next number.
fn next(word: &mut u64) -> u64 {
    *word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *word >> 20
}

/// Millions a second.
fn rate(count: u64, run: impl FnOnce()) -> f64 {
    let started = Instant::now();
    run();
    count as f64 / started.elapsed().as_secs_f64() / 1e6
}

/// An address of a lookup: `cold` of a hundred over 1 GiB, the others in 16 KiB.
fn address(word: &mut u64, cold: u64) -> u64 {
    let number = next(word);
    let spread = if (number >> 32) % 100 < cold { 1 << 30 } else { 1 << 14 };
    0x10_0000_0000 + number % spread
}

fn main() -> Result<(), ProfileError> {
    let patterns = [("all in 16 KiB", 0), ("one in ten over 1 GiB", 10), ("all over 1 GiB", 100)];
    let only_window = std::env::args().nth(1).is_some_and(|what| what == "window");
    let profiles = [Profile::sandy_bridge(), Profile::stlt_paper(), Profile::current_server()];
    for profile in profiles.into_iter().filter(|_| !only_window) {
        for (pattern, cold) in patterns {
            let mut machine = Machine::new(&profile)?;
            let mut word = 1;
            let mut run = |accesses: u64| {
                for _ in 0..accesses {
                    black_box(machine.access(address(&mut word, cold), AccessKind::Load));
                }
            };
            run(2_000_000);
            let accesses = 10_000_000;
            println!(
                "{:>15}, {pattern:>22}: {:6.1} M accesses/s without a clock",
                profile.name,
                rate(accesses, || run(accesses))
            );
        }
    }
    for (pattern, cold) in patterns {
        let mut core = Core::new(&Profile::stlt_paper())?;
        // Ten instructions as compilers write them: three loads, a store, a branch, the rest arithmetic.
        let block: Vec<Instruction> = (0..10_u8)
            .map(|n| Instruction {
                address: 0x40_0000 + u64::from(n) * 4,
                length: 4,
                latency: u8::from(!matches!(n, 0 | 3 | 6)),
                sources: Registers::of(&[n, (n + 3) % 10]),
                destinations: Registers::of(&[(n + 5) % 10]),
                branch: (n == 9).then_some(BranchKind::Conditional),
            })
            .collect();
        let block = core.register(block);
        let mut word = 1;
        let mut run = |blocks: u64| {
            for _ in 0..blocks {
                let mut load = || MemoryAccess::load(address(&mut word, cold) & !7, 8);
                let accesses = [(0, load()), (3, load()), (6, load())];
                let store = MemoryAccess::store(0x7fff_0000, 8);
                let accesses = [accesses[0], accesses[1], accesses[2], (7, store)];
                core.run(block, &accesses, Some(BranchOutcome { taken: word >> 60 != 0, target: 0x40_0000 }));
            }
        };
        run(100_000);
        let blocks = 1_000_000;
        println!("{pattern:>38}: {:6.1} M instructions/s with the window", rate(10 * blocks, || run(blocks)));
    }
    Ok(())
}
