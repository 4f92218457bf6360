//! The caches: first level for data and for instructions, a second and a third level behind both.
//!
//! An exact state machine of write-back, write-allocate caches with LRU (Hennessy and Patterson, Computer
//! Architecture, appendix B). What it answers is *where* a line was found; *when* it arrives is the business
//! of the timing model, so the same state machine runs fast without it.
//!
//! * A miss fills every level on the way to the core. Which lines the third level keeps is a choice: it takes
//!   no notice of the others; it is inclusive, and a line that leaves it leaves all (Nehalem, Sandy Bridge);
//!   or it holds only what the second level has thrown out (Skylake servers and later).
//! * A dirty line that leaves a level is written to the next one, and allocated there if it is absent.
//! * A line that a prefetcher brought carries a mark until the first demand finds it: so useful prefetches
//!   are counted.
//! * The page walker reads entries as data, entering at the first level or, as some processors do, at the second.
//!
//! The second and the third level can be left out.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::lru::LruSets;

/// Bits of the offset in a line of 64 bytes.
pub const LINE_SHIFT: u32 = 6;

/// Where something was found. The order is the distance from the core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Level {
    /// The first level, of data or of instructions.
    L1,
    /// The second.
    L2,
    /// The third.
    L3,
    /// None of them.
    Memory,
}

impl Level {
    /// From the core outwards.
    pub const ALL: [Level; 4] = [Level::L1, Level::L2, Level::L3, Level::Memory];
}

/// Who asks for a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Request {
    /// A load.
    Load,
    /// A store: it leaves the line dirty.
    Store,
    /// An instruction fetch.
    Fetch,
    /// The page walker.
    Walk,
}

/// What the third level keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Inclusion {
    /// Whatever passed through it; it takes no notice of the other levels.
    #[default]
    Neither,
    /// Everything that the others hold.
    Inclusive,
    /// What left the second level.
    Victims,
}

/// The shape of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheShape {
    /// Kibibytes.
    pub kib: u32,
    /// Lines of a set.
    pub ways: u32,
    /// Cycles from the access until the data is there, when this level has it.
    pub latency: u32,
}

impl CacheShape {
    /// A shape.
    #[must_use]
    pub const fn new(kib: u32, ways: u32, latency: u32) -> CacheShape {
        CacheShape { kib, ways, latency }
    }

    /// Sets: lines by ways.
    #[must_use]
    pub const fn sets(self) -> usize {
        ((self.kib as usize * 1024) >> LINE_SHIFT) / self.ways as usize
    }
}

/// The shapes of all caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheShapes {
    /// Instructions.
    pub l1i: CacheShape,
    /// Data.
    pub l1d: CacheShape,
    /// The second level, if there is one.
    pub l2: Option<CacheShape>,
    /// The third level, if there is one.
    pub l3: Option<CacheShape>,
    /// What the third level keeps.
    #[serde(default)]
    pub inclusion: Inclusion,
    /// Whether page walks enter at the second level, past the first.
    #[serde(default)]
    pub walks_skip_l1: bool,
}

/// Hits and misses of one kind of request at one cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HitsAndMisses {
    /// It was there.
    pub hits: u64,
    /// It was not.
    pub misses: u64,
}

impl HitsAndMisses {
    /// Both.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.hits + self.misses
    }
}

/// What a cache counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheCounts {
    /// Loads.
    pub load: HitsAndMisses,
    /// Stores.
    pub store: HitsAndMisses,
    /// Instruction fetches.
    pub fetch: HitsAndMisses,
    /// Reads of page-table entries.
    pub walk: HitsAndMisses,
    /// Dirty lines that left.
    pub written_back: u64,
    /// Lines that a prefetcher brought.
    pub prefetched: u64,
    /// Those that a demand found.
    pub prefetched_used: u64,
}

impl CacheCounts {
    #[inline(always)]
    fn of(&mut self, request: Request) -> &mut HitsAndMisses {
        match request {
            Request::Load => &mut self.load,
            Request::Store => &mut self.store,
            Request::Fetch => &mut self.fetch,
            Request::Walk => &mut self.walk,
        }
    }

    /// Misses of loads, stores, fetches and walks together.
    #[must_use]
    pub const fn misses(&self) -> u64 {
        self.load.misses + self.store.misses + self.fetch.misses + self.walk.misses
    }
}

const DIRTY: u8 = 1;
const PREFETCHED: u8 = 2;

#[derive(Debug, Clone)]
struct Cache {
    lines: LruSets<u8>,
    counts: CacheCounts,
}

impl Cache {
    fn new(shape: CacheShape) -> Cache {
        Cache { lines: LruSets::new(shape.sets(), shape.ways as usize), counts: CacheCounts::default() }
    }

    /// Looks for a line on demand, and leaves `mark` on it.
    #[inline(always)]
    fn find(&mut self, line: u64, request: Request, mark: u8) -> bool {
        match self.lines.get(line) {
            Some(state) => {
                if *state & PREFETCHED != 0 {
                    *state &= !PREFETCHED;
                    self.counts.prefetched_used += 1;
                }
                *state |= mark;
                self.counts.of(request).hits += 1;
                true
            }
            None => {
                self.counts.of(request).misses += 1;
                false
            }
        }
    }
}

/// Lines that crossed the pins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryCounts {
    /// Lines read on demand.
    pub reads: u64,
    /// Lines read by a prefetcher.
    pub prefetches: u64,
    /// Lines written back.
    pub writes: u64,
}

/// The caches of a core. Addresses are physical line numbers: address / 64.
#[derive(Debug, Clone)]
pub struct Caches {
    l1i: Cache,
    l1d: Cache,
    l2: Option<Cache>,
    l3: Option<Cache>,
    inclusion: Inclusion,
    walks_skip_l1: bool,
    memory: MemoryCounts,
}

impl Caches {
    /// Empty caches.
    #[must_use]
    pub fn new(shapes: &CacheShapes) -> Caches {
        Caches {
            l1i: Cache::new(shapes.l1i),
            l1d: Cache::new(shapes.l1d),
            l2: shapes.l2.map(Cache::new),
            l3: shapes.l3.map(Cache::new),
            inclusion: shapes.inclusion,
            walks_skip_l1: shapes.walks_skip_l1,
            memory: MemoryCounts::default(),
        }
    }

    /// Asks for a line: where it was found. Afterwards it is in the first level (of a walk that skips it: in
    /// the second).
    #[inline(always)]
    pub fn access(&mut self, line: u64, request: Request) -> Level {
        let mark = if request == Request::Store { DIRTY } else { 0 };
        let first = match request {
            Request::Fetch => &mut self.l1i,
            Request::Walk if self.walks_skip_l1 => return self.access_outer(line, request),
            _ => &mut self.l1d,
        };
        if first.find(line, request, mark) {
            return Level::L1;
        }
        let level = self.access_outer(line, request);
        let first = if request == Request::Fetch { &mut self.l1i } else { &mut self.l1d };
        if let Some((leaving, state)) = first.lines.fill(line, mark)
            && state & DIRTY != 0
        {
            first.counts.written_back += 1;
            self.write_to_l2(leaving);
        }
        level
    }

    /// The levels behind the first: where the line was found; they hold it afterwards as their kind demands.
    fn access_outer(&mut self, line: u64, request: Request) -> Level {
        if let Some(l2) = &mut self.l2
            && l2.find(line, request, 0)
        {
            return Level::L2;
        }
        // With a second level before it, a cache of victims gives its line up and gets none from memory.
        let victims = self.inclusion == Inclusion::Victims && self.l2.is_some();
        let mut state = 0;
        let mut level = Level::Memory;
        if let Some(l3) = &mut self.l3
            && l3.find(line, request, 0)
        {
            level = Level::L3;
            if victims {
                state = l3.lines.remove(line).unwrap_or_default() & DIRTY;
            }
        } else {
            self.memory.reads += 1;
            if !victims {
                self.fill_l3(line, 0);
            }
        }
        self.fill_l2(line, state);
        level
    }

    fn fill_l2(&mut self, line: u64, state: u8) {
        let Some(l2) = &mut self.l2 else { return };
        let Some((leaving, state)) = l2.lines.fill(line, state) else { return };
        if state & DIRTY != 0 {
            l2.counts.written_back += 1;
        }
        if self.inclusion == Inclusion::Victims {
            self.fill_l3(leaving, state & DIRTY);
        } else if state & DIRTY != 0 {
            self.write_to_l3(leaving);
        }
    }

    fn fill_l3(&mut self, line: u64, state: u8) {
        let Some(l3) = &mut self.l3 else {
            self.memory.writes += u64::from(state & DIRTY != 0);
            return;
        };
        // Only a cache of victims may have the line already: the first level wrote it to the second past this one.
        let leaving = match self.inclusion {
            Inclusion::Victims => l3.lines.put(line, state),
            Inclusion::Neither | Inclusion::Inclusive => l3.lines.fill(line, state),
        };
        let Some((leaving, mut state)) = leaving else { return };
        if self.inclusion == Inclusion::Inclusive {
            // Whoever holds it must give it up, with what was written to it.
            let inner = [Some(&mut self.l1i), Some(&mut self.l1d), self.l2.as_mut()];
            for cache in inner.into_iter().flatten() {
                state |= cache.lines.remove(leaving).unwrap_or_default();
            }
        }
        if state & DIRTY != 0 {
            l3.counts.written_back += 1;
            self.memory.writes += 1;
        }
    }

    /// A dirty line from the first level.
    fn write_to_l2(&mut self, line: u64) {
        match &mut self.l2 {
            None => self.write_to_l3(line),
            Some(l2) => match l2.lines.peek_mut(line) {
                Some(state) => *state |= DIRTY,
                None => self.fill_l2(line, DIRTY),
            },
        }
    }

    /// A dirty line from the second level.
    fn write_to_l3(&mut self, line: u64) {
        match self.l3.as_mut().and_then(|l3| l3.lines.peek_mut(line)) {
            Some(state) => *state |= DIRTY,
            None => self.fill_l3(line, DIRTY),
        }
    }

    /// Brings a line into the third level (or the last that there is) before it is asked for; the second, if the third
    /// only takes victims. Whether it had to come from memory; if not, one of these two had it and nothing changed, or
    /// there is neither. The first level is not asked: a prefetcher stands behind the second, and does not see that the
    /// line is there.
    pub fn prefetch(&mut self, line: u64) -> bool {
        let outer = [self.l2.as_ref(), self.l3.as_ref()];
        if outer.into_iter().flatten().any(|cache| cache.lines.peek(line).is_some()) {
            return false;
        }
        let victims = self.inclusion == Inclusion::Victims && self.l2.is_some();
        if self.l3.is_some() && !victims {
            self.fill_l3(line, PREFETCHED);
        } else if self.l2.is_some() {
            self.fill_l2(line, PREFETCHED);
        } else {
            return false;
        }
        if let Some(cache) = if victims { self.l2.as_mut() } else { self.l3.as_mut().or(self.l2.as_mut()) } {
            cache.counts.prefetched += 1;
        }
        self.memory.prefetches += 1;
        true
    }

    /// Takes lines out of every level, without writing them back: what they hold is of no use any more.
    pub(crate) fn forget(&mut self, lines: Range<u64>) {
        for cache in [Some(&mut self.l1d), self.l2.as_mut(), self.l3.as_mut()].into_iter().flatten() {
            for line in lines.clone() {
                cache.lines.remove(line);
            }
        }
    }

    /// The nearest level that holds a line, without touching anything.
    #[must_use]
    pub fn holds(&self, line: u64) -> Level {
        let levels =
            [(Level::L1, Some(&self.l1d)), (Level::L2, self.l2.as_ref()), (Level::L3, self.l3.as_ref())];
        levels
            .into_iter()
            .find(|(_, cache)| cache.is_some_and(|cache| cache.lines.peek(line).is_some()))
            .map_or(Level::Memory, |(level, _)| level)
    }

    /// What the first level of instructions counted.
    #[must_use]
    pub fn l1i(&self) -> CacheCounts {
        self.l1i.counts
    }

    /// What the first level of data counted.
    #[must_use]
    pub fn l1d(&self) -> CacheCounts {
        self.l1d.counts
    }

    /// What the second level counted.
    #[must_use]
    pub fn l2(&self) -> CacheCounts {
        self.l2.as_ref().map(|cache| cache.counts).unwrap_or_default()
    }

    /// What the third level counted.
    #[must_use]
    pub fn l3(&self) -> CacheCounts {
        self.l3.as_ref().map(|cache| cache.counts).unwrap_or_default()
    }

    /// What went to memory.
    #[must_use]
    pub fn memory(&self) -> MemoryCounts {
        self.memory
    }
}
