//! What loadVA, insertSTLT and the kernel's scan of the table cost, where the cycles can be worked out by hand: the
//! STLT paper's section III-D and Table III.

use crate::by_hand::{DATA, assert_about, core, drain, instruction, measure, paper, with_stlt};
use sim::stlt::{LoadVaOutcome, Variant};
use sim::{AccessKind, PageSize};

#[test]
fn load_va_takes_what_table_iii_says_and_the_stu_one_at_a_time() {
    let mut core = with_stlt(&paper(), Variant::Full);
    let machine = core.machine_mut();
    machine.insert_stlt(7, DATA);
    let unit = 6 + 3;
    let chain = measure(&mut core, |core| {
        for _ in 0..1000 {
            let loaded = core.load_va(&instruction(&[1], &[1], 0), 7);
            assert_eq!((loaded.address, loaded.outcome), (DATA, LoadVaOutcome::Hit));
        }
    });
    assert_about(chain.cycles, 1000 * (unit + 4), 5);
    assert_about(chain.stack.stlt, chain.cycles, 10);
    let different = measure(&mut core, |core| {
        for n in 0..1000 {
            core.load_va(&instruction(&[], &[], 0), n % 8);
        }
    });
    // Eight integers, all of one set: the STU takes the next when it has done its own part of this.
    assert_about(different.cycles, 1000 * unit, 30);
}

#[test]
fn lookups_in_software_overlap_as_other_loads_do() {
    // A table of 64 MiB, whose sets are not in any cache: misses, one set after the other, which depend on nothing, or
    // each on the one before.
    let cycles = |sources: &[u8]| {
        let mut profile = paper();
        profile.memory.cycles_per_line = 1;
        let mut core = core(&profile);
        core.machine_mut().stlt_alloc(1 << 22, 4, Variant::Software).expect("a legal table");
        let counted = measure(&mut core, |core| {
            for n in 0..400_u64 {
                core.load_va(&instruction(sources, sources, 0), n << 24);
            }
        });
        counted.cycles
    };
    let (free, chained) = (cycles(&[]), cycles(&[1]));
    assert!(chained > 400 * 160, "{chained} cycles, each after a line of memory");
    assert!(free * 2 < chained, "{free} cycles; one after the other {chained}");
}

#[test]
fn the_same_integer_waits_and_another_does_not() {
    let cycles_of_load = |integer: u64| {
        let mut profile = paper();
        profile.paging.pages = PageSize::Small;
        let mut core = with_stlt(&profile, Variant::Full);
        // A record whose page is mapped and forgotten: the insertion must walk.
        let record = DATA + (1 << 30);
        core.machine_mut().access(record, AccessKind::Load);
        for page in 1..4000 {
            core.machine_mut().access(DATA + page * 4096, AccessKind::Load);
        }
        core.machine_mut().load_va(8 << 12);
        drain(&mut core);
        let before = core.statistics().cycles;
        let inserted = core.insert_stlt(&instruction(&[], &[], 0), 7 << 12, record);
        let retired = core.statistics().cycles - before;
        core.load_va(&instruction(&[], &[], 0), integer << 12);
        (inserted.translation_cycles, retired, core.statistics().cycles - before)
    };
    let (translation, retired, same) = cycles_of_load(7);
    let (_, _, other) = cycles_of_load(8);
    assert!(translation > 7 + 4 * 4, "it walks: {translation}");
    // The insertion is in its buffer when the STU has done its part; its walk is nobody's wait.
    let (insert, load) = (4 + 3, 6 + 3);
    assert_about(retired, insert, 1);
    // Another integer's row is in the first cache; the same one's is loaded when it has been written.
    assert_about(other, insert + load + 4, 2);
    assert_about(same, insert + u64::from(translation) + 1 + load + 4, 3);
}

#[test]
fn insertions_retire_early_until_their_buffer_is_full() {
    // Records on pages that no TLB knows, and one walker.
    let count = 40;
    let run = |places: u32| {
        let mut profile = paper();
        profile.paging.pages = PageSize::Small;
        profile.memory.cycles_per_line = 1;
        profile.stlt.insertion_buffer = places;
        let mut core = with_stlt(&profile, Variant::Full);
        let record = |n: u64| DATA + (1 << 30) + n * PageSize::Large.bytes();
        let machine = core.machine_mut();
        for n in 0..count {
            machine.access(record(n), AccessKind::Load);
            machine.load_va(n << 12);
        }
        for page in 0..4000 {
            machine.access(DATA + (1 << 35) + page * 4096, AccessKind::Load);
        }
        let mut translations = 0;
        let counted = measure(&mut core, |core| {
            for n in 0..count {
                let inserted = core.insert_stlt(&instruction(&[], &[], 0), n << 12, record(n));
                translations += u64::from(inserted.translation_cycles);
            }
        });
        (counted.cycles, translations)
    };
    // With room for all, the STU's seven cycles each.
    let (cycles, translations) = run(64);
    assert_about(cycles, count * 7, 3);
    assert!(translations > 2 * cycles, "{translations} cycles of walks, one after the other");
    // With one place, each waits for the one before: its walk and its row.
    let (cycles, translations) = run(1);
    assert!(cycles > translations * 9 / 10, "{cycles} cycles for walks of {translations}");
    let (some, _) = run(8);
    assert!(some > count * 7 && some < cycles, "{some}");
}

#[test]
fn the_kernel_s_scan_of_the_table_is_waited_for() {
    let run = |rows: u64| {
        let mut core = core(&paper());
        core.machine_mut().stlt_alloc(rows, 4, Variant::Full).expect("a legal table");
        let pages = DATA + (1 << 33)..DATA + (1 << 33) + 40 * PageSize::Giant.bytes();
        for page in pages.clone().step_by(PageSize::Giant.bytes() as usize) {
            core.machine_mut().access(page, AccessKind::Load);
        }
        measure(&mut core, |core| {
            assert_eq!(core.unmap(pages), 40);
            core.execute(&instruction(&[], &[], 1), &[], None);
        })
    };
    // No row is in use: only the table's lines, one every 22 cycles of the channel.
    for rows in [1 << 10, 1 << 14] {
        let counted = run(rows);
        assert_about(counted.cycles, rows / 4 * 22 + 1, 2);
        assert_about(counted.stack.stlt, rows / 4 * 22, 2);
    }
}
