//! What a server is started with. The command line of `lookaside serve` is one way to fill this in.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use cache::engine::{Cache, CreateError, Eviction};
use pages::PageKind;

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
    /// Sockets to listen on over TCP. None: no TCP.
    pub tcp: Vec<TcpSocket>,
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
    /// How long a thread that has nothing to do looks for requests again and again before it sleeps; zero: not at all.
    pub poll: Duration,
    /// Connections that may wait to be accepted.
    pub backlog: u32,
    /// A file that the ports that were chosen are written to, one line `TCP INET: <port>` each.
    pub port_file: Option<PathBuf>,
    /// The protocol that clients are taken to speak, where their socket does not say it.
    pub protocol: Protocol,
    /// Whether `flush_all` does something.
    pub flush_allowed: bool,
    /// Whether clients may list keys: `stats cachedump`, `lru_crawler metadump` and `mgdump`.
    pub dumps_allowed: bool,
    /// Whether clients may `watch`.
    pub watch_allowed: bool,
    /// Whether clients may stop the server by `shutdown`.
    pub shutdown_allowed: bool,
    /// Whether clients are told 0 for each compare-and-swap number, and none is compared.
    pub cas_disabled: bool,
    /// What `stats detail` counts.
    pub detail: Detail,
    /// Seconds that a connection may be silent before it is closed; 0: for ever.
    pub idle_timeout: u32,
    /// Whether a connection beyond the most is told so and closed; otherwise it waits until another one has gone.
    pub maxconns_fast: bool,
    /// Whether `stats sizes` counts.
    pub track_sizes: bool,
    /// How much is logged, from 0 to 3: requests from 2 on, lookups as well at 3, each a line of `tracing` with the
    /// target [`REQUESTS`](crate::REQUESTS). Clients can change it.
    pub verbosity: u32,
    /// Bytes that all connections together may take for half requests and for replies that are not taken; 0: 64 MiB.
    pub read_buffers: usize,
    /// Whether keys may be listed from the start (`lru_crawler disable` and `enable` change it).
    pub lru_crawler: bool,
    /// Microseconds that a list of keys rests, now and then, from the start (`lru_crawler sleep` changes it).
    pub lru_crawler_sleep: u32,
    /// Whether `slabs reassign` does something.
    pub slab_reassign: bool,
    /// The power of two of items that the index has room for from the start, as far as an eighth of the memory goes; 0:
    /// it grows from the smallest.
    pub hash_power: u32,
    /// Whether the kernel is asked for large pages however small the memory is.
    pub large_pages: bool,
    /// The mark of the sockets that are listened on, and of their connections (`SO_MARK`), for firewalls; 0: none.
    pub socket_mark: u32,
    /// What was asked for and has no meaning here, by memcached's names for it, in its order: `stats settings` shows
    /// it.
    pub asked: Vec<(String, Option<String>)>,
}

/// The protocol that a client is taken to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Protocol {
    /// What its first byte says.
    #[default]
    Auto,
    /// The text protocol, meta commands included.
    Ascii,
    /// The binary protocol.
    Binary,
}

impl Protocol {
    /// As `-B` and `stats settings` name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Auto => "auto-negotiate",
            Protocol::Ascii => "ascii",
            Protocol::Binary => "binary",
        }
    }
}

/// What `stats detail` counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Detail {
    /// What ends the prefix of a key.
    pub delimiter: u8,
    /// Whether it counts from the start, and not only from `stats detail on`.
    pub enabled: bool,
}

impl Default for Detail {
    /// A colon, not counting.
    fn default() -> Self {
        Detail { delimiter: b':', enabled: false }
    }
}

/// A TCP socket to listen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TcpSocket {
    /// Where; port 0 means one that is free.
    pub address: SocketAddr,
    /// The protocol of its clients, if not that of all.
    pub protocol: Option<Protocol>,
}

impl TcpSocket {
    /// A socket at this address, whose clients speak what all speak.
    #[must_use]
    pub fn new(address: SocketAddr) -> Self {
        TcpSocket { address, protocol: None }
    }

    /// One whose clients speak this.
    #[must_use]
    pub fn with_protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = Some(protocol);
        self
    }
}

impl From<SocketAddr> for TcpSocket {
    fn from(address: SocketAddr) -> Self {
        TcpSocket::new(address)
    }
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
            tcp: vec![TcpSocket::new(([127, 0, 0, 1], 11211).into())],
            unix: None,
            threads: 4,
            connections: 1024,
            memory: 64 << 20,
            lookaside: 0,
            largest_item: 1 << 20,
            evict: true,
            requests_per_turn: 1000,
            poll: Duration::ZERO,
            backlog: 1024,
            port_file: None,
            protocol: Protocol::Auto,
            flush_allowed: true,
            dumps_allowed: true,
            watch_allowed: true,
            shutdown_allowed: false,
            cas_disabled: false,
            detail: Detail::default(),
            idle_timeout: 0,
            maxconns_fast: true,
            track_sizes: false,
            verbosity: 0,
            read_buffers: 0,
            lru_crawler: true,
            lru_crawler_sleep: 100,
            slab_reassign: true,
            hash_power: 0,
            large_pages: false,
            socket_mark: 0,
            asked: Vec::new(),
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
        self.tcp = addresses.into_iter().map(TcpSocket::new).collect();
        self
    }

    /// Sockets to listen on over TCP, in place of those that were set; none: no TCP.
    #[must_use]
    pub fn with_tcp_sockets(mut self, sockets: impl IntoIterator<Item = TcpSocket>) -> Self {
        self.tcp = sockets.into_iter().collect();
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

    /// How long a thread that has nothing to do looks for requests again and again before it sleeps; zero: not at all.
    #[must_use]
    pub fn with_poll(mut self, poll: Duration) -> Self {
        self.poll = poll;
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

    /// The protocol that clients are taken to speak, where their socket does not say it.
    #[must_use]
    pub fn with_protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = protocol;
        self
    }

    /// Whether `flush_all` does something.
    #[must_use]
    pub fn with_flush_allowed(mut self, allowed: bool) -> Self {
        self.flush_allowed = allowed;
        self
    }

    /// Whether clients may list keys.
    #[must_use]
    pub fn with_dumps_allowed(mut self, allowed: bool) -> Self {
        self.dumps_allowed = allowed;
        self
    }

    /// Whether clients may `watch`.
    #[must_use]
    pub fn with_watch_allowed(mut self, allowed: bool) -> Self {
        self.watch_allowed = allowed;
        self
    }

    /// Whether clients may stop the server by `shutdown`.
    #[must_use]
    pub fn with_shutdown_allowed(mut self, allowed: bool) -> Self {
        self.shutdown_allowed = allowed;
        self
    }

    /// Whether clients are told 0 for each compare-and-swap number, and none is compared.
    #[must_use]
    pub fn with_cas_disabled(mut self, disabled: bool) -> Self {
        self.cas_disabled = disabled;
        self
    }

    /// Counts for `stats detail` from the start, by what stands in a key before this byte.
    #[must_use]
    pub fn with_detail_by(mut self, delimiter: u8) -> Self {
        self.detail = Detail { delimiter, enabled: true };
        self
    }

    /// Seconds that a connection may be silent before it is closed; 0: for ever.
    #[must_use]
    pub fn with_idle_timeout(mut self, seconds: u32) -> Self {
        self.idle_timeout = seconds;
        self
    }

    /// Whether a connection beyond the most is told so and closed, and does not wait.
    #[must_use]
    pub fn with_maxconns_fast(mut self, fast: bool) -> Self {
        self.maxconns_fast = fast;
        self
    }

    /// Whether `stats sizes` counts.
    #[must_use]
    pub fn with_track_sizes(mut self, track: bool) -> Self {
        self.track_sizes = track;
        self
    }

    /// How much is logged from the start, from 0 to 3: see [`Settings::verbosity`].
    #[must_use]
    pub fn with_verbosity(mut self, level: u32) -> Self {
        self.verbosity = level;
        self
    }

    /// Bytes that all connections together may take for half requests and for replies that are not taken; 0: 64 MiB.
    /// Who needs more than that leaves is closed.
    #[must_use]
    pub fn with_read_buffers(mut self, bytes: usize) -> Self {
        self.read_buffers = bytes;
        self
    }

    /// Whether keys may be listed from the start.
    #[must_use]
    pub fn with_lru_crawler(mut self, enabled: bool) -> Self {
        self.lru_crawler = enabled;
        self
    }

    /// Microseconds that a list of keys rests, now and then, from the start.
    #[must_use]
    pub fn with_lru_crawler_sleep(mut self, microseconds: u32) -> Self {
        self.lru_crawler_sleep = microseconds;
        self
    }

    /// Whether `slabs reassign` does something.
    #[must_use]
    pub fn with_slab_reassign(mut self, enabled: bool) -> Self {
        self.slab_reassign = enabled;
        self
    }

    /// The power of two of items that the index has room for from the start; 0: it grows from the smallest.
    #[must_use]
    pub fn with_hash_power(mut self, power: u32) -> Self {
        self.hash_power = power;
        self
    }

    /// Whether the kernel is asked for large pages however small the memory is.
    #[must_use]
    pub fn with_large_pages(mut self, large: bool) -> Self {
        self.large_pages = large;
        self
    }

    /// The mark of the sockets that are listened on (`SO_MARK`); 0: none.
    #[must_use]
    pub fn with_socket_mark(mut self, mark: u32) -> Self {
        self.socket_mark = mark;
        self
    }

    /// Has `stats settings` show that this was asked for, a name of memcached's `-o`, which has no meaning here.
    #[must_use]
    pub fn with_asked(mut self, name: impl Into<String>, value: Option<String>) -> Self {
        self.asked.push((name.into(), value));
        self
    }

    /// The value that was asked for under this name last, if it is one of this kind.
    #[must_use]
    pub fn asked<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        let (_, value) = self.asked.iter().rfind(|(asked, _)| asked == name)?;
        value.as_ref()?.parse().ok()
    }

    /// Whether this was asked for, or its opposite, whatever was last.
    pub(crate) fn asked_for(&self, name: &str) -> Option<bool> {
        let opposite = format!("no_{name}");
        let (last, _) = self.asked.iter().rfind(|(asked, _)| asked == name || *asked == opposite)?;
        Some(last == name)
    }

    /// The cache that is asked for, empty.
    pub(crate) fn cache(&self) -> Result<Cache, CreateError> {
        let eviction = if self.evict { Eviction::ByPolicy } else { Eviction::Never };
        let Settings { largest_item, lookaside, memory, .. } = *self;
        let default = cache::engine::Config::with_limit(memory);
        let pages = if self.large_pages { PageKind::Transparent } else { default.pages };
        // No machine has memory for an index of more items than fit a word.
        let index_items = match self.hash_power {
            0 => 0,
            power => 1_usize.checked_shl(power).unwrap_or(usize::MAX),
        };
        Cache::new(cache::engine::Config { largest_item, eviction, lookaside, pages, index_items, ..default })
    }

    /// Whether memcached with these settings would find an item too large.
    pub(crate) fn is_too_large(&self, key: usize, value: usize, flags: u32) -> bool {
        let flags = if flags == 0 { 0 } else { 4 };
        MEMCACHED_ITEM + flags + key + value > self.largest_item
    }
}
