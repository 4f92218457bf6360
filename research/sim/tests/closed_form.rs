//! Patterns whose misses and cycles can be worked out by hand, on the machines of the papers.

use sim::{
    AccessKind, Frames, Inclusion, Level, Machine, PageSize, Profile, Since, Statistics, TranslatedBy,
};

const LINE: u64 = 64;
const PAGE: u64 = 4096;

/// The STLT paper's machine, with frames that can be told in advance and a third level that leaves the others alone.
fn paper() -> Profile {
    let mut profile = Profile::stlt_paper();
    profile.paging.frames = Frames::Sequential {};
    profile.caches.inclusion = Inclusion::Neither;
    profile
}

fn machine(profile: &Profile) -> Machine {
    Machine::new(profile).expect("a legal profile")
}

/// Statistics of one of many equal rounds, and the sum of its latencies. The lines of the page tables, which
/// the first round read, leave during the second.
fn steady_round(machine: &mut Machine, addresses: impl Iterator<Item = u64> + Clone) -> (Statistics, u64) {
    for address in addresses.clone().chain(addresses.clone()) {
        machine.access(address, AccessKind::Load);
    }
    let warm = machine.statistics();
    let cycles =
        addresses.map(|address| u64::from(machine.access(address, AccessKind::Load).latency())).sum();
    (machine.statistics().since(&warm), cycles)
}

#[test]
fn a_chase_through_a_working_set_costs_the_level_that_holds_it() {
    // Cyclic order defeats LRU as soon as the set is too large, so a round hits one level only. (lines,
    // level, first TLB + cache): all in 512 pages at most, so beyond 64 pages the second TLB's 7 instead of
    // 1.
    for (lines, expected) in [(512, 1 + 4), (4096, 1 + 12)] {
        let (counted, cycles) = steady_round(&mut machine(&paper()), (0..lines).map(|n| n * LINE));
        assert_eq!(cycles, lines * expected, "{lines} lines");
        assert_eq!(counted.accesses.data_walks, 0);
    }
    // 32 768 lines fill the third level (2 MiB), but the page tables' lines are there too: take half. 256 pages.
    let lines = 16_384;
    let (counted, cycles) = steady_round(&mut machine(&paper()), (0..lines).map(|n| n * LINE));
    assert_eq!(counted.l3.load.hits, lines);
    // Of 64 lines in a page, the first misses the first TLB and hits the second.
    assert_eq!((counted.data_tlb.misses, counted.second_tlb.hits), (256, 256));
    assert_eq!(cycles, lines * (1 + 40) + 256 * (7 - 1));
}

#[test]
fn strides_miss_once_a_line_and_once_a_page() {
    for stride in [8, 16, 64, 128, 4096] {
        let mut machine = machine(&paper());
        let span = 1 << 22;
        for address in (0..span).step_by(stride as usize) {
            machine.access(address, AccessKind::Load);
        }
        let counted = machine.statistics();
        assert_eq!(counted.l1d.load.misses, span / LINE.max(stride), "stride {stride}");
        assert_eq!(counted.l1d.load.total(), span / stride);
        assert_eq!(counted.accesses.data_walks, span / PAGE);
        assert_eq!(counted.page_faults, span / PAGE);
    }
}

#[test]
fn one_page_too_many_defeats_one_set_of_a_tlb() {
    let misses = |pages: u64| {
        // A line further in each page, so that the caches do not collide as the pages do.
        let addresses = (0..pages).map(|n| n * PAGE + n % 64 * LINE);
        let (counted, _) = steady_round(&mut machine(&Profile::sandy_bridge()), addresses);
        (counted.data_tlb.misses, counted.second_tlb.misses, counted.accesses.data_walks)
    };
    assert_eq!(misses(64), (0, 0, 0));
    assert_eq!(misses(65), (5, 0, 0), "five pages for the four ways of set 0");
    assert_eq!(misses(80), (80, 0, 0), "five for each of the sixteen sets");
    assert_eq!(misses(512), (512, 0, 0));
    assert_eq!(misses(513), (513, 5, 5));
    assert_eq!(misses(640), (640, 640, 640));
}

#[test]
fn large_pages_have_no_second_tlb_on_sandy_bridge() {
    let round = |pages: u64| {
        let mut profile = Profile::sandy_bridge();
        profile.paging.pages = PageSize::Large;
        let addresses = (0..pages).map(|n| n * PageSize::Large.bytes() + n % 64 * LINE);
        steady_round(&mut machine(&profile), addresses).0
    };
    assert_eq!(round(32).accesses.data_walks, 0);
    let counted = round(40);
    assert_eq!(counted.accesses.data_walks, 40);
    // The paging-structure cache of level 3 knows the gigabyte: the walk reads the leaf alone.
    assert_eq!(counted.accesses.walk_reads.total(), 40);
}

#[test]
fn first_touches_of_scattered_pages_read_their_page_tables_once() {
    // N pages, each in a 2 MiB region of its own: each walk reads four entries. Of these the leaf is always
    // new (N lines), level 2 has a new line every eighth time, levels 3 and 4 one line each (N = 512: 1 GiB).
    // Everything else is in the first cache.
    let n = 512_u64;
    let mut machine = machine(&paper());
    for page in 0..n {
        let access = machine.access(page * PageSize::Large.bytes() + 0x840, AccessKind::Load);
        assert_eq!(access.translated, TranslatedBy::Walk);
        assert_eq!(access.level, Level::Memory);
    }
    let counted = machine.statistics();
    let from_memory = n + n / 8 + 2;
    assert_eq!(counted.accesses.walk_reads.total(), 4 * n);
    assert_eq!(counted.accesses.walk_reads.memory, from_memory);
    assert_eq!(counted.accesses.walk_reads.l1, 4 * n - from_memory);
    assert_eq!(counted.memory.reads, n + from_memory);
    let walks = 160 * from_memory + 4 * (4 * n - from_memory);
    assert_eq!(counted.accesses.translation_cycles, 7 * n + walks);
    assert_eq!(counted.accesses.cache_cycles, 160 * n);
    let share = counted.translation_share(100 * n);
    let expected = (7 * n + walks) as f64 / (7 * n + walks + 160 * n + 100 * n) as f64;
    assert!((share - expected).abs() < 1e-12);
}

#[test]
fn a_random_gather_hits_in_proportion_to_what_fits() {
    // W lines or P pages, uniformly at random: LRU of C entries, whatever its sets, holds C / W of what comes next.
    let mut profile = paper();
    profile.paging.pages = PageSize::Large;
    let mut machine = machine(&profile);
    let (lines, samples) = (8192_u64, 400_000_u64);
    let mut word = 1_u64;
    let mut next = move || {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        word >> 33
    };
    for _ in 0..50_000 {
        machine.access(next() % lines * LINE, AccessKind::Load);
    }
    let warm = machine.statistics();
    for _ in 0..samples {
        machine.access(next() % lines * LINE, AccessKind::Load);
    }
    let counted = machine.statistics().since(&warm);
    let hits = counted.l1d.load.hits as f64 / samples as f64;
    let expected = 512.0 / lines as f64;
    // Four standard deviations of a binomial share.
    let tolerance = 4.0 * (expected * (1.0 - expected) / samples as f64).sqrt();
    assert!((hits - expected).abs() < tolerance, "{hits} against {expected}");
    assert_eq!(counted.accesses.data_walks, 0, "512 KiB is one large page");

    let pages = 1024_u64;
    let mut machine = Machine::new(&Profile::sandy_bridge()).expect("legal");
    (0..50_000).for_each(|_| {
        machine.access(next() % pages * PAGE, AccessKind::Load);
    });
    let warm = machine.statistics();
    (0..samples).for_each(|_| {
        machine.access(next() % pages * PAGE, AccessKind::Load);
    });
    let counted = machine.statistics().since(&warm);
    let share = counted.data_tlb.hits as f64 / samples as f64;
    let expected: f64 = 64.0 / 1024.0;
    let tolerance = 4.0 * (expected * (1.0 - expected) / samples as f64).sqrt();
    assert!((share - expected).abs() < tolerance, "{share} against {expected}");
}

#[test]
fn an_access_across_a_boundary_is_two() {
    let mut machine = machine(&paper());
    let mut levels = Vec::new();
    machine.access_bytes(PAGE - 8, 16, AccessKind::Load, |access| {
        levels.push((access.level, access.translated))
    });
    assert_eq!(levels, [(Level::Memory, TranslatedBy::Walk); 2]);
    levels.clear();
    machine.access_bytes(PAGE - 8, 8, AccessKind::Store, |access| {
        levels.push((access.level, access.translated))
    });
    assert_eq!(levels, [(Level::L1, TranslatedBy::FirstTlb)]);
}

#[test]
fn unmapped_pages_are_walked_for_again_and_lie_elsewhere() {
    let mut machine = machine(&paper());
    let first = machine.access(0x5000, AccessKind::Store).physical;
    machine.access(0x6000, AccessKind::Store);
    assert_eq!(machine.unmap(0x5000..0x6000), 1);
    assert_eq!(machine.entry(0x5000), None);
    let again = machine.access(0x5000, AccessKind::Load);
    assert_eq!(again.translated, TranslatedBy::Walk);
    assert_ne!(again.physical, first);
    assert_eq!(machine.access(0x6000, AccessKind::Load).translated, TranslatedBy::FirstTlb);
}

#[test]
fn prefetchers_help_strides() {
    let mut profile = paper();
    let stream = (0..20_000_u64).map(|n| n * LINE);
    let l3_misses = |profile: &Profile| {
        let mut machine = machine(profile);
        machine.replay(stream.clone().map(|address| (address, AccessKind::Load)));
        machine.statistics().l3.load.misses
    };
    assert_eq!(l3_misses(&profile), 20_000);
    profile.prefetch.stride = Some(Default::default());
    // Of the 64 lines of a page the first three teach the stride; whatever is two ahead comes in time.
    assert_eq!(l3_misses(&profile), 20_000_u64.div_ceil(64) * 3);
    profile.prefetch.stride = None;
    profile.prefetch.vldp = Some(Default::default());
    let misses = l3_misses(&profile);
    assert!(misses <= 20_000_u64.div_ceil(64) * 2, "the tables outlive the page: {misses}");

    profile.prefetch.vldp = None;
    profile.prefetch.distance = Some(Default::default());
    let mut machine = machine(&profile);
    let round = (0..4000_u64).map(|n| (n * PAGE, AccessKind::Load));
    machine.replay(round.clone());
    assert_eq!(machine.statistics().accesses.translations_prefetched, 0, "what is not mapped is not fetched");
    machine.replay(round);
    let counted = machine.statistics().accesses;
    // Every page of the second round but a few was foretold by the one before it: the first page's
    // distance (back to the beginning) was new.
    assert!(counted.prefetch_buffer_hits >= 3_995, "{}", counted.prefetch_buffer_hits);
}
