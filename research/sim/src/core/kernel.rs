//! The kernel's work for the STLT, on the clock: the program waits for it.
//!
//! The kernel begins when all before it has retired; the program is fetched anew when it is done. What is counted is
//! what the table costs beyond what the kernel does anyway: the system call itself, the page table's change, the
//! scheduler and the exchange of registers are not simulated, because they are the same with a table and without.
//!
//! | call | what the program waits for |
//! |---|---|
//! | [`Core::unmap`], [`Core::invalidate`] | the scan of the table, where the IPB is full |
//! | [`Core::stlt_resize`] | the clearing of the new table |
//! | [`Core::switch_to`] | the process's array, put into the IPB again |
//! | [`Core::stlt_update`] | the scan, asked for |
//! | `STLTalloc`, `STLTfree` | nothing: they are only [the machine's](crate::Machine::stlt_alloc) |
//!
//! A table is allocated once, before anything is measured, and freed by nobody while something is: their time would be
//! in no result. A program that frees its table and allocates another while it is measured has that for nothing, and
//! finds lines of the old one in the caches; that is what `STLTresize` is for, whose clearing is on the clock.

use std::ops::Range;

use super::{Core, Late};
use crate::machine::Process;
use crate::stlt::TableError;

impl Core {
    /// [`Machine::unmap`](crate::Machine::unmap), on the clock: if the kernel must bring the STLT up to date, the
    /// program goes on when that is done.
    pub fn unmap(&mut self, range: Range<u64>) -> u64 {
        let withdrawn = self.machine.unmap(range);
        self.wait_for_kernel();
        withdrawn
    }

    /// [`Machine::invalidate`](crate::Machine::invalidate), on the clock, as [`Core::unmap`].
    pub fn invalidate(&mut self, range: Range<u64>) -> u64 {
        let withdrawn = self.machine.invalidate(range);
        self.wait_for_kernel();
        withdrawn
    }

    /// [`Machine::stlt_resize`](crate::Machine::stlt_resize), on the clock: the cycles that the kernel needed.
    ///
    /// # Errors
    /// As there.
    pub fn stlt_resize(&mut self, rows: u64) -> Result<u64, TableError> {
        self.machine.stlt_resize(rows)?;
        Ok(self.wait_for_kernel())
    }

    /// [`Machine::stlt_update`](crate::Machine::stlt_update), on the clock: the cycles that the kernel needed.
    pub fn stlt_update(&mut self) -> u64 {
        self.machine.stlt_update();
        self.wait_for_kernel()
    }

    /// [`Machine::switch_to`](crate::Machine::switch_to), on the clock: the other process begins when all of this one
    /// has retired. The cycles that the kernel needed for the IPB.
    pub fn switch_to(&mut self, other: &mut Process) -> u64 {
        self.machine.switch_to(other);
        self.machine.read_invalidated();
        self.front_end.0 = self.front_end.0.max(self.retire.0);
        self.code_line = u64::MAX;
        self.wait_for_kernel()
    }

    fn wait_for_kernel(&mut self) -> u64 {
        let cycles = self.machine.take_kernel_cycles();
        if cycles > 0 {
            self.kernel_until = self.front_end.0.max(self.retire.0) + cycles;
            self.front_end = (self.kernel_until, Late::Kernel);
        }
        cycles
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;
    use crate::stlt::Variant;

    const ROWS: u64 = 1 << 12;
    const RECORDS: u64 = 0x5555_0000_0000;

    fn core() -> Core {
        let mut core = Core::new(&Profile::stlt_paper()).expect("a legal profile");
        core.machine_mut().stlt_alloc(ROWS, 4, Variant::Full).expect("a legal table");
        core
    }

    fn insert(core: &mut Core, integer: u64) -> u64 {
        let record = RECORDS + integer * 4096;
        core.machine_mut().map(record);
        core.machine_mut().insert_stlt(integer << 12, record);
        record
    }

    #[test]
    fn clearing_takes_the_channel_s_time_for_each_line_and_leaves_no_line_in_the_caches() {
        let mut core = core();
        insert(&mut core, 1);
        let before = core.machine().statistics();
        assert!(core.machine_mut().load_va(1 << 12).address != 0, "in the first cache");
        assert_eq!(core.machine().statistics().l1d.misses(), before.l1d.misses());
        // Four rows a line, 22 cycles a line.
        assert_eq!(core.stlt_resize(2 * ROWS), Ok(2 * ROWS / 4 * 22));
        let before = core.machine().statistics();
        assert_eq!(core.machine_mut().load_va(1 << 12).address, 0);
        assert_eq!(core.machine().statistics().memory.reads, before.memory.reads + 1, "cleared in memory");
        assert_eq!(core.stlt_resize(3), Err(TableError::Rows { rows: 3, ways: 4 }));
    }

    #[test]
    fn what_the_kernel_does_is_the_table_s_and_the_line_after_it_is_not() {
        let mut core = core();
        for integer in 1..=9 {
            let record = insert(&mut core, integer);
            core.unmap(record..record + 1);
        }
        let mut other = core.machine().new_process(1);
        core.switch_to(&mut other);
        let instruction = crate::Instruction { address: 0x40_0000, length: 4, ..Default::default() };
        core.execute(&instruction, &[], None);
        let before = core.statistics();
        let cycles = core.switch_to(&mut other);
        // The TLBs are empty: this instruction's line is asked for anew, when the kernel is done.
        core.execute(&instruction, &[], None);
        let stack = core.statistics().stack;
        assert!(cycles > 100, "{cycles}");
        assert_eq!(stack.stlt - before.stack.stlt, cycles);
        assert!(stack.fetch > before.stack.fetch, "{stack:?}");
    }

    #[test]
    fn the_ipb_is_filled_again_at_a_cycle_an_entry_and_the_array_s_lines() {
        let mut core = core();
        let records: Vec<_> = (1..=9).map(|integer| insert(&mut core, integer)).collect();
        records.iter().for_each(|&record| _ = core.unmap(record..record + 1));
        let mut other = core.machine().new_process(1);
        assert_eq!(core.switch_to(&mut other), 0, "it has no array");
        // Nine entries of eight bytes lie in two lines, which were never read before.
        assert_eq!(core.switch_to(&mut other), 9 + 2 * (40 + 120));
        assert_eq!(core.switch_to(&mut other), 0);
        assert_eq!(core.switch_to(&mut other), 9 + 2 * 4);
        assert_eq!(core.machine_mut().load_va(1 << 12).address, 0, "its page is in the IPB");
        // Brought up to date, the table has no old rows, and the array is empty.
        assert!(core.stlt_update() >= ROWS / 4 * 4);
        assert_eq!(core.machine().statistics().stlt.scrubbed, 9);
        core.switch_to(&mut other);
        assert_eq!(core.switch_to(&mut other), 0);
    }
}
