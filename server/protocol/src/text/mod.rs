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
pub use plain::parse_plain;
pub use request::Request;
pub use shutdown::Shutdown;
pub use slabs::SlabsRequest;
pub use stats::{Cachedump, DetailRequest, StatsTopic};
pub use store::{StoreRequest, Verb};
pub use watch::Streams;

use crate::arithmetic::Operation;
use crate::error::ErrorReply;
use crate::key::Key;
use crate::line::strip_ending;
use crate::meta;
use crate::refusal::Refusal;
use crate::token::Tokens;

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
        return get::parse(keys, false);
    }
    match text {
        [b'g', b'e', b't', b's', b' ', keys @ ..] => return get::parse(keys, true),
        [b's', b'e', b't', b' ', rest @ ..] => return store::parse(rest, Verb::Set),
        [b'm', b'g', b' ', rest @ ..] => return meta::parse_get(rest).map(Request::Meta),
        [b'i', b'n', b'c', b'r', b' ', rest @ ..] => return arithmetic::parse(rest, Operation::Increment),
        [b'd', b'e', b'l', b'e', b't', b'e', b' ', rest @ ..] => return delete::parse(rest),
        [b'm', _, b' ', ..] => {
            if let Some(request) = meta::parse(&text[..2], &text[2..]) {
                return request.map(Request::Meta);
            }
        }
        _ => {}
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
        b"add" => store::parse(rest, Verb::Add),
        b"replace" => store::parse(rest, Verb::Replace),
        b"append" => store::parse(rest, Verb::Append),
        b"prepend" => store::parse(rest, Verb::Prepend),
        b"cas" => store::parse(rest, Verb::Cas(0)),
        b"gat" => get::parse_and_touch(rest, false),
        b"gats" => get::parse_and_touch(rest, true),
        b"incr" => arithmetic::parse(rest, Operation::Increment),
        b"decr" => arithmetic::parse(rest, Operation::Decrement),
        b"delete" => delete::parse(rest),
        b"touch" => touch::parse(rest),
        b"stats" => stats::parse(rest),
        b"version" => Ok(Request::Version),
        b"quit" => Ok(Request::Quit),
        b"watch" => watch::parse(rest),
        _ => match meta::parse(name, rest) {
            Some(request) => request.map(Request::Meta),
            None => administration::parse(text),
        },
    }
}

/// `<key> <argument> [noreply]`. `incr k noreply` is both: no number, and so an error, and the error is silent.
fn key_and_argument(rest: &[u8]) -> Result<(Key<'_>, &[u8], bool), Refusal> {
    let mut tokens = Tokens::after_name(rest);
    let (Some(key), Some(argument)) = (tokens.next(), tokens.next()) else { return Err(BAD_FORMAT) };
    let noreply = tokens.last().unwrap_or(argument) == b"noreply";
    let key = Key::from_token(key).ok_or(Refusal::answer_unless(noreply, ErrorReply::BadFormat))?;
    Ok((key, argument, noreply))
}
