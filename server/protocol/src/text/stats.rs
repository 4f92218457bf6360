//! `stats` and what it is asked about.

use super::format::RequestLine;
use super::request::Request;
use super::{ErrorReply, Refusal};
use crate::token::Tokens;

/// What `stats` is asked about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StatsTopic {
    /// `stats`: the general counters.
    General,
    /// `stats reset`: set counters to zero; the answer is [`reply::RESET`](crate::reply::RESET).
    Reset,
    /// `stats settings`.
    Settings,
    /// `stats items`: by slab class.
    Items,
    /// `stats slabs`: by slab class.
    Slabs,
    /// `stats sizes`: a histogram, which memcached answers with `STAT sizes_status disabled` unless told to keep one.
    Sizes,
    /// `stats conns`: the open connections.
    Conns,
}

impl StatsTopic {
    /// The topic's name in the request, if it has one.
    pub fn name(self) -> Option<&'static str> {
        match self {
            StatsTopic::General => None,
            StatsTopic::Reset => Some("reset"),
            StatsTopic::Settings => Some("settings"),
            StatsTopic::Items => Some("items"),
            StatsTopic::Slabs => Some("slabs"),
            StatsTopic::Sizes => Some("sizes"),
            StatsTopic::Conns => Some("conns"),
        }
    }
}

/// `stats [topic]`. Most topics may be shortened (`s` is `settings`); `items`, `slabs` and `sizes` may not.
pub(super) fn parse(rest: &[u8]) -> Result<Request<'_>, Refusal> {
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

pub(super) fn write(line: &mut RequestLine<'_>, topic: StatsTopic) {
    line.name("stats");
    if let Some(name) = topic.name() {
        line.bytes(name.as_bytes());
    }
}
