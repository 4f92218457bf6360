//! `shutdown`: refused as where it is switched off.

use super::administration::Arguments;
use super::{ErrorReply, Refusal, Request};

/// `[graceful] [noreply]`.
pub(super) fn parse<'a>(arguments: &Arguments<'a>) -> Result<Request<'a>, Refusal> {
    arguments.refuse(ErrorReply::ShutdownNotEnabled)
}
