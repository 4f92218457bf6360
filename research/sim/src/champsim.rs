//! Traces in the format of ChampSim, a simulator that others use for caches and prefetchers.
//!
//! The format is that of the simulator's documentation ("ChampSim: Championship Simulator", Gober and others,
//! 2022): one record of 64 bytes for each instruction, little-endian, one after the other.
//!
//! ```text
//!   0  ip                 8 bytes
//!   8  is a branch        1            9  was taken          1
//!  10  registers written  2 x 1       12  registers read     4 x 1
//!  16  bytes written at   2 x 8       32  bytes read at      4 x 8
//! ```
//!
//! Zero means "none", for registers and addresses. What kind of branch it is, is said by its registers: the
//! instruction pointer (26), the stack pointer (6) and the flags (25), read and written.
//!
//! ```text
//!                      reads                          writes
//!   direct             -                              ip
//!   indirect           another                        ip
//!   conditional        ip flags                       ip
//!   call               ip sp                          ip sp
//!   indirect call      ip sp another                  ip sp
//!   return             sp                             ip sp
//! ```
//!
//! Our registers 0 to 63 become 64 to 127, out of the way of those three. An instruction with more accesses or
//! registers than there is room for loses the last ones; no instruction of x86-64 that a guest here executes has
//! more. Sizes of accesses are not in the format: an access over two lines is written as two.

use std::io::{self, Write};

use crate::cache::LINE_SHIFT;
use crate::core::{Instruction, MemoryAccess, Registers};
use crate::predictor::BranchKind;

/// Bytes of a record.
pub const RECORD: usize = 64;

const STACK_POINTER: u8 = 6;
const FLAGS: u8 = 25;
const INSTRUCTION_POINTER: u8 = 26;
/// Where ours begin.
const FIRST: u8 = 64;

/// A branch that was executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Branch {
    /// Its kind.
    pub kind: BranchKind,
    /// Whether it was taken.
    pub taken: bool,
}

/// A record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Record {
    /// Where the instruction lies.
    pub address: u64,
    /// Whether it is a branch, as a byte.
    pub is_branch: u8,
    /// Whether it was taken, as a byte.
    pub taken: u8,
    /// Registers that it writes.
    pub destinations: [u8; 2],
    /// Registers that it reads.
    pub sources: [u8; 4],
    /// Where it writes.
    pub stores: [u64; 2],
    /// Where it reads.
    pub loads: [u64; 4],
}

/// Puts as many as there is room for.
fn fill<T: Copy, const N: usize>(places: &mut [T; N], values: impl Iterator<Item = T>) {
    places.iter_mut().zip(values).for_each(|(place, value)| *place = value);
}

fn numbered(registers: Registers) -> impl Iterator<Item = u8> {
    registers.each().map(|number| FIRST + number as u8)
}

/// The address of each line that the accesses touch.
fn lines(accesses: &[MemoryAccess], store: bool) -> impl Iterator<Item = u64> {
    accesses.iter().filter(move |access| access.store == store).flat_map(|access| {
        let last = access.address.saturating_add(u64::from(access.bytes.max(1)) - 1) >> LINE_SHIFT;
        let others = (access.address >> LINE_SHIFT) + 1..=last;
        std::iter::once(access.address).chain(others.map(|line| line << LINE_SHIFT))
    })
}

impl Record {
    /// An instruction with its accesses, and how it went if it is a branch.
    #[must_use]
    pub fn new(instruction: &Instruction, accesses: &[MemoryAccess], branch: Option<Branch>) -> Record {
        let mut record = Record { address: instruction.address, ..Record::default() };
        fill(&mut record.stores, lines(accesses, true));
        fill(&mut record.loads, lines(accesses, false));
        let Some(Branch { kind, taken }) = branch else {
            fill(&mut record.destinations, numbered(instruction.destinations));
            fill(&mut record.sources, numbered(instruction.sources));
            return record;
        };
        (record.is_branch, record.taken) = (1, u8::from(taken));
        let (reads, writes): (&[u8], &[u8]) = match kind {
            BranchKind::Conditional => (&[INSTRUCTION_POINTER, FLAGS], &[INSTRUCTION_POINTER]),
            BranchKind::Direct | BranchKind::Indirect => (&[], &[INSTRUCTION_POINTER]),
            BranchKind::Call | BranchKind::IndirectCall => {
                (&[INSTRUCTION_POINTER, STACK_POINTER], &[INSTRUCTION_POINTER, STACK_POINTER])
            }
            BranchKind::Return => (&[STACK_POINTER], &[INSTRUCTION_POINTER, STACK_POINTER]),
        };
        let indirect = matches!(kind, BranchKind::Indirect | BranchKind::IndirectCall);
        // An indirect branch that reads no register that we know of still reads one.
        let other = indirect.then(|| numbered(instruction.sources).next().unwrap_or(FIRST));
        fill(&mut record.sources, reads.iter().copied().chain(other));
        fill(&mut record.destinations, writes.iter().copied());
        record
    }

    /// How it went, if it is a branch whose registers are those of a kind.
    #[must_use]
    pub fn branch(&self) -> Option<Branch> {
        if self.is_branch == 0 {
            return None;
        }
        let reads = |register| self.sources.contains(&register);
        let writes = |register| self.destinations.contains(&register);
        let known = [0, STACK_POINTER, FLAGS, INSTRUCTION_POINTER];
        let other = self.sources.iter().any(|register| !known.contains(register));
        let kind = match (writes(STACK_POINTER), reads(INSTRUCTION_POINTER), reads(FLAGS), other) {
            _ if !writes(INSTRUCTION_POINTER) => return None,
            (false, true, true, false) => BranchKind::Conditional,
            (false, false, false, false) => BranchKind::Direct,
            (false, false, false, true) => BranchKind::Indirect,
            (true, true, false, false) => BranchKind::Call,
            (true, true, false, true) => BranchKind::IndirectCall,
            (true, false, false, false) => BranchKind::Return,
            _ => return None,
        };
        Some(Branch { kind, taken: self.taken != 0 })
    }

    /// As it stands in the file.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        bytes[..8].copy_from_slice(&self.address.to_le_bytes());
        (bytes[8], bytes[9]) = (self.is_branch, self.taken);
        bytes[10..12].copy_from_slice(&self.destinations);
        bytes[12..16].copy_from_slice(&self.sources);
        let words = self.stores.iter().chain(&self.loads);
        for (place, word) in bytes[16..].chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// From a file.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; RECORD]) -> Record {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        Record {
            address: word(0),
            is_branch: bytes[8],
            taken: bytes[9],
            destinations: [bytes[10], bytes[11]],
            sources: [bytes[12], bytes[13], bytes[14], bytes[15]],
            stores: [word(16), word(24)],
            loads: [word(32), word(40), word(48), word(56)],
        }
    }
}

/// Writes a trace.
#[derive(Debug)]
pub struct TraceWriter<W> {
    to: W,
    instructions: u64,
}

impl<W: Write> TraceWriter<W> {
    /// Begins a trace; the format has no header.
    pub fn new(to: W) -> TraceWriter<W> {
        TraceWriter { to, instructions: 0 }
    }

    /// Adds an instruction.
    ///
    /// # Errors
    /// If writing fails.
    pub fn push(
        &mut self,
        instruction: &Instruction,
        accesses: &[MemoryAccess],
        branch: Option<Branch>,
    ) -> io::Result<()> {
        self.instructions += 1;
        self.to.write_all(&Record::new(instruction, accesses, branch).to_bytes())
    }

    /// Instructions so far.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// Ends the trace, and gives back what it was written to.
    ///
    /// # Errors
    /// If flushing fails.
    pub fn finish(mut self) -> io::Result<W> {
        self.to.flush()?;
        Ok(self.to)
    }
}

/// The records of a trace that is in memory; nothing, if it was cut off within one.
#[must_use]
pub fn records(trace: &[u8]) -> Option<Vec<Record>> {
    let (records, rest) = trace.as_chunks::<RECORD>();
    rest.is_empty().then(|| records.iter().map(Record::from_bytes).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KINDS: [BranchKind; 6] = [
        BranchKind::Conditional,
        BranchKind::Direct,
        BranchKind::Indirect,
        BranchKind::Call,
        BranchKind::IndirectCall,
        BranchKind::Return,
    ];

    fn instruction(address: u64, sources: &[u8], destinations: &[u8]) -> Instruction {
        Instruction {
            address,
            length: 4,
            sources: Registers::of(sources),
            destinations: Registers::of(destinations),
            ..Instruction::default()
        }
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        let accesses = [MemoryAccess::load(0x1038, 16), MemoryAccess::store(0x2000, 8)];
        let bytes = Record::new(&instruction(0x40_1234, &[3, 5], &[63]), &accesses, None).to_bytes();
        let mut expected = [0; RECORD];
        expected[..3].copy_from_slice(&[0x34, 0x12, 0x40]);
        expected[10] = 127;
        (expected[12], expected[13]) = (67, 69);
        expected[17] = 0x20;
        (expected[32], expected[33]) = (0x38, 0x10);
        // The sixteen bytes reach into the next line.
        (expected[40], expected[41]) = (0x40, 0x10);
        assert_eq!(bytes, expected);
    }

    #[test]
    fn branches_keep_their_kind() {
        for kind in KINDS {
            for taken in [false, true] {
                let branch = Branch { kind, taken };
                let record = Record::new(&instruction(8, &[1], &[]), &[], Some(branch));
                assert_eq!(record.branch(), Some(branch), "{record:?}");
            }
        }
        assert_eq!(Record::new(&instruction(8, &[1], &[2]), &[], None).branch(), None);
    }

    #[test]
    fn a_cut_is_noticed() {
        let mut writer = TraceWriter::new(Vec::new());
        writer.push(&instruction(4, &[], &[]), &[], None).expect("memory");
        let bytes = writer.finish().expect("memory");
        assert_eq!((records(&bytes[..RECORD - 1]), records(&[])), (None, Some(Vec::new())));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            steps in prop::collection::vec((any::<u64>(), 0..64_u8, any::<u64>(), 0..7_usize), 0..50)
        ) {
            let mut writer = TraceWriter::new(Vec::new());
            let mut expected = Vec::new();
            for (address, register, data, kind) in steps {
                let instruction = instruction(address, &[register], &[register]);
                let branch = KINDS.get(kind).map(|&kind| Branch { kind, taken: data & 1 == 0 });
                let accesses = [MemoryAccess { address: data, bytes: 8, store: register & 1 == 0 }];
                writer.push(&instruction, &accesses, branch).expect("memory");
                expected.push(Record::new(&instruction, &accesses, branch));
            }
            prop_assert_eq!(writer.instructions(), expected.len() as u64);
            let bytes = writer.finish().expect("memory");
            prop_assert_eq!(records(&bytes), Some(expected));
        }
    }
}
