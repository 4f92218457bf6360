//! A cache server that memcached's clients can talk to.
//!
//! ```text
//!              +----------+  connections, dealt out in turn   +-----------------------------+
//!  clients --> | listener | --------------------------------> | worker 0: event loop,       |
//!              +----------+               |                   | its connections, a session  | ---+
//!                                         |                   +-----------------------------+    |
//!                                         |                   +-----------------------------+    |    +-------+
//!                                         +-----------------> | worker 1: ...               | ---+--> | cache |
//!                                                             +-----------------------------+    |    +-------+
//!              +-------------+                                                                   |
//!              | housekeeper | ---- time, expiry, flushes, memory moved between classes ---------+
//!              +-------------+
//! ```
//!
//! The data plane is the workers: a request is received, parsed, carried out and answered by one thread, which shares
//! nothing with the others but the cache, and takes no lock and touches no shared counter on a `get`. The control plane is
//! the listener and the housekeeper.
//!
//! | module | idea |
//! |---|---|
//! | `settings`, `server` | what a server is started with; starting and stopping |
//! | `listener`, `worker` | accepting; the event loop |
//! | `connections` | who is connected |
//! | `conversation` | bytes in, requests out: one client's side of things, without sockets |
//! | `gets` | keys that are looked up together |
//! | `executor` | carrying out a request |
//! | `output` | what waits to be sent |
//! | `stats` | what monitoring reads |
//! | `metrics`, `counted` | what the workers count; what `stats reset` sets to zero |
//! | `in_process` | a server without sockets and threads, for models and fuzzers |
//!
//! # Bounds
//!
//! Beside the cache's own ([`cache`]), a worker has 64 KiB to receive into, 16 KiB of counters and a few spare outputs.
//! A connection has less than 1 KiB of its own while its client neither sends half a request nor leaves replies unread.
//! Half a request is at most 16 KiB. A client that does not read costs at most 64 KiB of requests, as much as is
//! received at once, and 64 KiB of replies, plus up to 256 KiB of large values, and one more, that stay in the cache's
//! memory.

#![forbid(unsafe_code)]

mod connections;
mod conversation;
mod counted;
mod executor;
mod gets;
mod in_process;
mod listener;
mod metrics;
mod output;
mod server;
mod settings;
mod shared;
mod stats;
mod worker;

pub use in_process::InProcess;
pub use server::{Furnished, Prepared, Server, StartError};
pub use settings::{Settings, UnixSocket};

/// What `version` answers: the release of memcached whose protocol this is, which is what clients look at, and ours.
///
/// Clients take the first word for the version, or what begins with a digit, or the *last* three numbers with dots
/// between them (npm's memcached), and some do without what follows a space. So memcached's stands first, and ours in
/// two numbers.
pub const VERSION: &str =
    concat!("1.6.45 (lookaside ", env!("CARGO_PKG_VERSION_MAJOR"), ".", env!("CARGO_PKG_VERSION_MINOR"), ")");

/// The README's program, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
