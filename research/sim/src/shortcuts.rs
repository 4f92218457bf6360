//! The fast path of a program's accesses: one that finds its line where it was found before.
//!
//! ```text
//!   virtual line -> shortcut: translation lay at this place of the first TLB, line at that place of the first cache
//!                      are both still there?  use them, count one            else: the whole way, and learn
//! ```
//!
//! Most accesses of a program are to a few lines. For each of those it is remembered, in a small direct-mapped table by
//! the line's virtual address, in which set and way of the first TLB and of the first cache they were found. A hit
//! there does to the machine exactly what the whole way does: the order of use of both sets, the mark of a store, and the
//! counts. A core with a clock ([`crate::Core`]) takes them, too, and is told what became of the access, which is always the
//! same.
//!
//! 1. Nobody tells the table that something has left. A place holds a key, and the key is compared: a line that a fill, a
//!    walk, a prefetcher or an inclusive third level pushed out is no longer at its place, nor is a translation.
//! 2. What the keys do not show is that a page lies in another frame. So everything is forgotten when a translation is
//!    withdrawn or the process changes, which is seldom.
//! 3. A hit adds to one counter, of its kind of access; [`Machine::statistics`] adds it to those that it stands for.
//!
//! Of a guest under QEMU (a hash table of a million keys, the STLT paper's machine) 51 to 67 million instructions a second
//! went through the functional phase, where it was 37 to 52 in the same runs without shortcuts; callbacks that simulate
//! nothing let 200 to 243 through. With huge pages of the host it is 114 to 136 today (`lookaside-lab run stlt-speed`). What is
//! left is the machine's misses: in this process a request of such a table, 77 instructions of its own, takes 12,000 of the
//! host's (callgrind), and it is they that take the time; asked for ahead, the host's lines made it slower (sim-lab's
//! `guest::foresight`).
//!
//! Rejected: collecting accesses and simulating them a thousand at a time (a tenth slower under QEMU, 36 for 39 million);
//! a set's order beside its tags, and asking the tags of the outer levels before the way used last (together up to a sixth
//! less time where recorded accesses are replayed, and no difference under QEMU that its noise lets see); no look at all where
//! the line is that of the access before (no difference that QEMU's noise lets see).

use crate::cache::{LINE_SHIFT, Level};
use crate::lru::Place;
use crate::machine::{Access, AccessKind, Machine, TranslatedBy};
use crate::page::PageSize;
use crate::statistics::Statistics;
use crate::walker::WalkReads;

/// Lines that are remembered. A power of two. Parts of a program often begin at multiples of so many lines: of the lines'
/// numbers higher bits count, too.
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
        // Both are the latest of their sets, unless a prefetcher has taken the line away again: then the keys will show it.
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
    use proptest::prelude::*;

    use super::*;
    use crate::cache::CacheShape;
    use crate::profile::Profile;
    use crate::tlb::TlbArrayShape;

    /// A machine in which most is pushed out soon, with pages of this size. The giant ones have no place in its first TLBs.
    fn small(size: PageSize) -> Machine {
        let mut profile = Profile::stlt_paper();
        let sizes = [PageSize::Small, PageSize::Large];
        profile.tlb.data.arrays = vec![TlbArrayShape::new(4, 2, &sizes)];
        profile.tlb.instructions.arrays = vec![TlbArrayShape::new(4, 4, &sizes)];
        profile.caches.l1i = CacheShape::new(1, 2, 4);
        profile.caches.l1d = CacheShape::new(1, 4, 3);
        profile.caches.l3 = Some(CacheShape::new(256, 4, 40));
        profile.paging.pages = size;
        Machine::new(&profile).expect("legal")
    }

    proptest! {
        /// Few lines of few pages: each comes again soon.
        #[test]
        fn what_took_a_shortcut_is_told_of_as_what_went_the_whole_way(
            size in proptest::sample::select(&PageSize::ALL[..]),
            accesses in prop::collection::vec((0..3_u64, 0..4_u64, 0..5_u64, 0..64_u64, 0..3_usize), 1..400),
        ) {
            let kinds = [AccessKind::Load, AccessKind::Store, AccessKind::Fetch];
            let (mut by_shortcuts, mut whole) = (small(size), small(size));
            let (mut last, mut again) = (None, 0);
            for (region, page, line, byte, kind) in accesses {
                let address = (region << 30) + (page << 12) + line * 64 * 7 % 4096 + byte;
                let (one, other) =
                    (by_shortcuts.ask(address, kinds[kind]), whole.access(address, kinds[kind]));
                prop_assert_eq!(one, other);
                let lines = |machine: &Machine, walk| machine.lines_of(walk).collect::<Vec<_>>();
                prop_assert_eq!(lines(&by_shortcuts, one.walk), lines(&whole, other.walk));
                let this = Some((address >> LINE_SHIFT, kind));
                again += u64::from(last == this);
                last = this;
            }
            let taken = |machine: &Machine| machine.shortcuts.taken.iter().sum::<u64>();
            prop_assert_eq!(taken(&whole), 0);
            let least = if size == PageSize::Giant { 0 } else { again };
            prop_assert!(taken(&by_shortcuts) >= least);
            prop_assert_eq!(by_shortcuts.statistics(), whole.statistics());
        }
    }
}
