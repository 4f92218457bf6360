//! What a server is started with. The command line of `lookaside serve` is one way to fill this in.

use std::net::SocketAddr;
use std::path::PathBuf;

use cache::{Cache, CreateError, Eviction};

/// memcached's fixed costs of an item: its header, the number that compare-and-swap goes by, the zero behind the key and
/// the line ending behind the value. An item is too large here exactly when it would be there (MEMCACHED 1.6, item size
/// and `-I`), although ours are smaller.
const MEMCACHED_ITEM: usize = 48 + 8 + 1 + 2;

/// What a server is started with.
#[derive(Debug, Clone)]
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
    /// Bytes of a lookaside buffer before the index, beside the memory; 0: none. See [`cache::Config::lookaside`].
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
pub struct UnixSocket {
    /// Where. A socket that is there already, left by a server that died, is removed.
    pub path: PathBuf,
    /// Its permissions, as a number like `0o700`.
    pub mode: u32,
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
    /// The cache that is asked for, empty.
    pub(crate) fn cache(&self) -> Result<Cache, CreateError> {
        let eviction = if self.evict { Eviction::ByPolicy } else { Eviction::Never };
        let Settings { largest_item, lookaside, memory, .. } = *self;
        Cache::new(cache::Config { largest_item, eviction, lookaside, ..cache::Config::with_limit(memory) })
    }

    /// Whether memcached with these settings would find an item too large.
    pub(crate) fn is_too_large(&self, key: usize, value: usize, flags: u32) -> bool {
        let flags = if flags == 0 { 0 } else { 4 };
        MEMCACHED_ITEM + flags + key + value > self.largest_item
    }
}
