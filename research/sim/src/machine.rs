//! The memory system of one core, put together: an address goes in, and where it was found comes out.
//!
//! ```text
//!   virtual address -> first TLB -> second TLB -> prefetch buffer -> STB -> page walker
//!                                                                             | entries
//!   physical address -> first-level cache -> second -> third -> memory   <----+
//!                                              | misses
//!                                              v
//!                                         line prefetchers
//! ```
//!
//! It is an exact state machine without a clock. Each answer carries the cycles that the access would take on
//! an idle machine, which is all that experiments on dependent lookups need. The window model
//! ([`crate::Core`]) puts a clock on top: it asks the same machine the same questions and works out from the
//! answers what overlaps and what queues.
//!
//! Pages are mapped when they are first touched; the fault is counted and costs nothing.

use std::mem;
use std::ops::Range;

use crate::cache::{Caches, HitsAndMisses, LINE_SHIFT, Level, Request};
use crate::page::{PageSize, Pte};
use crate::prefetch::{Distance, Stride, Vldp};
use crate::profile::{Profile, ProfileError};
use crate::statistics::{AccessCounts, Statistics};
use crate::stlt::{StltUnit, Table};
use crate::tlb::Tlb;
use crate::translation_buffer::TranslationBuffer;
use crate::walk_log::WalkLog;
use crate::walker::{OnFault, WalkReads, Walker};

/// What a program does with an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// Reads it.
    Load,
    /// Writes it.
    Store,
    /// Executes it.
    Fetch,
}

impl AccessKind {
    pub(crate) fn request(self) -> Request {
        match self {
            AccessKind::Load => Request::Load,
            AccessKind::Store => Request::Store,
            AccessKind::Fetch => Request::Fetch,
        }
    }
}

/// Who knew a translation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TranslatedBy {
    /// The first TLB.
    FirstTlb,
    /// The second TLB.
    SecondTlb,
    /// The buffer of prefetched translations.
    PrefetchBuffer,
    /// The STB, from a row of the STLT.
    Stb,
    /// The page table.
    Walk,
    /// Nobody had to: the address was physical.
    Nobody,
}

/// What became of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// The physical address.
    pub physical: u64,
    /// Who knew it.
    pub translated: TranslatedBy,
    /// What the walk read, if there was one.
    pub walk: WalkReads,
    /// The level that had the line.
    pub level: Level,
    /// The size of the page that it was translated by; of no meaning where nobody had to.
    pub(crate) page: PageSize,
    /// Cycles until the physical address is known.
    pub translation_cycles: u32,
    /// Cycles from then until the data is there, on an idle machine.
    pub cache_cycles: u32,
}

impl Access {
    /// Cycles of the whole access, on an idle machine.
    #[must_use]
    pub const fn latency(&self) -> u32 {
        self.translation_cycles + self.cache_cycles
    }

    /// The physical line.
    #[must_use]
    pub const fn line(&self) -> u64 {
        self.physical >> LINE_SHIFT
    }
}

/// A translation, who knew it, and what it cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Translated {
    pub(crate) pte: Pte,
    pub(crate) by: TranslatedBy,
    pub(crate) walk: WalkReads,
    pub(crate) cycles: u32,
}

/// A walk that a prefetcher asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WalkedAhead {
    /// What it found, perhaps nothing.
    pub(crate) pte: Pte,
    pub(crate) reads: WalkReads,
}

/// What an operating system keeps of a process: its page tables and its STLT.
#[derive(Debug, Clone)]
pub struct Process {
    pub(crate) number: u8,
    pub(crate) walker: Walker,
    pub(crate) table: Option<Table>,
    /// Where the pages begin that were invalidated since the STLT was last brought up to date: the kernel's array of
    /// section III-D1. While the process runs, the IPB holds the same, and is not kept beside it.
    pub(crate) invalidated: Vec<u64>,
}

/// Latencies, laid out for the fast path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Latencies {
    pub(crate) level: [u32; 4],
    pub(crate) fetch: u32,
    pub(crate) data_tlb: u32,
    pub(crate) instruction_tlb: u32,
    /// Until the last TLB has missed: for data, for instructions.
    missed: [u32; 2],
    stb: u32,
}

/// The memory system of one core.
#[derive(Debug, Clone)]
pub struct Machine {
    pub(crate) profile: Profile,
    pub(crate) latencies: Latencies,
    pub(crate) data_tlb: Tlb,
    pub(crate) instruction_tlb: Tlb,
    second_tlb: Option<Tlb>,
    distance: Option<(Distance, TranslationBuffer)>,
    pub(crate) process: Process,
    pub(crate) caches: Caches,
    stride: Option<Stride>,
    vldp: Option<Vldp>,
    /// Lines that prefetchers fetched from memory since [`Machine::take_prefetched`].
    prefetched: Vec<u64>,
    fetch: Vec<u64>,
    walk_log: WalkLog,
    /// Walks of the translation prefetcher since [`Machine::take_walked_ahead`].
    walked_ahead: Vec<WalkedAhead>,
    /// Cycles that the kernel needed since [`Machine::take_kernel_cycles`].
    pub(crate) kernel_cycles: u64,
    pub(crate) stlt: StltUnit,
    counts: AccessCounts,
    structure_caches: HitsAndMisses,
    page_faults: u64,
}

impl Machine {
    /// A cold machine.
    ///
    /// # Errors
    /// If the profile describes a machine that cannot be.
    pub fn new(profile: &Profile) -> Result<Machine, ProfileError> {
        profile.validate()?;
        let second = profile.tlb.second.as_ref().map(|shape| shape.latency);
        let latencies = Latencies {
            level: Level::ALL.map(|level| profile.latency(level)),
            fetch: profile.caches.l1i.latency,
            data_tlb: profile.tlb.data.latency,
            instruction_tlb: profile.tlb.instructions.latency,
            missed: [
                second.unwrap_or(profile.tlb.data.latency),
                second.unwrap_or(profile.tlb.instructions.latency),
            ],
            stb: profile.stlt.stb_latency,
        };
        let prefetch = &profile.prefetch;
        Ok(Machine {
            latencies,
            data_tlb: Tlb::new(&profile.tlb.data),
            instruction_tlb: Tlb::new(&profile.tlb.instructions),
            second_tlb: profile.tlb.second.as_ref().map(Tlb::new),
            distance: prefetch
                .distance
                .map(|shape| (Distance::new(&shape), TranslationBuffer::new(shape.buffer as usize))),
            process: Process::new(profile, 0),
            caches: Caches::new(&profile.caches),
            stride: prefetch.stride.map(|shape| Stride::new(&shape)),
            vldp: prefetch.vldp.map(|shape| Vldp::new(&shape)),
            prefetched: Vec::new(),
            fetch: Vec::new(),
            walk_log: WalkLog::new(),
            walked_ahead: Vec::new(),
            kernel_cycles: 0,
            stlt: StltUnit::new(&profile.stlt),
            counts: AccessCounts::default(),
            structure_caches: HitsAndMisses::default(),
            page_faults: 0,
            profile: profile.clone(),
        })
    }

    /// The profile that it was built from.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// An access by the program to the line in which `address` lies.
    #[inline]
    pub fn access(&mut self, address: u64, kind: AccessKind) -> Access {
        self.count(kind);
        self.access_line(address, kind)
    }

    #[inline(always)]
    pub(crate) fn count(&mut self, kind: AccessKind) {
        match kind {
            AccessKind::Load => self.counts.loads += 1,
            AccessKind::Store => self.counts.stores += 1,
            AccessKind::Fetch => self.counts.fetches += 1,
        }
    }

    /// The further lines of an access that touches several: the program made one.
    pub(crate) fn access_line(&mut self, address: u64, kind: AccessKind) -> Access {
        let translated = self.translate(address, kind);
        let physical = translated.pte.translate(address);
        let (level, cache_cycles) = self.fetch_line(physical, kind.request());
        self.counts.translation_cycles += u64::from(translated.cycles);
        self.counts.cache_cycles += u64::from(cache_cycles);
        Access {
            physical,
            translated: translated.by,
            walk: translated.walk,
            level,
            page: translated.pte.size(),
            translation_cycles: translated.cycles,
            cache_cycles,
        }
    }

    /// An access to `bytes` bytes from `address` on: one for every line that it touches, the first line's first.
    pub fn access_bytes(&mut self, address: u64, bytes: u64, kind: AccessKind, mut each: impl FnMut(Access)) {
        each(self.access(address, kind));
        let last = address.saturating_add(bytes.saturating_sub(1)) >> LINE_SHIFT;
        for line in (address >> LINE_SHIFT) + 1..=last {
            each(self.access_line(line << LINE_SHIFT, kind));
        }
    }

    /// Feeds recorded accesses, and counts them.
    pub fn replay(&mut self, accesses: impl IntoIterator<Item = (u64, AccessKind)>) -> u64 {
        let mut count = 0;
        for (address, kind) in accesses {
            self.access(address, kind);
            count += 1;
        }
        count
    }

    /// Asks the caches for the line of a physical address.
    #[inline(always)]
    fn fetch_line(&mut self, physical: u64, request: Request) -> (Level, u32) {
        let line = physical >> LINE_SHIFT;
        let level = self.caches.access(line, request);
        if level > Level::L2 && (self.stride.is_some() || self.vldp.is_some()) {
            self.prefetch_lines(line);
        }
        let cycles = if request == Request::Fetch && level == Level::L1 {
            self.latencies.fetch
        } else {
            self.latencies.level[level as usize]
        };
        (level, cycles)
    }

    /// An access by a unit that knows physical addresses.
    pub(crate) fn access_physical(&mut self, physical: u64, kind: AccessKind) -> Access {
        let (level, cache_cycles) = self.fetch_line(physical, kind.request());
        Access {
            physical,
            translated: TranslatedBy::Nobody,
            walk: WalkReads::default(),
            level,
            page: PageSize::Small,
            translation_cycles: 0,
            cache_cycles,
        }
    }

    #[inline(always)]
    fn translate(&mut self, address: u64, kind: AccessKind) -> Translated {
        let (first, cycles) = match kind {
            AccessKind::Fetch => (&mut self.instruction_tlb, self.latencies.instruction_tlb),
            _ => (&mut self.data_tlb, self.latencies.data_tlb),
        };
        match first.get(address) {
            Some(pte) => Translated { pte, by: TranslatedBy::FirstTlb, walk: WalkReads::default(), cycles },
            None => self.translate_after_first(address, kind),
        }
    }

    fn translate_after_first(&mut self, address: u64, kind: AccessKind) -> Translated {
        let fetch = kind == AccessKind::Fetch;
        let mut cycles = self.latencies.missed[usize::from(fetch)];
        let mut walk = WalkReads::default();
        let (pte, by) = if let Some(pte) = self.second_tlb.as_mut().and_then(|tlb| tlb.get(address)) {
            (pte, TranslatedBy::SecondTlb)
        } else {
            let (pte, by) = if let Some(pte) = self.take_prefetched_translation(address) {
                (pte, TranslatedBy::PrefetchBuffer)
            } else if let Some(pte) = self.stlt.stb.get(address) {
                self.counts.stb_hits += 1;
                cycles += self.latencies.stb;
                (pte, TranslatedBy::Stb)
            } else {
                let (pte, reads) = self.walk(address, OnFault::Map);
                self.count_walk(fetch, reads);
                cycles += self.walk_cycles(reads);
                walk = reads;
                (pte, TranslatedBy::Walk)
            };
            if let Some(second) = &mut self.second_tlb {
                second.fill(address, pte);
            }
            self.prefetch_translations(address);
            (pte, by)
        };
        let first = if fetch { &mut self.instruction_tlb } else { &mut self.data_tlb };
        first.fill(address, pte);
        Translated { pte, by, walk, cycles }
    }

    /// The translation of `address` for a unit that fills no TLB: from the TLBs, else by a walk that gives up
    /// on a fault.
    pub(crate) fn translate_for_unit(&mut self, address: u64) -> Translated {
        let known = |pte, by, cycles| Translated { pte, by, walk: WalkReads::default(), cycles };
        if let Some(pte) = self.data_tlb.get(address) {
            return known(pte, TranslatedBy::FirstTlb, self.latencies.data_tlb);
        }
        let cycles = self.latencies.missed[0];
        if let Some(pte) = self.second_tlb.as_mut().and_then(|tlb| tlb.get(address)) {
            return known(pte, TranslatedBy::SecondTlb, cycles);
        }
        let (pte, walk) = self.walk(address, OnFault::GiveUp);
        self.count_walk(false, walk);
        Translated { pte, by: TranslatedBy::Walk, walk, cycles: cycles + self.walk_cycles(walk) }
    }

    pub(crate) fn walk(&mut self, address: u64, on_fault: OnFault) -> (Pte, WalkReads) {
        let (caches, log) = (&mut self.caches, &mut self.walk_log);
        let place = log.place();
        let walked = self.process.walker.walk(address, on_fault, |entry| {
            let line = entry >> LINE_SHIFT;
            let level = caches.access(line, Request::Walk);
            log.push(line, level);
            level
        });
        self.page_faults += u64::from(walked.faulted);
        *(if walked.shortened {
            &mut self.structure_caches.hits
        } else {
            &mut self.structure_caches.misses
        }) += 1;
        (walked.pte, walked.reads.beginning_at(place))
    }

    /// The lines that a walk of the last instruction read, in their order, and which level had each.
    pub(crate) fn lines_of(&self, walk: WalkReads) -> impl Iterator<Item = (u64, Level)> {
        self.walk_log.of(walk)
    }

    fn count_walk(&mut self, fetch: bool, reads: WalkReads) {
        *(if fetch { &mut self.counts.instruction_walks } else { &mut self.counts.data_walks }) += 1;
        let by_level = &mut self.counts.walk_reads;
        by_level.l1 += u64::from(reads.from(Level::L1));
        by_level.l2 += u64::from(reads.from(Level::L2));
        by_level.l3 += u64::from(reads.from(Level::L3));
        by_level.memory += u64::from(reads.from(Level::Memory));
    }

    /// Reads of one walk depend on each other.
    pub(crate) fn walk_cycles(&self, reads: WalkReads) -> u32 {
        Level::ALL.into_iter().map(|level| reads.from(level) * self.latencies.level[level as usize]).sum()
    }

    fn take_prefetched_translation(&mut self, address: u64) -> Option<Pte> {
        let (_, buffer) = self.distance.as_mut()?;
        let pte = buffer.remove(address)?;
        self.counts.prefetch_buffer_hits += 1;
        Some(pte)
    }

    fn prefetch_translations(&mut self, address: u64) {
        let Some((distance, _)) = &mut self.distance else { return };
        for page in distance.missed(PageSize::Small.number(address)) {
            let wanted = page << PageSize::Small.shift();
            let (pte, reads) = self.walk(wanted, OnFault::GiveUp);
            self.walked_ahead.push(WalkedAhead { pte, reads });
            if let Some((_, buffer)) = &mut self.distance
                && pte.is_present()
            {
                buffer.put(wanted, pte);
                self.counts.translations_prefetched += 1;
            }
        }
        // As for lines: without a clock nobody takes them.
        if self.walked_ahead.len() > 64 {
            self.walked_ahead.drain(..32);
        }
    }

    #[cold]
    fn prefetch_lines(&mut self, line: u64) {
        let mut fetch = mem::take(&mut self.fetch);
        if let Some(stride) = &mut self.stride {
            stride.accessed(line, &mut fetch);
        }
        if let Some(vldp) = &mut self.vldp {
            vldp.accessed(line, &mut fetch);
        }
        for line in fetch.drain(..) {
            if self.caches.prefetch(line) {
                self.prefetched.push(line);
            }
        }
        self.fetch = fetch;
        // Without a clock nobody takes them: the last few are enough for one that joins later.
        if self.prefetched.len() > 1024 {
            self.prefetched.drain(..512);
        }
    }

    /// The lines that prefetchers fetched from memory since the last call, for a model that has a clock.
    pub fn take_prefetched(&mut self, lines: &mut Vec<u64>) {
        lines.append(&mut self.prefetched);
    }

    /// The walks of the translation prefetcher since the last call, for a model that has a clock.
    pub(crate) fn take_walked_ahead(&mut self, walks: &mut Vec<WalkedAhead>) {
        walks.append(&mut self.walked_ahead);
    }

    /// Cycles that the kernel has worked since the last call, for a model that has a clock.
    pub(crate) fn take_kernel_cycles(&mut self) -> u64 {
        mem::take(&mut self.kernel_cycles)
    }

    /// Pages that are mapped in `range` from now on are of this size, where they lie in it whole.
    pub fn use_pages(&mut self, range: Range<u64>, size: PageSize) {
        self.process.walker.table_mut().use_pages(range, size);
    }

    /// The page table's entry for `address`, if it is mapped (in a virtual machine: the guest's).
    #[must_use]
    pub fn entry(&self, address: u64) -> Option<Pte> {
        self.process.walker.table().entry(address)
    }

    /// Maps the page of `address` as a first touch does, without an access: for programs whose own first touch
    /// nobody saw.
    pub fn map(&mut self, address: u64) -> Pte {
        self.process.walker.table_mut().map(address)
    }

    /// Unmaps all pages that `range` touches, as `munmap` and `madvise(MADV_DONTNEED)` do, and as `mremap`
    /// does with what it leaves. A larger page that lies in it only in part is split: its rest stays where it is,
    /// in smaller pages. The TLBs, the STB and the IPB hear of it. The number of translations that were withdrawn;
    /// that of a page that was split is one of them.
    pub fn unmap(&mut self, range: Range<u64>) -> u64 {
        let gone = self.process.walker.table_mut().unmap(range);
        self.withdraw(&gone)
    }

    /// Makes everybody ask the page table again for the pages that `range` touches, which stay where they are: as
    /// `mprotect` does, whose new rights no old translation may outlive. The number of translations that were
    /// withdrawn.
    pub fn invalidate(&mut self, range: Range<u64>) -> u64 {
        let pages = self.process.walker.table().pages(range);
        self.withdraw(&pages)
    }

    fn withdraw(&mut self, gone: &[(u64, PageSize)]) -> u64 {
        for &(address, size) in gone {
            self.forget_page(address, size);
        }
        self.process.walker.forget();
        self.invalidate_for_stlt(gone);
        gone.len() as u64
    }

    /// Takes a page's translation out of every buffer that may hold it, or a part of it.
    fn forget_page(&mut self, address: u64, size: PageSize) {
        // Behind a host with smaller pages, one page of the guest is many translations.
        let held = self.profile.paging.nested.map_or(size, |nested| size.min(nested.pages)).bytes();
        for part in (address..address + size.bytes()).step_by(held as usize) {
            self.data_tlb.remove(part);
            self.instruction_tlb.remove(part);
            if let Some(second) = &mut self.second_tlb {
                second.remove(part);
            }
            if let Some((_, buffer)) = &mut self.distance {
                buffer.remove(part);
            }
            self.stlt.stb.remove(part);
        }
    }

    /// Runs another process from now on; the one that ran is left in `other`. Translations are forgotten,
    /// caches stay warm.
    pub fn switch_to(&mut self, other: &mut Process) {
        mem::swap(&mut self.process, other);
        self.data_tlb.clear();
        self.instruction_tlb.clear();
        if let Some(second) = &mut self.second_tlb {
            second.clear();
        }
        if let Some((_, buffer)) = &mut self.distance {
            buffer.clear();
        }
        other.walker.forget();
        self.stlt.stb.clear();
    }

    /// A process without any pages, for [`Machine::switch_to`]. The one that a machine begins with is number 0.
    #[must_use]
    pub fn new_process(&self, number: u8) -> Process {
        Process::new(&self.profile, number)
    }

    /// Everything that was counted so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        Statistics {
            accesses: self.counts,
            data_tlb: self.data_tlb.counts(),
            instruction_tlb: self.instruction_tlb.counts(),
            second_tlb: self.second_tlb.as_ref().map(Tlb::counts).unwrap_or_default(),
            structure_caches: self.structure_caches,
            page_faults: self.page_faults,
            l1i: self.caches.l1i(),
            l1d: self.caches.l1d(),
            l2: self.caches.l2(),
            l3: self.caches.l3(),
            memory: self.caches.memory(),
            stlt: self.stlt.counts,
        }
    }
}

impl Process {
    fn new(profile: &Profile, number: u8) -> Process {
        Process { number, walker: Walker::new(&profile.paging, number), table: None, invalidated: Vec::new() }
    }
}
