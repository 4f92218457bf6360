//! `incr`, `decr`.

use super::format::RequestLine;
use super::request::Request;
use super::{ErrorReply, Refusal, key_and_argument};
use crate::arithmetic::Operation;
use crate::key::Key;
use crate::number::strict_u64;

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
pub(super) fn parse(rest: &[u8], operation: Operation) -> Result<Request<'_>, Refusal> {
    let (key, delta, noreply) = key_and_argument(rest)?;
    let delta = strict_u64(delta).ok_or(Refusal::answer_unless(noreply, ErrorReply::InvalidDelta))?;
    Ok(Request::Arithmetic { operation, key, delta, noreply })
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
