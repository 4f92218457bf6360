//! The meta protocol: commands of two letters, `mg` to `mn`, on the same connections as the classic ones.
//!
//! `<command> <key> [<length>] <flag>*`, and for `ms` a data block. A flag is a letter, some with a token behind it;
//! what is asked for is answered in the order of the flags. Each command is a file here: how its line is read, and how
//! its reply is written. What the flags do is the server's to know.
//!
//! The errors are memcached 1.6.45's, with one difference: where the length of a data block cannot be told, the
//! connection is closed after the answer, because nobody can know which of the bytes that follow are commands.

mod arithmetic;
mod base64;
mod debug;
mod delete;
mod flags;
mod get;
mod key;
mod lookups;
mod noop;
pub mod reply;
mod set;

pub use arithmetic::MetaArithmetic;
pub use base64::{MAX_DECODED_LENGTH, encode as encode_base64};
pub use debug::MetaDebug;
pub use delete::MetaDelete;
pub use flags::{Flag, Flags, Letters};
pub use get::MetaGet;
pub use key::MetaKey;
pub use lookups::MetaLookups;
pub use set::{MetaMode, MetaSet};

use crate::error::ErrorReply;
use crate::key::MAX_KEY_LENGTH;
use crate::refusal::Refusal;
use crate::token::{skip_spaces, split_token, token_length, word_length};

/// A well-formed meta command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetaRequest<'a> {
    /// `mg`: a value, or what there is to say of it.
    Get(MetaGet<'a>),
    /// `ms`: a data block follows.
    Set(MetaSet<'a>),
    /// `md`.
    Delete(MetaDelete<'a>),
    /// `ma`.
    Arithmetic(MetaArithmetic<'a>),
    /// `me`: what is known of an item.
    Debug(MetaDebug<'a>),
    /// `mn`: nothing; its reply says that all before it have been answered.
    Noop,
}

/// Reads the rest of a line whose first word is this, if that is a meta command.
pub(crate) fn parse<'a>(name: &[u8], rest: &'a [u8]) -> Option<Result<MetaRequest<'a>, Refusal>> {
    Some(match name {
        b"mg" => get::parse(rest),
        b"ms" => set::parse(rest),
        b"md" => delete::parse(rest),
        b"ma" => arithmetic::parse(rest),
        b"me" => debug::parse(rest),
        b"mn" => Ok(noop::REQUEST),
        _ => return None,
    })
}

pub(crate) use arithmetic::parse_plain as parse_plain_arithmetic;
pub(crate) use delete::parse_plain as parse_plain_delete;
pub(crate) use get::parse as parse_get;
pub(crate) use set::parse_plain as parse_plain_set;

impl MetaRequest<'_> {
    /// Appends the request line without its CRLF.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            MetaRequest::Get(request) => request.write(out),
            MetaRequest::Set(request) => request.write(out),
            MetaRequest::Delete(request) => request.write(out),
            MetaRequest::Arithmetic(request) => request.write(out),
            MetaRequest::Debug(request) => request.write(out),
            MetaRequest::Noop => noop::write(out),
        }
    }
}

/// The key and the flags of a line that has nothing in between.
#[inline]
fn key_and_flags(rest: &[u8]) -> Result<(MetaKey<'_>, Flags<'_>), ErrorReply> {
    let (key, flags) = split_token(skip_spaces(rest));
    if key.is_empty() {
        return Err(ErrorReply::BadFormat);
    }
    Flags::check(key, flags, 2)
}

/// The key and the flags of a line that is as clients write it: one space before each flag, all of them
/// [in short form](Flags).
#[inline(always)]
fn plain_key_and_flags(rest: &[u8]) -> Option<(MetaKey<'_>, Flags<'_>)> {
    let (key, behind) = rest.split_at(token_length(rest));
    let (flags, length) = Flags::short_behind(behind);
    let is_plain = matches!(key.len(), 1..=MAX_KEY_LENGTH) && length == behind.len();
    is_plain.then(|| (MetaKey::from_plain(key), flags))
}

/// The key at the start of what may go on, and what stands behind it, if that is a key that is not looked at any
/// further: no space before it, not too long. Where it ends is any space, control character or line end.
#[inline(always)]
fn plain_key(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = word_length(rest);
    matches!(length, 1..=MAX_KEY_LENGTH).then(|| rest.split_at(length))
}

fn write_key_and_flags(out: &mut Vec<u8>, name: &str, key: &MetaKey<'_>, flags: &Flags<'_>) {
    out.extend_from_slice(name.as_bytes());
    out.push(b' ');
    out.extend_from_slice(key.text());
    flags.write(out);
}
