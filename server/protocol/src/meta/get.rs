//! `mg <key> <flag>*`.

use super::{Flags, Letters, MetaKey, MetaRequest, key_and_flags, reply, write_key_and_flags};
use crate::refusal::Refusal;
use crate::text::Request;

/// `mg`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MetaGet<'a> {
    /// The key.
    pub key: MetaKey<'a>,
    /// The flags.
    pub flags: Flags<'a>,
}

/// With these it is more than a lookup: they store, or look without being seen.
const MORE: Letters = Letters::of(b"NTu");

#[inline]
pub(crate) fn parse(rest: &[u8]) -> Result<Request<'_>, Refusal> {
    let (key, flags) = key_and_flags(rest).map_err(Refusal::answer)?;
    flags.check_opaque().map_err(Refusal::answer)?;
    Ok(Request::Meta(MetaRequest::Get(MetaGet { key, flags })))
}

impl MetaGet<'_> {
    /// Whether it can be looked up like the key of a `get`, together with others.
    #[inline]
    pub fn is_lookup(&self) -> bool {
        !self.key.is_base64() && !self.flags.has_any(MORE)
    }

    /// Whether the value is wanted.
    #[inline]
    pub fn wants_value(&self) -> bool {
        self.flags.has(b'v')
    }

    /// The answer to a key that is not there.
    #[inline]
    pub fn write_miss(&self, out: &mut Vec<u8>) {
        if !self.flags.has(b'q') {
            reply::line(out, reply::MISS, &self.key, &self.flags);
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        write_key_and_flags(out, "mg", &self.key, &self.flags);
    }
}
