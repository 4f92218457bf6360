//! Who is connected: how many there may be, and what `stats conns` says of each.
//!
//! A connection stands in the list as long as its [`Presence`] lives, which is dropped before its socket is closed: the
//! number of a file descriptor, by which the list is ordered as memcached's is, belongs to one connection at a time.
//! The list is locked when one comes or goes and when it is read, never on a request; a turn writes two words of its
//! connection's own.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

/// An end of a connection, written as memcached writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Tcp(SocketAddr),
    Unix(PathBuf),
    /// The client's end of a Unix socket: memcached does not know what to call it.
    Nameless,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Tcp(address) if address.is_ipv6() => {
                write!(f, "tcp6:[{}]:{}", address.ip(), address.port())
            }
            Place::Tcp(address) => write!(f, "tcp:{address}"),
            Place::Unix(path) => write!(f, "unix:{}", path.display()),
            Place::Nameless => f.write_str("?:<AF 0>"),
        }
    }
}

/// What a connection is doing, as far as memcached has a word for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Doing {
    /// Waiting for clients.
    Listening,
    /// Accepted, or owed a turn.
    Queued,
    /// Its requests are being carried out.
    Served,
    /// The rest of a request is waited for, or the next one.
    Reading,
    /// The rest of a value is waited for.
    ReadingValue,
    /// The rest of a value that is not wanted is waited for.
    Swallowing,
    /// Its client is to take what was sent.
    Writing,
    /// It is told lines without asking for each: it watches, or keys are listed for it.
    Watching,
}

impl Doing {
    const ALL: [Doing; 8] = [
        Doing::Listening,
        Doing::Queued,
        Doing::Served,
        Doing::Reading,
        Doing::ReadingValue,
        Doing::Swallowing,
        Doing::Writing,
        Doing::Watching,
    ];

    fn name(self) -> &'static str {
        match self {
            Doing::Listening => "conn_listening",
            Doing::Queued => "conn_new_cmd",
            Doing::Served => "conn_parse_cmd",
            Doing::Reading => "conn_read",
            Doing::ReadingValue => "conn_nread",
            Doing::Swallowing => "conn_swallow",
            Doing::Writing => "conn_mwrite",
            Doing::Watching => "conn_watch",
        }
    }
}

/// What is known of a connection, or of a socket that is listened on.
#[derive(Debug)]
struct Known {
    address: Place,
    /// Where it was accepted; `None` for a socket that is listened on.
    listener: Option<Place>,
    /// A [`Doing`], as its number.
    doing: AtomicU8,
    /// When it last began a request, by the cache's clock.
    last: AtomicU32,
}

/// One line of `stats conns`, less its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) descriptor: RawFd,
    pub(crate) address: Place,
    pub(crate) listener: Option<Place>,
    pub(crate) doing: &'static str,
    /// Seconds since its last request began, or since it came.
    pub(crate) idle: u32,
}

/// All that are connected, and what has come of those who wanted to be.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    list: Mutex<BTreeMap<RawFd, Arc<Known>>>,
    /// Clients in the list. Changed when one comes or goes, never on a request.
    clients: AtomicUsize,
    accepted: AtomicU64,
    rejected: AtomicU64,
    paused: AtomicBool,
    pauses: AtomicU64,
    paused_us: AtomicU64,
}

/// How many have come since the start, and what has kept others from coming.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Arrivals {
    /// Clients that were let in.
    pub(crate) accepted: u64,
    /// Clients that were not, because there were too many.
    pub(crate) rejected: u64,
    /// Times that the means to accept any ran out.
    pub(crate) pauses: u64,
    /// How long they were lacking, in microseconds, each time told at its end.
    pub(crate) paused_us: u64,
}

/// A connection's place in the list, left when this is dropped: to be dropped before the socket is closed.
#[derive(Debug)]
pub(crate) struct Presence {
    connections: Arc<Connections>,
    descriptor: RawFd,
    known: Arc<Known>,
}

impl Connections {
    /// Lists a socket that is listened on.
    pub(crate) fn listen(self: &Arc<Self>, descriptor: RawFd, address: Place, now: u32) -> Presence {
        let doing = AtomicU8::new(Doing::Listening as u8);
        self.enter(descriptor, Known { address, listener: None, doing, last: AtomicU32::new(now) })
    }

    /// Lists a client, unless there are as many as there may be.
    pub(crate) fn admit(
        self: &Arc<Self>,
        descriptor: RawFd,
        address: Place,
        listener: Place,
        now: u32,
        most: usize,
    ) -> Option<Presence> {
        // Relaxed, as all of these: counts that order nothing. Only the listener's thread adds to them.
        if self.clients.load(Ordering::Relaxed) >= most {
            self.rejected.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        self.clients.fetch_add(1, Ordering::Relaxed);
        self.accepted.fetch_add(1, Ordering::Relaxed);
        let doing = AtomicU8::new(Doing::Queued as u8);
        let known = Known { address, listener: Some(listener), doing, last: AtomicU32::new(now) };
        Some(self.enter(descriptor, known))
    }

    fn enter(self: &Arc<Self>, descriptor: RawFd, known: Known) -> Presence {
        let known = Arc::new(known);
        self.list.lock().insert(descriptor, known.clone());
        Presence { connections: self.clone(), descriptor, known }
    }

    /// Clients that are connected.
    pub(crate) fn clients(&self) -> usize {
        self.clients.load(Ordering::Relaxed)
    }

    /// Clients that are connected, and sockets that are listened on.
    pub(crate) fn listed(&self) -> usize {
        self.list.lock().len()
    }

    /// What has come and what has not.
    pub(crate) fn arrivals(&self) -> Arrivals {
        Arrivals {
            accepted: self.accepted.load(Ordering::Relaxed),
            rejected: self.rejected.load(Ordering::Relaxed),
            pauses: self.pauses.load(Ordering::Relaxed),
            paused_us: self.paused_us.load(Ordering::Relaxed),
        }
    }

    /// Whether connections can be accepted.
    pub(crate) fn is_accepting(&self) -> bool {
        !self.paused.load(Ordering::Relaxed)
    }

    /// The means to accept connections have run out.
    pub(crate) fn pause(&self) {
        self.paused.store(true, Ordering::Relaxed);
        self.pauses.fetch_add(1, Ordering::Relaxed);
    }

    /// They are there again, after so long.
    pub(crate) fn resume(&self, after: Duration) {
        self.paused.store(false, Ordering::Relaxed);
        self.paused_us.fetch_add(u64::try_from(after.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// All that are in the list, by descriptor.
    pub(crate) fn seen(&self, now: u32) -> Vec<Seen> {
        // Copied, so that whoever comes or goes does not wait for what is made of it.
        let list: Vec<_> =
            self.list.lock().iter().map(|(&descriptor, known)| (descriptor, known.clone())).collect();
        let seen = |(descriptor, known): (RawFd, Arc<Known>)| Seen {
            descriptor,
            address: known.address.clone(),
            listener: known.listener.clone(),
            doing: Doing::ALL[usize::from(known.doing.load(Ordering::Relaxed))].name(),
            idle: now.saturating_sub(known.last.load(Ordering::Relaxed)),
        };
        list.into_iter().map(seen).collect()
    }
}

impl Presence {
    /// Whether it is still as it was when it was accepted.
    pub(crate) fn is_new(&self) -> bool {
        self.known.doing.load(Ordering::Relaxed) == Doing::Queued as u8
    }

    /// The number of its socket.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.descriptor
    }

    /// The client's end.
    pub(crate) fn peer(&self) -> &Place {
        &self.known.address
    }

    /// Notes what the connection is doing from now on.
    pub(crate) fn is(&self, doing: Doing) {
        self.known.doing.store(doing as u8, Ordering::Relaxed);
    }

    /// Notes that it has begun a request.
    pub(crate) fn has_asked(&self, now: u32) {
        self.known.last.store(now, Ordering::Relaxed);
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.connections.list.lock().remove(&self.descriptor);
        if self.known.listener.is_some() {
            self.connections.clients.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_in_the_order_of_their_numbers() {
        for (number, doing) in Doing::ALL.into_iter().enumerate() {
            assert_eq!(doing as usize, number);
        }
    }

    #[test]
    fn who_goes_leaves_the_list_to_the_next_with_the_same_number() {
        let connections = Arc::new(Connections::default());
        let [client, listener] = [1, 2].map(|port| Place::Tcp(([127, 0, 0, 1], port).into()));
        let listening = connections.listen(3, listener.clone(), 10);
        let first = connections.admit(4, client.clone(), listener.clone(), 10, 1).expect("the first");
        assert!(connections.admit(5, client.clone(), listener.clone(), 10, 1).is_none());
        first.is(Doing::Writing);
        first.has_asked(12);
        let seen = connections.seen(15);
        assert_eq!(
            seen.iter().map(|seen| (seen.doing, seen.idle)).collect::<Vec<_>>(),
            [("conn_listening", 5), ("conn_mwrite", 3)]
        );
        drop(first);
        let second = connections.admit(4, client, listener, 20, 1).expect("there is room again");
        assert_eq!(connections.seen(20).len(), 2);
        drop((second, listening));
        assert!(connections.seen(20).is_empty());
        let arrivals = connections.arrivals();
        assert_eq!((connections.clients(), arrivals.accepted, arrivals.rejected), (0, 2, 1));
    }
}
