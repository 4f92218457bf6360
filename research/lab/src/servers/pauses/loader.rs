//! The connection that makes an event happen, gently: it sends a few requests, waits for their replies, and so on. So
//! what waits in the server before a request of the prober is a few requests at the most, and a pause is the event's.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{At, lost};
use crate::experiment::ExperimentError;

/// Sets that are sent at once while the prober watches: what a server does in some tens of microseconds.
pub(super) const GENTLE: u64 = 16;
/// And while nobody does.
pub(super) const FAST: u64 = 256;

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

    /// Stores items number `first` to `first + count - 1` with values of `size` bytes, `depth` at once, until `expiry`
    /// if that is not 0: a second as the protocol has it.
    pub(super) fn store(
        &mut self,
        first: u64,
        count: u64,
        size: usize,
        expiry: u64,
        depth: u64,
    ) -> Result<(), ExperimentError> {
        let mut tail = format!(" 0 {expiry} {size}\r\n").into_bytes();
        tail.resize(tail.len() + size, b'v');
        tail.extend_from_slice(b"\r\n");
        let mut next = first;
        while next < first + count {
            let end = (next + depth).min(first + count);
            for item in next..end {
                // Sixteen bytes of key.
                write!(self.requests, "set key:{item:012}").expect("memory takes all");
                self.requests.extend_from_slice(&tail);
            }
            self.exchange("STORED\r\n".repeat((end - next) as usize).as_bytes())?;
            next = end;
        }
        Ok(())
    }

    /// Sends one request, which must be answered with `due`.
    pub(super) fn ask(&mut self, request: &str, due: &str) -> Result<(), ExperimentError> {
        self.requests.extend_from_slice(request.as_bytes());
        self.exchange(due.as_bytes())
    }

    /// Sends what was gathered, and waits for the replies, which must be `due`.
    fn exchange(&mut self, due: &[u8]) -> Result<(), ExperimentError> {
        self.stream.write_all(&self.requests).map_err(|error| lost(self.server, error))?;
        self.requests.clear();
        self.replies.resize(due.len(), 0);
        self.stream.read_exact(&mut self.replies).map_err(|error| lost(self.server, error))?;
        if self.replies == due {
            return Ok(());
        }
        let start: String = self.replies.escape_ascii().to_string().chars().take(80).collect();
        Err(ExperimentError::wrong(self.server, format!("it answered '{start}' to writes")))
    }
}

/// The time since 1970.
pub(super) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
