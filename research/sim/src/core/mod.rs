//! A core, as a window of instructions in flight: constant work per instruction.
//!
//! Out-of-order processors hide what is independent and wait for what is not. For programs whose time goes
//! into memory it is enough to know, of each instruction, when it entered the window, when its inputs were
//! ready and when it left; everything between is the dataflow. This is the first-order view of Karkhanis and
//! Smith ("A First-Order Superscalar Processor Model", ISCA 2004) turned into a simulation, between the
//! interval model of Carlson, Heirman, Eyerman, Hur and Eeckhout ("An Evaluation of High-Level Mechanistic
//! Core Models", ACM TACO 11(3), 2014) and a model of every stage:
//!
//! ```text
//!   dispatch = the latest of: the instruction before (width a cycle), the one `window` before having retired,
//!              the front end (a fetch that missed, a branch that was mispredicted), room in the store buffer
//!   start    = the latest of: dispatch, the registers that it reads
//!   done     = start + its latency, or when memory has answered
//!   retire   = in order, width a cycle
//! ```
//!
//! * A load that finds its bytes in a store on its way to the cache takes them from there.
//! * A store retires when its address is translated and its data ready; it is written afterwards, in order.
//! * A prefetch by software asks for its line as a load does, miss buffer and all, and retires when its address is
//!   translated, as a store does: nothing waits for the line but who needs it.
//! * A mispredicted branch lets the front end begin again a penalty after it is done. The wrong path is not
//!   simulated.
//! * Fetching is one question per line of code; a miss stops the front end for what it takes beyond a hit.
//! * Execution units are not modelled: the papers' effects are chains of misses, not ports.
//!
//! Where the time went: whatever lies between the retirements of two instructions is put to the account of
//! the second, first to the front end, then to what its access waited for. The accounts add up to all cycles,
//! exactly.
//!
//! Rejected: an event queue. It costs ten times as much per instruction and answers questions (which port,
//! which bank) whose parameters nobody published for the machines at hand.

mod coming;
mod kernel;
mod memory_clock;
mod stlt_clock;

use serde::{Deserialize, Serialize};

use crate::cache::{LINE_SHIFT, Level};
use crate::machine::{Access, AccessKind, Machine, TranslatedBy};
use crate::predictor::{BranchKind, Predictor};
use crate::profile::{Profile, ProfileError};
use crate::reservations::{Cycle, Reservations};
use crate::statistics::{Since, since};
use memory_clock::{MemoryClock, Timed};

/// A set of registers, numbered 0 to 63 by whoever decodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Registers(u64);

impl Registers {
    /// None.
    pub const NONE: Registers = Registers(0);

    /// These; numbers above 63 are taken modulo 64.
    #[must_use]
    pub fn of(numbers: &[u8]) -> Registers {
        Registers(numbers.iter().fold(0, |set, &number| set | 1 << (number % 64)))
    }

    /// Both sets.
    #[must_use]
    pub const fn with(self, other: Registers) -> Registers {
        Registers(self.0 | other.0)
    }

    /// Their numbers, upwards.
    #[inline]
    pub(crate) fn each(self) -> impl Iterator<Item = usize> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let number = rest.trailing_zeros() as usize;
            rest &= rest.wrapping_sub(1);
            (number < 64).then_some(number)
        })
    }
}

/// What is known of an instruction before it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Instruction {
    /// Where it lies.
    pub address: u64,
    /// Its bytes.
    pub length: u8,
    /// Cycles of execution, after its loads: 0 for a plain load or store, 1 for most others.
    pub latency: u8,
    /// The registers that it reads.
    pub sources: Registers,
    /// The registers that it writes.
    pub destinations: Registers,
    /// What kind of branch it is, if it is one.
    pub branch: Option<BranchKind>,
}

/// An access of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryAccess {
    /// Virtual.
    pub address: u64,
    /// Bytes.
    pub bytes: u32,
    /// Whether it writes.
    pub store: bool,
}

impl MemoryAccess {
    /// Reads `bytes` bytes.
    #[must_use]
    pub const fn load(address: u64, bytes: u32) -> MemoryAccess {
        MemoryAccess { address, bytes, store: false }
    }

    /// Writes `bytes` bytes.
    #[must_use]
    pub const fn store(address: u64, bytes: u32) -> MemoryAccess {
        MemoryAccess { address, bytes, store: true }
    }
}

/// How a branch went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BranchOutcome {
    /// Whether it was taken.
    pub taken: bool,
    /// Where it went.
    pub target: u64,
}

/// Cycles by what was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CycleStack {
    /// Dispatching, executing, hits in the first cache.
    pub base: u64,
    /// Instructions that were not in the first cache or TLB.
    pub fetch: u64,
    /// Mispredicted branches.
    pub branch: u64,
    /// Translations beyond the first TLB.
    pub translation: u64,
    /// Lines from the second cache.
    pub l2: u64,
    /// Lines from the third.
    pub l3: u64,
    /// Lines from memory.
    pub memory: u64,
    /// `loadVA` and `insertSTLT`, and the kernel when it brings the table up to date.
    pub stlt: u64,
}

impl CycleStack {
    /// All cycles.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.base + self.fetch + self.branch + self.translation + self.l2 + self.l3 + self.memory + self.stlt
    }
}

/// What a core counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreStatistics {
    /// Instructions retired.
    pub instructions: u64,
    /// Cycles until the last of them retired.
    pub cycles: u64,
    /// What they were spent on.
    pub stack: CycleStack,
    /// Branches.
    pub branches: u64,
    /// Those that were mispredicted.
    pub mispredicted: u64,
    /// Loads that took their bytes from a store.
    pub forwarded: u64,
    /// Cycles that lines waited for memory's channel, added up.
    pub waited_for_channel: u64,
}

since! {
    CycleStack { base, fetch, branch, translation, l2, l3, memory, stlt }
    CoreStatistics { instructions, cycles, stack, branches, mispredicted, forwarded, waited_for_channel }
}

/// Why the front end was late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Late {
    Fetch,
    Branch,
    Kernel,
}

/// An instruction that has been dispatched.
#[derive(Debug, Clone, Copy)]
struct Entered {
    dispatch: Cycle,
    start: Cycle,
    /// Whether the front end held it up, and why.
    late: Option<Late>,
}

/// What an instruction waited for, for the accounts.
#[derive(Debug, Clone, Copy, Default)]
struct Waited {
    translation: Cycle,
    cache: Cycle,
    level: Option<Level>,
    stlt: Cycle,
}

/// A store that a later load may find: the granule of 8 bytes, when its data is there, and until when it is
/// on its way.
#[derive(Debug, Clone, Copy, Default)]
struct Forward {
    granule: u64,
    data: Cycle,
    until: Cycle,
}

/// Places for stores on their way, by the lowest bits of their granule.
const FORWARDS: usize = 1024;

/// A core and its memory system.
#[derive(Debug, Clone)]
pub struct Core {
    machine: Machine,
    clock: MemoryClock,
    predictor: Predictor,
    width: u32,
    penalty: Cycle,
    l1: Cycle,
    fetch_hit: Cycle,

    /// The cycle in which the last instruction was dispatched, and how many were.
    dispatch: (Cycle, u32),
    /// The same for retirement.
    retire: (Cycle, u32),
    /// When each of the last `window` instructions retired.
    window: Vec<Cycle>,
    next: usize,
    /// The front end delivers from then on, and why not before.
    front_end: (Cycle, Late),
    /// When the kernel was last done with what it does for the table.
    kernel_until: Cycle,
    registers: [Cycle; 64],
    /// When each of the last stores was written.
    stores: Vec<Cycle>,
    next_store: usize,
    last_written: Cycle,
    forwards: Vec<Forward>,
    code_line: u64,

    stu: Reservations,
    insertion_buffer: Reservations,
    /// Integers of STLT instructions in flight, and when they are performed.
    performed: Vec<(u64, Cycle)>,

    counts: CoreStatistics,
}

impl Core {
    /// A cold core.
    ///
    /// # Errors
    /// If the profile describes a machine that cannot be.
    pub fn new(profile: &Profile) -> Result<Core, ProfileError> {
        Ok(Core::with_machine(Machine::new(profile)?))
    }

    /// A core in front of a machine that is warm already. What that did before took no time ([`Core::resume`]).
    #[must_use]
    pub fn with_machine(mut machine: Machine) -> Core {
        let mut clock = MemoryClock::new(machine.profile());
        clock.forget_untimed(&mut machine);
        let profile = machine.profile();
        let core = profile.core;
        Core {
            clock,
            predictor: Predictor::new(core.predictor_bits),
            width: core.width,
            penalty: core.mispredict_penalty.into(),
            l1: profile.caches.l1d.latency.into(),
            fetch_hit: (profile.caches.l1i.latency + profile.tlb.instructions.latency).into(),
            dispatch: (0, 0),
            retire: (0, 0),
            window: vec![0; core.window as usize],
            next: 0,
            front_end: (0, Late::Fetch),
            kernel_until: 0,
            registers: [0; 64],
            stores: vec![0; core.stores as usize],
            next_store: 0,
            last_written: 0,
            forwards: vec![Forward::default(); FORWARDS],
            code_line: u64::MAX,
            stu: Reservations::new(1),
            insertion_buffer: Reservations::new(profile.stlt.insertion_buffer),
            performed: Vec::new(),
            counts: CoreStatistics::default(),
            machine,
        }
    }

    /// The memory system.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The memory system, to be warmed, given pages, or asked without the clock.
    pub fn machine_mut(&mut self) -> &mut Machine {
        &mut self.machine
    }

    /// Goes on after a time in which the machine was used without the clock: what it then wrote back, prefetched and
    /// did in the kernel is done.
    pub fn resume(&mut self) {
        self.clock.forget_untimed(&mut self.machine);
    }

    /// What was counted so far.
    #[must_use]
    pub fn statistics(&self) -> CoreStatistics {
        CoreStatistics {
            cycles: self.retire.0,
            waited_for_channel: self.clock.waited_for_channel(),
            ..self.counts
        }
    }

    /// Runs a block of instructions: `accesses` are theirs, by their place in the block and in that order; `exit` is
    /// how the last instruction went, if that is a branch. Accesses of places that are not there are left out.
    pub fn run_instructions(
        &mut self,
        instructions: &[Instruction],
        accesses: &[(usize, MemoryAccess)],
        exit: Option<BranchOutcome>,
    ) {
        let mut rest = accesses;
        for (place, instruction) in instructions.iter().enumerate() {
            let before = rest.iter().take_while(|of| of.0 < place).count();
            let own = rest[before..].iter().take_while(|of| of.0 == place).count();
            let (own, after) = rest[before..].split_at(own);
            rest = after;
            let outcome = if place + 1 == instructions.len() { exit } else { None };
            if own.is_empty() {
                self.compute(instruction, outcome);
            } else {
                self.step(instruction, own.iter().map(|of| of.1), outcome);
            }
        }
    }

    /// Runs one instruction. Inlined, for a caller may know what it accesses.
    #[inline]
    pub fn execute(
        &mut self,
        instruction: &Instruction,
        accesses: &[MemoryAccess],
        outcome: Option<BranchOutcome>,
    ) {
        if accesses.is_empty() {
            self.compute(instruction, outcome);
        } else {
            self.access(instruction, accesses, outcome);
        }
    }

    fn access(
        &mut self,
        instruction: &Instruction,
        accesses: &[MemoryAccess],
        outcome: Option<BranchOutcome>,
    ) {
        self.step(instruction, accesses.iter().copied(), outcome);
    }

    /// One that accesses nothing, as most do not.
    fn compute(&mut self, instruction: &Instruction, outcome: Option<BranchOutcome>) {
        self.fetch(instruction);
        let entered = self.enter(instruction.sources, false);
        let done = entered.start + Cycle::from(instruction.latency);
        self.leave(instruction.destinations, &entered, done, done, Waited::default());
        if let (Some(kind), Some(outcome)) = (instruction.branch, outcome) {
            self.branch(kind, instruction, outcome, done);
        }
    }

    /// Runs a prefetch of the line of `address`: it leaves the window when a miss buffer has taken the line, or the
    /// first cache had it.
    pub fn prefetch(&mut self, instruction: &Instruction, address: u64) {
        self.fetch(instruction);
        let entered = self.enter(instruction.sources, false);
        let mut waited = Waited::default();
        let access = self.machine.access(address, AccessKind::Load);
        let timed = self.clock.time(&mut self.machine, &access, entered.dispatch, entered.start);
        if access.translated != TranslatedBy::FirstTlb {
            waited.translation = timed.translated - entered.start;
        }
        if timed.accepted > timed.translated {
            waited.cache = timed.accepted - timed.translated;
            waited.level = Some(access.level);
        }
        self.leave(instruction.destinations, &entered, timed.accepted, timed.accepted, waited);
    }

    #[inline]
    fn step(
        &mut self,
        instruction: &Instruction,
        accesses: impl Iterator<Item = MemoryAccess> + Clone,
        outcome: Option<BranchOutcome>,
    ) {
        self.fetch(instruction);
        let stores = accesses.clone().any(|access| access.store);
        let entered = self.enter(instruction.sources, stores);
        let mut waited = Waited::default();
        let mut loaded = entered.start;
        for access in accesses.clone().filter(|access| !access.store) {
            let timed = self.load(&access, &entered, &mut waited);
            loaded = loaded.max(timed.done);
        }
        let data = loaded + Cycle::from(instruction.latency);
        let mut done = data;
        if stores {
            for access in accesses.clone().filter(|access| access.store) {
                done = done.max(self.store(&access, &entered, data, &mut waited));
            }
        }
        self.leave(instruction.destinations, &entered, data, done, waited);
        if stores {
            self.write(accesses.filter(|access| access.store), data);
        }
        if let (Some(kind), Some(outcome)) = (instruction.branch, outcome) {
            self.branch(kind, instruction, outcome, done);
        }
    }

    /// Asks for the instruction's line, if it is another than the last one's. Mostly it is not.
    #[inline(always)]
    fn fetch(&mut self, instruction: &Instruction) {
        let first = instruction.address;
        let last = first.saturating_add(u64::from(instruction.length.saturating_sub(1)));
        if first >> LINE_SHIFT != self.code_line || last >> LINE_SHIFT != self.code_line {
            self.fetch_lines(first, last);
        }
    }

    #[inline(never)]
    fn fetch_lines(&mut self, first: u64, last: u64) {
        for address in [first, last] {
            if address >> LINE_SHIFT != self.code_line {
                self.code_line = address >> LINE_SHIFT;
                self.fetch_line(address);
            }
        }
    }

    fn fetch_line(&mut self, address: u64) {
        let access = self.machine.access(address, AccessKind::Fetch);
        if access.level == Level::L1 && access.translated == TranslatedBy::FirstTlb {
            return;
        }
        let (now, count) = self.dispatch;
        let from = (now + Cycle::from(count == self.width)).max(self.front_end.0);
        let timed = self.clock.time(&mut self.machine, &access, now, from);
        let ready = timed.done.saturating_sub(self.fetch_hit);
        if ready > self.front_end.0 {
            self.front_end = (ready, Late::Fetch);
        }
    }

    /// Lets an instruction into the window: when it is dispatched, and when it can start.
    #[inline(always)]
    fn enter(&mut self, sources: Registers, stores: bool) -> Entered {
        let (mut cycle, mut count) = self.dispatch;
        if count == self.width {
            (cycle, count) = (cycle + 1, 0);
        }
        let mut earliest = cycle.max(self.window[self.next]);
        if stores {
            earliest = earliest.max(self.stores[self.next_store]);
        }
        let late = (self.front_end.0 > earliest).then_some(self.front_end.1);
        earliest = earliest.max(self.front_end.0);
        if earliest > cycle {
            (cycle, count) = (earliest, 0);
        }
        self.dispatch = (cycle, count + 1);
        let start = sources.each().map(|register| self.registers[register]).fold(cycle, Cycle::max);
        Entered { dispatch: cycle, start, late }
    }

    /// Retires an instruction whose results are there at `result`, and which is finished at `done`.
    #[inline(always)]
    fn leave(
        &mut self,
        destinations: Registers,
        entered: &Entered,
        result: Cycle,
        done: Cycle,
        waited: Waited,
    ) {
        for register in destinations.each() {
            self.registers[register] = result;
        }
        let (before, mut count) = self.retire;
        let mut cycle = before.max(done);
        if cycle > before {
            count = 0;
        } else if count == self.width {
            (cycle, count) = (cycle + 1, 0);
        }
        self.retire = (cycle, count + 1);
        self.window[self.next] = cycle;
        self.next = if self.next + 1 == self.window.len() { 0 } else { self.next + 1 };
        self.counts.instructions += 1;
        if cycle > before {
            self.account(cycle - before, before, entered, waited);
        }
    }

    fn account(&mut self, gap: Cycle, before: Cycle, entered: &Entered, waited: Waited) {
        let stack = &mut self.counts.stack;
        let mut rest = gap;
        let mut pay = |account: &mut u64, cycles: Cycle| {
            let paid = cycles.min(rest);
            *account += paid;
            rest -= paid;
        };
        match entered.late {
            Some(Late::Fetch) => {
                // The kernel's part of it, and then the line that nobody could ask for before.
                pay(&mut stack.stlt, self.kernel_until.min(entered.dispatch).saturating_sub(before));
                pay(&mut stack.fetch, entered.dispatch.saturating_sub(before.max(self.kernel_until)));
            }
            Some(Late::Branch) => pay(&mut stack.branch, entered.dispatch.saturating_sub(before)),
            Some(Late::Kernel) => pay(&mut stack.stlt, entered.dispatch.saturating_sub(before)),
            None => {}
        }
        pay(&mut stack.stlt, waited.stlt);
        match waited.level {
            Some(Level::Memory) => pay(&mut stack.memory, waited.cache),
            Some(Level::L3) => pay(&mut stack.l3, waited.cache),
            Some(Level::L2) => pay(&mut stack.l2, waited.cache),
            Some(Level::L1) | None => {}
        }
        pay(&mut stack.translation, waited.translation);
        stack.base += rest;
    }

    /// The lines that an access touches, first and last (which may be the same).
    fn lines(access: &MemoryAccess) -> (u64, u64) {
        let last = access.address.saturating_add(u64::from(access.bytes.saturating_sub(1)));
        (access.address >> LINE_SHIFT, last >> LINE_SHIFT)
    }

    fn note(&self, access: &Access, timed: Timed, start: Cycle, waited: &mut Waited) {
        if access.translated != TranslatedBy::FirstTlb {
            waited.translation = waited.translation.max(timed.translated - start);
        }
        // A hit on a line that is on its way waits for whoever asked for it.
        let late = timed.done - timed.translated > self.l1;
        let level = if access.level == Level::L1 && late { Level::Memory } else { access.level };
        if level != Level::L1 && timed.done - timed.translated > waited.cache {
            waited.cache = timed.done - timed.translated;
            waited.level = Some(level);
        }
    }

    #[inline]
    fn load(&mut self, access: &MemoryAccess, entered: &Entered, waited: &mut Waited) -> Timed {
        let (first, last) = Core::lines(access);
        let before = waited.cache;
        let begun = self.machine.access(access.address, AccessKind::Load);
        let mut timed = self.time_load(begun, entered, waited);
        for line in first + 1..=last {
            let further = self.machine.access_line(line << LINE_SHIFT, AccessKind::Load);
            let next = self.time_load(further, entered, waited);
            timed.done = timed.done.max(next.done);
        }
        // Every store has been written by then: none is on its way, whatever the places say.
        if self.last_written <= timed.translated {
            return timed;
        }
        let granules =
            access.address >> 3..=access.address.saturating_add(u64::from(access.bytes.max(1)) - 1) >> 3;
        let (mut forwarded, mut latest, mut all) = (false, 0, true);
        for granule in granules {
            let forward = self.forwards[granule as usize % FORWARDS];
            if forward.granule == granule && forward.until > timed.translated {
                forwarded = true;
                latest = latest.max(timed.translated.max(forward.data) + self.l1);
            } else {
                all = false;
            }
        }
        if forwarded {
            self.counts.forwarded += 1;
            // The line may be on its way; bytes that stores have are not.
            timed.done = if all { latest } else { timed.done.max(latest) };
            if all {
                waited.cache = before;
            }
        }
        timed
    }

    #[inline]
    fn time_load(&mut self, access: Access, entered: &Entered, waited: &mut Waited) -> Timed {
        let timed = self.clock.time(&mut self.machine, &access, entered.dispatch, entered.start);
        self.note(&access, timed, entered.start, waited);
        timed
    }

    /// A store up to its retirement: when its address is translated. Its line is asked for at once; what
    /// waits for it is the store buffer's entry.
    fn store(&mut self, access: &MemoryAccess, entered: &Entered, data: Cycle, waited: &mut Waited) -> Cycle {
        let (first, last) = Core::lines(access);
        let mut translated = data;
        for line in first..=last {
            let access = if line == first {
                self.machine.access(access.address, AccessKind::Store)
            } else {
                self.machine.access_line(line << LINE_SHIFT, AccessKind::Store)
            };
            let timed = self.clock.time(&mut self.machine, &access, entered.dispatch, entered.start);
            if access.translated != TranslatedBy::FirstTlb {
                waited.translation = waited.translation.max(timed.translated - entered.start);
                translated = translated.max(timed.translated);
            }
            self.last_written = self.last_written.max(timed.done);
        }
        translated
    }

    /// The stores of an instruction that has just retired go to the cache, after those before them.
    fn write(&mut self, stores: impl Iterator<Item = MemoryAccess>, data: Cycle) {
        let written = self.last_written.max(self.retire.0 + 1);
        self.last_written = written;
        self.stores[self.next_store] = written;
        self.next_store = if self.next_store + 1 == self.stores.len() { 0 } else { self.next_store + 1 };
        for access in stores {
            let last = access.address.saturating_add(u64::from(access.bytes.max(1)) - 1);
            for granule in access.address >> 3..=last >> 3 {
                self.forwards[granule as usize % FORWARDS] = Forward { granule, data, until: written };
            }
        }
    }

    fn branch(&mut self, kind: BranchKind, instruction: &Instruction, outcome: BranchOutcome, done: Cycle) {
        self.counts.branches += 1;
        let length = u64::from(instruction.length);
        if !self.predictor.predict(kind, instruction.address, length, outcome.taken, outcome.target) {
            self.counts.mispredicted += 1;
            self.front_end = (self.front_end.0.max(done + self.penalty), Late::Branch);
        }
    }
}
