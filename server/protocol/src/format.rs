//! Writing requests, for clients: the load generator and the tests.
//!
//! The lines are the plainest that mean the request: single spaces, no leading zeros, CRLF. Parsing one gives the same
//! request again.

use crate::reply::CRLF;
use crate::request::{GetRequest, Operation, Request, StatsTopic, StoreRequest, Verb};
use std::fmt::Display;
use std::io::Write;

impl Request<'_> {
    /// Appends the request line, with its CRLF. The data block of a [`Request::Store`] is the caller's to append.
    ///
    /// ```
    /// # use lookaside_protocol::{Key, Request};
    /// let mut line = Vec::new();
    /// Request::Touch { key: Key::new(b"k").unwrap(), exptime: 60, noreply: true }.write(&mut line);
    /// assert_eq!(line, b"touch k 60 noreply\r\n");
    /// ```
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut line = RequestLine(out);
        let noreply = match self {
            Request::Get(GetRequest { keys, with_cas }) => {
                line.name(if *with_cas { "gets" } else { "get" });
                keys.clone().for_each(|key| line.bytes(&key));
                false
            }
            Request::GetAndTouch { exptime, keys, with_cas } => {
                line.name(if *with_cas { "gats" } else { "gat" }).number(exptime);
                keys.clone().for_each(|key| line.bytes(&key));
                false
            }
            Request::Store(StoreRequest { verb, key, flags, exptime, length, noreply }) => {
                line.name(verb.name()).bytes(key);
                line.number(flags).number(exptime).number(length);
                if let Verb::Cas(id) = verb {
                    line.number(id);
                }
                *noreply
            }
            Request::Delete { key, noreply } => {
                line.name("delete").bytes(key);
                if !noreply && **key == *b"noreply" {
                    // As the last token it would be more than the key. What follows a key is ignored.
                    line.bytes(b"0");
                }
                *noreply
            }
            Request::Arithmetic { operation, key, delta, noreply } => {
                line.name(operation.name()).bytes(key);
                line.number(delta);
                *noreply
            }
            Request::Touch { key, exptime, noreply } => {
                line.name("touch").bytes(key);
                line.number(exptime);
                *noreply
            }
            Request::FlushAll { delay, noreply } => {
                line.name("flush_all").number(delay);
                *noreply
            }
            Request::Stats(topic) => {
                line.name("stats");
                if let Some(name) = topic.name() {
                    line.bytes(name.as_bytes());
                }
                false
            }
            Request::Version => {
                line.name("version");
                false
            }
            Request::Verbosity { level, noreply } => {
                line.name("verbosity").number(level);
                *noreply
            }
            Request::CacheMemlimit { megabytes, noreply } => {
                line.name("cache_memlimit").number(megabytes);
                *noreply
            }
            Request::Quit => {
                line.name("quit");
                false
            }
        };
        if noreply {
            line.bytes(b"noreply");
        }
        out.extend_from_slice(CRLF);
    }
}

impl Verb {
    /// The command's name.
    pub fn name(self) -> &'static str {
        match self {
            Verb::Set => "set",
            Verb::Add => "add",
            Verb::Replace => "replace",
            Verb::Append => "append",
            Verb::Prepend => "prepend",
            Verb::Cas(_) => "cas",
        }
    }
}

impl Operation {
    /// The command's name.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Increment => "incr",
            Operation::Decrement => "decr",
        }
    }
}

impl StatsTopic {
    /// The topic's name in the request, if it has one.
    pub fn name(self) -> Option<&'static str> {
        match self {
            StatsTopic::General => None,
            StatsTopic::Reset => Some("reset"),
            StatsTopic::Settings => Some("settings"),
            StatsTopic::Items => Some("items"),
            StatsTopic::Slabs => Some("slabs"),
            StatsTopic::Sizes => Some("sizes"),
            StatsTopic::Conns => Some("conns"),
        }
    }
}

/// A line under way: each piece comes with the space before it.
struct RequestLine<'o>(&'o mut Vec<u8>);

impl RequestLine<'_> {
    fn name(&mut self, name: &str) -> &mut Self {
        self.0.extend_from_slice(name.as_bytes());
        self
    }

    fn bytes(&mut self, piece: &[u8]) {
        self.0.push(b' ');
        self.0.extend_from_slice(piece);
    }

    fn number(&mut self, number: impl Display) -> &mut Self {
        write!(self.0, " {number}").expect("writing to a vector does not fail");
        self
    }
}
