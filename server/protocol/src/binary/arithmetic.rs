//! Increment, decrement: how far, the initial number and its time, and a key.

use super::{BinaryRequest, Parts, opcode};
use crate::arithmetic::Operation;

/// The time of an initial number that is none: nothing is created then.
pub const NO_INITIAL: u32 = u32::MAX;

/// An increment or decrement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BinaryArithmetic<'a> {
    /// Up or down.
    pub operation: Operation,
    /// The key whose value is a number.
    pub key: &'a [u8],
    /// How far.
    pub delta: u64,
    /// The number of a key that is not there, and its time to live, for
    /// [`binary_expiry`](crate::binary_expiry).
    pub initial: Option<(u64, u32)>,
    /// Success is not answered.
    pub quiet: bool,
}

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
