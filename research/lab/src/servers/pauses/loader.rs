//! The connection that makes an event happen. While the prober watches it is gentle: it sends a few requests, waits for
//! a reply to the last of them, and so on. So what waits in the server before a request of the prober is a few requests
//! at the most, and a pause is the event's. While nobody watches it keeps the server busy: the next requests are there
//! before the last ones are answered.
//!
//! Of the sets that are sent together only the last one asks for a reply. Replies would cost both sides as much again,
//! and filling servers is most of what an experiment of this kind does. A server that fails at a set without a reply
//! says so all the same, and that is not the reply that is due.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{At, lost};
use crate::experiment::ExperimentError;

/// How sets are sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Sets that are sent together.
    together: u64,
    /// How many times as many are under way when a reply is waited for.
    ahead: u64,
}

/// While the prober watches: what a server does in some tens of microseconds.
pub(super) const GENTLE: Pace = Pace { together: 32, ahead: 1 };
/// And while nobody does.
pub(super) const FAST: Pace = Pace { together: 256, ahead: 8 };

/// The reply to a set.
const STORED: &[u8] = b"STORED\r\n";

pub(super) struct Loader<'s> {
    server: &'s str,
    stream: TcpStream,
    requests: Vec<u8>,
    replies: Vec<u8>,
}

impl<'s> Loader<'s> {
    pub(super) fn connect(At { address, server, .. }: At<'s>) -> Result<Loader<'s>, ExperimentError> {
        let stream = TcpStream::connect(address).map_err(|error| lost(server, error))?;
        stream.set_nodelay(true).map_err(|error| lost(server, error))?;
        Ok(Loader::of(stream, server))
    }

    /// One whose connection is there.
    pub(super) fn of(stream: TcpStream, server: &'s str) -> Loader<'s> {
        Loader { server, stream, requests: Vec::new(), replies: Vec::new() }
    }

    /// Stores items number `first` to `first + count - 1` with values of `size` bytes at this pace, until `expiry` if
    /// that is not 0: a second as the protocol has it.
    pub(super) fn store(
        &mut self,
        first: u64,
        count: u64,
        size: usize,
        expiry: u64,
        pace: Pace,
    ) -> Result<(), ExperimentError> {
        let mut value = vec![b'v'; size];
        value.extend_from_slice(b"\r\n");
        let (mut next, mut awaited) = (first, 0);
        while next < first + count {
            let end = (next + pace.together).min(first + count);
            for item in next..end {
                let noreply = if item + 1 < end { " noreply" } else { "" };
                // Sixteen bytes of key.
                write!(self.requests, "set key:{item:012} 0 {expiry} {size}{noreply}\r\n")
                    .expect("memory takes all");
                self.requests.extend_from_slice(&value);
            }
            self.send()?;
            next = end;
            awaited += 1;
            if awaited == pace.ahead {
                self.expect(STORED)?;
                awaited -= 1;
            }
        }
        (0..awaited).try_for_each(|_| self.expect(STORED))
    }

    /// Sends one request, which must be answered with `due`.
    pub(super) fn ask(&mut self, request: &str, due: &str) -> Result<(), ExperimentError> {
        self.requests.extend_from_slice(request.as_bytes());
        self.send()?;
        self.expect(due.as_bytes())
    }

    /// Sends what was gathered.
    fn send(&mut self) -> Result<(), ExperimentError> {
        self.stream.write_all(&self.requests).map_err(|error| lost(self.server, error))?;
        self.requests.clear();
        Ok(())
    }

    /// Waits for a reply, which must be `due`.
    fn expect(&mut self, due: &[u8]) -> Result<(), ExperimentError> {
        self.replies.resize(due.len(), 0);
        self.stream.read_exact(&mut self.replies).map_err(|error| lost(self.server, error))?;
        if self.replies == due {
            return Ok(());
        }
        let start: String = self.replies.escape_ascii().to_string().chars().take(80).collect();
        Err(ExperimentError::wrong(
            self.server,
            format!("it answered '{start}' where '{}' was due", due.escape_ascii()),
        ))
    }
}

/// The time since 1970.
pub(super) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
