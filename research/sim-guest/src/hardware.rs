//! The STLT's two instructions and its system calls, as a program in Rust has them: for C it is
//! `research/sim-qemu/guests/stlt.h`.
//!
//! Operands go through a page at a fixed address, because the plugin sees no registers; the plugin knows the moves to
//! it by that address and leaves them out of what it simulates (`research/sim-qemu/src/protocol.rs` has the other
//! half).
//!
//! Why what `loadVA` answers is a reference that can be trusted: a process has one table, which begins empty and is
//! never freed here, and the simulator refuses a second. So every address in it was put there by the one [`Hints`]
//! that there is, as a `&'r Record`, and `'r` is still alive.

#![allow(unsafe_code, reason = "instructions that no compiler knows; addresses become references again")]

use std::arch::asm;
use std::ffi::{c_int, c_long, c_void};
use std::marker::PhantomData;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::record::Record;

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

/// What a run is doing.
#[derive(Clone, Copy)]
pub(crate) enum Phase {
    /// Nothing is simulated but the table itself.
    Load = 0,
    /// TLBs and caches, without a clock: to warm them.
    Functional = 1,
    /// The clock runs: to fill the pipeline.
    Detailed = 2,
    /// And is looked at: a window of the measurement begins.
    Measured = 3,
}

/// Whether the simulated hardware is there. Without the page there is none: then no instruction may be used.
pub(crate) fn is_simulated() -> bool {
    static SIMULATED: OnceLock<bool> = OnceLock::new();
    *SIMULATED.get_or_init(|| {
        let wanted = ptr::without_provenance_mut(MAILBOX);
        // SAFETY: a hint only: the kernel maps a page that is free.
        let page = unsafe { mmap(wanted, BYTES, READ_WRITE, PRIVATE_ANONYMOUS, -1, 0) };
        if page != wanted {
            return false;
        }
        // SAFETY: the page was mapped just now, and never goes.
        unsafe { call([0, MAILBOX as u64, 0, 0, 0]) };
        word(3).load(Ordering::Relaxed) == PRESENT
    })
}

fn word(place: usize) -> &'static AtomicU64 {
    // SAFETY: callers have seen `is_simulated` map the page, which never goes; a word of it is aligned.
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

/// One of the system calls: whether it was carried out.
fn request(arguments: [u64; 5]) -> bool {
    // SAFETY: with a simulator, the page is mapped.
    is_simulated()
        && unsafe {
            call(arguments);
            word(4).load(Ordering::Relaxed) == 0
        }
}

/// The phase changes. A window that ends so comprised `operations`, of which the table answered `hits` with the right
/// record and `misses` not (both 0: there is no table). Nothing without a simulator.
pub(crate) fn enter(phase: Phase, operations: u64, hits: u64, misses: u64) {
    request([4, phase as u64, operations, hits, misses]);
}

/// The process's STLT, as a table of records.
pub(crate) struct Hints<'r> {
    /// Neither sent nor shared: the simulated core runs the program's first thread.
    records: PhantomData<(&'r Record, *const ())>,
}

impl<'r> Hints<'r> {
    /// An empty table of `rows` rows, `ways` to a set, with translations in its rows or without.
    ///
    /// # Errors
    /// Without a simulator, on another thread than the first, if there is a table, or none can be so.
    pub(crate) fn new(rows: u64, ways: u64, translations: bool) -> Result<Hints<'r>, String> {
        let refused = || format!("no STLT of {rows} rows in sets of {ways} can be had here");
        let done = request([1, rows, ways, u64::from(!translations), 0]);
        done.then_some(Hints { records: PhantomData }).ok_or_else(refused)
    }

    /// `loadVA`: the record that the integer was inserted with, or that of another integer. The caller compares keys.
    #[inline(always)]
    pub(crate) fn get(&self, integer: u64) -> Option<&'r Record> {
        let address: usize;
        // SAFETY: two moves to and from the page, which is mapped where there is a table, and a NOP.
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
        // SAFETY: see the head of this file: it is null or was a `&'r Record`.
        unsafe { ptr::with_exposed_provenance::<Record>(address).as_ref() }
    }

    /// `insertSTLT`: where the integer's record is.
    #[inline(always)]
    pub(crate) fn insert(&mut self, integer: u64, record: &'r Record) {
        let address = ptr::from_ref(record).expose_provenance();
        // SAFETY: two moves to the page, which is mapped where there is a table, and a NOP.
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
}
