//! `ma <key> <flag>*`.

use super::arguments::{plain_key_and_flags, write_key_and_flags};
use super::flags::Flags;
use super::key::MetaKey;
use crate::arithmetic::Operation;
use crate::error::ErrorReply;
use crate::key::MAX_KEY_LENGTH;
use crate::refusal::Refusal;
use crate::token::{skip_spaces, split_token};

/// `ma`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MetaArithmetic<'a> {
    /// The key whose value is a number.
    pub key: MetaKey<'a>,
    /// Up or down.
    pub operation: Operation,
    /// The flags.
    pub flags: Flags<'a>,
}

/// Whatever is wrong with a flag has the same answer.
pub(super) fn parse(rest: &[u8]) -> Result<MetaArithmetic<'_>, Refusal> {
    let (key, flags) = split_token(skip_spaces(rest));
    if key.is_empty() || key.len() > MAX_KEY_LENGTH {
        return Err(Refusal::answer(ErrorReply::BadFormat));
    }
    let (key, flags) =
        Flags::check(key, flags, 2).map_err(|_| Refusal::answer(ErrorReply::InvalidOrDuplicateFlag))?;
    let operation = match flags.argument(b'M').map(<[u8]>::first) {
        None | Some(Some(b'I' | b'+')) => Operation::Increment,
        Some(Some(b'D' | b'-')) => Operation::Decrement,
        Some(_) => return Err(Refusal::answer(ErrorReply::InvalidArithmeticMode)),
    };
    flags.check_opaque().map_err(Refusal::answer)?;
    Ok(MetaArithmetic { key, operation, flags })
}

/// A line as clients write it, which counts up, and what is behind it.
#[inline(always)]
pub(crate) fn parse_plain(rest: &[u8]) -> Option<(MetaArithmetic<'_>, &[u8])> {
    let (key, flags, behind) = plain_key_and_flags(rest)?;
    let request = MetaArithmetic { key, operation: Operation::Increment, flags };
    (!flags.has(b'M')).then_some((request, behind))
}

impl MetaArithmetic<'_> {
    /// How far.
    pub fn delta(&self) -> u64 {
        self.flags.number(b'D').unwrap_or(1)
    }

    /// The number of an item that is created.
    pub fn initial(&self) -> u64 {
        self.flags.number(b'J').unwrap_or(0)
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        write_key_and_flags(out, "ma", &self.key, &self.flags);
    }
}
