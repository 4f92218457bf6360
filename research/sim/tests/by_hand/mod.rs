//! Small programs on the STLT paper's machine, and what they cost.

use sim::stlt::Variant;
use sim::{
    BranchKind, BranchOutcome, Core, CoreStatistics, Frames, Inclusion, Instruction, MemoryAccess, PageSize,
    Profile, Registers, Since,
};

/// Where the code lies.
pub(crate) const CODE: u64 = 0x40_0000;
/// Where the data begin.
pub(crate) const DATA: u64 = 0x40_0000_0000;

/// One page for everything, frames that can be told in advance, and a third level that leaves the others alone.
pub(crate) fn paper() -> Profile {
    let mut profile = Profile::stlt_paper();
    profile.paging.frames = Frames::Sequential {};
    profile.paging.pages = PageSize::Giant;
    profile.caches.inclusion = Inclusion::Neither;
    profile
}

/// An instruction at [`CODE`], where all are that a test does not place itself.
pub(crate) fn instruction(sources: &[u8], destinations: &[u8], latency: u8) -> Instruction {
    Instruction {
        address: CODE,
        length: 4,
        latency,
        sources: Registers::of(sources),
        destinations: Registers::of(destinations),
        branch: None,
    }
}

/// A core whose code line and first data page are warm.
pub(crate) fn core(profile: &Profile) -> Core {
    let mut core = Core::new(profile).expect("a legal profile");
    core.execute(&instruction(&[], &[], 1), &[], None);
    core.execute(&instruction(&[], &[0], 0), &[MemoryAccess::load(DATA, 8)], None);
    core
}

/// One with an STLT of 4096 rows.
pub(crate) fn with_stlt(profile: &Profile, variant: Variant) -> Core {
    let mut core = core(profile);
    core.machine_mut().stlt_alloc(1 << 12, 4, variant).expect("a legal table");
    core
}

/// Waits for everything in flight: a branch that depends on all registers is mispredicted, and what follows
/// it finds an empty window. The instruction at the end retires a cycle after it is dispatched, and with it
/// begins the count.
pub(crate) fn drain(core: &mut Core) {
    let everything: Vec<u8> = (0..64).collect();
    let jump = Instruction { branch: Some(BranchKind::Indirect), ..instruction(&everything, &[], 1) };
    let target = core.statistics().instructions;
    core.execute(&jump, &[], Some(BranchOutcome { taken: true, target }));
    core.execute(&instruction(&[], &[], 1), &[], None);
}

/// What `program` costs from an empty window until its last instruction retires.
pub(crate) fn measure(core: &mut Core, program: impl FnOnce(&mut Core)) -> CoreStatistics {
    drain(core);
    let before = core.statistics();
    program(core);
    core.statistics().since(&before)
}

/// Within the cycles that it takes to fill or empty the window once.
pub(crate) fn assert_about(cycles: u64, expected: u64, slack: u64) {
    assert!(
        cycles.abs_diff(expected) <= slack,
        "{cycles} cycles; expected {expected} and at most {slack} more or less"
    );
}

/// SplitMix64's finaliser: the same numbers on every machine, for want of a better hash function.
pub(crate) fn hash(mut word: u64) -> u64 {
    word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}
