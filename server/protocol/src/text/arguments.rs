//! What lines of several commands have in common.

use crate::error::ErrorReply;
use crate::key::Key;
use crate::refusal::Refusal;
use crate::token::Tokens;

pub(super) const BAD_FORMAT: Refusal = Refusal::answer(ErrorReply::BadFormat);

/// `<key> <argument> [noreply]`. `incr k noreply` is both: no number, and so an error, and the error is silent.
pub(super) fn key_and_argument(rest: &[u8]) -> Result<(Key<'_>, &[u8], bool), Refusal> {
    let mut tokens = Tokens::after_name(rest);
    let (Some(key), Some(argument)) = (tokens.next(), tokens.next()) else { return Err(BAD_FORMAT) };
    let noreply = tokens.last().unwrap_or(argument) == b"noreply";
    let key = Key::from_token(key).ok_or(Refusal::answer_unless(noreply, ErrorReply::BadFormat))?;
    Ok((key, argument, noreply))
}

/// Whether `noreply` stands here, behind a space, and what follows it, or would.
#[inline(always)]
pub(super) fn plain_noreply(rest: &[u8]) -> (bool, &[u8]) {
    match rest.strip_prefix(b" noreply") {
        Some(behind) => (true, behind),
        None => (false, rest),
    }
}

/// What was read of a text, if it was all of it.
#[inline(always)]
pub(super) fn whole<T>((read, behind): (T, &[u8])) -> Option<T> {
    behind.is_empty().then_some(read)
}

/// A line of a command that is known by its first token.
#[derive(Clone)]
pub(super) struct Arguments<'a> {
    /// The tokens behind the name.
    tokens: Tokens<'a>,
    /// Whether the last token of the line is `noreply`, be it the name.
    pub(super) noreply: bool,
}

impl<'a> Arguments<'a> {
    /// The command's name, and what stands behind it.
    pub(super) fn of(text: &'a [u8]) -> (&'a [u8], Arguments<'a>) {
        let noreply = Tokens::new(text).end_in_noreply();
        let mut tokens = Tokens::new(text);
        let name = tokens.next().unwrap_or_default();
        (name, Arguments { tokens, noreply })
    }

    /// How many there are, `noreply` among them.
    pub(super) fn count(&self) -> usize {
        self.tokens.clone().count()
    }

    /// The first of them.
    pub(super) fn first(&self) -> Option<&'a [u8]> {
        self.tokens.clone().next()
    }

    /// All of them, `noreply` among them.
    pub(super) fn words(&self) -> Tokens<'a> {
        self.tokens.clone()
    }

    /// Refuses the line with this answer, unless none is wanted.
    pub(super) fn refuse<T>(&self, reply: ErrorReply) -> Result<T, Refusal> {
        Err(Refusal::answer_unless(self.noreply, reply))
    }
}
