//! `mg <key> <flag>*`.

use super::arguments::{key_and_flags, write_key_and_flags};
use super::flags::{Flags, Letters};
use super::key::MetaKey;
use super::reply;
use crate::line::strip_ending;
use crate::refusal::Refusal;

/// `mg`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MetaGet<'a> {
    /// The key.
    pub key: MetaKey<'a>,
    /// The flags.
    pub flags: Flags<'a>,
}

/// With these it is more than a lookup of the key that is there: it is in base64, they store, or look unseen.
const MORE: Letters = Letters::of(b"bNTu");

#[inline]
pub(super) fn parse(rest: &[u8]) -> Result<MetaGet<'_>, Refusal> {
    let (key, flags) = key_and_flags(rest).map_err(Refusal::answer)?;
    flags.check_opaque().map_err(Refusal::answer)?;
    Ok(MetaGet { key, flags })
}

/// The `mg` at the start of what was received, as [`MetaLookups::next`](super::MetaLookups::next) gives it, of any
/// form.
// Not inlined: nearly all are found before.
#[inline(never)]
pub(super) fn next_lookup(received: &[u8]) -> Option<(MetaGet<'_>, usize)> {
    let length = memchr::memchr(b'\n', received)? + 1;
    let (key, flags) = key_and_flags(&strip_ending(&received[..length])["mg ".len()..]).ok()?;
    let request = MetaGet { key, flags };
    (request.is_lookup() && flags.check_opaque().is_ok()).then_some((request, length))
}

impl MetaGet<'_> {
    /// Whether it can be looked up like the key of a `get`, together with others.
    #[inline]
    pub fn is_lookup(&self) -> bool {
        !self.flags.has_any(MORE)
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
