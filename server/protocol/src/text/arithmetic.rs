//! `incr`, `decr`.

use super::arguments::{key_and_argument, plain_noreply, whole};
use super::format::RequestLine;
use crate::arithmetic::Operation;
use crate::error::ErrorReply;
use crate::key::Key;
use crate::number::{short_number, strict_u64};
use crate::refusal::Refusal;
use crate::token::skip_spaces;

impl Operation {
    /// The command's name.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Increment => "incr",
            Operation::Decrement => "decr",
        }
    }
}

/// A key, a delta, and whether nobody waits for a reply.
type Counting<'a> = (Key<'a>, u64, bool);

/// `<key> <delta> [noreply]`.
pub(super) fn parse(rest: &[u8]) -> Result<Counting<'_>, Refusal> {
    if let Some(plain) = parse_plain(skip_spaces(rest)).and_then(whole) {
        return Ok(plain);
    }
    let (key, delta, noreply) = key_and_argument(rest)?;
    let delta = strict_u64(delta).ok_or(Refusal::answer_unless(noreply, ErrorReply::InvalidDelta))?;
    Ok((key, delta, noreply))
}

/// A line as clients write it: as [`super::store`] has it.
#[inline(always)]
pub(super) fn parse_plain(rest: &[u8]) -> Option<(Counting<'_>, &[u8])> {
    let (key, rest) = Key::split_plain(rest)?;
    let (delta, rest) = short_number(rest)?;
    let (noreply, behind) = plain_noreply(rest);
    Some(((key, delta.into(), noreply), behind))
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
