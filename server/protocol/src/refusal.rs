//! What to do with a request line that is not a request.
//!
//! Three things differ from case to case, all as memcached has them. The *answer*: an error line, or nothing, where the
//! client said `noreply` on a line that was good enough for it to be noticed. The *data block*: if the line was that
//! of a storage command and the length on it was good, the data is on its way and has to be thrown away; if the length
//! was bad, nobody knows how long the data is, and its lines will be taken for requests. And the *connection*: it stays
//! open except for something that looks like HTTP, and for a meta command's data of a length that nobody knows.

use crate::error::ErrorReply;
use std::error::Error;
use std::fmt;

/// Whether the connection goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Connection {
    /// Go on with the next line.
    Keep,
    /// Close, after the answer if there is one. (memcached drops replies that still wait to be sent to this
    /// connection.)
    Close,
}

/// A line that was refused, and how to go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The error to answer with, if any.
    pub reply: Option<ErrorReply>,
    /// How many bytes after the line to throw away unread (a data block and its CRLF); 0 if there are none.
    pub swallow: usize,
    /// Whether the connection goes on.
    pub connection: Connection,
}

impl Refusal {
    pub(crate) const fn answer(reply: ErrorReply) -> Refusal {
        Refusal { reply: Some(reply), swallow: 0, connection: Connection::Keep }
    }

    pub(crate) const fn close() -> Refusal {
        Refusal { reply: None, swallow: 0, connection: Connection::Close }
    }

    pub(crate) const fn answer_unless(noreply: bool, reply: ErrorReply) -> Refusal {
        Refusal { reply: if noreply { None } else { Some(reply) }, swallow: 0, connection: Connection::Keep }
    }

    /// The connection is closed after the answer.
    pub(crate) const fn closing(self) -> Refusal {
        Refusal { connection: Connection::Close, ..self }
    }

    pub(crate) const fn swallowing(self, swallow: usize) -> Refusal {
        Refusal { swallow, ..self }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.connection, self.reply) {
            (Connection::Close, None) => f.write_str("the connection is to be closed without an answer"),
            (Connection::Close, Some(reply)) => {
                write!(f, "the request is to be answered {}, and the connection closed", reply.text())
            }
            (Connection::Keep, None) => f.write_str("the request is to be ignored"),
            (Connection::Keep, Some(reply)) => write!(f, "the request is to be answered {}", reply.text()),
        }
    }
}

impl Error for Refusal {}
