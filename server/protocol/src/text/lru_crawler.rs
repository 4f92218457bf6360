//! `lru_crawler`: listing keys, and numbers of memcached's crawler.

use super::arguments::Arguments;
use super::format::RequestLine;
use crate::error::ErrorReply;
use crate::number::strict_u32;
use crate::refusal::Refusal;

/// What is asked of the crawler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LruCrawlerRequest<'a> {
    /// `enable`.
    Enable,
    /// `disable`.
    Disable,
    /// `sleep`: microseconds of rest, at most a million.
    Sleep(u32),
    /// `tocrawl`: items looked at, at most; 0: all.
    ToCrawl(u32),
    /// `crawl`: remove what has expired in these classes, which may be `all` or numbers with commas between them.
    Crawl(&'a [u8]),
    /// `metadump`: list what is known of each item of these classes, which may also be `hash`.
    Metadump(&'a [u8]),
    /// `mgdump`: list a meta command for each item.
    Mgdump(&'a [u8]),
}

/// `crawl|metadump|mgdump <classes>`, `sleep|tocrawl <number>` or `enable|disable`.
///
/// The names may be shortened, `crawl` before the others.
pub(super) fn parse<'a>(arguments: &Arguments<'a>) -> Result<LruCrawlerRequest<'a>, Refusal> {
    let mut words = arguments.words();
    let request = match (arguments.count(), words.next(), words.next()) {
        (1, Some(name), None) => without_argument(name),
        (2, Some(name), Some(argument)) => with_argument(name, argument),
        _ => Err(ErrorReply::Error),
    };
    request.or_else(|reply| arguments.refuse(reply))
}

fn without_argument<'a>(name: &[u8]) -> Result<LruCrawlerRequest<'a>, ErrorReply> {
    if b"enable".starts_with(name) {
        Ok(LruCrawlerRequest::Enable)
    } else if b"disable".starts_with(name) {
        Ok(LruCrawlerRequest::Disable)
    } else {
        Err(ErrorReply::Error)
    }
}

fn with_argument<'a>(name: &[u8], argument: &'a [u8]) -> Result<LruCrawlerRequest<'a>, ErrorReply> {
    let number = strict_u32(argument).ok_or(ErrorReply::BadFormat);
    if b"crawl".starts_with(name) {
        Ok(LruCrawlerRequest::Crawl(argument))
    } else if b"metadump".starts_with(name) {
        Ok(LruCrawlerRequest::Metadump(argument))
    } else if b"mgdump".starts_with(name) {
        Ok(LruCrawlerRequest::Mgdump(argument))
    } else if b"tocrawl".starts_with(name) {
        number.map(LruCrawlerRequest::ToCrawl)
    } else if b"sleep".starts_with(name) {
        match number? {
            microseconds @ 0..=1_000_000 => Ok(LruCrawlerRequest::Sleep(microseconds)),
            _ => Err(ErrorReply::CrawlerSleepTooLong),
        }
    } else {
        Err(ErrorReply::Error)
    }
}

pub(super) fn write(line: &mut RequestLine<'_>, request: LruCrawlerRequest<'_>, noreply: bool) {
    line.name("lru_crawler");
    let (name, argument) = match request {
        LruCrawlerRequest::Enable => ("enable", None),
        LruCrawlerRequest::Disable => ("disable", None),
        LruCrawlerRequest::Sleep(microseconds) => ("sleep", Some(microseconds.to_string().into_bytes())),
        LruCrawlerRequest::ToCrawl(items) => ("tocrawl", Some(items.to_string().into_bytes())),
        LruCrawlerRequest::Crawl(classes) => ("crawl", Some(classes.to_vec())),
        LruCrawlerRequest::Metadump(classes) => ("metadump", Some(classes.to_vec())),
        LruCrawlerRequest::Mgdump(classes) => ("mgdump", Some(classes.to_vec())),
    };
    line.bytes(name.as_bytes());
    if let Some(argument) = argument {
        // With `noreply` in the place of the classes there is one word, and it is both.
        let is_both = noreply && argument == b"noreply";
        line.bytes(&argument);
        line.noreply(noreply && !is_both);
    }
}
