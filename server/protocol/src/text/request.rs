//! The requests of the text protocols, as they come out of [`parse`](crate::parse).

use super::format::RequestLine;
use super::get::GetRequest;
use super::lru::LruRequest;
use super::lru_crawler::LruCrawlerRequest;
use super::reply::CRLF;
use super::shutdown::Shutdown;
use super::slabs::SlabsRequest;
use super::stats::StatsTopic;
use super::store::StoreRequest;
use super::watch::Streams;
use super::{
    arithmetic, delete, flush_all, get, lru, lru_crawler, memlimit, shutdown, slabs, stats, store, touch,
};
use super::{verbosity, watch};
use crate::arithmetic::Operation;
use crate::key::{Key, Keys};
use crate::meta::MetaRequest;

/// A well-formed request. It borrows its keys from the request line.
///
/// `noreply` means that no reply is to be sent, whatever the outcome, errors of the engine included.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request<'a> {
    /// `get`, `gets`: the values of some keys.
    Get(GetRequest<'a>),
    /// `gat`, `gats`: the values of some keys, giving each item found a new time to live.
    GetAndTouch {
        /// The new time, for [`expiry`](crate::expiry).
        exptime: i32,
        /// At least one key.
        keys: Keys<'a>,
        /// Whether the reply states each value's CAS id (`gats`).
        with_cas: bool,
    },
    /// `set`, `add`, `replace`, `append`, `prepend`, `cas`: a data block follows.
    Store(StoreRequest<'a>),
    /// `delete`.
    Delete {
        /// The key to delete.
        key: Key<'a>,
        /// No reply wanted.
        noreply: bool,
    },
    /// `incr`, `decr`: see [`apply`](crate::apply).
    Arithmetic {
        /// Up or down.
        operation: Operation,
        /// The key whose value is a number.
        key: Key<'a>,
        /// How far.
        delta: u64,
        /// No reply wanted.
        noreply: bool,
    },
    /// `touch`: a new time to live.
    Touch {
        /// The key to touch.
        key: Key<'a>,
        /// The new time, for [`expiry`](crate::expiry).
        exptime: i32,
        /// No reply wanted.
        noreply: bool,
    },
    /// `flush_all`: forget everything, now or later. It replaces an earlier `flush_all` that is still to come.
    FlushAll {
        /// The delay, for [`flush`](crate::flush); 0 if there was none on the line.
        delay: i32,
        /// No reply wanted.
        noreply: bool,
    },
    /// `stats`.
    Stats(StatsTopic),
    /// `version`.
    Version,
    /// `verbosity`: how much the server logs.
    Verbosity {
        /// The level; memcached treats everything above 2 as 2.
        level: u32,
        /// No reply wanted.
        noreply: bool,
    },
    /// `cache_memlimit`: a new limit for the memory of items.
    CacheMemlimit {
        /// The limit in MiB, 8 to 1,000,000,000.
        megabytes: u32,
        /// No reply wanted.
        noreply: bool,
    },
    /// `lru`: numbers of memcached's segmented LRU.
    Lru {
        /// Which of them.
        request: LruRequest,
        /// No reply wanted.
        noreply: bool,
    },
    /// `lru_crawler`: listing keys, and numbers of memcached's crawler.
    LruCrawler {
        /// What of it.
        request: LruCrawlerRequest<'a>,
        /// No reply wanted.
        noreply: bool,
    },
    /// `slabs`: moving pages between classes.
    Slabs {
        /// What of it.
        request: SlabsRequest,
        /// No reply wanted.
        noreply: bool,
    },
    /// `shutdown`: stop the server.
    Shutdown {
        /// How.
        how: Shutdown,
        /// No reply wanted.
        noreply: bool,
    },
    /// `watch`: tell what happens from here on; `None` if there is no such stream.
    Watch(Option<Streams>),
    /// One of the [meta commands](crate::meta).
    Meta(MetaRequest<'a>),
    /// `quit`: send what waits to be sent, then close.
    Quit,
}

impl Request<'_> {
    /// Appends the request line, with its CRLF. The data block of a [`Request::Store`], or of an
    /// `ms`, is the caller's to append.
    ///
    /// ```
    /// # use lookaside_protocol::{Key, Request};
    /// let mut line = Vec::new();
    /// Request::Touch { key: Key::new(b"k").unwrap(), exptime: 60, noreply: true }.write(&mut line);
    /// assert_eq!(line, b"touch k 60 noreply\r\n");
    /// ```
    pub fn write(&self, out: &mut Vec<u8>) {
        let line = &mut RequestLine::new(out);
        match *self {
            Request::Get(ref request) => get::write(line, request),
            Request::GetAndTouch { exptime, ref keys, with_cas } => {
                get::write_and_touch(line, exptime, keys, with_cas);
            }
            Request::Store(ref request) => store::write(line, request),
            Request::Delete { ref key, noreply } => delete::write(line, key, noreply),
            Request::Arithmetic { operation, ref key, delta, noreply } => {
                arithmetic::write(line, operation, key, delta, noreply);
            }
            Request::Touch { ref key, exptime, noreply } => touch::write(line, key, exptime, noreply),
            Request::FlushAll { delay, noreply } => flush_all::write(line, delay, noreply),
            Request::Stats(topic) => stats::write(line, topic),
            Request::Version => {
                line.name("version");
            }
            Request::Verbosity { level, noreply } => verbosity::write(line, level, noreply),
            Request::CacheMemlimit { megabytes, noreply } => memlimit::write(line, megabytes, noreply),
            Request::Lru { request, noreply } => lru::write(line, request, noreply),
            Request::LruCrawler { request, noreply } => lru_crawler::write(line, request, noreply),
            Request::Slabs { request, noreply } => slabs::write(line, request, noreply),
            Request::Shutdown { how, noreply } => shutdown::write(line, how, noreply),
            Request::Watch(streams) => watch::write(line, streams),
            Request::Meta(ref request) => request.write(out),
            Request::Quit => {
                line.name("quit");
            }
        }
        out.extend_from_slice(CRLF);
    }
}
