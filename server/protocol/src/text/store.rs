//! `set`, `add`, `replace`, `append`, `prepend`, `cas`: a line, and a data block behind it.

use super::arguments::{BAD_FORMAT, plain_noreply, whole};
use super::format::RequestLine;
use crate::error::ErrorReply;
use crate::key::Key;
use crate::number::{c_i64, c_u64, short_number, strict_u64, value_length};
use crate::refusal::Refusal;
use crate::token::{Tokens, skip_spaces};

/// A storage command. `length` bytes of data and a CRLF follow the line.
///
/// If the data is not followed by a CRLF, `length + 2` bytes are consumed all the same, nothing is stored, and the
/// answer is [`ErrorReply::BadDataChunk`](crate::ErrorReply::BadDataChunk).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoreRequest<'a> {
    /// Which of the storage commands.
    pub verb: Verb,
    /// The key to store under.
    pub key: Key<'a>,
    /// The client's own 32 bits; ignored by append and prepend.
    pub flags: u32,
    /// The time to live, for [`expiry`](crate::expiry); ignored by append and prepend.
    pub exptime: i32,
    /// The length of the data in bytes, at most [`MAX_VALUE_LENGTH`](crate::MAX_VALUE_LENGTH), without its CRLF.
    pub length: usize,
    /// No reply wanted.
    pub noreply: bool,
}

/// The storage commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verb {
    /// Store whatever was there before.
    Set,
    /// Store if nothing is there.
    Add,
    /// Store if something is there.
    Replace,
    /// Put the data behind what is there.
    Append,
    /// Put the data before what is there.
    Prepend,
    /// Store if what is there has this CAS id. 0 is an id that no item has.
    Cas(u64),
}

impl Verb {
    /// The command's name.
    pub fn name(self) -> &'static str {
        match self {
            Verb::Set => "set",
            Verb::Add => "add",
            Verb::Replace => "replace",
            Verb::Append => "append",
            Verb::Prepend => "prepend",
            Verb::Cas(_) => "cas",
        }
    }
}

/// `<key> <flags> <exptime> <bytes> [noreply]`, and for `cas` its id before `noreply`.
#[inline]
pub(super) fn parse(rest: &[u8], verb: Verb) -> Result<StoreRequest<'_>, Refusal> {
    let rest = skip_spaces(rest);
    if !matches!(verb, Verb::Cas(_))
        && let Some(request) = parse_plain(rest, verb).and_then(whole)
    {
        return Ok(request);
    }
    let mut tokens = Tokens::after_name(rest);
    let key = tokens.next();
    let flags = tokens.rest();
    tokens.next();
    let exptime = tokens.rest();
    tokens.next();
    let length = tokens.next().and_then(value_length);
    let (Some(key), Some(length)) = (key, length) else {
        return Err(BAD_FORMAT);
    };
    let noreply = tokens.clone().end_in_noreply();

    let bad = Refusal::answer_unless(noreply, ErrorReply::BadFormat).swallowing(length + 2);
    let key = Key::from_token(key).ok_or(bad)?;
    // C's `*out = l`: what does not fit 32 bits loses its upper half.
    let flags = c_u64(flags).ok_or(bad)? as u32;
    let exptime = c_i64(exptime).ok_or(bad)? as i32;
    let verb = match verb {
        Verb::Cas(_) => Verb::Cas(tokens.next().and_then(strict_u64).ok_or(bad)?),
        other => other,
    };
    Ok(StoreRequest { verb, key, flags, exptime, length, noreply })
}

/// A line as clients write it, read once from left to right: a key, three short numbers with a space before each, and
/// perhaps `noreply`. What is behind that, is who calls to look at: of any other line, good or bad, nothing is said.
#[inline(always)]
pub(super) fn parse_plain(rest: &[u8], verb: Verb) -> Option<(StoreRequest<'_>, &[u8])> {
    let (key, rest) = Key::split_plain(rest)?;
    let (flags, rest) = short_number(rest)?;
    let (exptime, rest) = short_number(rest)?;
    let (length, rest) = short_number(rest)?;
    let (noreply, behind) = plain_noreply(rest);
    let (exptime, length) = (exptime as i32, length as usize);
    Some((StoreRequest { verb, key, flags, exptime, length, noreply }, behind))
}

pub(super) fn write(line: &mut RequestLine<'_>, request: &StoreRequest<'_>) {
    let StoreRequest { verb, key, flags, exptime, length, noreply } = request;
    line.name(verb.name()).bytes(key);
    line.number(flags).number(exptime).number(length);
    if let Verb::Cas(id) = verb {
        line.number(id);
    }
    line.noreply(*noreply);
}
