//! What the lines of commands that are known by their first token have in common.

use super::{ErrorReply, Refusal};
use crate::token::Tokens;

/// A line of one of these commands.
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
