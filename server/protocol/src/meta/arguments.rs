//! What lines of several commands have in common: a key, and flags.

use super::flags::Flags;
use super::key::MetaKey;
use crate::error::ErrorReply;
use crate::key::Key;
use crate::token::{skip_spaces, split_token};

/// The key and the flags of a line that has nothing in between.
#[inline]
pub(super) fn key_and_flags(rest: &[u8]) -> Result<(MetaKey<'_>, Flags<'_>), ErrorReply> {
    let (key, flags) = split_token(skip_spaces(rest));
    if key.is_empty() {
        return Err(ErrorReply::BadFormat);
    }
    Flags::check(key, flags, 2)
}

/// The key and the flags of a line that is as clients write it, one space before each flag, all of them
/// [in short form](Flags); and what is behind them, which is who calls to look at.
#[inline(always)]
pub(super) fn plain_key_and_flags(rest: &[u8]) -> Option<(MetaKey<'_>, Flags<'_>, &[u8])> {
    let (key, behind) = Key::split_plain(rest)?;
    let (flags, length) = Flags::short_behind(behind);
    Some((MetaKey::from_plain(key.as_bytes()), flags, &behind[length..]))
}

pub(super) fn write_key_and_flags(out: &mut Vec<u8>, name: &str, key: &MetaKey<'_>, flags: &Flags<'_>) {
    out.extend_from_slice(name.as_bytes());
    out.push(b' ');
    out.extend_from_slice(key.text());
    flags.write(out);
}
