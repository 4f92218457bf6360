//! The fast path of a program's accesses: one that finds its line where it was found before.
//!
//! ```text
//!   virtual line -> shortcut: translation lay at this place of the first TLB, line at that place of the first cache
//!                      are both still there?  use them, count one            else: the whole way, and learn
//! ```
//!
//! Most accesses of a program are to a few lines. For each of those it is remembered, in a small direct-mapped table by
//! the line's virtual address, in which set and way of the first TLB and of the first cache they were found. A hit
//! there does to the machine exactly what the whole way does: the order of use of both sets, the mark of a store, and
//! the counts. A core with a clock ([`crate::Core`]) takes them, too, and is told what became of the access, which is
//! always the same.
//!
//! 1. Nobody tells the table that something has left. A place holds a key, and the key is compared: a line that a fill,
//!    a walk, a prefetcher or an inclusive third level pushed out is no longer at its place, nor is a translation.
//! 2. What the keys do not show is that a page lies in another frame. So everything is forgotten when a translation is
//!    withdrawn or the process changes, which is seldom.
//! 3. A hit adds to one counter, of its kind of access; [`Machine::statistics`] adds it to those that it stands for.
//!
//! Of a guest under QEMU (a hash table of a million keys, the STLT paper's machine) 51 to 67 million instructions a
//! second went through the functional phase, where it was 37 to 52 in the same runs without shortcuts; callbacks that
//! simulate nothing let 200 to 243 through. With huge pages of the host it is 114 to 136 today (`lookaside-lab run
//! stlt-speed`). What is left is the machine's misses: in this process a request of such a table, 77 instructions of
//! its own, takes 12,000 of the host's (callgrind), and it is they that take the time; asked for ahead, the host's
//! lines made it slower.
//!
//! Rejected: collecting accesses and simulating them a thousand at a time (a tenth slower under QEMU, 36 for 39
//! million); a set's order beside its tags, and asking the tags of the outer levels before the way used last (together
//! up to a sixth less time where recorded accesses are replayed, and no difference under QEMU that its noise lets see);
//! no look at all where the line is that of the access before (no difference that QEMU's noise lets see).

use crate::cache::{LINE_SHIFT, Level};
use crate::lru::Place;
use crate::machine::{Access, AccessKind, Machine, TranslatedBy};
use crate::page::PageSize;
use crate::statistics::Statistics;
use crate::walker::WalkReads;

/// Lines that are remembered. A power of two. Parts of a program often begin at multiples of so many lines: of the
/// lines' numbers higher bits count, too.
const REMEMBERED: usize = 512;

/// Where a line and its page's translation lay.
#[derive(Debug, Clone, Copy)]
struct Shortcut {
    /// The line's virtual number.
    line: u64,
    /// The line's physical number.
    physical: u64,
    /// The line in the first level of caches.
    data: Place,
    /// The page's key in the TLB.
    page: u64,
    /// The TLB's array that had it.
    array: usize,
    /// The translation in that array.
    translation: Place,
    /// The page's size.
    size: PageSize,
}

/// Of no line.
const NONE: Shortcut = Shortcut {
    line: u64::MAX,
    physical: 0,
    data: Place::FIRST,
    page: 0,
    array: 0,
    translation: Place::FIRST,
    size: PageSize::Small,
};

/// The shortcuts of one core.
#[derive(Debug, Clone)]
pub(crate) struct Shortcuts {
    data: Box<[Shortcut; REMEMBERED]>,
    code: Box<[Shortcut; REMEMBERED]>,
    /// Loads, stores and fetches that took one.
    taken: [u64; 3],
}

impl Shortcuts {
    pub(crate) fn new() -> Shortcuts {
        Shortcuts { data: Box::new([NONE; REMEMBERED]), code: Box::new([NONE; REMEMBERED]), taken: [0; 3] }
    }

    #[inline(always)]
    fn of(&mut self, line: u64, kind: AccessKind) -> &mut Shortcut {
        let table = if kind == AccessKind::Fetch { &mut self.code } else { &mut self.data };
        &mut table[(line ^ line >> REMEMBERED.trailing_zeros()) as usize % REMEMBERED]
    }

    /// Translations have changed.
    pub(crate) fn forget(&mut self) {
        self.data.fill(NONE);
        self.code.fill(NONE);
    }
}

impl Machine {
    /// As [`access_bytes`](Machine::access_bytes), where nobody asks what became of it. A load and a store each have
    /// code of their own.
    #[inline]
    pub fn touch_bytes(&mut self, address: u64, bytes: u64, kind: AccessKind) {
        let last = address.saturating_add(bytes.saturating_sub(1)) >> LINE_SHIFT;
        match kind {
            AccessKind::Load => self.touch(address, AccessKind::Load),
            AccessKind::Store => self.touch(address, AccessKind::Store),
            AccessKind::Fetch => self.touch(address, AccessKind::Fetch),
        }
        if last != address >> LINE_SHIFT {
            for line in (address >> LINE_SHIFT) + 1..=last {
                self.access_line(line << LINE_SHIFT, kind);
            }
        }
    }

    /// An instruction is fetched, as by [`access`](Machine::access).
    #[inline]
    pub fn touch_fetch(&mut self, address: u64) {
        self.touch(address, AccessKind::Fetch);
    }

    #[inline(always)]
    fn touch(&mut self, address: u64, kind: AccessKind) {
        self.ask(address, kind);
    }

    /// As [`access`](Machine::access).
    #[inline(always)]
    pub(crate) fn ask(&mut self, address: u64, kind: AccessKind) -> Access {
        let line = address >> LINE_SHIFT;
        let Shortcut { line: known, physical, data, page, array, translation, size } =
            *self.shortcuts.of(line, kind);
        let fetch = kind == AccessKind::Fetch;
        let tlb = if fetch { &mut self.instruction_tlb } else { &mut self.data_tlb };
        if known == line
            && tlb.lies_at(array, page, translation)
            && self.caches.lies_at(physical, data, kind.request())
        {
            tlb.use_at(array, translation);
            self.caches.use_at(data, kind.request());
            self.shortcuts.taken[kind as usize] += 1;
            let latencies = &self.latencies;
            return Access {
                physical: physical << LINE_SHIFT | address & ((1 << LINE_SHIFT) - 1),
                translated: TranslatedBy::FirstTlb,
                walk: WalkReads::default(),
                level: Level::L1,
                page: size,
                translation_cycles: if fetch { latencies.instruction_tlb } else { latencies.data_tlb },
                cache_cycles: if fetch { latencies.fetch } else { latencies.level[0] },
            };
        }
        match kind {
            AccessKind::Load => self.load_and_learn(address),
            AccessKind::Store => self.store_and_learn(address),
            AccessKind::Fetch => self.fetch_and_learn(address),
        }
    }

    // Apart from each other, and from the callers: the kind is known in each, and the fast path stays short.

    #[inline(never)]
    fn load_and_learn(&mut self, address: u64) -> Access {
        self.access_and_learn(address, AccessKind::Load)
    }

    #[inline(never)]
    fn store_and_learn(&mut self, address: u64) -> Access {
        self.access_and_learn(address, AccessKind::Store)
    }

    #[inline(never)]
    fn fetch_and_learn(&mut self, address: u64) -> Access {
        self.access_and_learn(address, AccessKind::Fetch)
    }

    #[inline(always)]
    fn access_and_learn(&mut self, address: u64, kind: AccessKind) -> Access {
        self.count(kind);
        let (pte, access) = self.reach(address, kind);
        let tlb = if kind == AccessKind::Fetch { &self.instruction_tlb } else { &self.data_tlb };
        let size = pte.size();
        // Both are the latest of their sets, unless a prefetcher has taken the line away again: then the keys will show
        // it.
        if let Some((array, page, translation)) = tlb.latest(address, size) {
            let (line, physical) = (address >> LINE_SHIFT, access.line());
            let data = self.caches.latest(physical, kind.request());
            let shortcut = Shortcut { line, physical, data, page, array, translation, size };
            *self.shortcuts.of(line, kind) = shortcut;
        }
        access
    }

    /// Adds the accesses that took shortcuts: each was a hit in the first TLB and in the first cache.
    pub(crate) fn add_shortcuts(&self, statistics: &mut Statistics) {
        let [loads, stores, fetches] = self.shortcuts.taken;
        let (latencies, accesses) = (&self.latencies, &mut statistics.accesses);
        accesses.loads += loads;
        accesses.stores += stores;
        accesses.fetches += fetches;
        accesses.translation_cycles +=
            (loads + stores) * u64::from(latencies.data_tlb) + fetches * u64::from(latencies.instruction_tlb);
        accesses.cache_cycles +=
            (loads + stores) * u64::from(latencies.level[0]) + fetches * u64::from(latencies.fetch);
        statistics.data_tlb.hits += loads + stores;
        statistics.instruction_tlb.hits += fetches;
        statistics.l1d.load.hits += loads;
        statistics.l1d.store.hits += stores;
        statistics.l1i.fetch.hits += fetches;
    }
}

#[cfg(test)]
mod tests {
    //! Shortcuts change nothing: of two machines that are asked the same, one takes them, and the other does not. Both
    //! answer and count the same after each step.

    use proptest::prelude::*;

    use super::*;
    use crate::cache::{CacheShape, Inclusion};
    use crate::frames::Frames;
    use crate::machine::Process;
    use crate::prefetch::{DistanceShape, StrideShape, VldpShape};
    use crate::profile::Profile;
    use crate::stlt::Variant;
    use crate::structure_caches::StructureCacheShape;
    use crate::tlb::TlbArrayShape;
    use crate::walker::NestedShape;

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
        /// The same, by whoever asks what became of it.
        Ask(AccessKind, u64),
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
        (0..3_u64, 0..6_u64, 0..5_u64, 0..64_u64).prop_map(|(region, page, line, byte)| {
            (region << 30) + (page << 12) + line * 64 * 7 % 4096 + byte
        })
    }

    fn step() -> impl Strategy<Value = Step> {
        let kind = prop_oneof![Just(AccessKind::Load), Just(AccessKind::Store), Just(AccessKind::Fetch)];
        let (again, other) = (kind.clone(), kind.clone());
        let size = prop_oneof![Just(PageSize::Small), Just(PageSize::Large), Just(PageSize::Giant)];
        prop_oneof![
            60 => (kind, address(), 1..80_u64).prop_map(|(kind, address, bytes)| Step::Touch(kind, address, bytes)),
            60 => (again, 0..3_usize).prop_map(|(kind, before)| Step::Again(kind, before)),
            20 => (other, address()).prop_map(|(kind, address)| Step::Ask(kind, address)),
            1 => (address(), 1..20_000_u64).prop_map(|(address, bytes)| Step::Unmap(address, bytes)),
            1 => (address(), 1..20_000_u64).prop_map(|(address, bytes)| Step::Protect(address, bytes)),
            1 => (address(), size).prop_map(|(address, size)| Step::UsePages(address, size)),
            1 => address().prop_map(Step::Map),
            2 => (0..8_u64).prop_map(Step::LoadVa),
            2 => (0..8_u64, address()).prop_map(|(integer, address)| Step::InsertStlt(integer, address)),
            1 => Just(Step::Switch),
        ]
    }

    /// What became of an access, with the lines of its walk; and any other answer.
    type Answer = (Option<(Access, Vec<(u64, Level)>)>, u64);

    fn take(machine: &mut Machine, other: &mut Process, step: &Step, shortcuts: bool) -> Answer {
        match *step {
            Step::Touch(kind, address, bytes) if shortcuts => match kind {
                AccessKind::Fetch => machine.touch_fetch(address),
                AccessKind::Load | AccessKind::Store => machine.touch_bytes(address, bytes, kind),
            },
            Step::Touch(AccessKind::Fetch, address, _) => _ = machine.access(address, AccessKind::Fetch),
            Step::Touch(kind, address, bytes) => machine.access_bytes(address, bytes, kind, |_| {}),
            Step::Ask(kind, address) => {
                let access =
                    if shortcuts { machine.ask(address, kind) } else { machine.access(address, kind) };
                return (Some((access, machine.lines_of(access.walk).collect())), 0);
            }
            Step::Again(..) => unreachable!("it has become a touch"),
            Step::Unmap(from, bytes) => return (None, machine.unmap(from..from + bytes)),
            Step::Protect(from, bytes) => return (None, machine.invalidate(from..from + bytes)),
            Step::UsePages(from, size) => {
                machine.use_pages(size.base(from)..size.base(from) + size.bytes(), size)
            }
            Step::Map(address) => return (None, machine.map(address).bits()),
            Step::LoadVa(integer) => return (None, machine.load_va(integer).address),
            Step::InsertStlt(integer, address) => _ = machine.insert_stlt(integer, address),
            Step::Switch => machine.switch_to(other),
        }
        (None, 0)
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
            prop_assert_eq!(without.shortcuts.taken, [0; 3]);
        }
    }

    #[test]
    fn who_comes_again_takes_one() {
        // A store finds the shortcut of a load. Giant pages have no place in the first TLB of instructions.
        for (size, taken) in PageSize::ALL.into_iter().zip([[2, 3, 2], [2, 3, 2], [2, 3, 0]]) {
            let mut machine = Machine::new(&small(Inclusion::Neither, size, true)).expect("a machine");
            for kind in [AccessKind::Load, AccessKind::Store, AccessKind::Fetch] {
                (0..3).for_each(|_| machine.touch_bytes(0x1234, 1, kind));
            }
            assert_eq!(machine.shortcuts.taken, taken, "{size:?}");
        }
    }
}
