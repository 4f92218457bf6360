//! Get, GetQ, GetK, GetKQ: a key and nothing else.

use super::{BinaryRequest, Parts, opcode};

/// A key to be looked up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BinaryGet<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Whether the reply has the key.
    pub with_key: bool,
    /// A key that is not there is not answered.
    pub quiet: bool,
}

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
