//! Flush, FlushQ: a delay, or none.

use super::opcode;
use super::parts::Parts;
use super::request::BinaryRequest;

#[inline(always)]
pub(super) fn read<'a>(parts: &Parts<'a>) -> Option<BinaryRequest<'a>> {
    let delay = if parts.extras.is_empty() { 0 } else { parts.time()? };
    let delay = i32::try_from(delay).unwrap_or(i32::MAX);
    let is_bare = parts.key.is_empty() && parts.value_length == 0;
    is_bare.then_some(BinaryRequest::Flush { delay, quiet: parts.opcode() == opcode::FLUSH_Q })
}
