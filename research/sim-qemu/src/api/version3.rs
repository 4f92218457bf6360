//! Version 3: QEMU copies an instruction's bytes to where it is told.

use std::ffi::{c_int, c_void};

use super::Insn;

/// The version that the plugin says it is of.
pub(crate) const VERSION: c_int = 3;

/// `qemu_plugin_insn_data`: copies at most so many of the instruction's bytes, and says how many.
pub(crate) type InsnData = unsafe extern "C" fn(*const Insn, *mut c_void, usize) -> usize;

/// Appends an instruction's bytes.
///
/// # Safety
/// `data` is QEMU's, `insn` valid during this callback, and `size` what QEMU says of it.
pub(crate) unsafe fn append(data: InsnData, insn: *const Insn, size: usize, to: &mut Vec<u8>) {
    let start = to.len();
    to.resize(start + size, 0);
    // SAFETY: the caller's; there is room for `size` bytes.
    let copied = unsafe { data(insn, to[start..].as_mut_ptr().cast(), size) };
    to.truncate(start + copied.min(size));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An instruction of three bytes, as QEMU would copy it.
    unsafe extern "C" fn copy(_: *const Insn, to: *mut c_void, length: usize) -> usize {
        const BYTES: [u8; 3] = [0x48, 0x8b, 0x03];
        let copied = length.min(BYTES.len());
        // SAFETY: `append` has room for `length` bytes.
        unsafe { std::ptr::copy_nonoverlapping(BYTES.as_ptr(), to.cast(), copied) };
        copied
    }

    #[test]
    fn bytes_come_behind_those_that_are_there() {
        let mut bytes = vec![0x90];
        for size in [3, 2, 15] {
            // SAFETY: the function never looks at the instruction.
            unsafe { append(copy, std::ptr::null(), size, &mut bytes) };
        }
        assert_eq!(bytes, [0x90, 0x48, 0x8b, 0x03, 0x48, 0x8b, 0x48, 0x8b, 0x03]);
    }
}
