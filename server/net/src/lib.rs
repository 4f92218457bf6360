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
//!              +-------------+                                                                   |
//!              |    aside    | ---- those who watch, lists of keys ------------------------------+
//!              +-------------+
//! ```
//!
//! The data plane is the workers: a request is received, parsed, carried out and answered by one thread, which shares
//! nothing with the others but the cache, and takes no lock and touches no shared counter on a `get`. The control plane
//! is the listener, the housekeeper, and the thread beside the workers, to which they hand over clients who are told
//! much.
//!
//! # The files
//!
//! Each stands on some of those below it, and on none above.
//!
//! ```text
//!   threads         server
//!                   listener  worker  aside        in_process
//!                   guest     ahead
//!   without them    conversation
//!                   executor       stats
//!                   dump
//!                   shared
//!                   counted
//!                   watch          tuning
//!   alone           buffers  connections  crawling  detail  error  metrics  output  settings  version
//! ```
//!
//! | file | idea |
//! |---|---|
//! | `settings`, `server`, `error` | what a server is started with; starting and stopping; why it does not start |
//! | `listener`, `worker` | accepting; the event loop |
//! | `ahead` | requests that are received before the first of them is served |
//! | `aside` | the thread that serves those who are told much: watchers, and lists of keys |
//! | `guest` | a client on its way between threads |
//! | `connections` | who is connected |
//! | `conversation` | bytes in, requests out: one client's side of things, without sockets; a protocol is a file |
//! | `executor` | carrying out requests: a command, or a family of them, is a file |
//! | `output` | what waits to be sent |
//! | `shared` | what all threads of a server share |
//! | `stats`, `version` | what monitoring reads; which server this is |
//! | `dump`, `crawling` | listing items; that one list is under way |
//! | `watch`, `detail` | what happens, line by line; counts by prefix |
//! | `tuning` | what commands change |
//! | `buffers` | what all connections together may hold |
//! | `metrics`, `counted` | what the workers count; what `stats reset` sets to zero |
//! | `in_process` | a server without sockets and threads, for models and fuzzers |
//!
//! # Bounds
//!
//! Beside the cache's own ([`cache`]), a worker has twice 64 KiB to receive into, 16 KiB of counters and a few spare
//! outputs. A connection has less than 1 KiB of its own while its client neither sends half a request nor leaves
//! replies unread. Half a request is at most 16 KiB. A client that does not read costs at most 64 KiB of requests, as
//! much as is received at once, and 64 KiB of replies, plus up to 256 KiB of large values, and one more, that stay in
//! the cache's memory. All of these together hold no more than `Settings::read_buffers`; who needs more is closed. One
//! who watches costs at most 384 KiB, and twenty may; each thread has a log of 64 KiB while somebody does.

#![forbid(unsafe_code)]

mod ahead;
mod aside;
mod buffers;
mod connections;
mod conversation;
mod counted;
mod crawling;
mod detail;
mod dump;
mod error;
mod executor;
mod guest;
mod in_process;
mod listener;
mod metrics;
mod output;
mod server;
mod settings;
mod shared;
mod stats;
mod tuning;
mod version;
mod watch;
mod worker;

pub use error::StartError;
pub use in_process::InProcess;
pub use server::{Furnished, Prepared, Server};
pub use settings::{Detail, Protocol, Settings, TcpSocket, UnixSocket};
pub use version::VERSION;
pub use watch::REQUESTS;

/// The programs of the READMEs and of the book, compiled and run.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../../README.md")]
    struct Front;
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/start/rust.md")]
    struct Rust;
    #[doc = include_str!("../../../docs/extending/own-index.md")]
    struct Index;
}
