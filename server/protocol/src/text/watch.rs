//! `watch`: refused as where it is switched off.

use super::{ErrorReply, Refusal, Request};

/// `<what>*`.
pub(super) fn parse(_rest: &[u8]) -> Result<Request<'_>, Refusal> {
    Err(Refusal::answer(ErrorReply::WatchNotAllowed))
}
