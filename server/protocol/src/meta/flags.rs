//! The flags of a meta command: a letter, and for some of them a token behind it.
//!
//! They are checked as a whole before the command is carried out, in one pass from left to right. The pass ends at a
//! letter that is none or stands for the second time; what is wrong with a token lets it go on, and the last such
//! error is answered. Afterwards a command needs to know which letters there are, a few numbers, and the order, because
//! replies come in the order of the flags: so what is kept is the text, and a set of the letters. Numbers are read
//! again where they are wanted. (Rejected: a field for each. Most commands have none or one of the twelve.)
//!
//! Nearly all lines are in *short form*: one space before each flag, each letter once, behind small letters nothing,
//! and behind capital ones a number of a few digits or a token that is not long. That is found out in the pass that
//! finds the end of the line, and then the text is the list of the flags: it is walked from letter to letter again when
//! the reply is written, and only capital letters are looked behind. All else takes the long way: the line's end is
//! looked for first, then each token's. In a pipeline the walk is done once ([`super::lookups`]).
//!
//! Rejected: the order of the letters in one word, six bits each. Keeping it took as long as walking the text, and a
//! letter with something behind it had no place there.

use super::base64::{self, MAX_DECODED_LENGTH};
use super::key::MetaKey;
use crate::error::ErrorReply;
use crate::key::MAX_KEY_LENGTH;
use crate::number::{c_i64, c_u64};
use crate::token::{skip_spaces, word_length};
use std::fmt;

/// The most tokens on a line, the command's name and the key among them.
const MAX_TOKENS: usize = 20;
/// Flags that a line of any command may have: `ms` has three tokens before them.
const MOST_OF_ANY: usize = MAX_TOKENS - 3;
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

/// The bits of a byte that tell letters apart.
const LETTER: u8 = 0x3f;
/// The bit that small letters have, and capital ones have not.
const SMALL: u8 = 0x20;

/// A set of letters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
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
/// Those of them that may be in short form: not `b`, for the key is another one then.
const SHORT: Letters = KNOWN.without(Letters::of(b"b"));
/// Those of them that have a number behind them.
const NUMBERS: Letters = Letters::of(b"CDEFJNRT");
/// The most digits of a number in short form.
const SHORT_NUMBER: usize = 9;
/// Among the letters, that the flags are in short form: the bit of a byte that is no letter, as the next one.
const IN_SHORT_FORM: Letters = Letters::of(b"`");
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
        let (flags, length) = Flags::short(text);
        if length == text.len() {
            return Ok((MetaKey::from_plain(key), flags));
        }
        let mut letters = Letters(0);
        let is_base64 = check_rest(key, text, &mut letters)?;
        Ok((MetaKey::new(key, is_base64), Flags { text, letters }))
    }

    /// The flags at the start of a text, as far as they are in short form, and where they end.
    #[inline(always)]
    pub(super) fn short(text: &'a [u8]) -> (Flags<'a>, usize) {
        let (mut letters, mut end, mut at) = (IN_SHORT_FORM, 0, 0);
        while let Some(&letter) = text.get(at)
            && SHORT.without(letters).has(letter)
        {
            let behind = at + 1;
            end = if letter & SMALL != 0 {
                behind
            } else {
                match short_argument(letter, &text[behind..]) {
                    Some(length) => behind + length,
                    None => break,
                }
            };
            letters.0 |= Letters::bit(letter);
            if text.get(end) != Some(&b' ') {
                break;
            }
            at = end + 1;
        }
        (Flags { text: &text[..end], letters }, end)
    }

    /// The same behind a key: with a space before the first, or not there. Where they end is counted from the key on;
    /// of so many that they may be too many for a command, at the key.
    #[inline(always)]
    pub(super) fn short_behind(behind: &'a [u8]) -> (Flags<'a>, usize) {
        match behind {
            [b' ', text @ ..] => {
                let (flags, length) = Flags::short(text);
                // Each takes a letter and a space.
                if length > 2 * MOST_OF_ANY && flags.iter().count() > MOST_OF_ANY {
                    return (Flags::default(), 0);
                }
                (flags, 1 + length)
            }
            _ => (Flags::default(), 0),
        }
    }

    /// Flags of which it is known that they are in short form, and which letters they have.
    #[inline]
    pub(super) fn known(text: &'a [u8], letters: Letters) -> Flags<'a> {
        Flags { text, letters }
    }

    /// Which letters there are, and in which form they are.
    #[inline]
    pub(super) fn letters(&self) -> Letters {
        self.letters
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
        InOrder { text: self.text, at: 0, in_short_form: self.has_any(IN_SHORT_FORM) }
    }

    /// The flags, with a space before each.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        for Flag { letter, argument } in self.iter() {
            out.extend_from_slice(&[b' ', letter]);
            out.extend_from_slice(argument);
        }
    }
}

/// How long a token behind a capital letter is, at the start of a text, if it is right and short.
#[inline]
pub(super) fn short_argument(letter: u8, text: &[u8]) -> Option<usize> {
    let length = word_length(text);
    let is_right = if NUMBERS.has(letter) {
        matches!(length, 1..=SHORT_NUMBER) && text[..length].iter().all(u8::is_ascii_digit)
    } else {
        length < MAX_OPAQUE_LENGTH
    };
    is_right.then_some(length)
}

/// Checks flags of any kind, and notes their letters. Says whether the key is in base64.
fn check_rest(key: &[u8], text: &[u8], letters: &mut Letters) -> Result<bool, ErrorReply> {
    let mut error = None;
    for Flag { letter, argument } in Tokens(text) {
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
        Flags { text: b"", letters: IN_SHORT_FORM }
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

/// Flags in the order of the line.
struct InOrder<'a> {
    text: &'a [u8],
    /// Where the next one begins, or behind the end of the text.
    at: usize,
    in_short_form: bool,
}

impl<'a> Iterator for InOrder<'a> {
    type Item = Flag<'a>;

    #[inline]
    fn next(&mut self) -> Option<Flag<'a>> {
        let letter = *self.text.get(self.at)?;
        if self.in_short_form {
            let behind = self.at + 1;
            let length = if letter & SMALL != 0 { 0 } else { word_length(&self.text[behind..]) };
            self.at = behind + length + 1;
            return Some(Flag { letter, argument: &self.text[behind..behind + length] });
        }
        let mut rest = Tokens(&self.text[self.at..]);
        let flag = rest.next();
        self.at = self.text.len() - rest.0.len();
        flag
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
