//! `verbosity`.

use super::arguments::Arguments;
use super::format::RequestLine;
use crate::error::ErrorReply;
use crate::number::strict_u32;
use crate::refusal::Refusal;

/// `<level> [noreply]`.
pub(super) fn parse(arguments: &Arguments<'_>) -> Result<u32, Refusal> {
    match arguments.first().and_then(strict_u32) {
        Some(level) => Ok(level),
        None => arguments.refuse(ErrorReply::BadFormat),
    }
}

pub(super) fn write(line: &mut RequestLine<'_>, level: u32, noreply: bool) {
    line.name("verbosity").number(level).noreply(noreply);
}
