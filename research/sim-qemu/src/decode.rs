//! Machine code as the window model wants it: registers read and written, a latency, what kind of branch.
//!
//! `iced-x86` knows the instruction set; here is only what the model abstracts from it.
//!
//! * Registers are the 16 general ones, the 16 vector ones, the flags and the x87 stack as one: an
//!   instruction that writes a part is taken to write the whole.
//! * What `push`, `pop`, `call` and `ret` do to the stack pointer is done in the front end by processors since
//!   the Pentium M ("Intel 64 and IA-32 Architectures Optimization Reference Manual", dedicated stack pointer
//!   tracker): no instruction waits for it.
//! * Zeroing idioms read nothing; `iced-x86` says so itself.
//! * Latencies are those of Nehalem in Agner Fog's "Instruction tables", a representative each. A plain load or
//!   store has none of its own: the memory system decides.

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction as Decoded, InstructionInfoFactory, Mnemonic,
    OpAccess, OpKind, Register,
};
use sim::{BranchKind, Instruction, Registers};

use crate::protocol::{self, Operation};

/// Numbers of registers: 0 to 15 general, 16 to 31 vector, then these.
const FLAGS: u8 = 32;
const X87: u8 = 33;

/// What an instruction is to the simulator.
#[derive(Debug, Clone, PartialEq)]
pub enum Meaning {
    /// One of the program's own.
    Plain {
        /// For the model.
        instruction: Instruction,
        /// Bytes of its widest operand in memory: 16 arrive as two accesses.
        bytes: u32,
    },
    /// `loadVA` or `insertSTLT`.
    Stlt(Operation, Instruction),
    /// Carries an operand to or from the mailbox: not there on the machine that is simulated.
    Conveyance,
}

/// Decodes instructions one by one.
pub struct Translator {
    info: InstructionInfoFactory,
}

impl Default for Translator {
    fn default() -> Translator {
        Translator { info: InstructionInfoFactory::new() }
    }
}

impl Translator {
    /// What the instruction with these bytes at `address` means. Bytes that are none are an instruction that
    /// does nothing: QEMU has its own opinion of them.
    pub fn translate(&mut self, bytes: &[u8], address: u64) -> Meaning {
        let length = bytes.len().min(15) as u8;
        if let Some(operation) = protocol::operation(bytes) {
            let (sources, destinations) = match operation {
                Operation::LoadVa => (Registers::of(&[RDI]), Registers::of(&[RAX])),
                Operation::InsertStlt => (Registers::of(&[RDI, RSI]), Registers::NONE),
            };
            let instruction =
                Instruction { address, length, latency: 0, sources, destinations, branch: None };
            return Meaning::Stlt(operation, instruction);
        }
        let decoded = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode();
        if decoded.is_invalid() {
            let instruction = Instruction { address, length, latency: 1, ..Instruction::default() };
            return Meaning::Plain { instruction, bytes: 0 };
        }
        if protocol::in_mailbox(&decoded) {
            return Meaning::Conveyance;
        }
        let (sources, destinations) = self.registers(&decoded);
        let instruction = Instruction {
            address,
            length,
            latency: latency(&decoded),
            sources,
            destinations,
            branch: branch(&decoded),
        };
        Meaning::Plain { instruction, bytes: decoded.memory_size().size() as u32 }
    }

    fn registers(&mut self, decoded: &Decoded) -> (Registers, Registers) {
        let stack = decoded.is_stack_instruction() && !matches!(decoded.mnemonic(), Mnemonic::Leave);
        let info = self.info.info(decoded);
        let (mut sources, mut destinations) = (Registers::NONE, Registers::NONE);
        for used in info.used_registers() {
            let Some(number) = number(used.register()) else { continue };
            if stack && number == RSP {
                continue;
            }
            let register = Registers::of(&[number]);
            let (reads, writes) = access(used.access());
            if reads {
                sources = sources.with(register);
            }
            if writes {
                destinations = destinations.with(register);
            }
        }
        if decoded.rflags_read() != 0 {
            sources = sources.with(Registers::of(&[FLAGS]));
        }
        if decoded.rflags_modified() != 0 {
            destinations = destinations.with(Registers::of(&[FLAGS]));
        }
        (sources, destinations)
    }
}

const RAX: u8 = 0;
const RSP: u8 = 4;
const RSI: u8 = 6;
const RDI: u8 = 7;

/// The number of the whole register that this one is a part of; none if the model does not know it.
fn number(register: Register) -> Option<u8> {
    if register.is_gpr() {
        Some((register.full_register() as u32 - Register::RAX as u32) as u8)
    } else if register.is_vector_register() {
        Some(16 + (register.full_register() as u32 - Register::ZMM0 as u32) as u8 % 16)
    } else if register.is_st() || register.is_mm() {
        Some(X87)
    } else {
        None
    }
}

fn access(access: OpAccess) -> (bool, bool) {
    match access {
        OpAccess::Read | OpAccess::CondRead => (true, false),
        OpAccess::Write => (false, true),
        // What is perhaps written keeps its old value otherwise.
        OpAccess::ReadWrite | OpAccess::ReadCondWrite | OpAccess::CondWrite => (true, true),
        OpAccess::None | OpAccess::NoMemAccess => (false, false),
    }
}

fn branch(decoded: &Decoded) -> Option<BranchKind> {
    match decoded.flow_control() {
        FlowControl::ConditionalBranch => Some(BranchKind::Conditional),
        FlowControl::UnconditionalBranch => Some(BranchKind::Direct),
        FlowControl::IndirectBranch => Some(BranchKind::Indirect),
        FlowControl::Return => Some(BranchKind::Return),
        FlowControl::IndirectCall => Some(BranchKind::IndirectCall),
        // System calls are "calls", too; the kernel is not simulated.
        FlowControl::Call if decoded.is_call_near() => Some(BranchKind::Call),
        _ => None,
    }
}

/// Whether it only moves: to or from memory.
fn only_moves(decoded: &Decoded) -> bool {
    use Mnemonic as M;
    matches!(
        decoded.mnemonic(),
        M::Mov
            | M::Movzx
            | M::Movsx
            | M::Movsxd
            | M::Movaps
            | M::Movups
            | M::Movapd
            | M::Movupd
            | M::Movdqa
            | M::Movdqu
            | M::Movd
            | M::Movq
            | M::Movss
            | M::Movsd
            | M::Movlps
            | M::Movhps
            | M::Movlpd
            | M::Movhpd
            | M::Movnti
            | M::Movntdq
            | M::Movntps
            | M::Lddqu
            | M::Push
            | M::Pop
    ) && (decoded.op_kinds().any(|kind| kind == OpKind::Memory) || decoded.is_stack_instruction())
}

fn latency(decoded: &Decoded) -> u8 {
    use Mnemonic as M;
    if only_moves(decoded) {
        return 0;
    }
    if decoded.has_lock_prefix() || (decoded.mnemonic() == M::Xchg && decoded.op0_kind() == OpKind::Memory) {
        return 20;
    }
    match decoded.mnemonic() {
        M::Nop | M::Endbr64 | M::Prefetcht0 | M::Prefetcht1 | M::Prefetcht2 | M::Prefetchnta => 0,
        M::Imul | M::Mul => 3,
        M::Div | M::Idiv => match decoded.code() {
            Code::Div_rm64 | Code::Idiv_rm64 => 40,
            _ => 22,
        },
        M::Bsf | M::Bsr | M::Popcnt | M::Crc32 | M::Lzcnt | M::Tzcnt | M::Shld | M::Shrd => 3,
        M::Addss | M::Addsd | M::Subss | M::Subsd | M::Addps | M::Addpd | M::Subps | M::Subpd => 3,
        M::Cvtsi2sd | M::Cvtsi2ss | M::Cvttsd2si | M::Cvttss2si | M::Cvtsd2ss | M::Cvtss2sd => 4,
        M::Mulss | M::Mulps => 4,
        M::Mulsd | M::Mulpd => 5,
        M::Ucomiss | M::Ucomisd | M::Comiss | M::Comisd => 3,
        M::Divss | M::Divps | M::Sqrtss | M::Sqrtps => 14,
        M::Divsd | M::Divpd | M::Sqrtsd | M::Sqrtpd => 22,
        M::Pmuludq | M::Pmulld | M::Pmullw | M::Pmulhuw | M::Pmaddwd => 3,
        M::Pmovmskb | M::Movmskps | M::Movmskpd | M::Ptest => 2,
        M::Movd | M::Movq | M::Pextrq | M::Pextrd | M::Pextrw | M::Pinsrq | M::Pinsrd | M::Pinsrw => 2,
        M::Pcmpistri | M::Pcmpestri | M::Pcmpistrm | M::Pcmpestrm => 8,
        M::Cpuid | M::Mfence | M::Rdtsc | M::Rdtscp | M::Xgetbv => 24,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(bytes: &[u8]) -> (Instruction, u32) {
        match Translator::default().translate(bytes, 0x40_0000) {
            Meaning::Plain { instruction, bytes } => (instruction, bytes),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn dependences_are_those_of_the_instruction() {
        // mov rax, [rbx + 8 * rcx]
        let (load, bytes) = plain(&[0x48, 0x8b, 0x04, 0xcb]);
        assert_eq!((load.sources, load.destinations), (Registers::of(&[3, 1]), Registers::of(&[RAX])));
        assert_eq!((load.latency, load.branch, bytes), (0, None, 8));
        // add eax, edx: a part stands for the whole, and the flags are written.
        let (add, _) = plain(&[0x01, 0xd0]);
        assert_eq!((add.sources, add.destinations), (Registers::of(&[0, 2]), Registers::of(&[0, FLAGS])));
        // xor eax, eax: depends on nothing.
        assert_eq!(plain(&[0x31, 0xc0]).0.sources, Registers::NONE);
        // push rbp: the stack pointer is not waited for.
        let (push, _) = plain(&[0x55]);
        assert_eq!((push.sources, push.destinations), (Registers::of(&[5]), Registers::NONE));
        // sub rsp, 24: but here it is computed.
        assert_eq!(plain(&[0x48, 0x83, 0xec, 0x18]).0.destinations, Registers::of(&[RSP, FLAGS]));
        // movdqu xmm1, [rsi]: 16 bytes.
        let (wide, bytes) = plain(&[0xf3, 0x0f, 0x6f, 0x0e]);
        assert_eq!((wide.destinations, bytes), (Registers::of(&[17]), 16));
        // cmovne rax, rdx: the old value and the flags are read, too.
        assert_eq!(plain(&[0x48, 0x0f, 0x45, 0xc2]).0.sources, Registers::of(&[0, 2, FLAGS]));
    }

    #[test]
    fn branches_are_told_apart() {
        for (bytes, expected) in [
            (&[0x75, 0x02][..], Some(BranchKind::Conditional)),
            (&[0xeb, 0x02], Some(BranchKind::Direct)),
            (&[0xe8, 0, 0, 0, 0], Some(BranchKind::Call)),
            (&[0xff, 0xd0], Some(BranchKind::IndirectCall)),
            (&[0xff, 0xe0], Some(BranchKind::Indirect)),
            (&[0xff, 0x25, 0, 0, 0, 0], Some(BranchKind::Indirect)),
            (&[0xc3], Some(BranchKind::Return)),
            // A system call leaves the simulated program.
            (&[0x0f, 0x05], None),
            (&[0x90], None),
        ] {
            assert_eq!(plain(bytes).0.branch, expected, "{bytes:x?}");
        }
    }

    #[test]
    fn slow_instructions_are_slow() {
        // div rcx, imul rax, rdx, add rax, rdx, lock add [rdi], eax, xchg [rdi], rax, xchg rcx, rax, mov eax, edx,
        // mov [rdi], eax
        for (bytes, expected) in [
            (&[0x48, 0xf7, 0xf1][..], 40),
            (&[0x48, 0x0f, 0xaf, 0xc2], 3),
            (&[0x48, 0x01, 0xd0], 1),
            (&[0xf0, 0x01, 0x07], 20),
            (&[0x48, 0x87, 0x07], 20),
            (&[0x48, 0x87, 0xc1], 1),
            (&[0x89, 0xd0], 1),
            (&[0x89, 0x07], 0),
        ] {
            assert_eq!(plain(bytes).0.latency, expected, "{bytes:x?}");
        }
    }

    #[test]
    fn the_two_instructions_and_their_mailbox_are_recognised() {
        let mut translator = Translator::default();
        let load_va = [0x0f, 0x1f, 0x80, 1, b'T', b'L', b'S'];
        assert!(matches!(
            translator.translate(&load_va, 0),
            Meaning::Stlt(Operation::LoadVa, Instruction { length: 7, .. })
        ));
        let insert = [0x0f, 0x1f, 0x80, 2, b'T', b'L', b'S'];
        assert!(matches!(translator.translate(&insert, 0), Meaning::Stlt(Operation::InsertStlt, _)));
        // An operation that does not exist, and a NOP as compilers emit it.
        assert!(matches!(
            translator.translate(&[0x0f, 0x1f, 0x80, 9, b'T', b'L', b'S'], 0),
            Meaning::Plain { .. }
        ));
        assert!(matches!(translator.translate(&[0x0f, 0x1f, 0x80, 0, 0, 0, 0], 0), Meaning::Plain { .. }));
        // mov [mailbox], rdi; mov rax, [mailbox + 16]; and a neighbour of the page.
        let address = (protocol::MAILBOX as u32).to_le_bytes();
        let store = [&[0x48, 0x89, 0x3c, 0x25], &address[..]].concat();
        assert_eq!(translator.translate(&store, 0), Meaning::Conveyance);
        let address = (protocol::MAILBOX as u32 + 16).to_le_bytes();
        let load = [&[0x48, 0x8b, 0x04, 0x25], &address[..]].concat();
        assert_eq!(translator.translate(&load, 0), Meaning::Conveyance);
        let address = (protocol::MAILBOX as u32 + 4096).to_le_bytes();
        let load = [&[0x48, 0x8b, 0x04, 0x25], &address[..]].concat();
        assert!(matches!(translator.translate(&load, 0), Meaning::Plain { .. }));
    }

    #[test]
    fn any_bytes_are_something() {
        let mut translator = Translator::default();
        let mut word = 1_u64;
        for _ in 0..100_000 {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let bytes = word.rotate_left(20).to_le_bytes();
            let length = 1 + (word >> 40) as usize % 8;
            if let Meaning::Plain { instruction, .. } = translator.translate(&bytes[..length], word) {
                assert_eq!((instruction.address, usize::from(instruction.length)), (word, length));
            }
        }
    }
}
