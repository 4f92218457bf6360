//! `flush_all`.

use super::arguments::Arguments;
use super::format::RequestLine;
use crate::error::ErrorReply;
use crate::number::strict_i32;
use crate::refusal::Refusal;

/// `[delay] [noreply]`.
pub(super) fn parse(arguments: &Arguments<'_>) -> Result<i32, Refusal> {
    if arguments.count() == usize::from(arguments.noreply) {
        return Ok(0);
    }
    match arguments.first().and_then(strict_i32) {
        Some(delay) => Ok(delay),
        None => arguments.refuse(ErrorReply::InvalidExptime),
    }
}

pub(super) fn write(line: &mut RequestLine<'_>, delay: i32, noreply: bool) {
    line.name("flush_all").number(delay).noreply(noreply);
}
