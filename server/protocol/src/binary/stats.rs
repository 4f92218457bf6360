//! Stat: a topic, or none.

use super::parts::Parts;
use super::request::BinaryRequest;

#[inline(always)]
pub(super) fn read<'a>(parts: &Parts<'a>) -> Option<BinaryRequest<'a>> {
    let is_whole = parts.extras.is_empty() && parts.value_length == 0;
    is_whole.then_some(BinaryRequest::Stat { topic: parts.key })
}
