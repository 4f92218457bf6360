//! `md <key> <flag>*`.

use super::arguments::{key_and_flags, plain_key_and_flags, write_key_and_flags};
use super::flags::Flags;
use super::key::MetaKey;
use crate::refusal::Refusal;

/// `md`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MetaDelete<'a> {
    /// The key.
    pub key: MetaKey<'a>,
    /// The flags.
    pub flags: Flags<'a>,
}

pub(super) fn parse(rest: &[u8]) -> Result<MetaDelete<'_>, Refusal> {
    let (key, flags) = key_and_flags(rest).map_err(Refusal::answer)?;
    flags.check_opaque().map_err(Refusal::answer)?;
    Ok(MetaDelete { key, flags })
}

/// A line as clients write it, and what is behind it.
#[inline(always)]
pub(crate) fn parse_plain(rest: &[u8]) -> Option<(MetaDelete<'_>, &[u8])> {
    let (key, flags, behind) = plain_key_and_flags(rest)?;
    Some((MetaDelete { key, flags }, behind))
}

impl MetaDelete<'_> {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        write_key_and_flags(out, "md", &self.key, &self.flags);
    }
}
