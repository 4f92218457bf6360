//! What a guest runs on: a core with a clock, or a machine without one.
//!
//! A guest is a program in Rust that does what a compiled program would do and says so, instruction by
//! instruction: [`Pen`] gives each a place in the code, the registers that it reads and writes, its access and
//! its branch. So the core sees chains of dependent misses, branches that cannot be predicted and lines of
//! code, as it does of a real program, and nobody needs a compiler or an emulator.
//!
//! Without a clock only the accesses count; that is how caches are warmed. Where not even those do, [`Nobody`]
//! executes.

use sim::{AccessKind, BranchKind, BranchOutcome, Core, Instruction, Machine, MemoryAccess, Registers};

use super::QUERY_ADDRESS;

/// What executes instructions.
pub trait Processor {
    /// Executes one.
    fn execute(
        &mut self,
        instruction: &Instruction,
        access: Option<MemoryAccess>,
        outcome: Option<BranchOutcome>,
    );

    /// Whether it counts cycles; if not, a guest may leave out what changes nothing but the clock.
    fn has_clock(&self) -> bool {
        true
    }

    /// Executes a prefetch of the line of `address`.
    fn prefetch(&mut self, instruction: &Instruction, address: u64);

    /// Executes `loadVA`: the address of the integer's record, or 0.
    fn load_va(&mut self, instruction: &Instruction, integer: u64) -> u64;

    /// Executes `insertSTLT`. The record's page is there: it was written when the guest was loaded, which nobody
    /// executed, and an index that has the keys itself may have found it without reading it since.
    fn insert_stlt(&mut self, instruction: &Instruction, integer: u64, address: u64);
}

impl Processor for Core {
    // What of this an instruction has not is known where the guest is compiled.
    #[inline(always)]
    fn execute(
        &mut self,
        instruction: &Instruction,
        access: Option<MemoryAccess>,
        outcome: Option<BranchOutcome>,
    ) {
        Core::execute(self, instruction, access.as_slice(), outcome);
    }

    fn prefetch(&mut self, instruction: &Instruction, address: u64) {
        Core::prefetch(self, instruction, address);
    }

    fn load_va(&mut self, instruction: &Instruction, integer: u64) -> u64 {
        Core::load_va(self, instruction, integer).address
    }

    fn insert_stlt(&mut self, instruction: &Instruction, integer: u64, address: u64) {
        self.machine_mut().map(address);
        Core::insert_stlt(self, instruction, integer, address);
    }
}

/// Only the accesses, without a clock.
impl Processor for Machine {
    #[inline(always)]
    fn execute(&mut self, _: &Instruction, access: Option<MemoryAccess>, _: Option<BranchOutcome>) {
        if let Some(access) = access {
            let kind = if access.store { AccessKind::Store } else { AccessKind::Load };
            self.access_bytes(access.address, access.bytes.into(), kind, |_| {});
        }
    }

    fn prefetch(&mut self, _: &Instruction, address: u64) {
        self.access(address, AccessKind::Load);
    }

    fn has_clock(&self) -> bool {
        false
    }

    fn load_va(&mut self, _: &Instruction, integer: u64) -> u64 {
        Machine::load_va(self, integer).address
    }

    fn insert_stlt(&mut self, _: &Instruction, integer: u64, address: u64) {
        self.map(address);
        Machine::insert_stlt(self, integer, address);
    }
}

/// Nothing comes of anything: for what a guest keeps of its own.
#[derive(Debug)]
pub struct Nobody;

impl Processor for Nobody {
    #[inline]
    fn execute(&mut self, _: &Instruction, _: Option<MemoryAccess>, _: Option<BranchOutcome>) {}

    fn prefetch(&mut self, _: &Instruction, _: u64) {}

    fn has_clock(&self) -> bool {
        false
    }

    fn load_va(&mut self, _: &Instruction, _: u64) -> u64 {
        0
    }

    fn insert_stlt(&mut self, _: &Instruction, _: u64, _: u64) {}
}

/// A register of the guest.
pub type Register = u8;

/// Bytes of an instruction: the average of compiled x86-64 code.
const LENGTH: u64 = 4;

/// Writes a guest's instructions, one after the other, from a label on.
#[derive(Debug)]
pub struct Pen<'p, P> {
    to: &'p mut P,
    at: u64,
    query: u64,
}

impl<'p, P: Processor> Pen<'p, P> {
    /// A pen that stands nowhere yet.
    pub fn new(to: &'p mut P) -> Pen<'p, P> {
        Pen { to, at: 0, query: QUERY_ADDRESS }
    }

    /// Where the query's key lies.
    #[inline]
    pub fn query(&self) -> u64 {
        self.query
    }

    /// From now on the query's key is another: this one of those that lie on the stack, one line each.
    #[inline]
    pub fn ask_query(&mut self, number: usize) {
        self.query = QUERY_ADDRESS + 64 * number as u64;
    }

    /// Whether cycles are counted.
    pub fn has_clock(&self) -> bool {
        self.to.has_clock()
    }

    /// The next instruction lies at this address: a basic block begins, and begins there every time.
    #[inline]
    pub fn at(&mut self, label: u64) -> &mut Self {
        self.at = label;
        self
    }

    #[inline]
    fn next(
        &mut self,
        from: Registers,
        into: Registers,
        latency: u8,
        branch: Option<BranchKind>,
    ) -> Instruction {
        let address = self.at;
        self.at += LENGTH;
        Instruction { address, length: LENGTH as u8, latency, sources: from, destinations: into, branch }
    }

    /// Computes for so many cycles.
    #[inline]
    pub fn compute_for(&mut self, cycles: u8, into: Register, from: &[Register]) -> &mut Self {
        let instruction = self.next(Registers::of(from), Registers::of(&[into]), cycles, None);
        self.to.execute(&instruction, None, None);
        self
    }

    /// Computes in a cycle.
    #[inline]
    pub fn compute(&mut self, into: Register, from: &[Register]) -> &mut Self {
        self.compute_for(1, into, from)
    }

    /// A chain of computations on one register, each waiting for the one before it.
    #[inline]
    pub fn chain(&mut self, register: Register, cycles: &[u8]) -> &mut Self {
        for &cycles in cycles {
            self.compute_for(cycles, register, &[register]);
        }
        self
    }

    /// Loads from an address that stands in `base`.
    #[inline]
    pub fn load(&mut self, into: Register, base: Register, address: u64, bytes: u32) -> &mut Self {
        let instruction = self.next(Registers::of(&[base]), Registers::of(&[into]), 0, None);
        self.to.execute(&instruction, Some(MemoryAccess::load(address, bytes)), None);
        self
    }

    /// Prefetches the line of an address that stands in `base`.
    #[inline]
    pub fn prefetch(&mut self, base: Register, address: u64) -> &mut Self {
        let instruction = self.next(Registers::of(&[base]), Registers::NONE, 0, None);
        self.to.prefetch(&instruction, address);
        self
    }

    /// Stores `from` to an address that stands in `base`.
    #[inline]
    pub fn store(&mut self, from: Register, base: Register, address: u64, bytes: u32) -> &mut Self {
        let instruction = self.next(Registers::of(&[base, from]), Registers::NONE, 0, None);
        self.to.execute(&instruction, Some(MemoryAccess::store(address, bytes)), None);
        self
    }

    /// Compares, and branches to a label by what came of it: two instructions that a processor fuses into one.
    #[inline]
    pub fn branch(&mut self, on: &[Register], taken: bool, label: u64) -> &mut Self {
        let instruction = self.next(Registers::of(on), Registers::NONE, 1, Some(BranchKind::Conditional));
        self.to.execute(&instruction, None, Some(BranchOutcome { taken, target: label }));
        self
    }

    /// Calls a function; the pen stands at its beginning, and gets back where to return to.
    #[inline]
    pub fn call(&mut self, label: u64) -> u64 {
        let instruction = self.next(Registers::NONE, Registers::NONE, 1, Some(BranchKind::Call));
        self.to.execute(&instruction, None, Some(BranchOutcome { taken: true, target: label }));
        std::mem::replace(&mut self.at, label)
    }

    /// Returns from a function to where its call stood.
    #[inline]
    pub fn return_to(&mut self, back: u64) -> &mut Self {
        let instruction = self.next(Registers::NONE, Registers::NONE, 1, Some(BranchKind::Return));
        self.to.execute(&instruction, None, Some(BranchOutcome { taken: true, target: back }));
        self.at(back)
    }

    /// `loadVA`.
    pub fn load_va(&mut self, into: Register, from: Register, integer: u64) -> u64 {
        let instruction = self.next(Registers::of(&[from]), Registers::of(&[into]), 0, None);
        self.to.load_va(&instruction, integer)
    }

    /// `insertSTLT`.
    pub fn insert_stlt(&mut self, from: Register, record: Register, integer: u64, address: u64) {
        let instruction = self.next(Registers::of(&[from, record]), Registers::NONE, 0, None);
        self.to.insert_stlt(&instruction, integer, address);
    }
}
