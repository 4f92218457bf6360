//! `incr`, `decr`.

use super::arguments::{ends_in_noreply, key_and_argument};
use super::format::RequestLine;
use crate::arithmetic::Operation;
use crate::error::ErrorReply;
use crate::key::Key;
use crate::number::{short_number, strict_u64};
use crate::refusal::Refusal;
use crate::token::{skip_spaces, token_length};

impl Operation {
    /// The command's name.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Increment => "incr",
            Operation::Decrement => "decr",
        }
    }
}

/// `<key> <delta> [noreply]`.
pub(super) fn parse(rest: &[u8]) -> Result<(Key<'_>, u64, bool), Refusal> {
    if let Some(plain) = parse_plain(skip_spaces(rest)) {
        return Ok(plain);
    }
    let (key, delta, noreply) = key_and_argument(rest)?;
    let delta = strict_u64(delta).ok_or(Refusal::answer_unless(noreply, ErrorReply::InvalidDelta))?;
    Ok((key, delta, noreply))
}

/// A line as clients write it: as [`super::store`] has it.
#[inline(always)]
pub(super) fn parse_plain(rest: &[u8]) -> Option<(Key<'_>, u64, bool)> {
    let (key, rest) = rest.split_at(token_length(rest));
    let key = Key::from_token(key)?;
    let (delta, rest) = short_number(rest)?;
    Some((key, delta.into(), ends_in_noreply(rest)?))
}

pub(super) fn write(
    line: &mut RequestLine<'_>,
    operation: Operation,
    key: &Key<'_>,
    delta: u64,
    noreply: bool,
) {
    line.name(operation.name()).bytes(key);
    line.number(delta).noreply(noreply);
}
