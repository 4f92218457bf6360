//! QEMU's plugin interface, version 1, declared by hand from its public documentation ("QEMU TCG Plugins",
//! and the header `qemu-plugin.h` that it describes).
//!
//! The functions live in the executable that loads the plugin. They are looked up when it does, not by the
//! linker: so the crate links into tests and into `lookaside` without QEMU, and an executable that lacks one
//! is told which. What is declared is what releases 7.2 and 8 have; from 9.0 on QEMU refuses plugins of
//! version 1 by itself, with a message.
//!
//! Rejected: the published bindings. They bring two dozen crates for the sixteen functions below.

#![allow(unsafe_code, reason = "the border to QEMU")]

use std::ffi::{c_char, c_int, c_uint, c_void};

use libloading::os::unix::Library;

/// The version of the interface that is declared here.
pub(crate) const VERSION: c_int = 1;

/// A block of guest instructions while it is translated.
#[repr(C)]
pub(crate) struct Block {
    _opaque: [u8; 0],
}

/// One of its instructions.
#[repr(C)]
pub(crate) struct Insn {
    _opaque: [u8; 0],
}

/// What QEMU says of itself.
#[repr(C)]
pub struct Info {
    /// `x86_64`, ...
    pub(crate) target: *const c_char,
    pub(crate) minimum: c_int,
    pub(crate) current: c_int,
    pub(crate) system: bool,
    _processors: [c_int; 2],
}

/// The plugin, as QEMU names it.
pub(crate) type Id = u64;
/// The properties of an access, to be asked with `mem_is_store` and `mem_size_shift`.
pub(crate) type MemInfo = u32;

/// Callbacks need no registers.
pub(crate) const NO_REGISTERS: c_int = 0;
/// Callbacks for loads and stores.
pub(crate) const READS_AND_WRITES: c_int = 3;

pub(crate) type OnReset = extern "C" fn(Id);
pub(crate) type OnExit = extern "C" fn(Id, *mut c_void);
pub(crate) type OnTranslation = extern "C" fn(Id, *mut Block);
pub(crate) type OnExecution = extern "C" fn(c_uint, *mut c_void);
pub(crate) type OnAccess = extern "C" fn(c_uint, MemInfo, u64, *mut c_void);
pub(crate) type OnCall = extern "C" fn(Id, c_uint, i64, u64, u64, u64, u64, u64, u64, u64, u64);
pub(crate) type OnReturn = extern "C" fn(Id, c_uint, i64, i64);

macro_rules! functions {
    ($($name:ident: $symbol:literal, fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions.
        #[derive(Clone, Copy)]
        pub(crate) struct Functions {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            /// Looks them up in the running executable; the name of the first that is not there.
            pub(crate) fn find() -> Result<Functions, &'static str> {
                let executable = Library::this();
                Ok(Functions {
                    $($name: {
                        // SAFETY: an executable that exports a function of this name has it of this type: it
                        // is QEMU's documented interface.
                        let function = unsafe { executable.get($symbol) };
                        *function.map_err(|_| $symbol)?
                    },)*
                })
            }
        }
    };
}

functions! {
    reset: "qemu_plugin_reset", fn(Id, OnReset);
    on_exit: "qemu_plugin_register_atexit_cb", fn(Id, OnExit, *mut c_void);
    on_translation: "qemu_plugin_register_vcpu_tb_trans_cb", fn(Id, OnTranslation);
    on_call: "qemu_plugin_register_vcpu_syscall_cb", fn(Id, OnCall);
    on_return: "qemu_plugin_register_vcpu_syscall_ret_cb", fn(Id, OnReturn);
    on_block: "qemu_plugin_register_vcpu_tb_exec_cb", fn(*mut Block, OnExecution, c_int, *mut c_void);
    on_insn: "qemu_plugin_register_vcpu_insn_exec_cb", fn(*mut Insn, OnExecution, c_int, *mut c_void);
    on_access: "qemu_plugin_register_vcpu_mem_cb", fn(*mut Insn, OnAccess, c_int, c_int, *mut c_void);
    block_length: "qemu_plugin_tb_n_insns", fn(*const Block) -> usize;
    block_insn: "qemu_plugin_tb_get_insn", fn(*const Block, usize) -> *mut Insn;
    insn_data: "qemu_plugin_insn_data", fn(*const Insn) -> *const c_void;
    insn_size: "qemu_plugin_insn_size", fn(*const Insn) -> usize;
    insn_address: "qemu_plugin_insn_vaddr", fn(*const Insn) -> u64;
    mem_size_shift: "qemu_plugin_mem_size_shift", fn(MemInfo) -> c_uint;
    mem_is_store: "qemu_plugin_mem_is_store", fn(MemInfo) -> bool;
}

/// What QEMU says of accesses, remembered: the two questions take it as long as all else that the plugin does for an
/// access that hits, and there are only some dozen kinds. Which bits of a [`MemInfo`] mean what is QEMU's affair.
pub(crate) struct AccessKinds {
    functions: Functions,
    /// By the lowest bits: what was asked, and the answer.
    known: [(MemInfo, (u32, bool)); AccessKinds::KNOWN],
}

impl AccessKinds {
    const KNOWN: usize = 256;

    pub(crate) fn new(functions: Functions) -> AccessKinds {
        // In every place but one the kind asked for is one that does not belong there.
        let mut known = [(0, (0, false)); AccessKinds::KNOWN];
        known[0].0 = 1;
        AccessKinds { functions, known }
    }

    /// The number of bytes as a power of two, and whether it is a store.
    ///
    /// # Safety
    /// `info` is what QEMU gave to an access's callback.
    #[inline]
    pub(crate) unsafe fn of(&mut self, info: MemInfo) -> (u32, bool) {
        // Loads and stores differ in the upper half.
        let place = (info ^ info >> 12) as usize % AccessKinds::KNOWN;
        let (known, kind) = self.known[place];
        if known == info {
            return kind;
        }
        // SAFETY: the caller's.
        let kind = unsafe { ((self.functions.mem_size_shift)(info), (self.functions.mem_is_store)(info)) };
        self.known[place] = (info, kind);
        kind
    }
}

/// What is added to a guest's address to reach it in this process. Not of the documented interface, but
/// exported beside it; 0 where it is not, as for x86-64 on x86-64 always.
pub(crate) fn guest_base() -> u64 {
    // SAFETY: the symbol is a word in every QEMU that has it; it is set before the guest runs.
    unsafe { Library::this().get::<*const u64>("guest_base").map_or(0, |base| **base) }
}
