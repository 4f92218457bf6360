//! The key of a meta command: as it stands on the line, or in base64.

use super::base64::{self, MAX_DECODED_LENGTH};
use std::fmt;

/// A key that has been checked. In base64 it may be made of any bytes, those that end a line among them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MetaKey<'a> {
    text: &'a [u8],
    is_base64: bool,
}

impl<'a> MetaKey<'a> {
    pub(super) fn new(text: &'a [u8], is_base64: bool) -> Self {
        MetaKey { text, is_base64 }
    }

    /// A key that stands on the line as it is, and has been checked.
    ///
    /// ```
    /// # use lookaside_protocol::meta::MetaKey;
    /// assert_eq!(MetaKey::from_plain(b"key").plain(), Some(b"key".as_slice()));
    /// ```
    #[inline]
    pub fn from_plain(text: &'a [u8]) -> Self {
        MetaKey { text, is_base64: false }
    }

    /// The key as it stands on the line, unless it is in base64.
    #[inline]
    pub fn plain(&self) -> Option<&'a [u8]> {
        (!self.is_base64).then_some(self.text)
    }

    /// The key's bytes, for which one in base64 needs a place.
    pub fn decode<'b>(&self, place: &'b mut [u8; MAX_DECODED_LENGTH]) -> &'b [u8]
    where
        'a: 'b,
    {
        if !self.is_base64 {
            return self.text;
        }
        let length = base64::decode(self.text, place).unwrap_or(0);
        &place[..length]
    }

    /// As it stands on the line.
    pub(super) fn text(&self) -> &'a [u8] {
        self.text
    }

    /// Whether it stands there in base64.
    pub fn is_base64(&self) -> bool {
        self.is_base64
    }
}

impl fmt::Debug for MetaKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MetaKey(\"{}\"{})", self.text.escape_ascii(), if self.is_base64 { ", base64" } else { "" })
    }
}
