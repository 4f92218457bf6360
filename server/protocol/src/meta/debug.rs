//! `me <key> [b]`.

use super::base64;
use super::key::MetaKey;
use super::reply::{self, Facts};
use crate::error::ErrorReply;
use crate::key::MAX_KEY_LENGTH;
use crate::number::append;
use crate::refusal::Refusal;
use crate::reply::CRLF;
use crate::token::{skip_spaces, split_token};
use std::io::Write;

/// `me`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MetaDebug<'a> {
    /// The key.
    pub key: MetaKey<'a>,
}

/// Nothing but a `b` right behind the key is looked at.
pub(super) fn parse(rest: &[u8]) -> Result<MetaDebug<'_>, Refusal> {
    let (key, rest) = split_token(skip_spaces(rest));
    let is_base64 = split_token(rest).0 == b"b";
    let is_bad = key.is_empty()
        || key.len() > MAX_KEY_LENGTH
        || (is_base64 && base64::decode(key, &mut [0; base64::MAX_DECODED_LENGTH]).is_none());
    if is_bad {
        return Err(Refusal::answer(ErrorReply::BadFormat));
    }
    Ok(MetaDebug { key: MetaKey::new(key, is_base64) })
}

impl MetaDebug<'_> {
    /// The answer to a key that is there.
    pub fn write_hit(&self, out: &mut Vec<u8>, key: &[u8], facts: &Facts) {
        out.extend_from_slice(b"ME ");
        if self.key.is_base64() {
            base64::encode(out, key);
        } else {
            out.extend_from_slice(key);
        }
        let Facts { ttl, idle, cas, is_fetched, class, size } = facts;
        out.extend_from_slice(b" exp=");
        match ttl {
            None => out.extend_from_slice(b"-1"),
            Some(ttl) => append(out, *ttl),
        }
        let fetch = if *is_fetched { "yes" } else { "no" };
        write!(out, " la={idle} cas={cas} fetch={fetch} cls={class} size={size}\r\n")
            .expect("writing to a vector does not fail");
    }

    /// The answer to a key that is not there.
    pub fn write_miss(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(reply::MISS);
        out.extend_from_slice(CRLF);
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"me ");
        out.extend_from_slice(self.key.text());
        if self.key.is_base64() {
            out.extend_from_slice(b" b");
        }
    }
}
