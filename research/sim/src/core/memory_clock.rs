//! When an access is done: the clock over what the machine says.
//!
//! ```text
//!   asked -> translation: TLB and STB take their cycles; a walk waits for a walker and reads its entries in turn
//!         -> the first cache had it: its latency; or, if the line is still on its way, when it arrives
//!         -> another had it: wait for one of the miss buffers, then that level's latency
//!         -> nobody had it: the same, and then memory's channel and latency
//! ```
//!
//! The machine puts a line into the caches at once, and a translation into the TLBs; what is on its way (module
//! `coming`) keeps the time honest for whoever comes second (a secondary miss): to a line, from whichever level it
//! comes, and to a page that is being walked for, of the size that its translation has. The entries that a walk reads
//! are lines like any other: who comes second to one, another walk or a load, waits for it. A walker waits for its own
//! reads, one at a time, and takes none of the core's miss buffers for them (the paper says nothing of it). Lines
//! written back and lines prefetched take their turn on the channel, and walks for translations that are fetched ahead
//! theirs at the walker; nobody waits for those until they are asked for.
//!
//! A miss buffer, a walker or a place of the insertion buffer is found for the time that the access would take on an
//! idle machine, and is then taken until its real end, which the channel or a line on its way may put off: that end is
//! known when the channel has been asked, and the channel is asked for a time. So where something waits for the
//! channel, more may be under way at a time than there are units.

use super::coming::Coming;
use crate::cache::Level;
use crate::dram::Dram;
use crate::machine::{Access, Machine, TranslatedBy, WalkedAhead};
use crate::page::PageSize;
use crate::profile::Profile;
use crate::reservations::{Cycle, Reservations};
use crate::walker::WalkReads;

/// When the parts of an access are done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timed {
    /// The physical address is known.
    pub(super) translated: Cycle,
    /// Nothing more is to be had for asking: the first cache had the line, or a miss buffer took it.
    pub(super) accepted: Cycle,
    /// The data is there.
    pub(super) done: Cycle,
}

/// The clock of everything behind the core.
#[derive(Debug, Clone)]
pub(super) struct MemoryClock {
    misses: Reservations,
    walkers: Reservations,
    dram: Dram,
    lines: Coming,
    /// Physical pages whose translation is being walked for.
    pages: Coming,
    /// The size of page that most are of.
    usual: PageSize,
    level: [Cycle; 4],
    memory: Cycle,
    /// Write-backs that the channel has been told of.
    written: u64,
    prefetched: Vec<u64>,
    prefetches: bool,
    walked_ahead: Vec<WalkedAhead>,
    walks_ahead: bool,
}

impl MemoryClock {
    pub(super) fn new(profile: &Profile) -> MemoryClock {
        MemoryClock {
            misses: Reservations::new(profile.core.misses),
            walkers: Reservations::new(profile.core.walkers),
            dram: Dram::new(&profile.memory),
            lines: Coming::new(profile.core.window),
            pages: Coming::new(profile.core.window),
            usual: profile.paging.pages,
            level: Level::ALL.map(|level| profile.latency(level).into()),
            memory: profile.memory.latency.into(),
            written: 0,
            prefetched: Vec::new(),
            prefetches: profile.prefetch.stride.is_some() || profile.prefetch.vldp.is_some(),
            walked_ahead: Vec::new(),
            walks_ahead: profile.prefetch.distance.is_some(),
        }
    }

    /// What the machine wrote back and prefetched while nobody timed it is not on the channel now.
    pub(super) fn forget_untimed(&mut self, machine: &mut Machine) {
        self.written = machine.caches.memory().writes;
        machine.take_prefetched(&mut self.prefetched);
        self.prefetched.clear();
        machine.take_walked_ahead(&mut self.walked_ahead);
        self.walked_ahead.clear();
        machine.take_kernel_cycles();
    }

    /// What a physical page is called: its number, and above that its size, because pages of several have the same
    /// numbers.
    #[inline]
    fn page(&self, physical: u64, size: PageSize) -> u64 {
        size.number(physical) | (size as u64 ^ self.usual as u64) << 62
    }

    /// When an access that is asked for at `at` is done. Nobody will ask for times before `now`.
    #[inline(always)]
    pub(super) fn time(&mut self, machine: &mut Machine, access: &Access, now: Cycle, at: Cycle) -> Timed {
        if access.translated != TranslatedBy::FirstTlb || access.level != Level::L1 || self.walks_ahead {
            return self.time_beyond_first(machine, access, now, at);
        }
        // As below, of what the first TLB and the first cache had: most accesses.
        let own = at + Cycle::from(access.translation_cycles);
        let translated = self.pages.arrived(self.page(access.physical, access.page), own);
        let done = self.lines.arrived(access.line(), translated + Cycle::from(access.cache_cycles));
        Timed { translated, accepted: translated, done }
    }

    #[inline(never)]
    fn time_beyond_first(&mut self, machine: &mut Machine, access: &Access, now: Cycle, at: Cycle) -> Timed {
        let own = self.translate(access.walk, access.translation_cycles, machine, now, at);
        let page = self.page(access.physical, access.page);
        let translated = match access.translated {
            TranslatedBy::Walk => {
                self.pages.expect(page, now, own);
                own
            }
            TranslatedBy::FirstTlb | TranslatedBy::SecondTlb | TranslatedBy::PrefetchBuffer => {
                self.pages.arrived(page, own)
            }
            TranslatedBy::Stb | TranslatedBy::Nobody => own,
        };
        if self.walks_ahead {
            self.walk_ahead(machine, now, translated);
        }
        if access.level == Level::L1 {
            let done = translated + Cycle::from(access.cache_cycles);
            return Timed { translated, accepted: translated, done: self.lines.arrived(access.line(), done) };
        }
        let (accepted, done) = self.miss(access, now, translated);
        let written = machine.caches.memory().writes;
        for _ in self.written..written {
            self.dram.write(translated);
        }
        self.written = written;
        if self.prefetches {
            self.fetch_ahead(machine, now, translated);
        }
        Timed { translated, accepted, done }
    }

    /// When a translation that was asked for at `at` is known.
    #[inline]
    pub(super) fn translate(
        &mut self,
        walk: WalkReads,
        cycles: u32,
        machine: &Machine,
        now: Cycle,
        at: Cycle,
    ) -> Cycle {
        if walk.total() == 0 {
            return at + Cycle::from(cycles);
        }
        let walking = Cycle::from(machine.walk_cycles(walk));
        self.walk(walk, machine, now, at + Cycle::from(cycles) - walking)
    }

    /// When a walk that is asked for at `at` ends. Its reads depend on each other.
    fn walk(&mut self, walk: WalkReads, machine: &Machine, now: Cycle, at: Cycle) -> Cycle {
        let walking = Cycle::from(machine.walk_cycles(walk));
        let begins = self.walkers.earliest(now, at, walking);
        let mut end = begins;
        for (line, level) in machine.lines_of(walk) {
            let done = end + self.level[level as usize];
            end = match level {
                Level::Memory => self.dram.read(done - self.memory),
                _ => self.lines.arrived(line, done),
            };
            if level != Level::L1 {
                self.lines.expect(line, now, end);
            }
        }
        self.walkers.take(begins, end);
        end
    }

    /// The walks of the translation prefetcher, which follow the access that caused them.
    #[cold]
    fn walk_ahead(&mut self, machine: &mut Machine, now: Cycle, at: Cycle) {
        machine.take_walked_ahead(&mut self.walked_ahead);
        for place in 0..self.walked_ahead.len() {
            let WalkedAhead { pte, reads } = self.walked_ahead[place];
            let end = self.walk(reads, machine, now, at);
            if pte.is_present() {
                self.pages.expect(self.page(pte.frame(), pte.size()), now, end);
            }
        }
        self.walked_ahead.clear();
    }

    /// When a miss buffer takes a line, and when the line comes.
    fn miss(&mut self, access: &Access, now: Cycle, at: Cycle) -> (Cycle, Cycle) {
        let latency = Cycle::from(access.cache_cycles);
        let begins = self.misses.earliest(now, at, latency);
        let done = match access.level {
            Level::Memory => self.dram.read(begins + latency - self.memory),
            _ => self.lines.arrived(access.line(), begins + latency),
        };
        self.lines.expect(access.line(), now, done);
        self.misses.take(begins, done);
        (begins, done)
    }

    fn fetch_ahead(&mut self, machine: &mut Machine, now: Cycle, at: Cycle) {
        machine.take_prefetched(&mut self.prefetched);
        // In the order in which they were asked for: the nearest is needed first.
        for line in self.prefetched.drain(..) {
            let arrival = self.dram.read(at + self.level[Level::L3 as usize]);
            self.lines.expect(line, now, arrival);
        }
    }

    /// Cycles that reads waited for memory's channel.
    pub(super) fn waited_for_channel(&self) -> Cycle {
        self.dram.waited()
    }
}
