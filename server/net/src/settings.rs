//! What a server is started with. The command line of `lookaside serve` is one way to fill this in.

use std::net::SocketAddr;
use std::path::PathBuf;

use cache::engine::{Cache, CreateError, Eviction};

/// memcached's fixed costs of an item: its header, the number that compare-and-swap goes by, the zero behind the key
/// and the line ending behind the value. An item is too large here exactly when it would be there (MEMCACHED 1.6, item
/// size and `-I`), although ours are smaller.
const MEMCACHED_ITEM: usize = 48 + 8 + 1 + 2;

/// What a server is started with.
///
/// ```
/// use lookaside_server::{Server, Settings};
///
/// let settings = Settings::new().with_tcp([([127, 0, 0, 1], 0).into()]).with_memory(8 << 20).with_threads(1);
/// let server = Server::start(settings)?;
/// println!("it listens on {:?}", server.addresses());
/// server.stop()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// Addresses to listen on over TCP; port 0 means one that is free. None: no TCP.
    pub tcp: Vec<SocketAddr>,
    /// A Unix socket to listen on, and its permissions.
    pub unix: Option<UnixSocket>,
    /// Threads that serve connections.
    pub threads: usize,
    /// Connections at the same time; one more is told so and closed.
    pub connections: usize,
    /// Bytes for items and index.
    pub memory: usize,
    /// Bytes of a lookaside buffer before the index, beside the memory; 0: none. See
    /// [`cache::engine::Config::lookaside`].
    pub lookaside: usize,
    /// Bytes that one item may take, counted as memcached counts them.
    pub largest_item: usize,
    /// Whether items make way for others when memory is full.
    pub evict: bool,
    /// Requests served for one connection before others have their turn.
    pub requests_per_turn: usize,
    /// Connections that may wait to be accepted.
    pub backlog: u32,
    /// A file that the ports that were chosen are written to, one line `TCP INET: <port>` each.
    pub port_file: Option<PathBuf>,
}

/// A Unix socket to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnixSocket {
    /// Where. A socket that is there already, left by a server that died, is removed.
    pub path: PathBuf,
    /// Its permissions, as a number like `0o700`.
    pub mode: u32,
}

impl UnixSocket {
    /// A socket at this path with these permissions.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, mode: u32) -> Self {
        UnixSocket { path: path.into(), mode }
    }
}

impl Default for Settings {
    /// memcached's: 127.0.0.1:11211, 64 MB, 1024 connections, 4 threads, items up to 1 MiB.
    fn default() -> Self {
        Settings {
            tcp: vec![([127, 0, 0, 1], 11211).into()],
            unix: None,
            threads: 4,
            connections: 1024,
            memory: 64 << 20,
            lookaside: 0,
            largest_item: 1 << 20,
            evict: true,
            requests_per_turn: 1000,
            backlog: 1024,
            port_file: None,
        }
    }
}

impl Settings {
    /// Those of [`Settings::default`].
    #[must_use]
    pub fn new() -> Self {
        Settings::default()
    }

    /// Addresses to listen on over TCP, in place of those that were set; none: no TCP.
    #[must_use]
    pub fn with_tcp(mut self, addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        self.tcp = addresses.into_iter().collect();
        self
    }

    /// A Unix socket to listen on, beside TCP.
    #[must_use]
    pub fn with_unix(mut self, socket: UnixSocket) -> Self {
        self.unix = Some(socket);
        self
    }

    /// Threads that serve connections.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Connections at the same time.
    #[must_use]
    pub fn with_connections(mut self, connections: usize) -> Self {
        self.connections = connections;
        self
    }

    /// Bytes for items and index.
    #[must_use]
    pub fn with_memory(mut self, bytes: usize) -> Self {
        self.memory = bytes;
        self
    }

    /// Bytes of a lookaside buffer before the index; 0: none.
    #[must_use]
    pub fn with_lookaside(mut self, bytes: usize) -> Self {
        self.lookaside = bytes;
        self
    }

    /// Bytes that one item may take, counted as memcached counts them.
    #[must_use]
    pub fn with_largest_item(mut self, bytes: usize) -> Self {
        self.largest_item = bytes;
        self
    }

    /// Whether items make way for others when memory is full.
    #[must_use]
    pub fn with_evictions(mut self, evict: bool) -> Self {
        self.evict = evict;
        self
    }

    /// Requests served for one connection before others have their turn.
    #[must_use]
    pub fn with_requests_per_turn(mut self, requests: usize) -> Self {
        self.requests_per_turn = requests;
        self
    }

    /// Connections that may wait to be accepted.
    #[must_use]
    pub fn with_backlog(mut self, connections: u32) -> Self {
        self.backlog = connections;
        self
    }

    /// A file that the ports that were chosen are written to.
    #[must_use]
    pub fn with_port_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.port_file = Some(file.into());
        self
    }

    /// The cache that is asked for, empty.
    pub(crate) fn cache(&self) -> Result<Cache, CreateError> {
        let eviction = if self.evict { Eviction::ByPolicy } else { Eviction::Never };
        let Settings { largest_item, lookaside, memory, .. } = *self;
        Cache::new(cache::engine::Config {
            largest_item,
            eviction,
            lookaside,
            ..cache::engine::Config::with_limit(memory)
        })
    }

    /// Whether memcached with these settings would find an item too large.
    pub(crate) fn is_too_large(&self, key: usize, value: usize, flags: u32) -> bool {
        let flags = if flags == 0 { 0 } else { 4 };
        MEMCACHED_ITEM + flags + key + value > self.largest_item
    }
}
