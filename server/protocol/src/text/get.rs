//! `get`, `gets`, `gat`, `gats`: the values of keys.

use super::arguments::BAD_FORMAT;
use super::format::RequestLine;
use crate::error::ErrorReply;
use crate::key::{BadKeys, Keys};
use crate::number::strict_i32;
use crate::refusal::Refusal;
use crate::token::Tokens;

/// `get` or `gets`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetRequest<'a> {
    /// At least one key.
    pub keys: Keys<'a>,
    /// Whether the reply states each value's CAS id (`gets`).
    pub with_cas: bool,
}

#[inline]
pub(super) fn parse(list: &[u8], with_cas: bool) -> Result<GetRequest<'_>, Refusal> {
    match Keys::new(list) {
        Ok(keys) => Ok(GetRequest { keys, with_cas }),
        Err(BadKeys::None | BadKeys::TooLong) => Err(BAD_FORMAT),
    }
}

/// `gat <exptime> <key>+`. There is no `noreply` here: it would be a key.
pub(super) fn parse_and_touch(rest: &[u8]) -> Result<(i32, Keys<'_>), Refusal> {
    let mut tokens = Tokens::after_name(rest);
    let exptime = tokens.next().ok_or(BAD_FORMAT)?;
    let keys = match Keys::new(tokens.rest()) {
        Err(BadKeys::None) => return Err(BAD_FORMAT),
        other => other,
    };
    let exptime = strict_i32(exptime).ok_or(Refusal::answer(ErrorReply::InvalidExptime))?;
    let keys = keys.map_err(|_| BAD_FORMAT)?;
    Ok((exptime, keys))
}

pub(super) fn write(line: &mut RequestLine<'_>, GetRequest { keys, with_cas }: &GetRequest<'_>) {
    line.name(if *with_cas { "gets" } else { "get" });
    keys.clone().for_each(|key| line.bytes(&key));
}

pub(super) fn write_and_touch(line: &mut RequestLine<'_>, exptime: i32, keys: &Keys<'_>, with_cas: bool) {
    line.name(if with_cas { "gats" } else { "gat" }).number(exptime);
    keys.clone().for_each(|key| line.bytes(&key));
}
