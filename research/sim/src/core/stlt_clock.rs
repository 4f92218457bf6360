//! When `loadVA` and `insertSTLT` are done (sections III-D and III-E), and what the software-only form costs instead.
//!
//! ```text
//!   loadVA:      integer ready, and no STLT instruction with the same integer still to be performed
//!                -> the STU for its cycles (one unit, pipelined with memory) -> the set's lines -> the address
//!   insertSTLT:  the same; the STU -> a place in the insertion buffer: then it retires
//!                -> the address's translation and the set's lines -> the row written: performed, the place is free
//! ```
//!
//! The insertion buffer holds outstanding stores: the row's place and the address are in it before the simplified
//! walker is asked (Figure 9). So the walk delays neither the instruction nor those behind it, unless the buffer is
//! full; and it may, because that walker never faults. Where it finds nothing, the place is free as soon as it has
//! ended.
//!
//! Instructions with different integers overlap freely; the order with the program's own loads and stores is
//! that of the registers, because it is only the record's address that counts.
//!
//! In software the same lines are read by loads of the program, and around them stand the instructions that
//! the STU saves: finding the set, comparing row by row with a branch each, drawing for the counter. They are
//! modelled as such: one sequence of instructions, with code lines, registers and branches of its own.

use super::{BranchKind, BranchOutcome, Core, Instruction, Registers, Waited};
use crate::machine::Access;
use crate::reservations::Cycle;
use crate::stlt::{InsertStlt, LoadVa, TableAccesses, Variant};

/// Where the software-only form's code lies.
const SOFTWARE_CODE: u64 = 0x5fff_f000_0000;
/// A register that nobody else uses, for its chain of values.
const SCRATCH: Registers = Registers(1 << 63);
/// Bytes of an instruction of its.
const STEP: u64 = 4;

impl Core {
    fn is_software(&self) -> bool {
        self.machine.stlt().is_some_and(|table| table.variant() == Variant::Software)
    }

    /// `start`, or when the last instruction with the same integer has been performed.
    fn in_order(&mut self, integer: u64, start: Cycle, now: Cycle) -> Cycle {
        self.performed.retain(|&(_, performed)| performed > now);
        let same = self.performed.iter().filter(|&&(other, _)| other == integer);
        same.map(|&(_, performed)| performed).fold(start, Cycle::max)
    }

    /// When the set's lines are there, if they are asked for at `at`.
    fn time_reads(&mut self, accesses: &TableAccesses, now: Cycle, at: Cycle) -> Cycle {
        accesses
            .reads()
            .map(|access| self.clock.time(&mut self.machine, access, now, at).done)
            .fold(at, Cycle::max)
    }

    /// Runs `loadVA`: the instruction reads the integer's register and writes the address's.
    pub fn load_va(&mut self, instruction: &Instruction, integer: u64) -> LoadVa {
        if self.is_software() {
            return self.load_va_in_software(instruction, integer);
        }
        self.machine.prefetch_row(integer);
        self.fetch(instruction);
        let entered = self.enter(instruction.sources, false);
        let now = entered.dispatch;
        let loaded = self.machine.load_va(integer);
        let start = self.in_order(integer, entered.start, now);
        let unit = Cycle::from(loaded.unit_cycles);
        let begins = self.stu.reserve(now, start, unit);
        let done = self.time_reads(&loaded.accesses, now, begins + unit);
        if let Some(write) = &loaded.accesses.write {
            self.clock.time(&mut self.machine, write, now, done);
        }
        self.performed.push((integer, done));
        let waited = Waited { stlt: done - entered.start, ..Waited::default() };
        self.leave(instruction.destinations, &entered, done, done, waited);
        loaded
    }

    /// Runs `insertSTLT`: the instruction reads the integer's register and the address's.
    pub fn insert_stlt(&mut self, instruction: &Instruction, integer: u64, address: u64) -> InsertStlt {
        if self.is_software() {
            return self.insert_stlt_in_software(instruction, integer, address);
        }
        self.fetch(instruction);
        let entered = self.enter(instruction.sources, false);
        let now = entered.dispatch;
        let inserted = self.machine.insert_stlt(integer, address);
        let start = self.in_order(integer, entered.start, now);
        let unit = Cycle::from(inserted.unit_cycles);
        let begins = self.stu.reserve(now, start, unit) + unit;
        let held = Cycle::from(inserted.latency - inserted.unit_cycles);
        let buffered = self.insertion_buffer.earliest(now, begins, held.max(1));
        let translated =
            self.clock.translate(inserted.walk, inserted.translation_cycles, &self.machine, now, buffered);
        let mut performed = translated.max(self.time_reads(&inserted.accesses, now, buffered));
        if let Some(write) = &inserted.accesses.write {
            performed += 1;
            self.clock.time(&mut self.machine, write, now, performed);
        }
        self.insertion_buffer.take(buffered, performed);
        self.performed.push((integer, performed));
        let waited = Waited { stlt: buffered - entered.start, ..Waited::default() };
        self.leave(instruction.destinations, &entered, buffered, buffered, waited);
        inserted
    }

    /// One instruction of the software-only form: waits for the scratch register, and for `access` if it has one. The
    /// first of a lookup waits for its sources only: nothing of the lookup before goes into it.
    fn software_step(
        &mut self,
        place: &mut u64,
        sources: Registers,
        access: Option<&Access>,
        branch: Option<bool>,
    ) {
        let instruction = Instruction {
            address: SOFTWARE_CODE + *place * STEP,
            length: STEP as u8,
            latency: 1,
            sources: if *place == 0 { sources } else { sources.with(SCRATCH) },
            destinations: SCRATCH,
            branch: branch.map(|_| BranchKind::Conditional),
        };
        *place += 1;
        self.fetch(&instruction);
        let entered = self.enter(instruction.sources, false);
        let mut waited = Waited::default();
        let mut done = entered.start + 1;
        if let Some(access) = access {
            let timed = self.clock.time(&mut self.machine, access, entered.dispatch, entered.start);
            self.note(access, timed, entered.start, &mut waited);
            done = timed.done;
        }
        // A comparison's result is only the branch's: what is computed from the row does not wait for it.
        let destinations = if branch.is_some() { Registers::NONE } else { SCRATCH };
        self.leave(destinations, &entered, done, done, waited);
        if let Some(taken) = branch {
            let target = instruction.address + 64;
            self.branch(BranchKind::Conditional, &instruction, BranchOutcome { taken, target }, done);
        }
    }

    /// The set is found and its rows are compared in turn until one matches. The first row of a line waits
    /// for the line.
    fn software_scan(
        &mut self,
        instruction: &Instruction,
        accesses: &TableAccesses,
        rows: u64,
        matched: bool,
    ) -> u64 {
        let mut place = 0;
        for _ in 0..3 {
            self.software_step(&mut place, instruction.sources, None, None);
        }
        let lines: Vec<Access> = accesses.reads().copied().collect();
        for row in 0..rows {
            let line = (row % 4 == 0).then(|| lines.get(row as usize / 4)).flatten();
            self.software_step(&mut place, Registers::NONE, line, None);
            self.software_step(&mut place, Registers::NONE, None, None);
            self.software_step(&mut place, Registers::NONE, None, Some(matched && row + 1 == rows));
        }
        place
    }

    /// Rows of the set up to the one that was written, or all.
    fn rows_scanned(&self, accesses: &TableAccesses) -> u64 {
        let ways = self.machine.stlt().map_or(1, |table| u64::from(table.ways()));
        let first = accesses.reads().next().map(|access| access.physical);
        match (first, &accesses.write) {
            (Some(first), Some(write)) => (write.physical.wrapping_sub(first) / 16 + 1).min(ways),
            _ => ways,
        }
    }

    fn load_va_in_software(&mut self, instruction: &Instruction, integer: u64) -> LoadVa {
        let loaded = self.machine.load_va(integer);
        let rows = self.rows_scanned(&loaded.accesses);
        let matched = loaded.accesses.write.is_some();
        let mut place = self.software_scan(instruction, &loaded.accesses, rows, matched);
        if let Some(write) = &loaded.accesses.write {
            // The draw: xorshift, a mask from the counter, a branch that depends on chance, and the new word.
            place = 64;
            for _ in 0..8 {
                self.software_step(&mut place, Registers::NONE, None, None);
            }
            self.software_step(&mut place, Registers::NONE, None, Some(loaded.counted));
            self.software_step(&mut place, Registers::NONE, Some(write), None);
        }
        self.finish_in_software(instruction, place);
        loaded
    }

    fn insert_stlt_in_software(
        &mut self,
        instruction: &Instruction,
        integer: u64,
        address: u64,
    ) -> InsertStlt {
        let inserted = self.machine.insert_stlt(integer, address);
        let ways = self.machine.stlt().map_or(1, |table| u64::from(table.ways()));
        // Every row is compared with the integer and with the smallest counter so far.
        let mut place = self.software_scan(instruction, &inserted.accesses, ways, false);
        for _ in 0..2 * ways + 2 {
            self.software_step(&mut place, Registers::NONE, None, None);
        }
        if let Some(write) = &inserted.accesses.write {
            self.software_step(&mut place, Registers::NONE, Some(write), None);
            self.software_step(&mut place, Registers::NONE, Some(write), None);
        }
        self.finish_in_software(instruction, place);
        inserted
    }

    /// The result moves into the instruction's own register.
    fn finish_in_software(&mut self, instruction: &Instruction, place: u64) {
        let last = Instruction {
            address: SOFTWARE_CODE + place * STEP,
            length: STEP as u8,
            latency: 1,
            sources: SCRATCH,
            destinations: instruction.destinations,
            branch: None,
        };
        self.execute(&last, &[], None);
    }
}
