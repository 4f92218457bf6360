//! `lru`: numbers of memcached's segmented LRU.

use std::fmt;

use super::arguments::Arguments;
use super::format::RequestLine;
use crate::error::ErrorReply;
use crate::number::{strict_i32, strict_u32};
use crate::refusal::Refusal;

/// What `lru` sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LruRequest {
    /// `lru tune`.
    Tune {
        /// The share of memory that the hot segment may take; with that of the warm one at most 80.
        hot_percent: u32,
        /// The share of the warm one.
        warm_percent: u32,
        /// How old the hot segment may be, compared with the cold one.
        hot_factor: Factor,
        /// How old the warm one may be.
        warm_factor: Factor,
    },
    /// `lru mode`: segmented, or flat.
    Mode {
        /// Whether it is segmented.
        segmented: bool,
    },
    /// `lru temp_ttl`: seconds below which an item counts as temporary; `None`: no item does.
    TemporaryTtl(Option<u32>),
}

/// A number with a fraction, in thousandths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Factor(u32);

impl Factor {
    /// The number.
    pub fn value(self) -> f64 {
        f64::from(self.0) / 1000.0
    }

    pub(super) fn parse(token: &[u8]) -> Option<Factor> {
        let number: f64 = str::from_utf8(token).ok()?.parse().ok()?;
        (0.0..4e6).contains(&number).then(|| Factor((number * 1000.0).round() as u32))
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.value())
    }
}

/// `tune <hot> <warm> <hot factor> <warm factor>`, `mode flat|segmented` or `temp_ttl <seconds>`.
pub(super) fn parse(arguments: &Arguments<'_>) -> Result<LruRequest, Refusal> {
    let words: Vec<&[u8]> = arguments.words().collect();
    let noreply = arguments.noreply;
    let known = &words[..words.len() - usize::from(noreply && !words.is_empty())];
    let request = match *known {
        [b"tune", hot, warm, hot_factor, warm_factor] => {
            let numbers = strict_u32(hot).zip(strict_u32(warm));
            let factors = Factor::parse(hot_factor).zip(Factor::parse(warm_factor));
            match numbers.zip(factors) {
                None => Err(ErrorReply::Error),
                Some(((hot, warm), _)) if u64::from(hot) + u64::from(warm) > 80 => {
                    Err(ErrorReply::LruPercents)
                }
                Some((_, (Factor(0), _) | (_, Factor(0)))) => Err(ErrorReply::LruFactors),
                Some(((hot_percent, warm_percent), (hot_factor, warm_factor))) => {
                    Ok(LruRequest::Tune { hot_percent, warm_percent, hot_factor, warm_factor })
                }
            }
        }
        [b"mode", b"flat"] => Ok(LruRequest::Mode { segmented: false }),
        [b"mode", b"segmented"] => Ok(LruRequest::Mode { segmented: true }),
        [b"temp_ttl", seconds] => match strict_i32(seconds) {
            Some(seconds) => Ok(LruRequest::TemporaryTtl(u32::try_from(seconds).ok())),
            None => Err(ErrorReply::Error),
        },
        _ => Err(ErrorReply::Error),
    };
    request.or_else(|reply| arguments.refuse(reply))
}

pub(super) fn write(line: &mut RequestLine<'_>, request: LruRequest, noreply: bool) {
    line.name("lru");
    match request {
        LruRequest::Tune { hot_percent, warm_percent, hot_factor, warm_factor } => {
            line.bytes(b"tune");
            line.number(hot_percent).number(warm_percent).number(hot_factor).number(warm_factor);
        }
        LruRequest::Mode { segmented } => {
            line.bytes(b"mode");
            line.bytes(if segmented { b"segmented" } else { b"flat" });
        }
        LruRequest::TemporaryTtl(seconds) => {
            line.bytes(b"temp_ttl");
            line.number(seconds.map_or(-1, i64::from));
        }
    }
    line.noreply(noreply);
}
