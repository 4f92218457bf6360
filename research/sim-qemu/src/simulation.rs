//! What the simulated machine makes of the guest's events.
//!
//! ```text
//!   a block begins          the block before it has ended: run it, with its accesses; its last branch went here
//!   an access               noted, with its instruction's place
//!   loadVA, insertSTLT      the block up to here is run, then the instruction; the guest gets the answer
//!   a page goes             TLBs, STB and IPB hear of it: with the clock on, when the system call's block has been run
//!   a phase begins          from here on: nothing, functional, detailed, measured
//! ```
//!
//! While the guest loads, blocks and accesses are not even reported; the STLT is kept up to date all the same,
//! so a guest may warm its table without any instrumentation. In the functional phase accesses go to the
//! machine as they come. With the clock on, a block is run when the next one begins, because only then is it
//! known where its branch went.
//!
//! Nothing here knows QEMU; the tests play guest themselves.

use std::ops::Range;

use sim::stlt::TableError;
use sim::{
    AccessKind, BranchOutcome, Core, CoreStatistics, HitsAndMisses, Instruction, LINE_SHIFT, MemoryAccess,
    Since, Statistics, Window,
};

use crate::address_space::Change;
use crate::decode::{Meaning, Translator};
use crate::protocol::{Operation, Phase, Request};

/// A translated block of instructions: straight-line code with one entry.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// Where it begins.
    pub address: u64,
    /// Where the guest goes if it does not branch.
    pub end: u64,
    /// Its instructions, cut after each STLT instruction.
    parts: Vec<Part>,
    /// The lines of code that it touches.
    lines: Range<u64>,
}

/// Instructions up to an STLT instruction, or to the end.
#[derive(Debug, Clone, PartialEq, Default)]
struct Part {
    instructions: Vec<Instruction>,
    then: Option<(Operation, Instruction)>,
}

/// What the plugin must watch in an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watch {
    /// Its accesses, by this place in its part; those of 8 bytes that follow each other are halves of one.
    Accesses {
        /// Of the instruction in its part.
        place: u32,
        /// Whether its operand is wider than an access.
        halves: bool,
    },
    /// Its execution: it is this.
    Stlt(Operation),
    /// Nothing: it is not there on the simulated machine.
    Nothing,
}

impl Block {
    /// The block of these instructions (address and bytes), and what to watch in each.
    pub fn new<'a>(
        translator: &mut Translator,
        instructions: impl Iterator<Item = (u64, &'a [u8])>,
    ) -> (Block, Vec<Watch>) {
        let mut block = Block { address: 0, end: 0, parts: vec![Part::default()], lines: 0..0 };
        let mut watches = Vec::new();
        for (address, bytes) in instructions {
            if watches.is_empty() {
                block.address = address;
            }
            block.end = address + bytes.len() as u64;
            let part = block.parts.last_mut().expect("there is always one");
            watches.push(match translator.translate(bytes, address) {
                Meaning::Plain { instruction, bytes } => {
                    part.instructions.push(instruction);
                    let place = part.instructions.len() as u32 - 1;
                    Watch::Accesses { place, halves: bytes >= 16 }
                }
                Meaning::Stlt(operation, instruction) => {
                    part.then = Some((operation, instruction));
                    block.parts.push(Part::default());
                    Watch::Stlt(operation)
                }
                Meaning::Conveyance => Watch::Nothing,
            });
        }
        block.lines = block.address >> LINE_SHIFT..(block.end.saturating_sub(1) >> LINE_SHIFT) + 1;
        (block, watches)
    }
}

/// A guest on a simulated machine.
#[derive(Debug)]
pub struct Simulation {
    core: Core,
    phase: Phase,
    /// The block that runs, and its part.
    current: Option<(&'static Block, usize)>,
    accesses: Vec<(usize, MemoryAccess)>,
    /// What happened to pages, after what is still to be run.
    changes: Vec<Change>,
    began: (CoreStatistics, Statistics),
    windows: Vec<Window>,
}

impl Simulation {
    /// A guest that loads.
    #[must_use]
    pub fn new(core: Core) -> Simulation {
        Simulation {
            core,
            phase: Phase::Load,
            current: None,
            accesses: Vec::new(),
            changes: Vec::new(),
            began: Default::default(),
            windows: Vec::new(),
        }
    }

    /// What is being done.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The windows that were measured so far.
    #[must_use]
    pub fn windows(&self) -> &[Window] {
        &self.windows
    }

    /// The machine.
    #[must_use]
    pub fn core(&self) -> &Core {
        &self.core
    }

    fn is_timed(&self) -> bool {
        matches!(self.phase, Phase::Detailed | Phase::Measured)
    }

    /// A block begins.
    #[inline]
    pub fn begin(&mut self, block: &'static Block) {
        if self.is_timed() {
            self.finish(Some(block.address));
            self.current = Some((block, 0));
        } else if self.phase == Phase::Functional {
            self.current = Some((block, 0));
            for line in block.lines.clone() {
                self.core.machine_mut().access(line << LINE_SHIFT, AccessKind::Fetch);
            }
        }
    }

    /// An instruction of the block that runs makes an access. With `halves`, it may be the rest of the last one.
    #[inline]
    pub fn access(&mut self, place: u32, halves: bool, access: MemoryAccess) {
        match self.phase {
            Phase::Load => {}
            Phase::Functional => {
                let kind = if access.store { AccessKind::Store } else { AccessKind::Load };
                self.core.machine_mut().access_bytes(access.address, access.bytes.into(), kind, |_| {});
            }
            Phase::Detailed | Phase::Measured => {
                if halves
                    && let Some((last_place, last)) = self.accesses.last_mut()
                    && *last_place == place as usize
                    && last.store == access.store
                    && last.address + u64::from(last.bytes) == access.address
                {
                    last.bytes += access.bytes;
                    return;
                }
                self.accesses.push((place as usize, access));
            }
        }
    }

    /// The rest of the block that runs is done; the guest goes on at `next`, if that is known.
    fn finish(&mut self, next: Option<u64>) {
        if let Some((block, part)) = self.current.take()
            && let Some(part) = block.parts.get(part)
        {
            let exit = next.map(|target| BranchOutcome { taken: target != block.end, target });
            self.run(&part.instructions, exit);
        }
        self.change_pages();
    }

    fn run(&mut self, instructions: &[Instruction], exit: Option<BranchOutcome>) {
        self.core.run_instructions(instructions, &self.accesses, exit);
        self.accesses.clear();
    }

    /// The next STLT instruction of the block that runs, with its operands: what it answers.
    pub fn stlt(&mut self, operation: Operation, integer: u64, address: u64) -> u64 {
        if self.phase == Phase::Load {
            return self.stlt_while_loading(operation, integer, address);
        }
        let Some((block, part)) = &mut self.current else { return 0 };
        let Some(Part { instructions, then: Some((_, instruction)) }) = block.parts.get(*part) else {
            return 0;
        };
        *part += 1;
        if self.phase == Phase::Functional {
            let machine = self.core.machine_mut();
            return match operation {
                Operation::LoadVa => machine.load_va(integer).address,
                Operation::InsertStlt => {
                    self.know(address);
                    self.core.machine_mut().insert_stlt(integer, address);
                    0
                }
            };
        }
        self.run(instructions, None);
        self.change_pages();
        match operation {
            Operation::LoadVa => self.core.load_va(instruction, integer).address,
            Operation::InsertStlt => {
                self.know(address);
                self.core.insert_stlt(instruction, integer, address);
                0
            }
        }
    }

    /// The guest has a record at `address`: its page is there. It may have been touched while nobody watched, and not
    /// been read since: an index that has keys of its own finds a record without touching it. A guest that inserts what
    /// it never wrote is so given a page where the simplified walker would have found none.
    fn know(&mut self, address: u64) {
        if address != 0 {
            self.core.machine_mut().map(address);
        }
    }

    /// Nothing is simulated but the table itself: no cache hears of its lines.
    fn stlt_while_loading(&mut self, operation: Operation, integer: u64, address: u64) -> u64 {
        let machine = self.core.machine_mut();
        match operation {
            Operation::LoadVa => machine.replay_load_va(integer),
            Operation::InsertStlt => {
                machine.replay_insert_stlt(integer, address);
                0
            }
        }
    }

    /// Pages go, or get other rights, after all that was reported so far. With the clock on, the block
    /// that runs is run when the next one begins: it still has the pages as they were.
    pub fn pages_change(&mut self, change: Change) {
        self.changes.push(change);
        if self.current.is_none() || !self.is_timed() {
            self.change_pages();
        }
    }

    fn change_pages(&mut self) {
        let timed = self.is_timed();
        for change in std::mem::take(&mut self.changes) {
            match change {
                // Without the clock nobody waits for the kernel.
                Change::Gone(range) if timed => _ = self.core.unmap(range),
                Change::Gone(range) => _ = self.core.machine_mut().unmap(range),
                Change::Protected(range) if timed => _ = self.core.invalidate(range),
                Change::Protected(range) => _ = self.core.machine_mut().invalidate(range),
            }
        }
    }

    /// Answers a system call.
    ///
    /// # Errors
    /// If the STLT cannot be as asked for.
    pub fn answer(&mut self, request: Request) -> Result<(), TableError> {
        let timed = self.is_timed();
        if timed {
            self.finish(None);
        }
        let machine = self.core.machine_mut();
        match request {
            Request::Greeting(_) => {}
            Request::Alloc { rows, ways, variant } => machine.stlt_alloc(rows, ways, variant)?,
            // Without the clock nobody waits for the kernel.
            Request::Resize(rows) if timed => _ = self.core.stlt_resize(rows)?,
            Request::Resize(rows) => machine.stlt_resize(rows)?,
            Request::Free => machine.stlt_free()?,
            Request::Phase(phase, counts) => self.enter(phase, counts),
        }
        Ok(())
    }

    fn enter(&mut self, phase: Phase, [operations, hits, misses]: [u64; 3]) {
        self.current = None;
        self.accesses.clear();
        if self.phase == Phase::Measured {
            let fast_path = (hits + misses > 0).then_some(HitsAndMisses { hits, misses });
            self.windows.push(Window {
                operations,
                fast_path,
                core: self.core.statistics().since(&self.began.0),
                memory: self.core.machine().statistics().since(&self.began.1),
            });
        }
        if !self.is_timed() {
            self.core.resume();
        }
        self.phase = phase;
        self.began = (self.core.statistics(), self.core.machine().statistics());
    }
}

#[cfg(test)]
mod tests {
    use sim::Profile;
    use sim::stlt::Variant;

    use super::*;

    /// mov rax, [rbx]; movdqu xmm0, [rsi]; jne
    const LOADS: [(u64, &[u8]); 3] =
        [(0x1000, &[0x48, 0x8b, 0x03]), (0x1003, &[0xf3, 0x0f, 0x6f, 0x06]), (0x1007, &[0x75, 0xf7])];
    const LOOKUP: [(u64, &[u8]); 5] = [
        (0x2000, &[0x48, 0x89, 0x3c, 0x25, 0, 0, 0x54, 0x53]),
        (0x2008, &[0x0f, 0x1f, 0x80, 1, b'T', b'L', b'S']),
        (0x200f, &[0x48, 0x8b, 0x04, 0x25, 0x10, 0, 0x54, 0x53]),
        (0x2017, &[0x48, 0x8b, 0x10]),
        (0x201a, &[0xc3]),
    ];

    const INSERTION: [(u64, &[u8]); 3] = [
        (0x4000, &[0x48, 0x89, 0x3c, 0x25, 0, 0, 0x54, 0x53]),
        (0x4008, &[0x0f, 0x1f, 0x80, 2, b'T', b'L', b'S']),
        (0x400f, &[0xc3]),
    ];

    fn block(instructions: &[(u64, &'static [u8])]) -> (&'static Block, Vec<Watch>) {
        let (block, watches) = Block::new(&mut Translator::default(), instructions.iter().copied());
        (Box::leak(Box::new(block)), watches)
    }

    fn simulation() -> Simulation {
        Simulation::new(Core::new(&Profile::stlt_paper()).expect("a machine"))
    }

    #[test]
    fn a_block_is_cut_where_the_stlt_is_used_and_its_conveyance_is_left_out() {
        let (loads, watches) = block(&LOADS);
        assert_eq!((loads.address, loads.end, loads.parts.len()), (0x1000, 0x1009, 1));
        let access = |place, halves| Watch::Accesses { place, halves };
        assert_eq!(watches, [access(0, false), access(1, true), access(2, false)]);
        let (lookup, watches) = block(&LOOKUP);
        assert_eq!(
            watches,
            [
                Watch::Nothing,
                Watch::Stlt(Operation::LoadVa),
                Watch::Nothing,
                access(0, false),
                access(1, false)
            ]
        );
        assert_eq!(lookup.parts[0].instructions.len(), 0);
        assert_eq!(lookup.parts[1].instructions.len(), 2);
    }

    #[test]
    fn only_windows_are_measured_and_a_wide_access_is_one() {
        let (loads, _) = block(&LOADS);
        let mut guest = simulation();
        let run = |guest: &mut Simulation, times: u64| {
            for _ in 0..times {
                guest.begin(loads);
                guest.access(0, false, MemoryAccess::load(0x9000, 8));
                guest.access(1, true, MemoryAccess::load(0xa000, 8));
                guest.access(1, true, MemoryAccess::load(0xa008, 8));
            }
        };
        let phase = |guest: &mut Simulation, phase, counts| {
            guest.answer(Request::Phase(phase, counts)).expect("no table is concerned");
        };
        run(&mut guest, 5);
        assert_eq!(guest.core().machine().statistics(), Statistics::default(), "not even asked");
        phase(&mut guest, Phase::Functional, [0; 3]);
        run(&mut guest, 5);
        assert_eq!(guest.core().statistics().instructions, 0, "no clock");
        phase(&mut guest, Phase::Detailed, [0; 3]);
        run(&mut guest, 5);
        for operations in [10, 20] {
            phase(&mut guest, Phase::Measured, [0; 3]);
            run(&mut guest, operations);
            phase(&mut guest, Phase::Detailed, [operations, operations - 1, 1]);
            run(&mut guest, 3);
        }
        phase(&mut guest, Phase::Load, [0; 3]);
        assert_eq!(guest.windows().len(), 2);
        for (window, operations) in guest.windows().iter().zip([10, 20]) {
            assert_eq!(window.operations, operations);
            assert_eq!(window.fast_path, Some(HitsAndMisses { hits: operations - 1, misses: 1 }));
            assert_eq!(window.core.instructions, 3 * operations);
            assert_eq!(window.memory.accesses.loads, 2 * operations, "halves are one");
            assert_eq!(window.core.branches, operations - 1, "where the last went, nobody knows");
            assert_eq!(window.memory.l1d.load.misses, 0);
        }
    }

    #[test]
    fn an_answer_comes_from_the_table_in_every_phase() {
        let (lookup, _) = block(&LOOKUP);
        let mut guest = simulation();
        guest.answer(Request::Alloc { rows: 1024, ways: 4, variant: Variant::Full }).expect("a table");
        assert_eq!(guest.stlt(Operation::LoadVa, 7, 0), 0);
        guest.stlt(Operation::InsertStlt, 7, 0x5000);
        for phase in [Phase::Load, Phase::Functional, Phase::Detailed, Phase::Measured] {
            guest.answer(Request::Phase(phase, [0; 3])).expect("a phase");
            guest.begin(lookup);
            assert_eq!(guest.stlt(Operation::LoadVa, 7, 0), 0x5000, "{phase:?}");
            guest.access(0, false, MemoryAccess::load(0x5000, 8));
        }
        guest.answer(Request::Phase(Phase::Load, [1, 1, 0])).expect("a phase");
        let window = guest.windows()[0];
        assert_eq!((window.core.instructions, window.memory.accesses.loads), (3, 1), "loadVA, mov, ret");
        assert_eq!(window.memory.stlt.hits, 1);
        guest.pages_change(Change::Gone(0x5000..0x5001));
        assert_eq!(guest.stlt(Operation::LoadVa, 7, 0), 0, "its page is in the IPB");
        guest.answer(Request::Free).expect("there was one");
        assert_eq!(guest.answer(Request::Free), Err(TableError::Absent));
    }

    /// mov rax, [rbx]; syscall
    const CALL: [(u64, &[u8]); 2] = [(0x3000, &[0x48, 0x8b, 0x03]), (0x3003, &[0x0f, 0x05])];

    #[test]
    fn a_block_that_takes_a_page_away_still_has_it() {
        let (call, _) = block(&CALL);
        let (loads, _) = block(&LOADS);
        for phase in [Phase::Functional, Phase::Detailed, Phase::Measured] {
            let mut guest = simulation();
            guest.answer(Request::Phase(phase, [0; 3])).expect("a phase");
            guest.begin(call);
            guest.access(0, false, MemoryAccess::load(0x9000, 8));
            // The system call returns before the next block begins.
            guest.pages_change(Change::Gone(0x9000..0xa000));
            guest.begin(loads);
            let machine = guest.core().machine();
            assert_eq!(machine.entry(0x9000), None, "{phase:?}: the load came first, then the page went");
            guest.access(0, false, MemoryAccess::load(0x9000, 8));
            guest.begin(loads);
            assert!(guest.core().machine().entry(0x9000).is_some(), "{phase:?}: touched anew");
        }
    }

    #[test]
    fn new_rights_are_heard_of_and_pages_stay() {
        let (loads, _) = block(&LOADS);
        let mut guest = simulation();
        guest.answer(Request::Alloc { rows: 1024, ways: 4, variant: Variant::Full }).expect("a table");
        guest.stlt(Operation::InsertStlt, 7, 0x9000);
        guest.answer(Request::Phase(Phase::Functional, [0; 3])).expect("a phase");
        guest.begin(loads);
        let before = guest.core().machine().entry(0x9000);
        guest.pages_change(Change::Protected(0x9000..0xa000));
        assert_eq!(guest.core().machine().entry(0x9000), before);
        guest.answer(Request::Phase(Phase::Load, [0; 3])).expect("a phase");
        assert_eq!(guest.stlt(Operation::LoadVa, 7, 0), 0, "its page is in the IPB");
    }

    #[test]
    fn a_record_that_was_written_while_loading_can_be_inserted() {
        // The index found it by a key of its own: nobody has seen the record's page touched.
        let (lookup, _) = block(&INSERTION);
        for phase in [Phase::Functional, Phase::Detailed, Phase::Measured] {
            let mut guest = simulation();
            guest.answer(Request::Alloc { rows: 1024, ways: 4, variant: Variant::Full }).expect("a table");
            guest.answer(Request::Phase(phase, [0; 3])).expect("a phase");
            guest.begin(lookup);
            guest.stlt(Operation::InsertStlt, 7, 0x9000);
            guest.answer(Request::Phase(Phase::Load, [0; 3])).expect("a phase");
            assert_eq!(guest.stlt(Operation::LoadVa, 7, 0), 0x9000, "{phase:?}");
            assert_eq!(guest.core().machine().statistics().stlt.refused, 0, "{phase:?}");
        }
    }
}
