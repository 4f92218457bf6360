//! A client on its way from one thread to another, and the two ways there are: to a worker, from the listener or from
//! the thread beside the workers; and from a worker to that thread, with an errand.
//!
//! A guest takes along all that belongs to its connection, so that nothing stays behind and no two threads know the
//! same socket. Whoever sends one wakes the receiver, whose event loop knows the waker by [`WAKER`].

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::Sender;
use mio::net::{TcpStream, UnixStream};
use mio::{Token, Waker};
use tracing::warn;

use crate::buffers::{Buffers, Held};
use crate::connections::Presence;
use crate::conversation::Conversation;
use crate::executor::Errand;
use crate::settings::Protocol;

/// How often the silent ones are looked for, where they are closed.
pub(crate) const LOOK_FOR_SILENT: Duration = Duration::from_millis(500);
/// The token of the waker; connections have the numbers below.
pub(crate) const WAKER: Token = Token(usize::MAX);

/// A client's socket.
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }

    fn write_vectored(&mut self, pieces: &[io::IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write_vectored(pieces),
            Stream::Unix(stream) => stream.write_vectored(pieces),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsRawFd for Stream {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Stream::Tcp(stream) => stream.as_raw_fd(),
            Stream::Unix(stream) => stream.as_raw_fd(),
        }
    }
}

impl Stream {
    pub(crate) fn source(&mut self) -> &mut dyn mio::event::Source {
        match self {
            Stream::Tcp(stream) => stream,
            Stream::Unix(stream) => stream,
        }
    }
}

/// A client as the listener hands it over.
pub(crate) struct Client {
    /// Goes first: see [`Presence`].
    pub(crate) presence: Presence,
    pub(crate) stream: Stream,
    /// What it is taken to speak.
    #[allow(dead_code, reason = "the conversation will choose by it")]
    pub(crate) protocol: Protocol,
}

/// A client on its way from one thread to another, with what belongs to it.
pub(crate) struct Guest {
    pub(crate) client: Client,
    pub(crate) conversation: Conversation,
    /// Received and not yet served.
    pub(crate) left: Vec<u8>,
    /// What it holds of what all may hold.
    pub(crate) held: Held,
    /// The number of the worker that serves it.
    pub(crate) home: usize,
}

impl Guest {
    /// One who has just come, for this worker.
    pub(crate) fn new(client: Client, home: usize, buffers: Arc<Buffers>) -> Self {
        Guest {
            conversation: Conversation::new(client.protocol),
            client,
            left: Vec::new(),
            held: Held::nothing(buffers),
            home,
        }
    }
}

/// Where a worker's connections are sent to.
#[derive(Clone)]
pub(crate) struct Inbox {
    pub(crate) connections: Sender<Guest>,
    pub(crate) waker: Arc<Waker>,
}

impl Inbox {
    /// Sends the worker a connection.
    pub(crate) fn send(&self, guest: Guest) {
        // If the worker has ended, the server does: see `server::Duty`.
        if self.connections.send(guest).is_ok()
            && let Err(error) = self.waker.wake()
        {
            warn!(%error, "a worker could not be woken");
        }
    }
}

/// Where clients are handed over.
#[derive(Clone)]
pub(crate) struct Reception {
    pub(crate) guests: Sender<(Guest, Errand)>,
    pub(crate) waker: Arc<Waker>,
}

impl Reception {
    /// Hands a client over.
    pub(crate) fn receive(&self, guest: Guest, errand: Errand) {
        // If that thread has ended, the server does: see `server::Duty`.
        if self.guests.send((guest, errand)).is_ok()
            && let Err(error) = self.waker.wake()
        {
            warn!(%error, "the thread beside the workers could not be woken");
        }
    }
}
