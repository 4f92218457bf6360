//! What happens in a server while the prober watches.

use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::loader::{FAST, GENTLE, Loader, now};
use super::{At, lost};
use crate::experiment::ExperimentError;

/// How many times larger values are after a shift of sizes.
const LARGER: u64 = 10;
/// Where items are to expire together, their second is set before they are stored. So how long that takes is tried with
/// one part in so many first.
const TRIED: u64 = 32;
/// The time that is left for storing all, of what it took last time: a trial is short, and a server in which there is
/// more stores more slowly.
const TIME_LEFT: f64 = 2.0;
/// And seconds beyond that.
const SPARE: u64 = 3;
/// How often all are stored before one gives up: a machine may be busy with something else, once or twice.
const TRIES: u32 = 4;
/// The prober begins to watch so long before the items expire.
const BEFORE: Duration = Duration::from_secs(1);

/// An event, in a definition.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Event {
    /// The point's name.
    pub(super) name: String,
    what: What,
    /// The server's memory in MiB.
    memory: u64,
    /// Items, or connections.
    count: u64,
    /// Bytes of values.
    #[serde(default)]
    value_size: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum What {
    /// Items are stored in an empty server.
    Grow,
    /// The server has been filled. Now values are ten times larger, and all of them together as large as before.
    Shift,
    /// Items expire in the same second.
    Expire,
    /// The server has been filled. Now it is flushed.
    Flush,
    /// The server has been filled. Now it gets half the memory.
    Halve,
    /// Connections are opened one after the other without a rest, ask for something, and are closed together.
    Connect,
}

/// A server to which it can happen.
pub(super) struct Prepared<'e> {
    event: &'e Event,
    at: At<'e>,
    loader: Loader<'e>,
    /// The second in which items expire.
    expiry: u64,
}

impl Event {
    /// What servers are started with.
    pub(super) fn arguments(&self) -> Vec<String> {
        let connections = if self.what == What::Connect { self.count + 100 } else { 100 };
        ["-m", &self.memory.to_string(), "-c", &connections.to_string()].map(str::to_owned).into()
    }

    /// Fills the server with what must be there.
    pub(super) fn prepare<'e>(&'e self, at: At<'e>) -> Result<Prepared<'e>, ExperimentError> {
        let mut loader = Loader::connect(at)?;
        let mut expiry = 0;
        match self.what {
            What::Grow | What::Connect => {}
            What::Shift | What::Flush | What::Halve => {
                loader.fill(self.count, self.value_size, expiry, FAST)?;
            }
            What::Expire => expiry = self.expire_together(&mut loader)?,
        }
        Ok(Prepared { event: self, at, loader, expiry })
    }

    /// Stores all items with one second in which they expire, and returns that second when it is [`BEFORE`] it.
    fn expire_together(&self, loader: &mut Loader<'_>) -> Result<u64, ExperimentError> {
        let began = Instant::now();
        loader.fill(self.count / TRIED, self.value_size, 0, FAST)?;
        let mut takes = began.elapsed() * TRIED as u32;
        for _ in 0..TRIES {
            let expiry = Duration::from_secs((now() + takes.mul_f64(TIME_LEFT)).as_secs() + SPARE);
            let began = Instant::now();
            loader.fill(self.count, self.value_size, expiry.as_secs(), FAST)?;
            if let Some(left) = expiry.checked_sub(now() + BEFORE) {
                thread::sleep(left);
                return Ok(expiry.as_secs());
            }
            takes = began.elapsed();
        }
        let text = format!("{} items expired before all were there, {TRIES} times", self.count);
        Err(ExperimentError::Machine(text))
    }
}

impl Prepared<'_> {
    /// Lets it happen.
    pub(super) fn happen(&mut self) -> Result<(), ExperimentError> {
        let Event { what, memory, count, value_size, .. } = *self.event;
        match what {
            What::Grow => self.loader.fill(count, value_size, 0, GENTLE),
            What::Shift => {
                let larger = value_size * LARGER as usize;
                // memcached refuses some: how many fit is another experiment's question.
                self.loader.store(count, count / LARGER, larger, 0, GENTLE).map(|_refused| ())
            }
            What::Expire => {
                thread::sleep(Duration::from_secs(self.expiry).saturating_sub(now()));
                Ok(())
            }
            What::Flush => self.loader.ask("flush_all\r\n", "OK\r\n"),
            What::Halve => self.loader.ask(&format!("cache_memlimit {}\r\n", memory / 2), "OK\r\n"),
            What::Connect => self.connect(count),
        }
    }

    fn connect(&self, count: u64) -> Result<(), ExperimentError> {
        let connect = |_| TcpStream::connect(self.at.address).map_err(|error| lost(self.at.server, error));
        let opened: Vec<TcpStream> = (0..count).map(connect).collect::<Result<_, _>>()?;
        let mut loaders: Vec<_> =
            opened.into_iter().map(|stream| Loader::of(stream, self.at.server)).collect();
        loaders.iter_mut().try_for_each(|loader| loader.ask("get none\r\n", "END\r\n"))
    }
}
