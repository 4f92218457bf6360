//! Get, GetQ, GetK, GetKQ: a key and nothing else.

use super::opcode;
use super::parts::Parts;
use super::request::{BinaryGet, BinaryRequest};

#[inline(always)]
pub(super) fn read<'a>(parts: &Parts<'a>) -> Option<BinaryRequest<'a>> {
    let key = parts.only_key().filter(|_| parts.extras.is_empty())?;
    let number = parts.opcode();
    Some(BinaryRequest::Get(BinaryGet {
        key,
        with_key: matches!(number, opcode::GET_K | opcode::GET_KQ),
        quiet: matches!(number, opcode::GET_Q | opcode::GET_KQ),
    }))
}
