//! Listening: sockets are bound before anything else starts, so that a port that is taken is an error at the start;
//! then a thread accepts connections and deals them out to the workers in turn.
//!
//! Where file descriptors or memory run out, connections wait in the kernel until some have come back. The operator is
//! told, for clients only see a server that does not answer: when it begins, and while it lasts once a minute. Where
//! connections beyond the most are to wait, too ([`Settings::maxconns_fast`]), that is as it was asked for.

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use mio::net::{TcpListener, UnixListener};
use mio::{Events, Interest, Poll, Token};
use protocol::ErrorReply;
use socket2::{Domain, Socket, Type};
use tracing::{debug, info, warn};

use crate::connections::Place;
use crate::error::StartError;
use crate::guest::{Client, Guest, Inbox, Stream, WAKER};
use crate::settings::{Protocol, Settings, TcpSocket, UnixSocket};
use crate::shared::Shared;

/// How long accepting rests when file descriptors have run out.
const OUT_OF_MEANS: Duration = Duration::from_millis(10);
/// Connections accepted before those have a turn who serve on the same core.
const AT_ONCE: usize = 16;
/// How often it is said that they are still lacking.
const REMINDER: Duration = Duration::from_secs(60);

/// A bound socket, what it is called, and what its clients speak.
struct Listening {
    socket: Bound,
    place: Place,
    protocol: Protocol,
}

enum Bound {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// All bound sockets.
pub(crate) struct Sockets {
    listening: Vec<Listening>,
    addresses: Vec<SocketAddr>,
    /// A Unix socket's path, removed when this is dropped, if it still is the socket that was bound there.
    path: Option<(PathBuf, Inode)>,
}

impl Sockets {
    pub(crate) fn bind(settings: &Settings) -> Result<Self, StartError> {
        let mut sockets = Sockets { listening: Vec::new(), addresses: Vec::new(), path: None };
        for &TcpSocket { address, protocol } in &settings.tcp {
            let listener = bind_tcp(address, settings)
                .map_err(|source| StartError::Bind { what: address.to_string(), source })?;
            let bound = listener
                .local_addr()
                .map_err(|source| StartError::Bind { what: address.to_string(), source })?;
            sockets.addresses.push(bound);
            sockets.listening.push(Listening {
                socket: Bound::Tcp(listener),
                place: Place::Tcp(bound),
                protocol: protocol.unwrap_or(settings.protocol),
            });
        }
        if let Some(unix) = &settings.unix {
            let listener = bind_unix(unix, settings.backlog)
                .map_err(|source| StartError::Bind { what: unix.path.display().to_string(), source })?;
            sockets.path = inode(&unix.path).map(|inode| (unix.path.clone(), inode));
            let place = Place::Unix(unix.path.clone());
            sockets.listening.push(Listening {
                socket: Bound::Unix(listener),
                place,
                protocol: settings.protocol,
            });
        }
        if sockets.listening.is_empty() {
            return Err(StartError::NowhereToListen);
        }
        if let Some(file) = &settings.port_file {
            write_ports(file, &sockets.addresses)
                .map_err(|source| StartError::PortFile { path: file.clone(), source })?;
        }
        Ok(sockets)
    }

    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        if let Some((path, bound)) = &self.path
            && inode(path).as_ref() == Some(bound)
        {
            let _ = fs::remove_file(path);
        }
    }
}

/// What tells a file from another one that has taken its name.
#[derive(Debug, PartialEq, Eq)]
struct Inode(u64, u64);

fn inode(path: &Path) -> Option<Inode> {
    fs::symlink_metadata(path).ok().map(|found| Inode(found.dev(), found.ino()))
}

fn bind_tcp(address: SocketAddr, settings: &Settings) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(socket2::Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // Connections inherit it: whose client has vanished without a word ends some day.
    socket.set_keepalive(true)?;
    socket.set_nonblocking(true)?;
    if settings.socket_mark != 0
        && let Err(error) = socket.set_mark(settings.socket_mark)
    {
        warn!(%error, mark = settings.socket_mark, "a socket could not be marked (-o sock_cookie_id)");
    }
    socket.bind(&address.into())?;
    socket.listen(i32::try_from(settings.backlog).unwrap_or(i32::MAX))?;
    Ok(TcpListener::from_std(socket.into()))
}

fn bind_unix(unix: &UnixSocket, backlog: u32) -> io::Result<UnixListener> {
    // What a server that died has left is in the way; anything else at that path is not ours to remove.
    if fs::symlink_metadata(&unix.path).is_ok_and(|found| found.file_type().is_socket()) {
        if UnixStream::connect(&unix.path).is_ok() {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        fs::remove_file(&unix.path)?;
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.bind(&socket2::SockAddr::unix(&unix.path)?)?;
    let ready = fs::set_permissions(&unix.path, fs::Permissions::from_mode(unix.mode))
        .and_then(|()| socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX)));
    if let Err(error) = ready {
        // Nothing is left behind by a server that does not start.
        let _ = fs::remove_file(&unix.path);
        return Err(error);
    }
    Ok(UnixListener::from_std(socket.into()))
}

/// Written under another name first, so that whoever waits for the file finds all of it.
fn write_ports(file: &Path, addresses: &[SocketAddr]) -> io::Result<()> {
    let mut unfinished = file.as_os_str().to_owned();
    unfinished.push(".lck");
    let family = |address: &SocketAddr| if address.is_ipv6() { "INET6" } else { "INET" };
    let lines: String =
        addresses.iter().map(|address| format!("TCP {}: {}\n", family(address), address.port())).collect();
    let written = fs::write(&unfinished, lines).and_then(|()| fs::rename(&unfinished, file));
    if written.is_err() {
        // Nothing is left behind by a server that does not start.
        let _ = fs::remove_file(unfinished);
    }
    written
}

/// That connections cannot be accepted, because file descriptors or memory have run out.
#[derive(Default)]
struct Shortage {
    /// Since when, while it lasts.
    began: Option<Instant>,
    /// When it was last said, whether its end is to be said too, and what has failed since.
    said: Option<Instant>,
    end_is_owed: bool,
    failed: u64,
}

impl Shortage {
    /// A connection could not be accepted.
    fn goes_on(&mut self, error: &io::Error, shared: &Shared) {
        self.failed += 1;
        self.lasts(shared);
        if self.said.is_some_and(|said| said.elapsed() < REMINDER) {
            return;
        }
        self.said = Some(Instant::now());
        self.end_is_owed = true;
        warn!(
            connections = shared.connections.clients(),
            attempts = std::mem::take(&mut self.failed),
            "connections wait, for none can be accepted: {error}. Raise the limit of open files, or lower -c"
        );
    }

    /// There are as many connections as there may be, and the next is to wait.
    fn lasts(&mut self, shared: &Shared) {
        if self.began.is_none() {
            self.began = Some(Instant::now());
            shared.connections.pause();
        }
    }

    /// One could: nothing is lacking, or no longer.
    fn ends(&mut self, shared: &Shared) {
        if let Some(began) = self.began.take() {
            shared.connections.resume(began.elapsed());
            if std::mem::take(&mut self.end_is_owed) {
                info!("connections are accepted again");
            }
        }
    }
}

/// Accepts connections until the server stops.
pub(crate) fn accept(
    shared: &Shared,
    mut sockets: Sockets,
    mut poll: Poll,
    inboxes: &[Inbox],
) -> io::Result<()> {
    let mut presences = Vec::new();
    for (number, listening) in sockets.listening.iter_mut().enumerate() {
        let (source, descriptor): (&mut dyn mio::event::Source, _) = match &mut listening.socket {
            Bound::Tcp(listener) => {
                let descriptor = listener.as_raw_fd();
                (listener, descriptor)
            }
            Bound::Unix(listener) => {
                let descriptor = listener.as_raw_fd();
                (listener, descriptor)
            }
        };
        poll.registry().register(source, Token(number), Interest::READABLE)?;
        presences.push(shared.connections.listen(descriptor, listening.place.clone(), shared.cache.time()));
    }
    let mut events = Events::with_capacity(64);
    let mut next = 0;
    let settings = &shared.settings;
    let mut shortage = Shortage::default();
    // Sockets on which connections may wait. An event is told once, so one that could not be served then is remembered.
    let mut waiting = vec![false; sockets.listening.len()];
    while !shared.is_stopping() {
        let timeout = waiting.contains(&true).then_some(OUT_OF_MEANS);
        match poll.poll(&mut events, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            outcome => outcome?,
        }
        for event in events.iter().filter(|event| event.token() != WAKER) {
            waiting[event.token().0] = true;
        }
        for (listening, waiting) in sockets.listening.iter().zip(&mut waiting) {
            let mut tries = 0;
            while *waiting && !shared.is_stopping() {
                tries += 1;
                if tries % AT_ONCE == 0 {
                    thread::yield_now();
                }
                if !settings.maxconns_fast && shared.connections.clients() >= settings.connections {
                    shortage.lasts(shared);
                    break;
                }
                match accept_one(listening) {
                    Ok(accepted) => {
                        shortage.ends(shared);
                        deal(shared, accepted, inboxes, &mut next);
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        // Nobody waits; one who did may have given up.
                        shortage.ends(shared);
                        *waiting = false;
                    }
                    // The client has gone again before it was accepted, or a signal came.
                    Err(error) if is_passing(&error) => {}
                    // File descriptors or memory have run out. The connections that there are go on, and may end.
                    Err(error) => {
                        shortage.goes_on(&error, shared);
                        break;
                    }
                }
            }
        }
    }
    drop(presences);
    Ok(())
}

/// Whether the next connection can be accepted although this one could not.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted)
}

/// A connection that has just been accepted, with the names of its ends.
struct Accepted {
    stream: Stream,
    client: Place,
    listener: Place,
    protocol: Protocol,
}

fn accept_one(listening: &Listening) -> io::Result<Accepted> {
    let (mut place, protocol) = (listening.place.clone(), listening.protocol);
    match &listening.socket {
        Bound::Tcp(listener) => {
            let (stream, peer) = listener.accept()?;
            // Replies are written whole; waiting to fill a segment would only delay them.
            if let Err(error) = stream.set_nodelay(true) {
                debug!(%error, "no delay could not be set");
            }
            // A socket that listens on all addresses is met at one of them.
            if let Place::Tcp(address) = &mut place
                && address.ip().is_unspecified()
            {
                *address = stream.local_addr().unwrap_or(*address);
            }
            Ok(Accepted { stream: Stream::Tcp(stream), client: Place::Tcp(peer), listener: place, protocol })
        }
        Bound::Unix(listener) => {
            let (stream, _) = listener.accept()?;
            Ok(Accepted { stream: Stream::Unix(stream), client: Place::Nameless, listener: place, protocol })
        }
    }
}

fn deal(shared: &Shared, accepted: Accepted, inboxes: &[Inbox], next: &mut usize) {
    let Accepted { mut stream, client, listener, protocol } = accepted;
    let (descriptor, now) = (stream.as_raw_fd(), shared.cache.time());
    let most = shared.settings.connections;
    let Some(presence) = shared.connections.admit(descriptor, client, listener, now, most) else {
        // Whether the client gets to read it or not: it is closed.
        let _ = stream.write(ErrorReply::TooManyConnections.bytes());
        return;
    };
    let home = *next % inboxes.len();
    *next += 1;
    inboxes[home].send(Guest::new(Client { presence, stream, protocol }, home, shared.buffers.clone()));
}
