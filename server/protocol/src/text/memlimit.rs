//! `cache_memlimit`.

use super::arguments::Arguments;
use super::format::RequestLine;
use crate::error::ErrorReply;
use crate::number::strict_u32;
use crate::refusal::Refusal;

/// `<megabytes> [noreply]`.
pub(super) fn parse(arguments: &Arguments<'_>) -> Result<u32, Refusal> {
    match arguments.first().and_then(strict_u32) {
        Some(0..8) => arguments.refuse(ErrorReply::MemlimitTooSmall),
        Some(megabytes @ 8..=1_000_000_000) => Ok(megabytes),
        Some(_) => arguments.refuse(ErrorReply::MemlimitNotMegabytes),
        None => arguments.refuse(ErrorReply::Error),
    }
}

pub(super) fn write(line: &mut RequestLine<'_>, megabytes: u32, noreply: bool) {
    line.name("cache_memlimit").number(megabytes).noreply(noreply);
}
