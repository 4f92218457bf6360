//! `touch`.

use super::arguments::key_and_argument;
use super::format::RequestLine;
use crate::error::ErrorReply;
use crate::key::Key;
use crate::number::strict_i32;
use crate::refusal::Refusal;

/// `<key> <exptime> [noreply]`.
pub(super) fn parse(rest: &[u8]) -> Result<(Key<'_>, i32, bool), Refusal> {
    let (key, exptime, noreply) = key_and_argument(rest)?;
    let exptime = strict_i32(exptime).ok_or(Refusal::answer_unless(noreply, ErrorReply::InvalidExptime))?;
    Ok((key, exptime, noreply))
}

pub(super) fn write(line: &mut RequestLine<'_>, key: &Key<'_>, exptime: i32, noreply: bool) {
    line.name("touch").bytes(key);
    line.number(exptime).noreply(noreply);
}
