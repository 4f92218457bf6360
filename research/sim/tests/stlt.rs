//! The STLT as a program uses it: several indexes, records that move, attackers, page sizes, virtual machines.

use crate::by_hand::hash;
use sim::stlt::{LoadVaOutcome, Table, Variant};
use sim::{
    AccessKind, Frames, Machine, NestedShape, PageSize, Profile, Since, StructureCacheShape, TranslatedBy,
};

const RECORDS: u64 = 0x55cc_0000_0000;

fn machine(profile: &Profile, rows: u64) -> Machine {
    let mut machine = Machine::new(profile).expect("a legal profile");
    machine.stlt_alloc(rows, 4, Variant::Full).expect("a legal table");
    machine
}

/// A lookup as the paper's Figure 4 has it; `record` is what the slow way would find. Whether the fast way found it.
fn lookup(machine: &mut Machine, integer: u64, record: u64) -> bool {
    let found = machine.load_va(integer).address;
    if found != 0 {
        // The program compares the key that is there.
        machine.access(found, AccessKind::Load);
    }
    if found != record {
        machine.access(record, AccessKind::Load);
        machine.insert_stlt(integer, record);
    }
    found == record
}

#[test]
fn a_record_that_moves_is_found_where_it_went() {
    let mut machine = machine(&Profile::stlt_paper(), 1 << 10);
    let old = RECORDS;
    let new = RECORDS + (1 << 20);
    lookup(&mut machine, 7, old);
    assert!(lookup(&mut machine, 7, old));
    // It grows: the program writes it elsewhere, then tells the table, then frees the old place.
    machine.access(new, AccessKind::Store);
    machine.insert_stlt(7, new);
    machine.unmap(old..old + 4096);
    assert_eq!(machine.load_va(7).address, new);
    assert_eq!(machine.stlt().map(Table::used), Some(1));
    // It is deleted.
    machine.insert_stlt(7, 0);
    assert_eq!(machine.load_va(7).outcome, LoadVaOutcome::Absent);
}

#[test]
fn wrong_frames_are_never_used_whatever_is_unmapped() {
    // Pages come and go at random; whatever address loadVA returns, the access that follows must be translated as the
    // page table says.
    for pages in [PageSize::Small, PageSize::Large] {
        let mut profile = Profile::stlt_paper();
        profile.paging.pages = pages;
        profile.stlt.ipb = 4;
        let mut machine = machine(&profile, 1 << 10);
        let spacing = pages.bytes() / 4 * 3;
        let mut answered = 0;
        for step in 0..20_000_u64 {
            let key = hash(step) % 200;
            let record = RECORDS + key * spacing;
            let found = machine.load_va(hash(key)).address;
            if found == record {
                answered += 1;
                let access = machine.access(record, AccessKind::Load);
                let entry = machine.entry(record).expect("it was just touched");
                assert_eq!(access.physical, entry.translate(record), "step {step}");
            } else {
                machine.access(record, AccessKind::Load);
                machine.insert_stlt(hash(key), record);
            }
            if hash(step) >> 32 & 31 == 0 {
                let gone = RECORDS + hash(step ^ 99) % 200 * spacing;
                machine.unmap(gone..gone + 1);
            }
        }
        let counts = machine.statistics().stlt;
        assert!(answered > 1_000 && counts.overflows > 10 && counts.invalid > 100, "{answered}, {counts:?}");
    }
}

#[test]
fn large_pages_leave_the_stb_less_to_do_and_hosts_more() {
    // The share of records' accesses that the STB translated, and what a walk would have cost.
    let run = |pages, nested: bool, use_table: bool| {
        let mut profile = Profile::stlt_paper();
        profile.paging.pages = pages;
        profile.paging.frames = Frames::Random { seed: 3 };
        profile.paging.nested = nested.then_some(NestedShape {
            levels: 4,
            pages: PageSize::Small,
            tlb_entries: 0,
            structure_caches: StructureCacheShape::default(),
        });
        let mut machine = machine(&profile, 1 << 18);
        let records = 40_000;
        let touch = |machine: &mut Machine, number: u64| {
            let key = hash(number) % records;
            let record = RECORDS + key * 1024;
            if use_table {
                lookup(machine, hash(key), record);
            } else {
                machine.access(record, AccessKind::Load);
            }
        };
        (0..200_000).for_each(|number| touch(&mut machine, number));
        let warm = machine.statistics();
        (200_000..300_000).for_each(|number| touch(&mut machine, number));
        machine.statistics().since(&warm).accesses
    };
    let small = run(PageSize::Small, false, true);
    let small_without = run(PageSize::Small, false, false);
    let large = run(PageSize::Large, false, true);
    // 10 000 small pages, of which the second TLB holds 1536: the STB answers for the others.
    assert!(small.stb_hits > 80_000, "{small:?}");
    assert!(small.data_walks < small_without.data_walks / 10);
    // 40 MiB are 20 large pages, which the first TLB holds.
    assert_eq!((large.stb_hits, large.data_walks), (0, 0));
    let nested = run(PageSize::Small, true, true);
    let nested_without = run(PageSize::Small, true, false);
    let gain = |without: u64, with: u64| without as f64 / with as f64;
    let native = gain(small_without.translation_cycles, small.translation_cycles);
    let hosted = gain(nested_without.translation_cycles, nested.translation_cycles);
    assert!(hosted > 1.5 * native, "{hosted} under a host, {native} without");
}

#[test]
fn a_record_across_a_page_boundary_is_half_translated() {
    let mut machine = machine(&Profile::stlt_paper(), 1 << 10);
    let record = RECORDS + 4096 - 32;
    machine.access_bytes(record, 64, AccessKind::Load, |_| {});
    machine.insert_stlt(9, record);
    for page in 1..4_000 {
        machine.access(RECORDS + (1 << 30) + page * 4096, AccessKind::Load);
    }
    machine.load_va(9);
    let mut by = Vec::new();
    machine.access_bytes(record, 64, AccessKind::Load, |access| by.push(access.translated));
    assert_eq!(by, [TranslatedBy::Stb, TranslatedBy::Walk]);
}
