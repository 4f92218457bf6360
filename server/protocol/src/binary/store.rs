//! Set, add, replace: flags, a time, a key and a value. Append, prepend: a key and a value.

use super::opcode;
use super::parts::Parts;
use super::request::{BinaryMode, BinaryRequest, BinaryStore};

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
