//! Increment, decrement: how far, the initial number and its time, and a key.

use super::opcode;
use super::parts::Parts;
use super::request::{BinaryArithmetic, BinaryRequest, NO_INITIAL};
use crate::arithmetic::Operation;

#[inline(always)]
pub(super) fn read<'a>(parts: &Parts<'a>) -> Option<BinaryRequest<'a>> {
    let key = parts.only_key()?;
    let (&delta, rest) = parts.extras.split_first_chunk()?;
    let (&initial, time) = rest.split_first_chunk()?;
    let time = u32::from_be_bytes(time.try_into().ok()?);
    let number = parts.opcode();
    Some(BinaryRequest::Arithmetic(BinaryArithmetic {
        operation: match number {
            opcode::INCREMENT | opcode::INCREMENT_Q => Operation::Increment,
            _ => Operation::Decrement,
        },
        key,
        delta: u64::from_be_bytes(delta),
        initial: (time != NO_INITIAL).then_some((u64::from_be_bytes(initial), time)),
        quiet: matches!(number, opcode::INCREMENT_Q | opcode::DECREMENT_Q),
    }))
}
