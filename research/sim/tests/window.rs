//! Programs whose cycles can be worked out by hand, on the STLT paper's machine: the window, its buffers, the walker.

use crate::by_hand::{CODE, DATA, assert_about, core, instruction, measure, paper, with_stlt};
use proptest::prelude::*;
use sim::stlt::Variant;
use sim::{
    AccessKind, BranchKind, BranchOutcome, Core, Instruction, Machine, MemoryAccess, PageSize, Profile,
    Registers, Since, TranslatedBy,
};

#[test]
fn independent_instructions_go_four_a_cycle_and_dependent_ones_one() {
    let mut core = core(&paper());
    let independent = measure(&mut core, |core| {
        (0..4000).for_each(|_| core.execute(&instruction(&[], &[], 1), &[], None));
    });
    assert_about(independent.cycles, 1000, 40);
    let dependent = measure(&mut core, |core| {
        (0..4000).for_each(|_| core.execute(&instruction(&[1], &[1], 1), &[], None));
    });
    assert_about(dependent.cycles, 4000, 2);
    assert_eq!(dependent.instructions, 4000);
}

#[test]
fn a_chase_takes_the_sum_of_its_latencies() {
    let mut core = core(&paper());
    let chase = |core: &mut Core, count: u64, stride: u64| {
        measure(core, |core| {
            for n in 0..count {
                core.execute(&instruction(&[1], &[1], 0), &[MemoryAccess::load(DATA + n * stride, 8)], None);
            }
        })
    };
    assert_about(chase(&mut core, 1000, 0).cycles, 1000 * (1 + 4), 2);
    let cold = chase(&mut core, 1000, 64 * 7);
    // One of them, the first line, is there already.
    assert_about(cold.cycles, 999 * (1 + 160) + 5, 2);
    assert_about(cold.stack.memory, 999 * 160, 200);
}

#[test]
fn independent_misses_share_the_buffers_or_the_channel() {
    let gather = |profile: &Profile| {
        let mut core = core(profile);
        let counted = measure(&mut core, |core| {
            for n in 1..=1000 {
                core.execute(&instruction(&[], &[], 0), &[MemoryAccess::load(DATA + n * 192, 8)], None);
            }
        });
        counted.cycles
    };
    let mut profile = paper();
    assert_about(gather(&profile), 1000 * 22, 400);
    profile.memory.cycles_per_line = 1;
    assert_about(gather(&profile), 1000 / 10 * 160, 400);
    profile.core.misses = 1000;
    // A window of 128 holds 128 misses, whose lines come one a cycle: seven windows, and the 104 lines of the last.
    assert_about(gather(&profile), 7 * 161 + 161 + 104, 2);
    profile.core.window = 4;
    assert_about(gather(&profile), 1000 / 4 * 161, 161);
}

#[test]
fn the_window_decides_how_many_distant_misses_overlap() {
    for (distance, overlapping) in [(128, 1), (64, 2), (32, 4)] {
        let mut profile = paper();
        profile.memory.cycles_per_line = 1;
        let mut core = core(&profile);
        let misses = 200;
        let counted = measure(&mut core, |core| {
            for n in 1..=misses {
                core.execute(&instruction(&[], &[], 0), &[MemoryAccess::load(DATA + n * 192, 8)], None);
                (1..distance).for_each(|_| core.execute(&instruction(&[], &[], 1), &[], None));
            }
        });
        assert_about(counted.cycles, misses / overlapping * 161, misses / overlapping * 35 + 200);
        assert!(counted.stack.memory > counted.cycles / 2);
    }
}

/// A chain of 300 additions takes longer than a line from memory. A load before it holds up a window of 16, of which
/// the chain can do no more than what is in it meanwhile; a prefetch does not, and the load after the chain finds the
/// line.
#[test]
fn a_prefetch_leaves_the_window_before_its_line_comes() {
    let rounds = 100;
    let run = |prefetches: bool| {
        let mut profile = paper();
        profile.core.window = 16;
        let mut core = core(&profile);
        measure(&mut core, |core| {
            for n in 1..=rounds {
                let address = DATA + n * 192;
                if prefetches {
                    core.prefetch(&instruction(&[], &[], 0), address);
                } else {
                    core.execute(&instruction(&[], &[], 0), &[MemoryAccess::load(address, 8)], None);
                }
                (0..300).for_each(|_| core.execute(&instruction(&[1], &[1], 1), &[], None));
                core.execute(&instruction(&[], &[], 0), &[MemoryAccess::load(address, 8)], None);
            }
        })
        .cycles
    };
    assert_about(run(true), rounds * 300, 400);
    assert!(run(false) > rounds * 400, "{}", run(false));
}

/// Ten buffers take ten lines at a time, from loads and from prefetches alike: a prefetch is not done before one has
/// taken its line, and the line comes no sooner than a load's would.
#[test]
fn prefetches_wait_for_miss_buffers() {
    let mut profile = paper();
    profile.memory.cycles_per_line = 1;
    let run = |load: bool| {
        let mut core = core(&profile);
        measure(&mut core, |core| {
            for n in 1..=1000 {
                core.prefetch(&instruction(&[], &[], 0), DATA + n * 192);
            }
            if load {
                core.execute(&instruction(&[], &[], 0), &[MemoryAccess::load(DATA + 1000 * 192, 8)], None);
            }
        })
        .cycles
    };
    // The last ten are on their way when the last prefetch is done.
    assert_about(run(false), 990 / 10 * 160, 400);
    assert_about(run(true), 1000 / 10 * 160, 400);
}

/// A load of memory takes 160 cycles. Beside it, a prefetch fetches another line meanwhile; behind it, it cannot begin
/// before.
#[test]
fn a_prefetch_waits_for_what_it_is_computed_from() {
    let run = |from: u8| {
        let mut core = core(&paper());
        measure(&mut core, |core| {
            core.execute(&instruction(&[], &[1], 0), &[MemoryAccess::load(DATA + 192, 8)], None);
            core.prefetch(&instruction(&[from], &[], 0), DATA + 384);
            core.execute(&instruction(&[1], &[2], 0), &[MemoryAccess::load(DATA + 384, 8)], None);
            core.execute(&instruction(&[2], &[], 1), &[], None);
        })
        .cycles
    };
    assert_about(run(2), 160 + 22, 20);
    assert_about(run(1), 2 * 160, 20);
}

#[test]
fn two_loads_of_one_line_wait_for_one_fill() {
    let mut core = core(&paper());
    let counted = measure(&mut core, |core| {
        for n in 1..=100 {
            for word in 0..2 {
                let load = MemoryAccess::load(DATA + n * 192 + word * 8, 8);
                core.execute(&instruction(&[1], &[2 + word as u8], 0), &[load], None);
            }
            core.execute(&instruction(&[2, 3], &[1], 1), &[], None);
        }
    });
    assert_about(counted.cycles, 100 * (161 + 1), 5);
    assert_eq!(core.machine().statistics().memory.reads, 100 + core_reads_before());
}

/// Lines that [`core`] itself reads from memory: code and data, and for each a walk of two entries; the
/// root's is shared only if the addresses share its line, which these do (entries 0 and 0), and the second
/// level's are entries 0 and 256 of one table.
fn core_reads_before() -> u64 {
    let mut machine = Machine::new(&paper()).expect("a legal profile");
    machine.access(CODE, AccessKind::Fetch);
    machine.access(DATA, AccessKind::Load);
    machine.statistics().memory.reads
}

#[test]
fn bytes_come_from_the_store_that_has_them() {
    let mut core = core(&paper());
    let counted = measure(&mut core, |core| {
        for _ in 0..1000 {
            let accesses = [MemoryAccess::load(DATA, 8), MemoryAccess::store(DATA, 8)];
            core.execute(&instruction(&[], &[], 1), &accesses, None);
        }
    });
    // add [x], 1: four cycles to take the bytes from the store before, one to add.
    assert_about(counted.cycles, 1000 * 5, 10);
    assert_eq!(counted.forwarded, 999);
}

#[test]
fn a_load_of_what_two_stores_have_waits_for_the_later_one_and_for_what_none_has() {
    // Two words, the first of which is known late; then both at once, and something that needs them.
    let mut core = core(&paper());
    let counted = measure(&mut core, |core| {
        for _ in 0..100 {
            core.execute(&instruction(&[3], &[1], 200), &[], None);
            core.execute(&instruction(&[1], &[], 0), &[MemoryAccess::store(DATA, 8)], None);
            core.execute(&instruction(&[], &[], 0), &[MemoryAccess::store(DATA + 8, 8)], None);
            core.execute(&instruction(&[], &[3], 0), &[MemoryAccess::load(DATA, 16)], None);
        }
    });
    assert_about(counted.cycles, 100 * (200 + 4), 600);
    assert_eq!(counted.forwarded, 100, "of one load each");
    // The second word of a line that is far away; then both: the first word comes with the line.
    let counted = measure(&mut core, |core| {
        for n in 1..=100 {
            let line = DATA + n * 64 * 7;
            core.execute(&instruction(&[3], &[], 0), &[MemoryAccess::store(line + 8, 8)], None);
            core.execute(&instruction(&[3], &[3], 0), &[MemoryAccess::load(line, 16)], None);
        }
    });
    assert!(counted.cycles >= 100 * 160, "{} cycles", counted.cycles);
    assert!(counted.stack.memory >= 100 * 150, "{:?}", counted.stack);
}

#[test]
fn stores_do_not_hold_up_until_their_buffer_is_full() {
    let mut profile = paper();
    profile.memory.cycles_per_line = 1;
    let run = |profile: &Profile, count: u64| {
        let mut core = core(profile);
        measure(&mut core, |core| {
            for n in 1..=count {
                core.execute(&instruction(&[], &[], 0), &[MemoryAccess::store(DATA + n * 192, 8)], None);
            }
        })
        .cycles
    };
    assert!(run(&profile, 32) <= 32 / 4 + 2, "32 fit into the buffer");
    // Ten lines are on their way at a time.
    assert_about(run(&profile, 2000), 2000 / 10 * 160, 800);
    profile.core.stores = 1;
    assert_about(run(&profile, 100), 99 * 161, 5);
}

#[test]
fn a_mispredicted_branch_costs_its_resolution_and_the_penalty() {
    let mut core = core(&paper());
    let jump = Instruction { branch: Some(BranchKind::Indirect), ..instruction(&[], &[], 1) };
    let counted = measure(&mut core, |core| {
        for n in 0..1000 {
            core.execute(&jump, &[], Some(BranchOutcome { taken: true, target: n }));
        }
    });
    assert_about(counted.cycles, 1000 * (1 + 8), 10);
    assert_eq!((counted.branches, counted.mispredicted), (1000, 1000));
    assert_about(counted.stack.branch, 1000 * 8, 1010);

    // One that waits for a load from memory costs that too.
    let counted = measure(&mut core, |core| {
        for n in 1..=100 {
            let load = MemoryAccess::load(DATA + n * 192, 8);
            core.execute(&instruction(&[], &[5], 0), &[load], None);
            let jump = Instruction { sources: Registers::of(&[5]), ..jump };
            core.execute(&jump, &[], Some(BranchOutcome { taken: true, target: n }));
        }
    });
    assert_about(counted.cycles, 100 * (161 + 1 + 8), 10);
}

#[test]
fn code_that_does_not_fit_waits_for_its_lines() {
    let mut core = core(&paper());
    // 64 KiB of code, twice the first level: cyclic, so every line comes from the second.
    let round = |core: &mut Core| {
        measure(core, |core| {
            for n in 0..16_384_u64 {
                core.execute(&Instruction { address: CODE + n * 4, ..instruction(&[], &[], 1) }, &[], None);
            }
        })
    };
    round(&mut core);
    round(&mut core);
    let counted = round(&mut core);
    // 16 instructions of a line take 4 cycles, and the next line 12 - 4.
    assert_about(counted.cycles, 1024 * (4 + 8), 20);
    assert_about(counted.stack.fetch, 1024 * 8, 1024);
}

#[test]
fn an_instruction_that_lies_in_two_lines_waits_for_both() {
    let mut core = core(&paper());
    let counted = measure(&mut core, |core| {
        core.execute(&Instruction { address: CODE + 62, ..instruction(&[], &[], 1) }, &[], None);
    });
    // The first line is there, and for the second one memory takes 160 cycles, of which a hit would take 4.
    assert_about(counted.cycles, 160 - 4, 2);
    assert_about(counted.stack.fetch, 160 - 4, 2);
}

#[test]
fn one_walker_walks_one_walk_at_a_time() {
    let run = |walkers| {
        let mut profile = paper();
        profile.paging.pages = PageSize::Small;
        profile.memory.cycles_per_line = 1;
        profile.core.walkers = walkers;
        let mut core = core(&profile);
        measure(&mut core, |core| {
            for n in 0..4 {
                let load = MemoryAccess::load((1 << 45) + n * PageSize::Large.bytes() + n * 192, 8);
                core.execute(&instruction(&[], &[], 0), &[load], None);
            }
        })
        .cycles
    };
    // The first walk finds only the root's table, whose line with the entry for this half of the address
    // space is new: four reads of memory. The others have three entries in the first cache and the leaf in
    // memory.
    assert_about(run(1), 7 + 4 * 160 + 3 * (160 + 3 * 4) + 160, 2);
    assert_about(run(4), 7 + 4 * 160 + 160, 2);
}

#[test]
fn who_comes_second_to_a_page_waits_for_its_walk() {
    let mut profile = paper();
    profile.paging.pages = PageSize::Small;
    profile.memory.cycles_per_line = 1;
    let mut core = core(&profile);
    let page = 1 << 45;
    let counted = measure(&mut core, |core| {
        core.execute(&instruction(&[], &[], 0), &[MemoryAccess::load(page, 8)], None);
        core.execute(&instruction(&[], &[1], 0), &[MemoryAccess::load(page + 64, 8)], None);
        core.execute(&instruction(&[1], &[], 0), &[MemoryAccess::load(page + 128, 8)], None);
    });
    // Four reads of memory for the first one's walk; only then the second's line, and only then the third's.
    assert_about(counted.cycles, 7 + 4 * 160 + 2 * 160, 8);
}

#[test]
fn a_line_of_the_first_cache_waits_for_the_walk_to_its_page() {
    let mut profile = paper();
    profile.paging.pages = PageSize::Small;
    let mut core = core(&profile);
    let page = 1 << 45;
    let machine = core.machine_mut();
    machine.replay([(page, AccessKind::Load), (page + 64, AccessKind::Load)]);
    machine.invalidate(page..page + 4096);
    core.resume();
    let chain = 300;
    let counted = measure(&mut core, |core| {
        core.execute(&instruction(&[], &[], 0), &[MemoryAccess::load(page, 8)], None);
        core.execute(&instruction(&[], &[1], 0), &[MemoryAccess::load(page + 64, 8)], None);
        (0..chain).for_each(|_| core.execute(&instruction(&[1], &[1], 1), &[], None));
    });
    // Both lines are in the first cache, and so are the walk's four entries. The chain begins when the second load is
    // done.
    assert_about(counted.cycles, 7 + 4 * 4 + 4 + chain, 2);
}

#[test]
fn who_comes_second_to_a_page_waits_for_its_walk_whatever_the_page_s_size() {
    let base = 1 << 45;
    // Pages of one size, and a range of larger ones among them; behind a host with small ones a large page's parts are
    // pages.
    let run = |pages, large: bool, second: u64| {
        let mut profile = paper();
        profile.paging.pages = pages;
        profile.memory.cycles_per_line = 1;
        let mut core = core(&profile);
        if large {
            core.machine_mut().use_pages(base..base + (1 << 30), PageSize::Large);
        }
        let before = core.machine().statistics().memory.reads;
        let cycles = measure(&mut core, |core| {
            core.execute(&instruction(&[], &[], 0), &[MemoryAccess::load(base, 8)], None);
            core.execute(&instruction(&[], &[1], 0), &[MemoryAccess::load(base + second, 8)], None);
            core.execute(&instruction(&[1], &[], 0), &[MemoryAccess::load(base + second + 192, 8)], None);
        });
        (cycles.cycles, core.machine().statistics().memory.reads - before)
    };
    // A walk of three entries for both, then the second's line, and only then the third's. The first's line besides.
    for (pages, large) in [(PageSize::Large, false), (PageSize::Small, true)] {
        let (cycles, reads) = run(pages, large, 5 * 4096);
        assert_eq!(reads, 3 + 3);
        assert_about(cycles, 7 + 3 * 160 + 2 * 160, 8);
    }
    // With small pages the second walks by itself: its leaf is in the line of the first's.
    let (cycles, reads) = run(PageSize::Small, false, 5 * 4096);
    assert_eq!(reads, 4 + 3);
    assert_about(cycles, 7 + 4 * 160 + 2 * 160, 30);
}

#[test]
fn who_comes_second_to_an_entry_of_the_page_table_waits_for_its_line() {
    // Two loads whose pages share all tables but the last: four walkers walk for both at once, but the second's three
    // upper entries are in lines that the first has asked memory for. A long chain behind the second load makes its end
    // the end of everything.
    let chain = 2000;
    let run = |walkers| {
        let mut profile = paper();
        profile.paging.pages = PageSize::Small;
        profile.memory.cycles_per_line = 1;
        profile.core.walkers = walkers;
        let mut core = core(&profile);
        let counted = measure(&mut core, |core| {
            for n in 0..2 {
                let load = MemoryAccess::load((1 << 45) + n * (PageSize::Large.bytes() + 192), 8);
                core.execute(&instruction(&[], &[n as u8], 0), &[load], None);
            }
            (0..chain).for_each(|_| core.execute(&instruction(&[1], &[1], 1), &[], None));
        });
        counted.cycles - chain
    };
    // The second walk's leaf is read when the first's is, and its data when the first's is: at the first walk's pace.
    assert_about(run(4), 7 + 4 * 160 + 160, 8);
    // One walker: the second walk begins when the first has ended, and its lines are there.
    assert_about(run(1), 7 + 4 * 160 + 3 * 4 + 160 + 160, 8);
}

#[test]
fn walks_for_translations_that_are_fetched_ahead_keep_the_walker_busy() {
    let mut profile = paper();
    profile.paging.pages = PageSize::Small;
    profile.memory.cycles_per_line = 1;
    profile.prefetch.distance = Some(Default::default());
    let mut core = core(&profile);
    // Pages at one distance, each with a table of its own: the prefetcher learns it without the clock.
    let page = |n: u64| (1 << 45) + n * 2 * PageSize::Large.bytes();
    let elsewhere = 1 << 46;
    let machine = core.machine_mut();
    for address in (0..8).map(page).chain([elsewhere]) {
        machine.map(address);
    }
    machine.replay((0..5).map(|n| (page(n), AccessKind::Load)));
    core.resume();
    // What the machine says of the two accesses to come, and of the walk that the first one asks for.
    let mut machine = core.machine().clone();
    let before = machine.statistics();
    assert_eq!(machine.access(page(5), AccessKind::Load).translated, TranslatedBy::PrefetchBuffer);
    let counted = machine.statistics().since(&before);
    assert_eq!((counted.accesses.data_walks, counted.accesses.translations_prefetched), (0, 1));
    let ahead = 4 * counted.l1d.walk.hits
        + 12 * counted.l2.walk.hits
        + 40 * counted.l3.walk.hits
        + 160 * counted.l3.walk.misses;
    assert!(ahead >= 160, "its leaf is in memory: {ahead}");
    let second = machine.access(elsewhere, AccessKind::Load);
    // The second load is independent of the first, but there is one walker.
    let chain = 2000;
    let counted = measure(&mut core, |core| {
        core.execute(&instruction(&[], &[2], 0), &[MemoryAccess::load(page(5), 8)], None);
        core.execute(&instruction(&[], &[1], 0), &[MemoryAccess::load(elsewhere, 8)], None);
        (0..chain).for_each(|_| core.execute(&instruction(&[1], &[1], 1), &[], None));
    });
    assert_about(counted.cycles - chain, ahead + u64::from(second.latency()), 8);
}

#[test]
fn who_comes_second_to_a_line_of_the_second_cache_waits_for_it() {
    let mut core = core(&paper());
    // 64 KiB in the order of their lines, twice the first cache: each line comes from the second. The next line is
    // known when the second load of this one is done.
    let round = |core: &mut Core| {
        measure(core, |core| {
            for line in 0..1024_u64 {
                let at = DATA + line * 64;
                core.execute(&instruction(&[1], &[], 0), &[MemoryAccess::load(at, 8)], None);
                core.execute(&instruction(&[1], &[1], 0), &[MemoryAccess::load(at + 8, 8)], None);
            }
        })
    };
    round(&mut core);
    round(&mut core);
    assert_about(round(&mut core).cycles, 1024 * (1 + 12), 40);
}

#[test]
fn a_block_runs_like_its_instructions() {
    let block: Vec<_> = (0..8_u8)
        .map(|n| Instruction { address: CODE + 4 * u64::from(n), ..instruction(&[n], &[n + 1], 1) })
        .collect();
    let accesses = |round: u64| {
        [
            (1, MemoryAccess::load(DATA + round * 64, 8)),
            (1, MemoryAccess::store(DATA, 8)),
            (5, MemoryAccess::load(DATA, 4)),
        ]
    };
    let mut one = core(&paper());
    let mut two = core(&paper());
    for round in 0..100 {
        one.run_instructions(&block, &accesses(round), None);
        for (place, instruction) in block.iter().enumerate() {
            let own: Vec<_> = accesses(round).into_iter().filter(|of| of.0 == place).map(|of| of.1).collect();
            two.execute(instruction, &own, None);
        }
    }
    assert_eq!(one.statistics(), two.statistics());
    assert_eq!(one.machine().statistics(), two.machine().statistics());
}

#[derive(Debug, Clone)]
enum Step {
    Compute(u8, u8, u8),
    Load(u8, u8, u64),
    Prefetch(u8, u64),
    Store(u8, u64),
    Branch(u8, bool),
    LoadVa(u64),
    Insert(u64, u64),
    Unmap(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..16_u8, 0..16_u8, 0..5_u8).prop_map(|(from, to, latency)| Step::Compute(from, to, latency)),
        (0..16_u8, 0..16_u8, 0..1_u64 << 24).prop_map(|(from, to, at)| Step::Load(from, to, at)),
        (0..16_u8, 0..1_u64 << 24).prop_map(|(from, at)| Step::Prefetch(from, at)),
        (0..16_u8, 0..1_u64 << 24).prop_map(|(from, at)| Step::Store(from, at)),
        (0..16_u8, any::<bool>()).prop_map(|(from, taken)| Step::Branch(from, taken)),
        (0..64_u64).prop_map(Step::LoadVa),
        (0..64_u64, 0..1_u64 << 24).prop_map(|(integer, at)| Step::Insert(integer, at)),
        (0..1_u64 << 24).prop_map(Step::Unmap),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn the_accounts_add_up_and_every_run_is_the_same(
        steps in prop::collection::vec(step(), 1..400),
        variant in prop_oneof![Just(Variant::Full), Just(Variant::VirtualOnly), Just(Variant::Software)],
        pages in prop_oneof![Just(PageSize::Small), Just(PageSize::Large)],
    ) {
        let run = || {
            let mut profile = Profile::stlt_paper();
            profile.paging.pages = pages;
            profile.prefetch.stride = Some(Default::default());
            profile.prefetch.vldp = Some(Default::default());
            profile.prefetch.distance = Some(Default::default());
            let mut core = with_stlt(&profile, variant);
            for (n, step) in steps.iter().enumerate() {
                let at = Instruction { address: CODE + n as u64 * 7, ..instruction(&[], &[], 1) };
                let reads = |register: u8| Registers::of(&[register]);
                match *step {
                    Step::Compute(from, to, latency) => {
                        let one = Instruction { latency, sources: reads(from), destinations: reads(to), ..at };
                        core.execute(&one, &[], None);
                    }
                    Step::Load(from, to, offset) => {
                        let one = Instruction { latency: 0, sources: reads(from), destinations: reads(to), ..at };
                        core.execute(&one, &[MemoryAccess::load(DATA + offset, 16)], None);
                    }
                    Step::Prefetch(from, offset) => {
                        core.prefetch(&Instruction { latency: 0, sources: reads(from), ..at }, DATA + offset);
                    }
                    Step::Store(from, offset) => {
                        let one = Instruction { latency: 0, sources: reads(from), ..at };
                        core.execute(&one, &[MemoryAccess::store(DATA + offset, 8)], None);
                    }
                    Step::Branch(from, taken) => {
                        let one = Instruction { branch: Some(BranchKind::Conditional), sources: reads(from), ..at };
                        core.execute(&one, &[], Some(BranchOutcome { taken, target: CODE }));
                    }
                    Step::LoadVa(integer) => {
                        core.load_va(&at, integer);
                    }
                    Step::Insert(integer, offset) => {
                        core.insert_stlt(&at, integer, DATA + offset);
                    }
                    Step::Unmap(offset) => {
                        core.machine_mut().unmap(DATA + offset..DATA + offset + 1);
                    }
                }
            }
            (core.statistics(), core.machine().statistics())
        };
        let (counted, machine) = run();
        prop_assert_eq!(counted.stack.total(), counted.cycles);
        prop_assert!(counted.cycles >= counted.instructions / 4);
        prop_assert_eq!((counted, machine), run());
    }

    #[test]
    fn dependent_loads_take_the_sum_of_the_machines_latencies(
        offsets in prop::collection::vec(0..1_u64 << 30, 1..300),
        pages in prop_oneof![Just(PageSize::Small), Just(PageSize::Large)],
    ) {
        let mut profile = Profile::stlt_paper();
        profile.paging.pages = pages;
        let mut core = core(&profile);
        let mut machine = core.machine().clone();
        let counted = measure(&mut core, |core| {
            for &offset in &offsets {
                core.execute(&instruction(&[1], &[1], 0), &[MemoryAccess::load(DATA + offset, 1)], None);
            }
        });
        let mut latency = |&offset: &u64| u64::from(machine.access(DATA + offset, AccessKind::Load).latency());
        let sum: u64 = offsets.iter().map(&mut latency).sum();
        prop_assert!(counted.cycles.abs_diff(sum) <= 2, "{} cycles, {} in all", counted.cycles, sum);
    }
}
