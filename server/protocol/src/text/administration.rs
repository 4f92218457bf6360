//! The commands that are known by their first token.

use super::arguments::Arguments;
use super::{ErrorReply, Refusal, Request};
use super::{flush_all, lru, lru_crawler, memlimit, shutdown, slabs, verbosity};

/// The commands known by their first token, and then everything unknown.
pub(super) fn parse(text: &[u8]) -> Result<Request<'_>, Refusal> {
    let (name, arguments) = Arguments::of(text);
    match name {
        b"flush_all" => flush_all::parse(&arguments),
        b"verbosity" => verbosity::parse(&arguments),
        b"cache_memlimit" => memlimit::parse(&arguments),
        b"shutdown" => shutdown::parse(&arguments),
        b"slabs" => slabs::parse(&arguments),
        b"lru" => lru::parse(&arguments),
        b"lru_crawler" => lru_crawler::parse(&arguments),
        _ if arguments.words().last().is_some_and(|last| last.starts_with(b"HTTP/")) => Err(Refusal::close()),
        _ => arguments.refuse(ErrorReply::Error),
    }
}
