//! Set, add, replace: flags, a time, a key and a value. Append, prepend: a key and a value.

use super::{BinaryRequest, Parts, opcode};

/// A value to be stored, which follows the key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BinaryStore<'a> {
    /// How it is stored, if the header has no CAS id.
    pub mode: BinaryMode,
    /// The key.
    pub key: &'a [u8],
    /// The client's own 32 bits.
    pub flags: u32,
    /// The time to live, for [`binary_expiry`](crate::binary_expiry).
    pub exptime: u32,
    /// The length of the value in bytes.
    pub length: usize,
    /// Success is not answered.
    pub quiet: bool,
}

/// How a value is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BinaryMode {
    /// Whatever was there before.
    Set,
    /// If nothing is there.
    Add,
    /// If something is there.
    Replace,
    /// Behind what is there.
    Append,
    /// Before what is there.
    Prepend,
}

#[inline(always)]
pub(super) fn read<'a>(parts: &Parts<'a>) -> Option<BinaryRequest<'a>> {
    let extras: &[u8; 8] = parts.extras.try_into().ok()?;
    let [f0, f1, f2, f3, time @ ..] = *extras;
    store(parts, u32::from_be_bytes([f0, f1, f2, f3]), u32::from_be_bytes(time))
}

#[inline(always)]
pub(super) fn read_extension<'a>(parts: &Parts<'a>) -> Option<BinaryRequest<'a>> {
    if parts.extras.is_empty() { store(parts, 0, 0) } else { None }
}

#[inline(always)]
fn store<'a>(parts: &Parts<'a>, flags: u32, exptime: u32) -> Option<BinaryRequest<'a>> {
    let (mode, quiet) = match parts.opcode() {
        opcode::SET => (BinaryMode::Set, false),
        opcode::SET_Q => (BinaryMode::Set, true),
        opcode::ADD => (BinaryMode::Add, false),
        opcode::ADD_Q => (BinaryMode::Add, true),
        opcode::REPLACE => (BinaryMode::Replace, false),
        opcode::REPLACE_Q => (BinaryMode::Replace, true),
        opcode::APPEND => (BinaryMode::Append, false),
        opcode::APPEND_Q => (BinaryMode::Append, true),
        opcode::PREPEND => (BinaryMode::Prepend, false),
        opcode::PREPEND_Q => (BinaryMode::Prepend, true),
        _ => return None,
    };
    let &Parts { key, value_length: length, .. } = parts;
    (!key.is_empty()).then_some(BinaryRequest::Store(BinaryStore {
        mode,
        key,
        flags,
        exptime,
        length,
        quiet,
    }))
}
