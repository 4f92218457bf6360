//! `stats` and what it is asked about.

use super::format::RequestLine;
use crate::error::ErrorReply;
use crate::number::strict_u32;
use crate::refusal::Refusal;
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
    /// `stats detail`: counts by prefix.
    Detail(DetailRequest),
    /// `stats cachedump`: some items of a class; an error, if that is not what the line says, which is told only where
    /// it is allowed at all.
    Cachedump(Result<Cachedump, ErrorReply>),
}

/// What `stats detail` is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DetailRequest {
    /// Count from here on.
    On,
    /// Count no more.
    Off,
    /// Say what was counted.
    Dump,
    /// What it cannot do.
    Unknown,
}

/// Items of a class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cachedump {
    /// The number of the class, from 1 on.
    pub class: u32,
    /// As many items at the most; 0: as many as fit into a reply.
    pub most: u32,
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
            StatsTopic::Detail(_) => Some("detail"),
            StatsTopic::Cachedump(_) => Some("cachedump"),
        }
    }
}

/// `stats [topic]`. Most topics may be shortened (`s` is `settings`); `items`, `slabs` and `sizes` may not.
pub(super) fn parse(rest: &[u8]) -> Result<StatsTopic, Refusal> {
    let mut tokens = Tokens::after_name(rest);
    let Some(topic) = tokens.next() else { return Ok(StatsTopic::General) };
    let shortens = |name: &[u8]| name.starts_with(topic);
    let topic = if shortens(b"reset") {
        StatsTopic::Reset
    } else if shortens(b"detail") {
        StatsTopic::Detail(match tokens.next() {
            Some(b"on") => DetailRequest::On,
            Some(b"off") => DetailRequest::Off,
            Some(b"dump") => DetailRequest::Dump,
            _ => DetailRequest::Unknown,
        })
    } else if shortens(b"settings") {
        StatsTopic::Settings
    } else if shortens(b"cachedump") {
        StatsTopic::Cachedump(cachedump(tokens.next(), tokens.next()))
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
    Ok(topic)
}

/// `<class> <most>`.
fn cachedump(class: Option<&[u8]>, most: Option<&[u8]>) -> Result<Cachedump, ErrorReply> {
    let (Some(class), Some(most)) = (class, most) else { return Err(ErrorReply::CachedumpUsage) };
    match (strict_u32(class), strict_u32(most)) {
        (Some(class), Some(most)) => Ok(Cachedump { class, most }),
        _ => Err(ErrorReply::BadFormat),
    }
}

pub(super) fn write(line: &mut RequestLine<'_>, topic: StatsTopic) {
    line.name("stats");
    if let Some(name) = topic.name() {
        line.bytes(name.as_bytes());
    }
    match topic {
        StatsTopic::Detail(DetailRequest::On) => line.bytes(b"on"),
        StatsTopic::Detail(DetailRequest::Off) => line.bytes(b"off"),
        StatsTopic::Detail(DetailRequest::Dump) => line.bytes(b"dump"),
        StatsTopic::Cachedump(Ok(Cachedump { class, most })) => _ = line.number(class).number(most),
        StatsTopic::Cachedump(Err(ErrorReply::BadFormat)) => _ = line.number("x").number("x"),
        _ => {}
    }
}
