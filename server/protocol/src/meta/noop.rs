//! `mn`.

use super::MetaRequest;
use crate::text::Request;

/// What follows the name is not looked at.
pub(super) const REQUEST: Request<'static> = Request::Meta(MetaRequest::Noop);

pub(super) fn write(out: &mut Vec<u8>) {
    out.extend_from_slice(b"mn");
}
