//! `ms <key> <length> <flag>*`, and a data block.

use super::flags::Flags;
use super::key::MetaKey;
use crate::error::ErrorReply;
use crate::key::Key;
use crate::number::{append, short_number, value_length};
use crate::refusal::Refusal;
use crate::reply::CRLF;
use crate::token::{skip_spaces, split_token};

/// `ms`. `length` bytes of data and a CRLF follow the line, as for [`StoreRequest`](crate::StoreRequest).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MetaSet<'a> {
    /// The key.
    pub key: MetaKey<'a>,
    /// The length of the data in bytes, without its CRLF.
    pub length: usize,
    /// How it is stored.
    pub mode: MetaMode,
    /// The flags.
    pub flags: Flags<'a>,
}

/// How `ms` stores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetaMode {
    /// `S`, or no mode: whatever was there before.
    Set,
    /// `E`: if nothing is there.
    Add,
    /// `A`: behind what is there.
    Append,
    /// `P`: before what is there.
    Prepend,
    /// `R`: if something is there.
    Replace,
}

pub(super) fn parse(rest: &[u8]) -> Result<MetaSet<'_>, Refusal> {
    let (key, rest) = split_token(skip_spaces(rest));
    let (length, flags) = split_token(rest);
    let Some(length) = value_length(length).filter(|_| !length.is_empty()) else {
        return Err(Refusal::answer(ErrorReply::BadFormat).closing());
    };
    let refuse = |error| Refusal::answer(error).swallowing(length + 2);
    let (key, flags) = Flags::check(key, flags, 3).map_err(refuse)?;
    let mode = match flags.argument(b'M').map(<[u8]>::first) {
        None | Some(Some(b'S')) => MetaMode::Set,
        Some(Some(b'E')) => MetaMode::Add,
        Some(Some(b'A')) => MetaMode::Append,
        Some(Some(b'P')) => MetaMode::Prepend,
        Some(Some(b'R')) => MetaMode::Replace,
        Some(_) => return Err(refuse(ErrorReply::InvalidSetMode)),
    };
    flags.check_opaque().map_err(refuse)?;
    Ok(MetaSet { key, length, mode, flags })
}

/// A line as clients write it, in no mode, and what is behind it.
#[inline(always)]
pub(crate) fn parse_plain(rest: &[u8]) -> Option<(MetaSet<'_>, &[u8])> {
    let (key, behind) = Key::split_plain(rest)?;
    let (length, behind) = short_number(behind)?;
    let (flags, end) = Flags::short_behind(behind);
    let key = MetaKey::from_plain(key.as_bytes());
    let set = MetaSet { key, length: length as usize, mode: MetaMode::Set, flags };
    (!flags.has(b'M')).then_some((set, &behind[end..]))
}

impl MetaSet<'_> {
    /// A line that is answered like this one, without all that does not show in the answer: some hundred bytes, however
    /// long this one is. It is for those who answer when the data has come, and the line has gone.
    ///
    /// ```
    /// # use lookaside_protocol::{Request, meta::MetaRequest, parse};
    /// let Ok(Request::Meta(MetaRequest::Set(set))) = parse(b"ms key 5 T30 O7 k\r\n") else { panic!("no ms") };
    /// assert_eq!(set.line_to_answer(), b"ms key 5 O7 k\r\n");
    /// ```
    pub fn line_to_answer(&self) -> Vec<u8> {
        let mut line = Vec::new();
        MetaSet { flags: Flags::default(), ..*self }.write(&mut line);
        for flag in self.flags.iter().filter(|flag| b"bckqsO".contains(&flag.letter)) {
            line.extend_from_slice(&[b' ', flag.letter]);
            if flag.letter == b'O' {
                line.extend_from_slice(flag.argument);
            }
        }
        line.extend_from_slice(CRLF);
        line
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"ms ");
        out.extend_from_slice(self.key.text());
        out.push(b' ');
        append(out, self.length as u64);
        self.flags.write(out);
    }
}
