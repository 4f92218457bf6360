//! The fast path of everything without a clock: an access that finds its line where it was found before.
//!
//! ```text
//!   virtual line -> shortcut: translation lay at this place of the first TLB, line at that place of the first cache
//!                      are both still there?  use them, count one            else: the whole way, and learn
//! ```
//!
//! Most accesses of a program are to a few lines. For each of those it is remembered, in a small direct-mapped table by
//! the line's virtual address, in which set and way of the first TLB and of the first cache they were found. A hit
//! there does to the machine exactly what the whole way does: the order of use of both sets, the mark of a store, and the
//! counts.
//!
//! 1. Nobody tells the table that something has left. A place holds a key, and the key is compared: a line that a fill, a
//!    walk, a prefetcher or an inclusive third level pushed out is no longer at its place, nor is a translation.
//! 2. What the keys do not show is that a page lies in another frame. So everything is forgotten when a translation is
//!    withdrawn or the process changes, which is seldom.
//! 3. A hit adds to one counter, of its kind of access; [`Machine::statistics`] adds it to those that it stands for.
//!
//! Of a guest under QEMU (a hash table of a million keys, the STLT paper's machine) 51 to 67 million instructions a second
//! went through the functional phase, where it was 37 to 52 in the same runs without shortcuts; callbacks that simulate
//! nothing let 200 to 243 through. What is left is mostly the machine's misses, and the lines of the host's caches that the
//! guest and the simulated arrays take from each other. With huge pages of the host it is 105 to 136 today
//! (`lookaside sim study stlt-speed`).
//!
//! Rejected: collecting accesses and simulating them a thousand at a time (a tenth slower under QEMU, 36 for 39 million);
//! a set's order beside its tags, and asking the tags of the outer levels before the way used last (together up to a sixth
//! less time where recorded accesses are replayed, and no difference under QEMU that its noise lets see); no look at all where
//! the line is that of the access before (no difference that QEMU's noise lets see).

use crate::cache::LINE_SHIFT;
use crate::lru::Place;
use crate::machine::{AccessKind, Machine};
use crate::statistics::Statistics;

/// Lines that are remembered. A power of two.
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
}

/// Of no line.
const NONE: Shortcut = Shortcut {
    line: u64::MAX,
    physical: 0,
    data: Place::FIRST,
    page: 0,
    array: 0,
    translation: Place::FIRST,
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
        &mut table[line as usize % REMEMBERED]
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
        let line = address >> LINE_SHIFT;
        let Shortcut { line: known, physical, data, page, array, translation } =
            *self.shortcuts.of(line, kind);
        let tlb = if kind == AccessKind::Fetch { &mut self.instruction_tlb } else { &mut self.data_tlb };
        if known == line
            && tlb.lies_at(array, page, translation)
            && self.caches.lies_at(physical, data, kind.request())
        {
            tlb.use_at(array, translation);
            self.caches.use_at(data, kind.request());
            self.shortcuts.taken[kind as usize] += 1;
            return;
        }
        match kind {
            AccessKind::Load => self.touch_load(address),
            AccessKind::Store => self.touch_store(address),
            AccessKind::Fetch => self.touch_code(address),
        }
    }

    // Apart from each other, and from the callers: the kind is known in each, and the fast path stays short.

    #[inline(never)]
    fn touch_load(&mut self, address: u64) {
        self.touch_and_learn(address, AccessKind::Load);
    }

    #[inline(never)]
    fn touch_store(&mut self, address: u64) {
        self.touch_and_learn(address, AccessKind::Store);
    }

    #[inline(never)]
    fn touch_code(&mut self, address: u64) {
        self.touch_and_learn(address, AccessKind::Fetch);
    }

    #[inline(always)]
    fn touch_and_learn(&mut self, address: u64, kind: AccessKind) {
        self.count(kind);
        let (pte, access) = self.reach(address, kind);
        let tlb = if kind == AccessKind::Fetch { &self.instruction_tlb } else { &self.data_tlb };
        // Both are the latest of their sets, unless a prefetcher has taken the line away again: then the keys will show it.
        let Some((array, page, translation)) = tlb.latest(address, pte.size()) else { return };
        let (line, physical) = (address >> LINE_SHIFT, access.line());
        let data = self.caches.latest(physical, kind.request());
        *self.shortcuts.of(line, kind) = Shortcut { line, physical, data, page, array, translation };
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
