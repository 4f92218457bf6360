//! The two instructions and the system calls.
//!
//! Operands go through a page at a fixed address, because the plugin sees no registers; the plugin knows the moves
//! to it by that address and leaves them out of what it simulates. For the program the page is mapped once, at
//! first use.

use std::arch::asm;
use std::ffi::{c_int, c_long, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

const MAILBOX: usize = 0x5354_0000;
const BYTES: usize = 4096;
const CALL: c_long = 0x53_544c;
/// "STLT SIM".
const PRESENT: u64 = 0x4d49_5320_544c_5453;

unsafe extern "C" {
    fn mmap(
        at: *mut c_void,
        bytes: usize,
        rights: c_int,
        flags: c_int,
        file: c_int,
        offset: i64,
    ) -> *mut c_void;
}
const READ_WRITE: c_int = 3;
const PRIVATE_ANONYMOUS: c_int = 0x22;

/// How much of the design is in hardware.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// Rows hold translations, too.
    Full = 0,
    /// Rows hold virtual addresses only: STLT-VA.
    VirtualOnly = 1,
}

/// What a run is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Nothing is simulated but the table itself.
    Load = 0,
    /// TLBs and caches, without a clock: to warm them.
    Functional = 1,
    /// The clock runs: to fill the pipeline.
    Detailed = 2,
    /// And is looked at: a window of the measurement begins.
    Measured = 3,
}

/// The page is there, and whether a simulator is. None if the page's place is taken: then no instruction may be used.
fn open() -> Option<bool> {
    static OPENED: OnceLock<Option<bool>> = OnceLock::new();
    *OPENED.get_or_init(|| {
        let wanted = ptr::without_provenance_mut(MAILBOX);
        // SAFETY: a hint only: the kernel maps a page that is free.
        let page = unsafe { mmap(wanted, BYTES, READ_WRITE, PRIVATE_ANONYMOUS, -1, 0) };
        if page != wanted {
            return None;
        }
        // SAFETY: the page was mapped just now, and never goes.
        unsafe { call([0, MAILBOX as u64, 0, 0, 0]) };
        Some(word(3).load(Ordering::Relaxed) == PRESENT)
    })
}

/// Whether the simulated hardware is there.
#[must_use]
pub fn is_simulated() -> bool {
    open() == Some(true)
}

fn word(place: usize) -> &'static AtomicU64 {
    // SAFETY: callers have seen `open` map the page, which never goes; a word of it is aligned.
    unsafe { &*ptr::with_exposed_provenance(MAILBOX + 8 * place) }
}

/// # Safety
/// The page is mapped.
unsafe fn call([what, first, second, third, fourth]: [u64; 5]) {
    // SAFETY: no kernel has this call; it answers ENOSYS and does nothing.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") CALL => _,
            in("rdi") what, in("rsi") first, in("rdx") second, in("r10") third, in("r8") fourth,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
}

/// What a system call came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    Refused,
    /// The simulated core runs another thread.
    Elsewhere,
    /// There is no simulator.
    Nobody,
}

/// One of the system calls that may be refused.
pub(crate) fn request(arguments: [u64; 5]) -> Answer {
    if !is_simulated() {
        return Answer::Nobody;
    }
    // SAFETY: `open` has mapped the page.
    unsafe { call(arguments) };
    match word(4).load(Ordering::Relaxed) {
        0 => Answer::Done,
        2 => Answer::Elsewhere,
        _ => Answer::Refused,
    }
}

/// The phase changes. A window that ends so comprised `operations`, of which the table answered `hits` with the right
/// record and `misses` not (both 0: there is no table).
///
/// Nothing without a simulator, or on another thread than the program's first: the simulated core runs that one.
pub fn enter(phase: Phase, operations: u64, hits: u64, misses: u64) {
    request([4, phase as u64, operations, hits, misses]);
}

/// `loadVA`: an address that was inserted, or 0.
///
/// # Safety
/// [`is_simulated`] has been called, and the page's place was free.
#[inline(always)]
pub(crate) unsafe fn load_va(integer: u64) -> usize {
    let address;
    // SAFETY: two moves to and from the page, which is mapped, and a NOP.
    unsafe {
        asm!(
            "mov [{mailbox}], rdi",
            ".byte 0x0f, 0x1f, 0x80, 1, 'T', 'L', 'S'",
            "mov rax, [{mailbox} + 16]",
            mailbox = const MAILBOX,
            in("rdi") integer, out("rax") address,
            options(nostack, preserves_flags),
        );
    }
    address
}

/// `insertSTLT`: a hint that the integer's record is there; 0: that it is no more.
///
/// # Safety
/// As [`load_va`].
#[inline(always)]
pub(crate) unsafe fn insert_stlt(integer: u64, address: usize) {
    // SAFETY: two moves to the page, which is mapped, and a NOP.
    unsafe {
        asm!(
            "mov [{mailbox}], rdi",
            "mov [{mailbox} + 8], rsi",
            ".byte 0x0f, 0x1f, 0x80, 2, 'T', 'L', 'S'",
            mailbox = const MAILBOX,
            in("rdi") integer, in("rsi") address,
            options(nostack, preserves_flags),
        );
    }
}

/// Whether the instructions may be used.
pub(crate) fn has_mailbox() -> bool {
    open().is_some()
}
