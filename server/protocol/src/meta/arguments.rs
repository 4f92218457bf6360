//! What lines of several commands have in common: a key, and flags.

use super::flags::Flags;
use super::key::MetaKey;
use crate::error::ErrorReply;
use crate::key::MAX_KEY_LENGTH;
use crate::token::{skip_spaces, split_token, token_length, word_length};

/// The key and the flags of a line that has nothing in between.
#[inline]
pub(super) fn key_and_flags(rest: &[u8]) -> Result<(MetaKey<'_>, Flags<'_>), ErrorReply> {
    let (key, flags) = split_token(skip_spaces(rest));
    if key.is_empty() {
        return Err(ErrorReply::BadFormat);
    }
    Flags::check(key, flags, 2)
}

/// The key and the flags of a line that is as clients write it: one space before each flag, all of them
/// [in short form](Flags).
#[inline(always)]
pub(super) fn plain_key_and_flags(rest: &[u8]) -> Option<(MetaKey<'_>, Flags<'_>)> {
    let (key, behind) = rest.split_at(token_length(rest));
    let (flags, length) = Flags::short_behind(behind);
    let is_plain = matches!(key.len(), 1..=MAX_KEY_LENGTH) && length == behind.len();
    is_plain.then(|| (MetaKey::from_plain(key), flags))
}

/// The key at the start of what may go on, and what stands behind it, if that is a key that is not looked at any
/// further: no space before it, not too long. Where it ends is any space, control character or line end.
#[inline(always)]
pub(super) fn plain_key(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = word_length(rest);
    matches!(length, 1..=MAX_KEY_LENGTH).then(|| rest.split_at(length))
}

pub(super) fn write_key_and_flags(out: &mut Vec<u8>, name: &str, key: &MetaKey<'_>, flags: &Flags<'_>) {
    out.extend_from_slice(name.as_bytes());
    out.push(b' ');
    out.extend_from_slice(key.text());
    flags.write(out);
}
