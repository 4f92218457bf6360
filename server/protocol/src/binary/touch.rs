//! Touch, GAT, GATQ, GATK, GATKQ: a time and a key.

use super::opcode;
use super::parts::Parts;
use super::request::{BinaryGet, BinaryRequest};

#[inline(always)]
pub(super) fn read<'a>(parts: &Parts<'a>) -> Option<BinaryRequest<'a>> {
    let exptime = parts.time()?;
    let number = parts.opcode();
    let get = BinaryGet {
        key: parts.only_key()?,
        with_key: matches!(number, opcode::GAT_K | opcode::GAT_KQ),
        quiet: matches!(number, opcode::GAT_Q | opcode::GAT_KQ),
    };
    Some(BinaryRequest::Touch { get, exptime, with_value: number != opcode::TOUCH })
}
