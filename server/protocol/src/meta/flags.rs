//! The flags of a meta command: a letter, and for some of them a token behind it.
//!
//! They are checked as a whole before the command is carried out, in one pass from left to right. The pass ends at a
//! letter that is none or stands for the second time; what is wrong with a token lets it go on, and the last such error
//! is answered. Afterwards a command needs to know which letters there are, a few numbers, and the order, because
//! replies come in the order of the flags: so what is kept is the text, and a set of the letters. Numbers are read
//! again where they are wanted. (Rejected: a field for each. Most commands have none or one of the twelve.)

use super::MetaKey;
use super::base64::{self, MAX_DECODED_LENGTH};
use crate::error::ErrorReply;
use crate::key::MAX_KEY_LENGTH;
use crate::number::{c_i64, c_u64};
use crate::token::skip_spaces;
use std::fmt;

/// The most tokens on a line, the command's name and the key among them.
const MAX_TOKENS: usize = 20;
/// The longest opaque token, its `O` included.
const MAX_OPAQUE_LENGTH: usize = 32;

/// A flag as it stands on the line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flag<'a> {
    /// Its letter.
    pub letter: u8,
    /// What stands behind the letter.
    pub argument: &'a [u8],
}

impl Flag<'_> {
    /// The time behind the letter, of `N`, `R` and `T`, for [`expiry`](crate::expiry). What does not fit 32 bits loses
    /// its upper half, as in memcached.
    pub fn time(&self) -> i32 {
        c_i64(self.argument).unwrap_or(0) as i32
    }
}

/// The flags of a command, in the order of the line. All have been checked. Two are equal if their flags are.
#[derive(Clone, Copy)]
pub struct Flags<'a> {
    /// Starts with a flag, never with a space.
    text: &'a [u8],
    letters: Letters,
}

/// A set of letters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Letters(u64);

impl Letters {
    /// The letters of a text.
    pub const fn of(text: &[u8]) -> Letters {
        let mut letters = Letters(0);
        let mut at = 0;
        while at < text.len() {
            letters.0 |= Letters::bit(text[at]);
            at += 1;
        }
        letters
    }

    /// Of a letter its bit: those of capitals are the lower ones. A byte that is no letter has one beyond theirs.
    const fn bit(letter: u8) -> u64 {
        match letter {
            b'A'..=b'Z' => 1 << (letter - b'A'),
            b'a'..=b'z' => 1 << (letter - b'a' + 26),
            _ => 1 << 63,
        }
    }

    const fn has(self, letter: u8) -> bool {
        self.0 & Letters::bit(letter) != 0
    }
}

/// The letters that are flags, of whatever command: each command ignores those that are not its own.
const KNOWN: Letters = Letters::of(b"bcfhklqstuvxCDEFIJLMNOPRT");

impl<'a> Flags<'a> {
    /// Checks a key and the flags behind it. `before` is the number of tokens before the flags.
    #[inline]
    pub(super) fn check(
        key: &'a [u8],
        text: &'a [u8],
        before: usize,
    ) -> Result<(MetaKey<'a>, Flags<'a>), ErrorReply> {
        if key.len() > MAX_KEY_LENGTH {
            return Err(ErrorReply::BadFormat);
        }
        let most = MAX_TOKENS - before;
        // Each takes a letter and a space.
        if text.len() > 2 * most && Tokens(text).count() > most {
            return Err(ErrorReply::TooManyFlags);
        }
        let mut letters = Letters(0);
        let mut error = None;
        for token in Tokens(text) {
            let Some((&letter, argument)) = token.split_first() else { continue };
            if letter >= 0x7f || (letters.has(letter) && KNOWN.has(letter)) {
                return Err(ErrorReply::DuplicateFlag);
            }
            if !KNOWN.has(letter) {
                return Err(ErrorReply::InvalidFlag);
            }
            letters.0 |= Letters::bit(letter);
            match letter {
                b'b' if base64::decode(key, &mut [0; MAX_DECODED_LENGTH]).is_none() => {
                    error = Some(ErrorReply::DecodingKey);
                }
                b'N' | b'T' | b'R' if c_i64(argument).is_none() => error = Some(ErrorReply::BadToken),
                b'C' | b'E' if c_u64(argument).is_none() => error = Some(ErrorReply::BadToken),
                b'F' if c_u64(argument).is_none() => error = error.or(Some(ErrorReply::BadFormat)),
                b'J' if c_u64(argument).is_none() => error = Some(ErrorReply::InvalidInitial),
                b'D' if c_u64(argument).is_none() => error = Some(ErrorReply::InvalidDeltaValue),
                _ => {}
            }
        }
        match error {
            Some(error) => Err(error),
            None => Ok((MetaKey::new(key, letters.has(b'b')), Flags { text, letters })),
        }
    }

    /// Looks at what memcached does not look at before it answers: whether the opaque token is too long.
    #[inline]
    pub(super) fn check_opaque(&self) -> Result<(), ErrorReply> {
        match self.argument(b'O') {
            Some(opaque) if opaque.len() >= MAX_OPAQUE_LENGTH => Err(ErrorReply::OpaqueTooLong),
            _ => Ok(()),
        }
    }

    /// Whether a flag is there.
    #[inline]
    pub fn has(&self, letter: u8) -> bool {
        self.letters.has(letter)
    }

    /// Whether one of these flags is there.
    #[inline]
    pub fn has_any(&self, letters: Letters) -> bool {
        self.letters.0 & letters.0 != 0
    }

    /// What stands behind a letter, if the flag is there.
    #[inline]
    pub fn argument(&self, letter: u8) -> Option<&'a [u8]> {
        if !self.has(letter) {
            return None;
        }
        self.iter().find(|flag| flag.letter == letter).map(|flag| flag.argument)
    }

    /// The time behind a letter: [`Flag::time`].
    pub fn time(&self, letter: u8) -> Option<i32> {
        self.argument(letter).map(|argument| Flag { letter, argument }.time())
    }

    /// The number behind a letter (`C`, `D`, `E`, `J`).
    pub fn number(&self, letter: u8) -> Option<u64> {
        self.argument(letter).and_then(c_u64)
    }

    /// The client's 32 bits (`F`), 0 if there are none. What does not fit 32 bits loses its upper half.
    pub fn client_flags(&self) -> u32 {
        self.number(b'F').unwrap_or(0) as u32
    }

    /// The flags in the order of the line.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Flag<'a>> + use<'a> {
        Tokens(self.text)
            .filter_map(|token| token.split_first().map(|(&letter, argument)| Flag { letter, argument }))
    }

    /// The flags, with a space before each.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        for token in Tokens(self.text) {
            out.push(b' ');
            out.extend_from_slice(token);
        }
    }
}

impl Default for Flags<'_> {
    fn default() -> Self {
        Flags { text: b"", letters: Letters(0) }
    }
}

impl PartialEq for Flags<'_> {
    fn eq(&self, other: &Self) -> bool {
        Tokens(self.text).eq(Tokens(other.text))
    }
}

impl Eq for Flags<'_> {}

impl fmt::Debug for Flags<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Flags(\"{}\")", self.text.escape_ascii())
    }
}

/// Tokens, most of which are one byte long: looking for their end byte by byte is faster than anything wider.
#[derive(Clone)]
struct Tokens<'a>(&'a [u8]);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let end = match self.0 {
            [] => return None,
            // Nearly all are a letter and nothing more.
            [_] | [_, b' ', ..] => 1,
            text => text.iter().position(|&byte| byte == b' ').unwrap_or(text.len()),
        };
        let (token, after) = self.0.split_at(end);
        self.0 = skip_spaces(after);
        Some(token)
    }
}
