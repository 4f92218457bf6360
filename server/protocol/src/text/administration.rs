//! The commands that are known by their first token: what their lines have in common.

use super::{ErrorReply, Refusal, Request};
use super::{flush_all, lru, lru_crawler, memlimit, shutdown, slabs, verbosity};
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

/// The commands known by their first token, and then everything unknown.
pub(super) fn parse(text: &[u8]) -> Result<Request<'_>, Refusal> {
    let noreply = Tokens::new(text).end_in_noreply();
    let mut tokens = Tokens::new(text);
    let name = tokens.next().unwrap_or_default();
    let arguments = Arguments { tokens, noreply };
    match name {
        b"flush_all" => flush_all::parse(&arguments),
        b"verbosity" => verbosity::parse(&arguments),
        b"cache_memlimit" => memlimit::parse(&arguments),
        b"shutdown" => shutdown::parse(&arguments),
        b"slabs" => slabs::parse(&arguments),
        b"lru" => lru::parse(&arguments),
        b"lru_crawler" => lru_crawler::parse(&arguments),
        _ if arguments.tokens.last().is_some_and(|last| last.starts_with(b"HTTP/")) => Err(Refusal::close()),
        _ => Err(Refusal::answer_unless(noreply, ErrorReply::Error)),
    }
}
