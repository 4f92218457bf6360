//! `verbosity`.

use super::arguments::Arguments;
use super::format::RequestLine;
use super::{ErrorReply, Refusal, Request};
use crate::number::strict_u32;

/// `<level> [noreply]`.
pub(super) fn parse<'a>(arguments: &Arguments<'a>) -> Result<Request<'a>, Refusal> {
    match arguments.first().and_then(strict_u32) {
        Some(level) => Ok(Request::Verbosity { level, noreply: arguments.noreply }),
        None => arguments.refuse(ErrorReply::BadFormat),
    }
}

pub(super) fn write(line: &mut RequestLine<'_>, level: u32, noreply: bool) {
    line.name("verbosity").number(level).noreply(noreply);
}
