//! `slabs`: moving pages between classes.

use super::arguments::Arguments;
use super::format::RequestLine;
use super::lru::Factor;
use crate::error::ErrorReply;
use crate::number::{strict_i32, strict_u32};
use crate::refusal::Refusal;

/// Seconds that `slabs automove window` takes.
const LONGEST_WINDOW: u32 = 86_400;

/// What is asked of the pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlabsRequest {
    /// `reassign`: move a page from a class to another one; `None` if these are no numbers, which is told only where it
    /// is allowed at all.
    Reassign(Option<(i32, i32)>),
    /// `automove`: how eagerly pages move by themselves, 0 to 2.
    Automove(u32),
    /// `automove ratio`.
    AutomoveRatio(Factor),
    /// `automove freeratio`.
    AutomoveFreeRatio(Factor),
    /// `automove window`, in seconds.
    AutomoveWindow(u32),
}

/// `reassign <from> <to>`, `automove 0|1|2` or `automove ratio|freeratio|window <number>`.
pub(super) fn parse(arguments: &Arguments<'_>) -> Result<SlabsRequest, Refusal> {
    let mut words = arguments.words();
    let name = words.next().unwrap_or_default();
    let request = match (arguments.count(), words.next(), words.next()) {
        (3, Some(from), Some(to)) if b"reassign".starts_with(name) => {
            Ok(SlabsRequest::Reassign(strict_i32(from).zip(strict_i32(to))))
        }
        (3, Some(which), Some(number)) if b"automove".starts_with(name) => automove(which, number),
        (2, Some(level), None) if b"automove".starts_with(name) => match strict_u32(level) {
            Some(level @ 0..=2) => Ok(SlabsRequest::Automove(level)),
            Some(_) => Err(ErrorReply::Error),
            None => Err(ErrorReply::BadFormat),
        },
        _ => Err(ErrorReply::Error),
    };
    request.or_else(|reply| arguments.refuse(reply))
}

fn automove(which: &[u8], number: &[u8]) -> Result<SlabsRequest, ErrorReply> {
    match which {
        b"ratio" => Factor::parse(number).map(SlabsRequest::AutomoveRatio).ok_or(ErrorReply::Error),
        b"freeratio" => Factor::parse(number).map(SlabsRequest::AutomoveFreeRatio).ok_or(ErrorReply::Error),
        b"window" => match strict_u32(number) {
            Some(seconds @ 1..=LONGEST_WINDOW) => Ok(SlabsRequest::AutomoveWindow(seconds)),
            Some(_) => Err(ErrorReply::AutomoveWindow),
            None => Err(ErrorReply::BadFormat),
        },
        // Where no reply is wanted.
        _ if number == b"noreply" => match strict_u32(which) {
            Some(level @ 0..=2) => Ok(SlabsRequest::Automove(level)),
            Some(_) => Err(ErrorReply::Error),
            None => Err(ErrorReply::BadFormat),
        },
        _ => Err(ErrorReply::Error),
    }
}

pub(super) fn write(line: &mut RequestLine<'_>, request: SlabsRequest, noreply: bool) {
    line.name("slabs");
    match request {
        SlabsRequest::Reassign(classes) => {
            line.bytes(b"reassign");
            match classes {
                Some((from, to)) => line.number(from).number(to),
                None if noreply => line.number("x"),
                None => line.number("x").number("x"),
            };
        }
        SlabsRequest::Automove(level) => _ = line.number("automove").number(level),
        SlabsRequest::AutomoveRatio(ratio) => _ = line.number("automove ratio").number(ratio),
        SlabsRequest::AutomoveFreeRatio(ratio) => _ = line.number("automove freeratio").number(ratio),
        SlabsRequest::AutomoveWindow(seconds) => _ = line.number("automove window").number(seconds),
    }
    line.noreply(noreply);
}
