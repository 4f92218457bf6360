//! From a request line to a [`Request`] or a [`Refusal`], in the order in which memcached 1.6.45 looks at things.
//!
//! The order is what decides about odd lines, so it is worth stating:
//!
//! 1. A line of fewer than four bytes, its ending included, is a bad line whatever it says.
//! 2. The command's name is everything up to the first space, so a line that starts with a space has an empty name.
//! 3. Commands on keys, `stats`, `version`, `quit` and `watch` are known by that name. They count tokens first and give
//!    up without noticing `noreply`; a storage command reads its length in the same step. Then comes `noreply` (the
//!    last token, even where it is also the key: `delete noreply` deletes silently), and errors from here on are silent
//!    if it is there: the key's length, then the numbers from left to right.
//! 4. The name of everything else is the first *token*, so a leading space does no harm to `flush_all`; `noreply`
//!    silences even "no such command". If no such command exists and the last token starts with `HTTP/`, a browser has
//!    lost its way, and the connection is closed.
//!
//! `get`, `gets` and `set` are looked for before anything else, because nearly all requests are of these. (Rejected: a
//! perfect hash of the name. The length and the bytes that `match` compares are about as fast, and legible.)

use crate::key::{BadKeys, Key, Keys};
use crate::line::strip_ending;
use crate::number::{c_i64, c_u64, strict_i32, strict_u32, strict_u64};
use crate::refusal::Refusal;
use crate::reply::ErrorReply;
use crate::request::{GetRequest, Operation, Request, StatsTopic, StoreRequest, Verb};
use crate::token::Tokens;

/// The longest data block that can be announced: with its CRLF it has to fit a signed 32-bit number.
pub const MAX_VALUE_LENGTH: usize = i32::MAX as usize - 2;

/// Parses one request line, as [`split_line`](crate::split_line) returns it, with its ending.
///
/// A line without an ending is taken for one that ended with a bare line feed, except that memcached's minimum of four
/// bytes is counted on what is there.
///
/// ```
/// # use lookaside_protocol::{Connection, ErrorReply, Request, StoreRequest, parse};
/// let Ok(Request::Store(StoreRequest { key, flags, length, noreply, .. })) = parse(b"set k 7 0 5\r\n") else { panic!() };
/// assert_eq!((key.as_bytes(), flags, length, noreply), (b"k".as_slice(), 7, 5, false));
///
/// let refusal = parse(b"set k seven 0 5\r\n").unwrap_err();
/// assert_eq!(refusal.reply, Some(ErrorReply::BadFormat));
/// assert_eq!((refusal.swallow, refusal.connection), (7, Connection::Keep));
/// ```
///
/// # Errors
/// A [`Refusal`] says what to answer, what to skip, and whether to close.
#[inline]
pub fn parse(line: &[u8]) -> Result<Request<'_>, Refusal> {
    if line.len() < 4 {
        return Err(BAD_FORMAT);
    }
    let text = strip_ending(line);
    if let Some(keys) = text.strip_prefix(b"get ") {
        return get(keys, false);
    }
    if let Some(keys) = text.strip_prefix(b"gets ") {
        return get(keys, true);
    }
    if let Some(rest) = text.strip_prefix(b"set ") {
        return store(rest, Verb::Set);
    }
    other_command(text)
}

const BAD_FORMAT: Refusal = Refusal::answer(ErrorReply::BadFormat);

fn other_command(text: &[u8]) -> Result<Request<'_>, Refusal> {
    let (name, rest) = match memchr::memchr(b' ', text) {
        Some(space) => text.split_at(space),
        None => (text, b"".as_slice()),
    };
    match name {
        b"get" | b"gets" | b"set" => Err(BAD_FORMAT),
        b"add" => store(rest, Verb::Add),
        b"replace" => store(rest, Verb::Replace),
        b"append" => store(rest, Verb::Append),
        b"prepend" => store(rest, Verb::Prepend),
        b"cas" => store(rest, Verb::Cas(0)),
        b"gat" => get_and_touch(rest, false),
        b"gats" => get_and_touch(rest, true),
        b"incr" => arithmetic(rest, Operation::Increment),
        b"decr" => arithmetic(rest, Operation::Decrement),
        b"delete" => delete(rest),
        b"ms" => meta_set(rest),
        b"touch" => touch(rest),
        b"stats" => stats(rest),
        b"version" => Ok(Request::Version),
        b"quit" => Ok(Request::Quit),
        b"watch" => Err(Refusal::answer(ErrorReply::WatchNotAllowed)),
        _ => administration(text),
    }
}

#[inline]
fn get(list: &[u8], with_cas: bool) -> Result<Request<'_>, Refusal> {
    match Keys::new(list) {
        Ok(keys) => Ok(Request::Get(GetRequest { keys, with_cas })),
        Err(BadKeys::None | BadKeys::TooLong) => Err(BAD_FORMAT),
    }
}

/// `gat <exptime> <key>+`. There is no `noreply` here: it would be a key.
fn get_and_touch(rest: &[u8], with_cas: bool) -> Result<Request<'_>, Refusal> {
    let mut tokens = Tokens::after_name(rest);
    let exptime = tokens.next().ok_or(BAD_FORMAT)?;
    let keys = match Keys::new(tokens.rest()) {
        Err(BadKeys::None) => return Err(BAD_FORMAT),
        other => other,
    };
    let exptime = strict_i32(exptime).ok_or(Refusal::answer(ErrorReply::InvalidExptime))?;
    let keys = keys.map_err(|_| BAD_FORMAT)?;
    Ok(Request::GetAndTouch { exptime, keys, with_cas })
}

/// `<key> <flags> <exptime> <bytes> [noreply]`, and for `cas` its id before `noreply`.
#[inline]
fn store(rest: &[u8], verb: Verb) -> Result<Request<'_>, Refusal> {
    let mut tokens = Tokens::after_name(rest);
    let key = tokens.next();
    let flags = tokens.rest();
    tokens.next();
    let exptime = tokens.rest();
    tokens.next();
    let length = tokens.next().and_then(strict_i32).and_then(|length| usize::try_from(length).ok());
    let (Some(key), Some(length)) = (key, length.filter(|length| *length <= MAX_VALUE_LENGTH)) else {
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
    Ok(Request::Store(StoreRequest { verb, key, flags, exptime, length, noreply }))
}

/// `<key> [0] [noreply]`, the `0` being a time that some old clients send.
///
/// Anything else behind the key is an error, as in memcached up to 1.6.18: what a client means by it is not known, and
/// libmemcached's test of servers asks for the error. 1.6.45 ignores it and deletes, and so does this where nobody
/// would read the error: a client that waits for none would go on with a stale item.
fn delete(rest: &[u8]) -> Result<Request<'_>, Refusal> {
    let mut tokens = Tokens::after_name(rest);
    let noreply = tokens.clone().end_in_noreply();
    let key = tokens.next().ok_or(BAD_FORMAT)?;
    let is_time = tokens.clone().next() == Some(b"0");
    if !noreply && tokens.count() > usize::from(is_time) {
        return Err(Refusal::answer(ErrorReply::DeleteUsage));
    }
    let key = Key::from_token(key).ok_or(Refusal::answer_unless(noreply, ErrorReply::BadFormat))?;
    Ok(Request::Delete { key, noreply })
}

/// `<key> <bytes> <flag>*`, of the meta commands, which do not exist here. But the data block behind the line is none
/// of the commands that it may spell; where its length cannot be told, nothing that follows can be.
fn meta_set(rest: &[u8]) -> Result<Request<'_>, Refusal> {
    let mut tokens = Tokens::after_name(rest);
    let length = tokens.nth(1).and_then(strict_i32).and_then(|length| usize::try_from(length).ok());
    match length.filter(|length| *length <= MAX_VALUE_LENGTH) {
        Some(length) => Err(Refusal::answer(ErrorReply::Error).swallowing(length + 2)),
        None => Err(Refusal::close()),
    }
}

/// `<key> <delta> [noreply]`.
fn arithmetic(rest: &[u8], operation: Operation) -> Result<Request<'_>, Refusal> {
    let (key, delta, noreply) = key_and_argument(rest)?;
    let delta = strict_u64(delta).ok_or(Refusal::answer_unless(noreply, ErrorReply::InvalidDelta))?;
    Ok(Request::Arithmetic { operation, key, delta, noreply })
}

/// `<key> <exptime> [noreply]`.
fn touch(rest: &[u8]) -> Result<Request<'_>, Refusal> {
    let (key, exptime, noreply) = key_and_argument(rest)?;
    let exptime = strict_i32(exptime).ok_or(Refusal::answer_unless(noreply, ErrorReply::InvalidExptime))?;
    Ok(Request::Touch { key, exptime, noreply })
}

/// `<key> <argument> [noreply]`. `incr k noreply` is both: no number, and so an error, and the error is silent.
fn key_and_argument(rest: &[u8]) -> Result<(Key<'_>, &[u8], bool), Refusal> {
    let mut tokens = Tokens::after_name(rest);
    let noreply = tokens.clone().end_in_noreply();
    let (Some(key), Some(argument)) = (tokens.next(), tokens.next()) else { return Err(BAD_FORMAT) };
    let key = Key::from_token(key).ok_or(Refusal::answer_unless(noreply, ErrorReply::BadFormat))?;
    Ok((key, argument, noreply))
}

/// `stats [topic]`. Most topics may be shortened (`s` is `settings`); `items`, `slabs` and `sizes` may not.
fn stats(rest: &[u8]) -> Result<Request<'_>, Refusal> {
    let Some(topic) = Tokens::after_name(rest).next() else { return Ok(Request::Stats(StatsTopic::General)) };
    let shortens = |name: &[u8]| name.starts_with(topic);
    let topic = if shortens(b"reset") {
        StatsTopic::Reset
    } else if shortens(b"detail") {
        return Err(Refusal::answer(ErrorReply::StatsDetailNotAllowed));
    } else if shortens(b"settings") {
        StatsTopic::Settings
    } else if shortens(b"cachedump") {
        return Err(Refusal::answer(ErrorReply::StatsCachedumpNotAllowed));
    } else if shortens(b"conns") {
        StatsTopic::Conns
    } else {
        match topic {
            b"items" => StatsTopic::Items,
            b"slabs" => StatsTopic::Slabs,
            b"sizes" => StatsTopic::Sizes,
            _ => return Err(Refusal::answer(ErrorReply::Error)),
        }
    };
    Ok(Request::Stats(topic))
}

/// The commands known by their first token, and then everything unknown.
fn administration(text: &[u8]) -> Result<Request<'_>, Refusal> {
    let noreply = Tokens::new(text).end_in_noreply();
    let refuse = |reply| Err(Refusal::answer_unless(noreply, reply));
    let mut tokens = Tokens::new(text);
    let name = tokens.next().unwrap_or_default();
    let arguments = tokens.clone().count();
    let first = tokens.next();
    match name {
        b"flush_all" if arguments == usize::from(noreply) => Ok(Request::FlushAll { delay: 0, noreply }),
        b"flush_all" => match first.and_then(strict_i32) {
            Some(delay) => Ok(Request::FlushAll { delay, noreply }),
            None => refuse(ErrorReply::InvalidExptime),
        },
        b"verbosity" => match first.and_then(strict_u32) {
            Some(level) => Ok(Request::Verbosity { level, noreply }),
            None => refuse(ErrorReply::BadFormat),
        },
        b"cache_memlimit" => match first.and_then(strict_u32) {
            Some(0..8) => refuse(ErrorReply::MemlimitTooSmall),
            Some(megabytes @ 8..=1_000_000_000) => Ok(Request::CacheMemlimit { megabytes, noreply }),
            Some(_) => refuse(ErrorReply::MemlimitNotMegabytes),
            None => refuse(ErrorReply::Error),
        },
        // The machinery behind these does not exist here, so they are answered as where it is switched off; those that
        // would then only set a number that nobody reads are refused.
        b"shutdown" => refuse(ErrorReply::ShutdownNotEnabled),
        b"slabs" if arguments == 3 && first.is_some_and(|sub| b"reassign".starts_with(sub)) => {
            refuse(ErrorReply::SlabReassignDisabled)
        }
        b"lru_crawler"
            if arguments == 2
                && first.is_some_and(|sub| {
                    [b"crawl".as_slice(), b"metadump", b"mgdump"].iter().any(|name| name.starts_with(sub))
                }) =>
        {
            refuse(ErrorReply::LruCrawlerDisabled)
        }
        b"slabs" | b"lru" | b"lru_crawler" => refuse(ErrorReply::Error),
        _ if arguments > 0 && Tokens::new(text).last().is_some_and(|last| last.starts_with(b"HTTP/")) => {
            Err(Refusal::close())
        }
        _ => refuse(ErrorReply::Error),
    }
}
