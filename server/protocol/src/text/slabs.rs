//! `slabs`. The machinery that it steers does not exist here, so it is answered as where that is switched off; what
//! would then only set a number that nobody reads is refused.

use super::administration::Arguments;
use super::{ErrorReply, Refusal, Request};

/// `reassign <from> <to>`, or something else.
pub(super) fn parse<'a>(arguments: &Arguments<'a>) -> Result<Request<'a>, Refusal> {
    let is_reassign =
        arguments.count() == 3 && arguments.first().is_some_and(|sub| b"reassign".starts_with(sub));
    arguments.refuse(if is_reassign { ErrorReply::SlabReassignDisabled } else { ErrorReply::Error })
}
