//! `lru`: refused, for what it would set is a number that nobody reads.

use super::administration::Arguments;
use super::{ErrorReply, Refusal, Request};

/// Anything.
pub(super) fn parse<'a>(arguments: &Arguments<'a>) -> Result<Request<'a>, Refusal> {
    arguments.refuse(ErrorReply::Error)
}
