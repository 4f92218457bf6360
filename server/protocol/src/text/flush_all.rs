//! `flush_all`.

use super::arguments::Arguments;
use super::format::RequestLine;
use super::{ErrorReply, Refusal, Request};
use crate::number::strict_i32;

/// `[delay] [noreply]`.
pub(super) fn parse<'a>(arguments: &Arguments<'a>) -> Result<Request<'a>, Refusal> {
    let noreply = arguments.noreply;
    if arguments.count() == usize::from(noreply) {
        return Ok(Request::FlushAll { delay: 0, noreply });
    }
    match arguments.first().and_then(strict_i32) {
        Some(delay) => Ok(Request::FlushAll { delay, noreply }),
        None => arguments.refuse(ErrorReply::InvalidExptime),
    }
}

pub(super) fn write(line: &mut RequestLine<'_>, delay: i32, noreply: bool) {
    line.name("flush_all").number(delay).noreply(noreply);
}
