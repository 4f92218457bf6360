//! How a guest speaks to the simulated hardware. The other half is `guests/stlt.h`.
//!
//! ```text
//!   loadVA:                               insertSTLT:
//!     mov  [mailbox], rdi   the integer     mov  [mailbox], rdi      the integer
//!     nop  [rax + "\1TLS"]                  mov  [mailbox + 8], rsi  the address
//!     mov  rax, [mailbox + 16]              nop  [rax + "\2TLS"]
//! ```
//!
//! The NOP is one on every processor: an instrumented program runs anywhere, and is told there that nothing
//! was found, because the mailbox's result stays 0. Version 1 of the plugin interface shows no registers, hence
//! the mailbox: a page at a fixed address, so that the instructions that go to it are known by their absolute
//! operand when they are translated. They are not part of the simulated program. What is left is one
//! instruction that reads `rdi` (and `rsi`) and writes `rax`.
//!
//! System calls, all of them the number [`CALL`], which no kernel has:
//!
//! | first argument | further arguments | answer at mailbox + 32 |
//! |---|---|---|
//! | 0, is anyone there | the mailbox's address | |
//! | 1, `STLTalloc` | rows, ways, variant (0 full, 1 virtual addresses) | 0; 1: refused, as on any other thread |
//! | 2, `STLTresize` | rows | the same |
//! | 3, `STLTfree` | | the same |
//! | 4, the phase changes | the new phase; and operations, fast hits, fast misses of a window that ends | |
//!
//! Who asks whether anyone is there has mapped the page, and keeps it: its own moves go there, and the plugin's, in the
//! same process. [`PRESENT`] is written to mailbox + 24. The kernel's answer, `ENOSYS`, is never looked at. A call's
//! answer has a word of its own: another thread's call, which is refused, must not be taken for what `loadVA` has
//! found.

use iced_x86::{Instruction as Decoded, OpKind, Register};
use sim::stlt::Variant;

/// Where the mailbox is.
pub const MAILBOX: u64 = 0x5354_0000;
/// Its bytes.
const MAILBOX_BYTES: u64 = 4096;
/// The words of it: the integer, the address, the result, who is there, and what a system call came to.
pub(crate) const INTEGER: u64 = 0;
pub(crate) const ADDRESS: u64 = 8;
pub(crate) const RESULT: u64 = 16;
pub(crate) const WHO: u64 = 24;
pub(crate) const ANSWER: u64 = 32;
/// What a system call comes to.
pub(crate) const REFUSED: u64 = 1;
/// "A simulator is there."
pub const PRESENT: u64 = u64::from_le_bytes(*b"STLT SIM");
/// The number of the system call.
pub const CALL: i64 = 0x53_544c;

/// The instructions that the machine has beyond x86-64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// An integer becomes the address of a record.
    LoadVa,
    /// An integer's record is remembered.
    InsertStlt,
}

/// What a run is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Loading: only the STLT hears of anything.
    Load,
    /// Every access goes through TLBs and caches; no clock.
    Functional,
    /// The clock runs; nothing is counted.
    Detailed,
    /// The same, and a window of the measurement begins.
    Measured,
}

/// What a guest asks of the operating system and of the simulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Whether anyone is there; the mailbox is at this address.
    Greeting(u64),
    /// `STLTalloc`.
    Alloc {
        /// Rows.
        rows: u64,
        /// Rows of a set.
        ways: u32,
        /// How much is in hardware.
        variant: Variant,
    },
    /// `STLTresize`.
    Resize(u64),
    /// `STLTfree`.
    Free,
    /// The phase changes. A window that ends with it comprised so many operations, fast hits and fast misses.
    Phase(Phase, [u64; 3]),
}

impl Request {
    /// The request that a call with these arguments makes; none if there is no such.
    #[must_use]
    pub fn of(arguments: [u64; 5]) -> Option<Request> {
        let [what, first, second, third, fourth] = arguments;
        Some(match what {
            0 => Request::Greeting(first),
            1 => {
                let variant = match third {
                    0 => Variant::Full,
                    1 => Variant::VirtualOnly,
                    _ => return None,
                };
                Request::Alloc { rows: first, ways: u32::try_from(second).ok()?, variant }
            }
            2 => Request::Resize(first),
            3 => Request::Free,
            4 => {
                let phase = match first {
                    0 => Phase::Load,
                    1 => Phase::Functional,
                    2 => Phase::Detailed,
                    3 => Phase::Measured,
                    _ => return None,
                };
                Request::Phase(phase, [second, third, fourth])
            }
            _ => return None,
        })
    }
}

/// The operation that a NOP with these bytes stands for.
pub(crate) fn operation(bytes: &[u8]) -> Option<Operation> {
    match bytes {
        [0x0f, 0x1f, 0x80, 1, b'T', b'L', b'S'] => Some(Operation::LoadVa),
        [0x0f, 0x1f, 0x80, 2, b'T', b'L', b'S'] => Some(Operation::InsertStlt),
        _ => None,
    }
}

/// Whether an instruction goes to the mailbox by its absolute address.
pub(crate) fn in_mailbox(decoded: &Decoded) -> bool {
    decoded.op_kinds().any(|kind| kind == OpKind::Memory)
        && decoded.memory_base() == Register::None
        && decoded.memory_index() == Register::None
        && (MAILBOX..MAILBOX + MAILBOX_BYTES).contains(&decoded.memory_displacement64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_do_not_exist_are_none() {
        assert_eq!(Request::of([0, MAILBOX, 0, 0, 0]), Some(Request::Greeting(MAILBOX)));
        let alloc = Request::Alloc { rows: 64, ways: 4, variant: Variant::VirtualOnly };
        assert_eq!(Request::of([1, 64, 4, 1, 0]), Some(alloc));
        assert_eq!(Request::of([4, 3, 0, 0, 0]), Some(Request::Phase(Phase::Measured, [0; 3])));
        for arguments in [[1, 64, 4, 2, 0], [1, 64, 1 << 40, 0, 0], [4, 4, 0, 0, 0], [5, 0, 0, 0, 0]] {
            assert_eq!(Request::of(arguments), None);
        }
    }
}
