//! A client that deals in bytes: what it sends, what comes back, and whether the connection is still open.
//!
//! Nothing here waits for a time. What must come is waited for, with a deadline; that nothing more comes, and that the
//! connection is open, is shown by a question whose answer has to be the very next bytes.
#![allow(dead_code, reason = "each test file uses a part of this")]

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use lookaside_server::{Settings, VERSION};
use socket2::{Domain, SockAddr, Socket, Type};

/// How long a busy machine may take for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) const LOCALHOST: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
pub(crate) const LOCALHOST_6: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), 0);

/// A server on a free port of this machine, of the size that tests need.
pub(crate) fn settings() -> Settings {
    Settings::new().with_tcp([LOCALHOST]).with_threads(2)
}

/// With all switched off that can be, as the memcached is that servers are compared with.
pub(crate) fn switched_off(settings: Settings) -> Settings {
    settings
        .with_watch_allowed(false)
        .with_dumps_allowed(false)
        .with_lru_crawler(false)
        .with_slab_reassign(false)
}

/// Where a server listens.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => write!(f, "{address}"),
            Address::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Address::Tcp(address)
    }
}

/// One connection.
pub(crate) struct Client {
    pub(crate) socket: Socket,
}

impl Client {
    pub(crate) fn connect(address: &Address) -> Client {
        Self::try_connect(address).unwrap_or_else(|error| panic!("{address}: {error}"))
    }

    pub(crate) fn try_connect(address: &Address) -> io::Result<Client> {
        Self::with_buffers(address, None)
    }

    /// A connection whose socket buffers what it has not read only up to so many bytes.
    pub(crate) fn with_buffers(address: &Address, received: Option<usize>) -> io::Result<Client> {
        let (domain, address) = match address {
            Address::Tcp(address) => (Domain::for_address(*address), SockAddr::from(*address)),
            Address::Unix(path) => (Domain::UNIX, SockAddr::unix(path)?),
        };
        let socket = Socket::new(domain, Type::STREAM, None)?;
        if let Some(bytes) = received {
            socket.set_recv_buffer_size(bytes)?;
        }
        socket.connect(&address)?;
        if domain != Domain::UNIX {
            socket.set_tcp_nodelay(true)?;
        }
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        Ok(Client { socket })
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).expect("the connection is open");
    }

    /// Sends as much as the socket takes without anybody reading the replies; how much that was.
    pub(crate) fn send_what_fits(&mut self, bytes: &[u8]) -> usize {
        self.socket.set_nonblocking(true).expect("a socket");
        let mut sent = 0;
        while sent < bytes.len() {
            match self.socket.write(&bytes[sent..]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        self.socket.set_nonblocking(false).expect("a socket");
        sent
    }

    /// Receives what there is; goes on if the process was stopped meanwhile, which ends a wait with a time limit.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.socket.read(buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                outcome => return outcome,
            }
        }
    }

    /// Receives exactly so many bytes; fewer if the connection ends before.
    pub(crate) fn receive(&mut self, count: usize) -> Vec<u8> {
        let mut received = vec![0; count];
        let mut filled = 0;
        while filled < count {
            match self.read(&mut received[filled..]) {
                Ok(0) => break,
                Ok(more) => filled += more,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
                Err(error) => panic!("{error} after {}", shorten(&received[..filled])),
            }
        }
        received.truncate(filled);
        received
    }

    /// Receives up to and including these bytes, which must be the last that are under way.
    pub(crate) fn receive_through(&mut self, end: &[u8]) -> Vec<u8> {
        let mut received = Vec::new();
        let mut piece = vec![0; 64 << 10];
        while !received.ends_with(end) {
            let count = self.read(&mut piece).expect("the connection is open");
            assert!(count > 0, "the end after {}", shorten(&received));
            received.extend_from_slice(&piece[..count]);
        }
        received
    }

    pub(crate) fn expect(&mut self, reply: &[u8]) {
        let received = self.receive(reply.len());
        assert!(received == reply, "{}\ninstead of\n{}", shorten(&received), shorten(reply));
    }

    pub(crate) fn ask(&mut self, request: &[u8], reply: &[u8]) {
        self.send(request);
        self.expect(reply);
    }

    /// No reply is under way, and the connection is open.
    pub(crate) fn expect_open(&mut self) {
        self.ask(b"version\r\n", format!("VERSION {VERSION}\r\n").as_bytes());
    }

    /// No reply is under way, and the connection is closed.
    pub(crate) fn expect_closed(&mut self) {
        let surplus = self.receive(1);
        assert!(surplus.is_empty(), "{} instead of the end", shorten(&surplus));
    }

    /// What `stats` says, in order.
    pub(crate) fn stat_lines(&mut self, topic: &str) -> Vec<(String, String)> {
        self.send(format!("stats {topic}\r\n").as_bytes());
        let reply = self.receive_through(b"END\r\n");
        let reply = String::from_utf8(reply).expect("statistics are text");
        let lines = reply.strip_suffix("END\r\n").expect("just received").split_terminator("\r\n");
        lines
            .map(|line| {
                let stat = line.strip_prefix("STAT ").unwrap_or_else(|| panic!("not a statistic: {line}"));
                let (name, value) = stat.split_once(' ').unwrap_or((stat, ""));
                (name.to_owned(), value.to_owned())
            })
            .collect()
    }

    /// What `stats` says, by name.
    pub(crate) fn stats(&mut self, topic: &str) -> BTreeMap<String, String> {
        let mut stats = BTreeMap::new();
        for (name, value) in self.stat_lines(topic) {
            let before = stats.insert(name.clone(), value);
            assert_eq!(before, None, "{name} twice");
        }
        stats
    }

    /// A statistic that is a number.
    pub(crate) fn stat(&mut self, name: &str) -> u64 {
        let stats = self.stats("");
        let value = stats.get(name).unwrap_or_else(|| panic!("no statistic {name}"));
        value.parse().unwrap_or_else(|_| panic!("{name} is {value}"))
    }
}

/// Waits until a condition holds. Time in which this process was stopped, and whoever is waited for with it, does not
/// count.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let (mut waited, mut before) = (Duration::ZERO, Instant::now());
    while !holds() {
        let now = Instant::now();
        waited += (now - before).min(PATIENCE / 10);
        before = now;
        assert!(waited < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Bytes as a message can show them.
pub(crate) fn shorten(bytes: &[u8]) -> String {
    const MOST: usize = 600;
    let shown = bytes[..bytes.len().min(MOST)].escape_ascii();
    if bytes.len() <= MOST { shown.to_string() } else { format!("{shown}... ({} bytes)", bytes.len()) }
}
