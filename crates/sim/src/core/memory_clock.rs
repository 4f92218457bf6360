//! When an access is done: the clock over what the machine says.
//!
//! ```text
//!   asked -> translation: TLB and STB take their cycles; a walk waits for a walker and reads its entries one after the other
//!         -> the first cache had it: its latency; or, if the line is still on its way, when it arrives
//!         -> another had it: wait for one of the miss buffers, then that level's latency
//!         -> nobody had it: the same, and then memory's channel and latency
//! ```
//!
//! The machine puts a line into the caches at once; the list of lines on their way keeps the time honest for
//! whoever comes second (a secondary miss). Lines written back and lines prefetched take their turn on the
//! channel; nobody waits for those.

use crate::cache::Level;
use crate::dram::Dram;
use crate::machine::{Access, Machine};
use crate::profile::Profile;
use crate::reservations::{Cycle, Reservations};
use crate::walker::WalkReads;

/// When the parts of an access are done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timed {
    /// The physical address is known.
    pub(super) translated: Cycle,
    /// The data is there.
    pub(super) done: Cycle,
}

/// The clock of everything behind the core.
#[derive(Debug, Clone)]
pub(super) struct MemoryClock {
    misses: Reservations,
    walkers: Reservations,
    dram: Dram,
    /// Lines that are not there yet: line, arrival.
    coming: Vec<(u64, Cycle)>,
    /// The last arrival of those.
    last_arrival: Cycle,
    level: [Cycle; 4],
    memory: Cycle,
    /// Write-backs that the channel has been told of.
    written: u64,
    prefetched: Vec<u64>,
    prefetches: bool,
}

impl MemoryClock {
    pub(super) fn new(profile: &Profile) -> MemoryClock {
        MemoryClock {
            misses: Reservations::new(profile.core.misses),
            walkers: Reservations::new(profile.core.walkers),
            dram: Dram::new(&profile.memory),
            coming: Vec::new(),
            last_arrival: 0,
            level: Level::ALL.map(|level| profile.latency(level).into()),
            memory: profile.memory.latency.into(),
            written: 0,
            prefetched: Vec::new(),
            prefetches: profile.prefetch.stride.is_some() || profile.prefetch.vldp.is_some(),
        }
    }

    /// What the machine wrote back and prefetched while nobody timed it is not on the channel now.
    pub(super) fn forget_untimed(&mut self, machine: &mut Machine) {
        self.written = machine.caches.memory().writes;
        machine.take_prefetched(&mut self.prefetched);
        self.prefetched.clear();
    }

    /// When an access that is asked for at `at` is done. Nobody will ask for times before `now`.
    #[inline]
    pub(super) fn time(&mut self, machine: &mut Machine, access: &Access, now: Cycle, at: Cycle) -> Timed {
        let translated = self.translate(access.walk, access.translation_cycles, machine, now, at);
        if access.level == Level::L1 {
            let done = translated + Cycle::from(access.cache_cycles);
            return Timed { translated, done: self.arrived(access.line(), done) };
        }
        let done = self.miss(access, now, translated);
        let written = machine.caches.memory().writes;
        for _ in self.written..written {
            self.dram.write(translated);
        }
        self.written = written;
        if self.prefetches {
            self.fetch_ahead(machine, now, translated);
        }
        Timed { translated, done }
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
        if walk == WalkReads::default() {
            return at + Cycle::from(cycles);
        }
        let walking = Cycle::from(machine.walk_cycles(walk));
        let missed = at + Cycle::from(cycles) - walking;
        let begins = self.walkers.earliest(now, missed, walking);
        let mut end = begins + walking;
        // Its reads of memory queue for the channel as others do. The last entries are those that memory has.
        for left in (1..=Cycle::from(walk.from(Level::Memory))).rev() {
            let asks = end - left * self.memory;
            end += self.dram.read(asks) - asks - self.memory;
        }
        self.walkers.take(begins, end);
        end
    }

    fn miss(&mut self, access: &Access, now: Cycle, at: Cycle) -> Cycle {
        let latency = Cycle::from(access.cache_cycles);
        let begins = self.misses.earliest(now, at, latency);
        let done = match access.level {
            Level::Memory => {
                let done = self.dram.read(begins + latency - self.memory);
                self.expect(access.line(), now, done);
                done
            }
            _ => self.arrived(access.line(), begins + latency),
        };
        self.misses.take(begins, done);
        done
    }

    /// A line will be there at `arrival`.
    fn expect(&mut self, line: u64, now: Cycle, arrival: Cycle) {
        self.coming.retain(|&(other, arrival)| arrival > now && other != line);
        self.coming.push((line, arrival));
        self.last_arrival = self.last_arrival.max(arrival);
    }

    /// `done`, or when the line arrives if that is later.
    #[inline]
    fn arrived(&self, line: u64, done: Cycle) -> Cycle {
        if self.last_arrival <= done {
            return done;
        }
        self.coming.iter().find(|coming| coming.0 == line).map_or(done, |&(_, arrival)| arrival.max(done))
    }

    fn fetch_ahead(&mut self, machine: &mut Machine, now: Cycle, at: Cycle) {
        machine.take_prefetched(&mut self.prefetched);
        while let Some(line) = self.prefetched.pop() {
            let arrival = self.dram.read(at + self.level[Level::L3 as usize]);
            self.expect(line, now, arrival);
        }
    }

    /// Cycles that reads waited for memory's channel.
    pub(super) fn waited_for_channel(&self) -> Cycle {
        self.dram.waited()
    }
}
