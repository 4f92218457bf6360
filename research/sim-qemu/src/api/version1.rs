//! Version 1: QEMU gives an instruction's bytes where it has them.

use std::ffi::{c_int, c_void};

use super::Insn;

/// The version that the plugin says it is of.
pub(crate) const VERSION: c_int = 1;

/// `qemu_plugin_insn_data`: where the instruction's bytes are, during the callback.
pub(crate) type InsnData = unsafe extern "C" fn(*const Insn) -> *const c_void;

/// Appends an instruction's bytes.
///
/// # Safety
/// `data` is QEMU's, `insn` valid during this callback, and `size` what QEMU says of it.
pub(crate) unsafe fn append(data: InsnData, insn: *const Insn, size: usize, to: &mut Vec<u8>) {
    // SAFETY: the caller's: the bytes stay where they are during the callback.
    to.extend_from_slice(unsafe { std::slice::from_raw_parts(data(insn).cast::<u8>(), size) });
}
