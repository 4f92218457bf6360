//! Writing request lines, for clients: the load generator and the tests.
//!
//! The lines are the plainest that mean the request: single spaces, no leading zeros, CRLF. Parsing one gives the same
//! request again.

use std::fmt::Display;
use std::io::Write;

/// A line under way: each piece comes with the space before it.
pub(crate) struct RequestLine<'o>(&'o mut Vec<u8>);

impl<'o> RequestLine<'o> {
    pub(crate) fn new(out: &'o mut Vec<u8>) -> Self {
        RequestLine(out)
    }

    pub(crate) fn name(&mut self, name: &str) -> &mut Self {
        self.0.extend_from_slice(name.as_bytes());
        self
    }

    pub(crate) fn bytes(&mut self, piece: &[u8]) {
        self.0.push(b' ');
        self.0.extend_from_slice(piece);
    }

    pub(crate) fn number(&mut self, number: impl Display) -> &mut Self {
        write!(self.0, " {number}").expect("writing to a vector does not fail");
        self
    }

    /// The end of a line that says whether a reply is wanted.
    pub(crate) fn noreply(&mut self, noreply: bool) {
        if noreply {
            self.bytes(b"noreply");
        }
    }
}
