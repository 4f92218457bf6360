//! Delete, DeleteQ: a key and nothing else.

use super::opcode;
use super::parts::Parts;
use super::request::BinaryRequest;

#[inline(always)]
pub(super) fn read<'a>(parts: &Parts<'a>) -> Option<BinaryRequest<'a>> {
    let key = parts.only_key().filter(|_| parts.extras.is_empty())?;
    Some(BinaryRequest::Delete { key, quiet: parts.opcode() == opcode::DELETE_Q })
}
