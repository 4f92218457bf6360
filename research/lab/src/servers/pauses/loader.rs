//! The connection that makes an event happen. While the prober watches it is gentle: it sends a few requests, waits for
//! a reply to the last of them, and so on. So what waits in the server before a request of the prober is a few requests
//! at the most, and a pause is the event's. While nobody watches it keeps the server busy: the next requests are there
//! before the last ones are answered.
//!
//! Sets ask for no reply, and behind those that are sent together stands a request that asks for nothing else (`mn`).
//! Replies would cost both sides as much again, and filling servers is most of what an experiment of this kind does. A
//! server that fails at a set without a reply says so all the same: where memory moves from one size to another,
//! memcached refuses some for want of it.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::ops::Range;
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
pub(super) const GENTLE: Pace = Pace { together: 64, ahead: 1 };
/// And while nobody does.
pub(super) const FAST: Pace = Pace { together: 256, ahead: 8 };

/// What stands behind sets, and its reply.
const END: &[u8] = b"mn\r\n";
const ENDED: &[u8] = b"MN\r\n";
/// What a server says of a set that it has no memory for.
const REFUSED: &[u8] = b"SERVER_ERROR out of memory storing object\r\n";

pub(super) struct Loader<'s> {
    server: &'s str,
    stream: BufReader<TcpStream>,
    requests: Vec<u8>,
    reply: Vec<u8>,
}

impl<'s> Loader<'s> {
    pub(super) fn connect(At { address, server, .. }: At<'s>) -> Result<Loader<'s>, ExperimentError> {
        let stream = TcpStream::connect(address).map_err(|error| lost(server, error))?;
        stream.set_nodelay(true).map_err(|error| lost(server, error))?;
        Ok(Loader::of(stream, server))
    }

    /// One whose connection is there.
    pub(super) fn of(stream: TcpStream, server: &'s str) -> Loader<'s> {
        Loader { server, stream: BufReader::new(stream), requests: Vec::new(), reply: Vec::new() }
    }

    /// As [`Loader::store`], and all must find room.
    pub(super) fn fill(
        &mut self,
        count: u64,
        size: usize,
        expiry: u64,
        pace: Pace,
    ) -> Result<(), ExperimentError> {
        match self.store(0, count, size, expiry, pace)? {
            0 => Ok(()),
            refused => {
                Err(ExperimentError::wrong(self.server, format!("it refused {refused} of {count} sets")))
            }
        }
    }

    /// Stores items number `first` to `first + count - 1` with values of `size` bytes at this pace, until `expiry` if
    /// that is not 0: a second as the protocol has it. How many the server had no memory for.
    pub(super) fn store(
        &mut self,
        first: u64,
        count: u64,
        size: usize,
        expiry: u64,
        pace: Pace,
    ) -> Result<u64, ExperimentError> {
        let sets = Sets::new(size, expiry);
        let (mut next, mut awaited, mut refused) = (first, 0, 0);
        while next < first + count {
            let end = (next + pace.together).min(first + count);
            sets.of_items(next..end, &mut self.requests);
            self.requests.extend_from_slice(END);
            self.send()?;
            next = end;
            awaited += 1;
            if awaited == pace.ahead {
                refused += self.ended()?;
                awaited -= 1;
            }
        }
        for _ in 0..awaited {
            refused += self.ended()?;
        }
        Ok(refused)
    }

    /// Waits for the end of sets that were sent together; how many of them the server had no memory for.
    fn ended(&mut self) -> Result<u64, ExperimentError> {
        let mut refused = 0;
        loop {
            self.receive()?;
            match &*self.reply {
                ENDED => return Ok(refused),
                REFUSED => refused += 1,
                _ => return Err(self.wrong(ENDED)),
            }
        }
    }

    /// Sends one request, which must be answered with `due`.
    pub(super) fn ask(&mut self, request: &str, due: &str) -> Result<(), ExperimentError> {
        self.requests.extend_from_slice(request.as_bytes());
        self.send()?;
        self.expect(due.as_bytes())
    }

    /// Sends what was gathered.
    fn send(&mut self) -> Result<(), ExperimentError> {
        self.stream.get_mut().write_all(&self.requests).map_err(|error| lost(self.server, error))?;
        self.requests.clear();
        Ok(())
    }

    /// Waits for a reply, which must be `due`.
    fn expect(&mut self, due: &[u8]) -> Result<(), ExperimentError> {
        self.receive()?;
        if self.reply == due { Ok(()) } else { Err(self.wrong(due)) }
    }

    /// Waits for a line.
    fn receive(&mut self) -> Result<(), ExperimentError> {
        self.reply.clear();
        self.stream.read_until(b'\n', &mut self.reply).map_err(|error| lost(self.server, error))?;
        Ok(())
    }

    fn wrong(&self, due: &[u8]) -> ExperimentError {
        let start: String = self.reply.escape_ascii().to_string().chars().take(80).collect();
        let due = due.escape_ascii();
        ExperimentError::wrong(self.server, format!("it answered '{start}' where '{due}' was due"))
    }
}

/// Requests that store items. They differ in a number of twelve digits, and only that is written anew for each: to lay
/// out each set by itself takes the loader longer than the server takes to carry it out.
struct Sets {
    one: Vec<u8>,
}

impl Sets {
    /// What stands before the number: with it, a key has sixteen bytes.
    const BEFORE: &[u8] = b"set key:";
    const DIGITS: usize = 12;

    fn new(size: usize, expiry: u64) -> Sets {
        let mut one = Sets::BEFORE.to_vec();
        one.extend_from_slice(&[b'0'; Sets::DIGITS]);
        write!(one, " 0 {expiry} {size} noreply\r\n").expect("memory takes all");
        one.resize(one.len() + size, b'v');
        one.extend_from_slice(b"\r\n");
        Sets { one }
    }

    /// Appends those of some items.
    fn of_items(&self, items: Range<u64>, requests: &mut Vec<u8>) {
        for mut item in items {
            let digits = requests.len() + Sets::BEFORE.len();
            requests.extend_from_slice(&self.one);
            for digit in requests[digits..digits + Sets::DIGITS].iter_mut().rev() {
                *digit = b'0' + (item % 10) as u8;
                item /= 10;
            }
        }
    }
}

/// The time since 1970.
pub(super) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
