//! QEMU's plugin interface, declared by hand from its public documentation ("QEMU TCG Plugins", and the header
//! `qemu-plugin.h` that it describes).
//!
//! A QEMU takes plugins of some versions of it and refuses the others, so the version is chosen when the plugin is
//! built:
//!
//! | version | QEMU | chosen by | |
//! |---|---|---|---|
//! | 1 | 7.2 to 8.2 | default | tested with Debian's 7.2 |
//! | 2 | 9.0 | | not offered: one release takes nothing else |
//! | 3 | 9.1 and later | the feature `plugin-v3` | compiled, and never run: no such QEMU was at hand |
//!
//! Of what is used here, versions 3 to 5 differ from version 1 in one function: an instruction's bytes are copied, no
//! longer pointed to. A later QEMU takes older plugins as long as they are of its least version or newer, hence 3 and
//! not 5.
//!
//! The functions live in the executable that loads the plugin. They are looked up when it does, not by the
//! linker: so the crate links into tests and into `lookaside` without QEMU, and an executable that lacks one
//! is told which.
//!
//! Rejected: the published bindings. They bring two dozen crates for the fifteen functions below.

#![allow(unsafe_code, reason = "the border to QEMU")]

use std::ffi::{c_char, c_int, c_uint, c_void};

use libloading::os::unix::Library;

#[cfg(not(feature = "plugin-v3"))]
mod version1;
#[cfg(feature = "plugin-v3")]
mod version3;

#[cfg(not(feature = "plugin-v3"))]
use version1 as version;
#[cfg(feature = "plugin-v3")]
use version3 as version;

pub(crate) use version::VERSION;

/// Those that take a plugin of this version.
pub(crate) const RELEASES: &str =
    if cfg!(feature = "plugin-v3") { "QEMU 9.1 or later" } else { "QEMU 7.2 to 8.2" };
/// What to do for the others.
pub(crate) const OTHER_RELEASES: &str = if cfg!(feature = "plugin-v3") {
    "for QEMU 7.2 to 8.2 build it without the feature plugin-v3: cargo build --release --workspace"
} else {
    "for QEMU 9.1 or later build it with the feature plugin-v3: \
     cargo build --release --workspace --features lookaside-sim-qemu/plugin-v3"
};

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
            insn_data: version::InsnData,
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            /// Looks them up in the running executable; the name of the first that is not there.
            pub(crate) fn find() -> Result<Functions, &'static str> {
                let executable = Library::this();
                Ok(Functions {
                    // SAFETY: as below; of this version.
                    insn_data: unsafe { function(&executable, "qemu_plugin_insn_data")? },
                    // SAFETY: an executable that exports a function of this name has it of this type: it is QEMU's
                    // documented interface.
                    $($name: unsafe { function(&executable, $symbol)? },)*
                })
            }
        }
    };
}

/// The function of this name, or the name.
///
/// # Safety
/// It is of this type.
unsafe fn function<F: Copy>(executable: &Library, symbol: &'static str) -> Result<F, &'static str> {
    // SAFETY: the caller's.
    unsafe { executable.get::<F>(symbol) }.map(|function| *function).map_err(|_| symbol)
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
    insn_size: "qemu_plugin_insn_size", fn(*const Insn) -> usize;
    insn_address: "qemu_plugin_insn_vaddr", fn(*const Insn) -> u64;
    mem_size_shift: "qemu_plugin_mem_size_shift", fn(MemInfo) -> c_uint;
    mem_is_store: "qemu_plugin_mem_is_store", fn(MemInfo) -> bool;
}

impl Functions {
    /// Appends an instruction's bytes.
    ///
    /// # Safety
    /// `insn` is valid during this callback.
    pub(crate) unsafe fn append_bytes(&self, insn: *const Insn, to: &mut Vec<u8>) {
        // SAFETY: the caller's.
        unsafe { version::append(self.insn_data, insn, (self.insn_size)(insn), to) };
    }
}

/// What is added to a guest's address to reach it in this process. Not of the documented interface, but
/// exported beside it; 0 where it is not, as for x86-64 on x86-64 always.
pub(crate) fn guest_base() -> u64 {
    // SAFETY: the symbol is a word in every QEMU that has it; it is set before the guest runs.
    unsafe { Library::this().get::<*const u64>("guest_base").map_or(0, |base| **base) }
}
