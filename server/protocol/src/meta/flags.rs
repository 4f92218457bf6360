//! The flags of a meta command: a letter, and for some of them a token behind it.
//!
//! They are checked as a whole before the command is carried out, in one pass from left to right. The pass ends at a
//! letter that is none or stands for the second time; what is wrong with a token lets it go on, and the last such
//! error is answered. Afterwards a command needs to know which letters there are, a few numbers, and the order, because
//! replies come in the order of the flags: so what is kept is the text, and a set of the letters. Numbers are read
//! again where they are wanted. (Rejected: a field for each. Most commands have none or one of the twelve.)
//!
//! Most lines have a few letters and nothing behind them. Their order is kept in one word, six bits a letter, and the
//! text is not looked at again. (Rejected, by instructions of a pipelined `mg` with `v f k`, of which a `get` has 845:
//! taking the text apart twice, 1360; the same with the bits of letters worked out, not looked up, 1230; cutting off
//! one letter after the other without looking further, 1160.)

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
    /// The letters in the order of the line, six bits each, the first ones the lowest: if there are few, one space
    /// between them, and nothing but letters. Else nothing.
    order: u64,
}

/// The bits of a byte that tell letters apart.
const LETTER: u8 = 0x3f;
/// How many they are.
const LETTER_BITS: usize = 6;
/// The longest text of flags whose order is kept: of ten letters, with a space behind each.
const ORDERED: usize = 2 * (u64::BITS as usize / LETTER_BITS);

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

    /// Of a letter its bit: the capitals lie from 0x41 on, the others from 0x61 on. Of other bytes it has no meaning.
    #[inline]
    const fn bit(letter: u8) -> u64 {
        1 << (letter & LETTER)
    }

    /// These letters but for those.
    #[inline]
    const fn without(self, others: Letters) -> Letters {
        Letters(self.0 & !others.0)
    }

    /// Whether a byte is one of these letters.
    #[inline]
    const fn has(self, byte: u8) -> bool {
        byte & !LETTER == 0x40 && self.0 & Letters::bit(byte) != 0
    }
}

/// The letters that are flags, of whatever command: each command ignores those that are not its own.
const KNOWN: Letters = Letters::of(b"bcfhklqstuvxCDEFIJLMNOPRT");
/// Those of them that are right whatever stands behind them, also nothing.
const PLAIN: Letters = Letters::of(b"cfhklqstuvxILMOP");
/// Among the letters, that the opaque token is too long: the bit of a byte that is no letter.
const OPAQUE_TOO_LONG: Letters = Letters::of(b"@");

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
        // Most lines have nothing but a few letters that need nothing behind them.
        let (mut letters, mut order, mut at) = (Letters(0), 0, 0);
        if text.len() <= ORDERED {
            while at < text.len() && (at + 1 == text.len() || text[at + 1] == b' ') {
                let letter = text[at];
                if !PLAIN.without(letters).has(letter) {
                    break;
                }
                letters.0 |= Letters::bit(letter);
                order |= u64::from(letter & LETTER) << (LETTER_BITS * (at / 2));
                at += 2;
            }
        }
        let mut is_base64 = false;
        if at < text.len() {
            is_base64 = check_rest(key, &text[at..], &mut letters)?;
            order = 0;
        }
        Ok((MetaKey::new(key, is_base64), Flags { text, letters, order }))
    }

    /// Looks at what memcached does not look at before it answers: whether the opaque token is too long.
    #[inline]
    pub(super) fn check_opaque(&self) -> Result<(), ErrorReply> {
        if self.has_any(OPAQUE_TOO_LONG) { Err(ErrorReply::OpaqueTooLong) } else { Ok(()) }
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
        if self.has(letter) { self.find(letter) } else { None }
    }

    // Not inlined: few flags have something behind them that is asked for by the letter.
    #[inline(never)]
    fn find(&self, letter: u8) -> Option<&'a [u8]> {
        self.iter().find(|flag| flag.letter == letter).map(|flag| flag.argument)
    }

    /// The time behind a letter: [`Flag::time`].
    #[inline]
    pub fn time(&self, letter: u8) -> Option<i32> {
        self.argument(letter).map(|argument| Flag { letter, argument }.time())
    }

    /// The number behind a letter (`C`, `D`, `E`, `J`).
    #[inline]
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
        InOrder { order: self.order, rest: Tokens(if self.order == 0 { self.text } else { b"" }) }
    }

    /// The flags, with a space before each.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        for Flag { letter, argument } in self.iter() {
            out.extend_from_slice(&[b' ', letter]);
            out.extend_from_slice(argument);
        }
    }
}

/// Checks flags of any kind, behind those with these letters, and adds theirs. Says whether the key is in base64.
fn check_rest(key: &[u8], text: &[u8], letters: &mut Letters) -> Result<bool, ErrorReply> {
    let mut error = None;
    for Flag { letter, argument } in Tokens(skip_spaces(text)) {
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
            b'O' if argument.len() >= MAX_OPAQUE_LENGTH => letters.0 |= OPAQUE_TOO_LONG.0,
            _ => {}
        }
    }
    match error {
        Some(error) => Err(error),
        None => Ok(letters.has(b'b')),
    }
}

impl Default for Flags<'_> {
    fn default() -> Self {
        Flags { text: b"", letters: Letters(0), order: 0 }
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

/// Flags in the order of the line: those of an order, or else those of a text.
struct InOrder<'a> {
    order: u64,
    rest: Tokens<'a>,
}

impl<'a> Iterator for InOrder<'a> {
    type Item = Flag<'a>;

    #[inline]
    fn next(&mut self) -> Option<Flag<'a>> {
        if self.order != 0 {
            let letter = 0x40 | (self.order as u8 & LETTER);
            self.order >>= LETTER_BITS;
            return Some(Flag { letter, argument: b"" });
        }
        if self.rest.0.is_empty() { None } else { self.rest.next() }
    }
}

/// The flags of a text that begins with one, or is empty.
#[derive(Clone)]
struct Tokens<'a>(&'a [u8]);

impl<'a> Iterator for Tokens<'a> {
    type Item = Flag<'a>;

    // Not inlined: who has many flags, or such with something behind them, pays for them alone.
    #[inline(never)]
    fn next(&mut self) -> Option<Flag<'a>> {
        let (&letter, rest) = self.0.split_first()?;
        // Looking for the end byte by byte is faster than anything wider: it is near.
        let end = rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len());
        let (argument, after) = rest.split_at(end);
        self.0 = skip_spaces(after);
        Some(Flag { letter, argument })
    }
}
