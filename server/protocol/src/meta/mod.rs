//! The meta protocol: commands of two letters, `mg` to `mn`, on the same connections as the classic ones.
//!
//! `<command> <key> [<length>] <flag>*`, and for `ms` a data block. A flag is a letter, some with a token behind it;
//! what is asked for is answered in the order of the flags. Each command is a file here: how its line is read, and how
//! its reply is written. What the flags do is the server's to know.
//!
//! The errors are memcached 1.6.45's, with one difference: where the length of a data block cannot be told, the
//! connection is closed after the answer, because nobody can know which of the bytes that follow are commands.

mod arguments;
mod arithmetic;
mod base64;
mod debug;
mod delete;
mod flags;
mod get;
mod key;
mod lookups;
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

use crate::refusal::Refusal;

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
        b"mg" => get::parse(rest).map(MetaRequest::Get),
        b"ms" => set::parse(rest).map(MetaRequest::Set),
        b"md" => delete::parse(rest).map(MetaRequest::Delete),
        b"ma" => arithmetic::parse(rest).map(MetaRequest::Arithmetic),
        b"me" => debug::parse(rest).map(MetaRequest::Debug),
        // What follows it is not looked at.
        b"mn" => Ok(MetaRequest::Noop),
        _ => return None,
    })
}

pub(crate) use arithmetic::parse_plain as parse_plain_arithmetic;
pub(crate) use delete::parse_plain as parse_plain_delete;
pub(crate) use set::parse_plain as parse_plain_set;

/// Reads the rest of an `mg`.
#[inline]
pub(crate) fn parse_get(rest: &[u8]) -> Result<MetaRequest<'_>, Refusal> {
    get::parse(rest).map(MetaRequest::Get)
}

impl MetaRequest<'_> {
    /// Appends the request line without its CRLF.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            MetaRequest::Get(request) => request.write(out),
            MetaRequest::Set(request) => request.write(out),
            MetaRequest::Delete(request) => request.write(out),
            MetaRequest::Arithmetic(request) => request.write(out),
            MetaRequest::Debug(request) => request.write(out),
            MetaRequest::Noop => out.extend_from_slice(b"mn"),
        }
    }
}
