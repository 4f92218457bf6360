//! The commands that are known by their first token.

use super::arguments::Arguments;
use super::request::Request;
use super::{flush_all, lru, lru_crawler, memlimit, shutdown, slabs, verbosity};
use crate::error::ErrorReply;
use crate::refusal::Refusal;

/// The commands known by their first token, and then everything unknown.
pub(super) fn parse(text: &[u8]) -> Result<Request<'_>, Refusal> {
    let (name, arguments) = Arguments::of(text);
    let noreply = arguments.noreply;
    Ok(match name {
        b"flush_all" => Request::FlushAll { delay: flush_all::parse(&arguments)?, noreply },
        b"verbosity" => Request::Verbosity { level: verbosity::parse(&arguments)?, noreply },
        b"cache_memlimit" => Request::CacheMemlimit { megabytes: memlimit::parse(&arguments)?, noreply },
        b"shutdown" => Request::Shutdown { how: shutdown::parse(&arguments), noreply },
        b"slabs" => Request::Slabs { request: slabs::parse(&arguments)?, noreply },
        b"lru" => Request::Lru { request: lru::parse(&arguments)?, noreply },
        b"lru_crawler" => Request::LruCrawler { request: lru_crawler::parse(&arguments)?, noreply },
        _ if arguments.words().last().is_some_and(|last| last.starts_with(b"HTTP/")) => {
            return Err(Refusal::close());
        }
        _ => return arguments.refuse(ErrorReply::Error),
    })
}
