//! `mn`.

use super::MetaRequest;

/// What follows the name is not looked at.
pub(super) const REQUEST: MetaRequest<'static> = MetaRequest::Noop;

pub(super) fn write(out: &mut Vec<u8>) {
    out.extend_from_slice(b"mn");
}
