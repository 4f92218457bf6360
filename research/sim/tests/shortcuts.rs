//! Shortcuts change nothing: of two machines that are asked the same, one by [`Machine::touch_bytes`] and
//! [`Machine::touch_fetch`], which take them, and one by [`Machine::access`] and [`Machine::access_bytes`], which do not,
//! both count the same after each step.

use proptest::prelude::*;
use sim::prefetch::{DistanceShape, StrideShape, VldpShape};
use sim::stlt::Variant;
use sim::{
    AccessKind, CacheShape, Frames, Inclusion, Machine, NestedShape, PageSize, Process, Profile,
    StructureCacheShape, TlbArrayShape,
};

/// So small that everything is pushed out often.
fn small(inclusion: Inclusion, pages: PageSize, second_level: bool) -> Profile {
    let mut profile = Profile::stlt_paper();
    profile.caches.inclusion = inclusion;
    profile.caches.l1i = CacheShape::new(1, 2, 4);
    profile.caches.l1d = CacheShape::new(1, 4, 3);
    profile.caches.l2 = second_level.then(|| CacheShape::new(2, 4, 12));
    profile.caches.l3 = Some(CacheShape::new(3, 3, 40));
    profile.tlb.data.arrays = vec![
        TlbArrayShape::new(4, 2, &[PageSize::Small]),
        TlbArrayShape::new(2, 2, &[PageSize::Large, PageSize::Giant]),
    ];
    // Giant pages have no place in the first level.
    profile.tlb.instructions.arrays = vec![TlbArrayShape::new(4, 4, &[PageSize::Small, PageSize::Large])];
    profile.paging.pages = pages;
    profile.paging.frames = Frames::Random { seed: 5 };
    profile
}

fn nested(mut profile: Profile, pages: PageSize) -> Profile {
    let structure_caches = StructureCacheShape { level2: 2, ..StructureCacheShape::default() };
    profile.paging.nested = Some(NestedShape { levels: 4, pages, tlb_entries: 2, structure_caches });
    profile
}

fn machines() -> Vec<Profile> {
    let mut machines = vec![Profile::stlt_paper(), Profile::sandy_bridge(), Profile::current_server()];
    for inclusion in [Inclusion::Neither, Inclusion::Inclusive, Inclusion::Victims] {
        for pages in PageSize::ALL {
            machines.push(small(inclusion, pages, true));
        }
        machines.push(small(inclusion, PageSize::Small, false));
        let mut walks_skip = small(inclusion, PageSize::Small, true);
        walks_skip.caches.walks_skip_l1 = true;
        machines.push(walks_skip);
        machines.push(nested(small(inclusion, PageSize::Large, true), PageSize::Small));
        let mut prefetching = small(inclusion, PageSize::Small, true);
        prefetching.prefetch.stride = Some(StrideShape::default());
        prefetching.prefetch.vldp = Some(VldpShape::default());
        prefetching.prefetch.distance = Some(DistanceShape::default());
        machines.push(prefetching);
    }
    machines
}

#[derive(Debug, Clone)]
enum Step {
    Touch(AccessKind, u64, u64),
    /// By nobody's shortcut.
    Access(AccessKind, u64),
    /// What was touched last, or a little before that.
    Again(AccessKind, usize),
    Unmap(u64, u64),
    Protect(u64, u64),
    UsePages(u64, PageSize),
    Map(u64),
    LoadVa(u64),
    InsertStlt(u64, u64),
    Switch,
}

/// Few lines of few pages: each comes again soon. Some lie in the same pages, and some in the same sets.
fn address() -> impl Strategy<Value = u64> {
    (0..3_u64, 0..6_u64, 0..5_u64, 0..64_u64)
        .prop_map(|(region, page, line, byte)| (region << 30) + (page << 12) + line * 64 * 7 % 4096 + byte)
}

fn step() -> impl Strategy<Value = Step> {
    let kind = prop_oneof![Just(AccessKind::Load), Just(AccessKind::Store), Just(AccessKind::Fetch)];
    let (again, other) = (kind.clone(), kind.clone());
    let size = prop_oneof![Just(PageSize::Small), Just(PageSize::Large), Just(PageSize::Giant)];
    prop_oneof![
        60 => (kind, address(), 1..80_u64).prop_map(|(kind, address, bytes)| Step::Touch(kind, address, bytes)),
        60 => (again, 0..3_usize).prop_map(|(kind, before)| Step::Again(kind, before)),
        2 => (other, address()).prop_map(|(kind, address)| Step::Access(kind, address)),
        1 => (address(), 1..20_000_u64).prop_map(|(address, bytes)| Step::Unmap(address, bytes)),
        1 => (address(), 1..20_000_u64).prop_map(|(address, bytes)| Step::Protect(address, bytes)),
        1 => (address(), size).prop_map(|(address, size)| Step::UsePages(address, size)),
        1 => address().prop_map(Step::Map),
        2 => (0..8_u64).prop_map(Step::LoadVa),
        2 => (0..8_u64, address()).prop_map(|(integer, address)| Step::InsertStlt(integer, address)),
        1 => Just(Step::Switch),
    ]
}

fn take(machine: &mut Machine, other: &mut Process, step: &Step, shortcuts: bool) -> u64 {
    match *step {
        Step::Touch(kind, address, bytes) if shortcuts => match kind {
            AccessKind::Fetch => machine.touch_fetch(address),
            AccessKind::Load | AccessKind::Store => machine.touch_bytes(address, bytes, kind),
        },
        Step::Touch(AccessKind::Fetch, address, _) => _ = machine.access(address, AccessKind::Fetch),
        Step::Touch(kind, address, bytes) => machine.access_bytes(address, bytes, kind, |_| {}),
        Step::Access(kind, address) => _ = machine.access(address, kind),
        Step::Again(..) => unreachable!("it has become a touch"),
        Step::Unmap(from, bytes) => return machine.unmap(from..from + bytes),
        Step::Protect(from, bytes) => return machine.invalidate(from..from + bytes),
        Step::UsePages(from, size) => {
            machine.use_pages(size.base(from)..size.base(from) + size.bytes(), size)
        }
        Step::Map(address) => return machine.map(address).bits(),
        Step::LoadVa(integer) => return machine.load_va(integer).address,
        Step::InsertStlt(integer, address) => _ = machine.insert_stlt(integer, address),
        Step::Switch => machine.switch_to(other),
    }
    0
}

proptest! {
    #[test]
    fn what_takes_shortcuts_counts_the_same(
        which in 0..machines().len(),
        steps in prop::collection::vec(step(), 1..600),
    ) {
        let profile = &machines()[which];
        let mut with = Machine::new(profile).expect("a machine");
        let mut without = with.clone();
        let mut others = [with.new_process(1), without.new_process(1)];
        for machine in [&mut with, &mut without] {
            machine.stlt_alloc(64, 4, Variant::Full).expect("a table");
        }
        let mut touched = [0; 3];
        for step in steps {
            let step = match step {
                Step::Again(kind, before) => Step::Touch(kind, touched[before], 1),
                other => other,
            };
            if let Step::Touch(_, address, _) = step {
                touched = [address, touched[0], touched[1]];
            }
            let answer = take(&mut with, &mut others[0], &step, true);
            prop_assert_eq!(answer, take(&mut without, &mut others[1], &step, false), "{:?}", step);
            prop_assert_eq!(with.statistics(), without.statistics(), "{:?}", step);
        }
    }
}
