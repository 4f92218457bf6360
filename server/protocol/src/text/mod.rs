//! The classic text protocol: from a request line to a [`Request`] or a [`Refusal`], in the order in which memcached
//! 1.6.45 looks at things. Each command is a file here, and says how its line is read and written.
//!
//! The order is what decides about odd lines, so it is worth stating:
//!
//! 1. A line of fewer than four bytes, its ending included, is a bad line whatever it says.
//! 2. The command's name is everything up to the first space, so a line that starts with a space has an empty name.
//! 3. Commands on keys, `stats`, `version`, `quit`, `watch` and the meta commands are known by that name. They count
//!    tokens first and give up without noticing `noreply`; a storage command reads its length in the same step. Then
//!    comes `noreply` (the last token, even where it is also the key: `delete noreply` deletes silently), and errors
//!    from here on are silent if it is there: the key's length, then the numbers from left to right.
//! 4. The name of everything else is the first *token*, so a leading space does no harm to `flush_all`; `noreply`
//!    silences even "no such command". If no such command exists and the last token starts with `HTTP/`, a browser has
//!    lost its way, and the connection is closed.
//!
//! `get`, `gets`, `set`, `incr`, `delete` and the meta commands are looked for before anything else, because nearly all
//! requests are of these.
//! (Rejected: a perfect hash of the name. The length and the bytes that `match` compares are about as fast, and
//! legible.)

mod administration;
mod arguments;
mod arithmetic;
mod delete;
mod flush_all;
mod format;
mod get;
mod key_stream;
mod lru;
mod lru_crawler;
mod memlimit;
mod plain;
pub mod reply;
mod request;
pub mod response;
mod shutdown;
mod slabs;
mod stats;
mod store;
mod touch;
mod verbosity;
mod watch;

pub use get::GetRequest;
pub use key_stream::{KeyStream, StreamState, Streamed};
pub use lru::{Factor, LruRequest};
pub use lru_crawler::LruCrawlerRequest;
pub use plain::{parse_plain, parse_plain_get};
pub use request::Request;
pub use shutdown::Shutdown;
pub use slabs::SlabsRequest;
pub use stats::{Cachedump, DetailRequest, StatsTopic};
pub use store::{StoreRequest, Verb};
pub use watch::Streams;

use self::arguments::BAD_FORMAT;
use crate::arithmetic::Operation;
use crate::line::strip_ending;
use crate::meta;
use crate::refusal::Refusal;

/// Parses one request line, as [`split_line`](crate::split_line) returns it, with its ending.
///
/// A line without an ending is taken for one that ended with a bare line feed, except that memcached's minimum of four
/// bytes is counted on what is there.
///
/// ```
/// # use lookaside_protocol::{Connection, ErrorReply, Request, StoreRequest, parse};
/// let request = parse(b"set k 7 0 5\r\n");
/// let Ok(Request::Store(StoreRequest { key, flags, length, noreply, .. })) = request else { panic!() };
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
    // Before all others: most requests are gets.
    if let Some(keys) = text.strip_prefix(b"get ") {
        return get::parse(keys, false).map(Request::Get);
    }
    match text {
        [b'g', b'e', b't', b's', b' ', keys @ ..] => return get::parse(keys, true).map(Request::Get),
        [b's', b'e', b't', b' ', rest @ ..] => return store(rest, Verb::Set),
        [b'm', b'g', b' ', rest @ ..] => return meta::parse_get(rest).map(Request::Meta),
        [b'i', b'n', b'c', b'r', b' ', rest @ ..] => return count(rest, Operation::Increment),
        [b'd', b'e', b'l', b'e', b't', b'e', b' ', rest @ ..] => return delete(rest),
        [b'm', _, b' ', ..] => {
            if let Some(request) = meta::parse(&text[..2], &text[2..]) {
                return request.map(Request::Meta);
            }
        }
        _ => {}
    }
    other_command(text)
}

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
        b"incr" => count(rest, Operation::Increment),
        b"decr" => count(rest, Operation::Decrement),
        b"delete" => delete(rest),
        b"touch" => {
            let (key, exptime, noreply) = touch::parse(rest)?;
            Ok(Request::Touch { key, exptime, noreply })
        }
        b"stats" => stats::parse(rest).map(Request::Stats),
        b"version" => Ok(Request::Version),
        b"quit" => Ok(Request::Quit),
        b"watch" => Ok(Request::Watch(watch::parse(rest))),
        _ => match meta::parse(name, rest) {
            Some(request) => request.map(Request::Meta),
            None => administration::parse(text),
        },
    }
}

#[inline]
fn store(rest: &[u8], verb: Verb) -> Result<Request<'_>, Refusal> {
    store::parse(rest, verb).map(Request::Store)
}

fn count(rest: &[u8], operation: Operation) -> Result<Request<'_>, Refusal> {
    let (key, delta, noreply) = arithmetic::parse(rest)?;
    Ok(Request::Arithmetic { operation, key, delta, noreply })
}

fn delete(rest: &[u8]) -> Result<Request<'_>, Refusal> {
    let (key, noreply) = delete::parse(rest)?;
    Ok(Request::Delete { key, noreply })
}

fn get_and_touch(rest: &[u8], with_cas: bool) -> Result<Request<'_>, Refusal> {
    let (exptime, keys) = get::parse_and_touch(rest)?;
    Ok(Request::GetAndTouch { exptime, keys, with_cas })
}
