//! `lru_crawler`: answered as where there is none, like [`slabs`](super::slabs).

use super::administration::Arguments;
use super::{ErrorReply, Refusal, Request};

/// `crawl|metadump|mgdump <classes>`, or something else.
pub(super) fn parse<'a>(arguments: &Arguments<'a>) -> Result<Request<'a>, Refusal> {
    let walks =
        |sub: &[u8]| [b"crawl".as_slice(), b"metadump", b"mgdump"].iter().any(|name| name.starts_with(sub));
    let would_walk = arguments.count() == 2 && arguments.first().is_some_and(walks);
    arguments.refuse(if would_walk { ErrorReply::LruCrawlerDisabled } else { ErrorReply::Error })
}
