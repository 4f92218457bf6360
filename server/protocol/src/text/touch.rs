//! `touch`.

use super::format::RequestLine;
use super::request::Request;
use super::{ErrorReply, Refusal, key_and_argument};
use crate::key::Key;
use crate::number::strict_i32;

/// `<key> <exptime> [noreply]`.
pub(super) fn parse(rest: &[u8]) -> Result<Request<'_>, Refusal> {
    let (key, exptime, noreply) = key_and_argument(rest)?;
    let exptime = strict_i32(exptime).ok_or(Refusal::answer_unless(noreply, ErrorReply::InvalidExptime))?;
    Ok(Request::Touch { key, exptime, noreply })
}

pub(super) fn write(line: &mut RequestLine<'_>, key: &Key<'_>, exptime: i32, noreply: bool) {
    line.name("touch").bytes(key);
    line.number(exptime).noreply(noreply);
}
