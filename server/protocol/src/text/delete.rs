//! `delete`.

use super::arguments::{BAD_FORMAT, plain_noreply, whole};
use super::format::RequestLine;
use crate::error::ErrorReply;
use crate::key::Key;
use crate::refusal::Refusal;
use crate::token::{Tokens, skip_spaces};

/// `<key> [0] [noreply]`, the `0` being a time that some old clients send.
///
/// Anything else behind the key is an error, as in memcached up to 1.6.18: what a client means by it is not known, and
/// libmemcached's test of servers asks for the error. 1.6.45 ignores it and deletes, and so does this where nobody
/// would read the error: a client that waits for none would go on with a stale item.
pub(super) fn parse(rest: &[u8]) -> Result<(Key<'_>, bool), Refusal> {
    if let Some(plain) = parse_plain(skip_spaces(rest)).and_then(whole) {
        return Ok(plain);
    }
    let mut tokens = Tokens::after_name(rest);
    let key = tokens.next().ok_or(BAD_FORMAT)?;
    let noreply = tokens.clone().last().unwrap_or(key) == b"noreply";
    let is_time = tokens.clone().next() == Some(b"0");
    if !noreply && tokens.count() > usize::from(is_time) {
        return Err(Refusal::answer(ErrorReply::DeleteUsage));
    }
    let key = Key::from_token(key).ok_or(Refusal::answer_unless(noreply, ErrorReply::BadFormat))?;
    Ok((key, noreply))
}

/// A key and at most `noreply`, unless the key is that word; and what is behind it, as [`super::store`] has it.
#[inline(always)]
pub(super) fn parse_plain(rest: &[u8]) -> Option<((Key<'_>, bool), &[u8])> {
    let (key, rest) = Key::split_plain(rest)?;
    let (noreply, behind) = plain_noreply(rest);
    (noreply || *key != *b"noreply").then_some(((key, noreply), behind))
}

pub(super) fn write(line: &mut RequestLine<'_>, key: &Key<'_>, noreply: bool) {
    line.name("delete").bytes(key);
    if !noreply && **key == *b"noreply" {
        // As the last token it would be more than the key. What follows a key is ignored.
        line.bytes(b"0");
    }
    line.noreply(noreply);
}
