//! memcached's protocols, classic text, meta and binary: requests are parsed and replies are formatted here, and
//! nothing is read or sent.
//!
//! The server keeps a buffer of received bytes and works on it in two steps: [`split_line`] finds the next request
//! line, [`parse`] turns it into a [`Request`] that borrows from the buffer, or into a [`Refusal`] that says what to
//! answer, how many bytes of a data block to throw away, and whether to close. Replies are written by [`reply`]. A
//! client (the load generator, the tests) goes the other way, with [`Request::write`] and [`response`].
//!
//! ```
//! use lookaside_protocol::{Line, Request, parse, reply, split_line};
//!
//! let received = b"get sun moon\r\nget st";
//! let Line::Complete(line) = split_line(received) else { panic!("no whole line") };
//! assert_eq!(line.len(), 14);
//! let Ok(Request::Get(get)) = parse(line) else { panic!("not a get") };
//! let keys: Vec<&[u8]> = get.keys.map(|key| key.as_bytes()).collect();
//! assert_eq!(keys, [b"sun".as_slice(), b"moon"]);
//!
//! let mut answer = Vec::new();
//! reply::value_header(&mut answer, b"sun", 0, 4, None);
//! answer.extend_from_slice(b"star\r\n");
//! answer.extend_from_slice(reply::END);
//! assert_eq!(answer, b"VALUE sun 0 4\r\nstar\r\nEND\r\n");
//! ```
//!
//! [`parse`] knows the commands of [`meta`], too, which stand in lines among the classic ones. Frames of the binary
//! protocol, which a connection speaks from its first byte on or not at all, are taken apart by [`binary::parse`].
//!
//! # Whose answers
//! Those of memcached 1.6.45, started with `-W -X -o no_slab_reassign,no_lru_crawler,no_lru_maintainer`, without
//! external storage and without TLS, because the machinery that those commands steer does not exist here. What that
//! program does with odd input was found by asking it, and is written down as tests: `tests/requests.rs` holds the
//! table of lines, and `tests/against_memcached.rs` asks the installed memcached the same questions and lists, with
//! reasons, where an older one (Debian's 1.6.18) or this crate answers otherwise.
//!
//! A key is any 1 to 250 bytes without a space: memcached's documents forbid control characters, but no memcached
//! looks for them, and a tab, a NUL or a carriage return inside a key works there as it does here. Two bytes cannot
//! occur by construction: a space ends the key, and a line feed ends the line.
//!
//! # Cost
//! Nothing is allocated to parse, and one pass is made over a line (a second one, in strides of 250 bytes, over the
//! keys of a long `get`). `examples/timing.rs` measures it; on a core of an AMD EPYC in a virtual machine, with keys of
//! 16 bytes, it prints for finding and parsing a line and walking over its keys: `get` 9 ns, `get` of 100 keys 5 ns a
//! key, `set` 28 ns, `delete` 16 ns, `incr` 25 ns; for the header of a value 6 ns, with a CAS id 10 ns; and for a
//! client that takes apart a value of any size and its `END` 14 ns.
//!
//! # The files
//! Each stands on some of those below it, and on none above.
//!
//! ```text
//!   frames                  binary: a command is a file
//!   lines                   text: a command is a file
//!                           meta: a command is a file
//!   what is said            refusal    arithmetic
//!                           error
//!   of which it consists    key
//!   alone                   token  number  line  expiry
//! ```
//!
//! In each protocol's folder who knows all commands (`mod`) stands on the commands, and these on what several of them
//! have in common (`arguments`, of frames `parts`) and on how it is written (`format`, `flags`, `reply`).
#![forbid(unsafe_code)]

mod arithmetic;
pub mod binary;
mod error;
mod expiry;
mod key;
mod line;
pub mod meta;
mod number;
mod refusal;
mod text;
mod token;

pub use arithmetic::{ArithmeticResult, LONGEST_NUMBER, NotNumeric, Operation, apply};
pub use error::ErrorReply;
pub use expiry::{Expiry, Flush, LONGEST_RELATIVE_EXPTIME, binary_expiry, expiry, flush};
pub use key::{Key, Keys, MAX_KEY_LENGTH};
pub use line::{LINE_LIMIT, Line, split_line};
pub use number::MAX_VALUE_LENGTH;
pub use refusal::{Connection, Refusal};
pub use text::{
    Cachedump, DetailRequest, Factor, LruCrawlerRequest, LruRequest, Shutdown, SlabsRequest, Streams,
};
pub use text::{GetRequest, KeyStream, Request, StatsTopic, StoreRequest, StreamState, Streamed, Verb};
pub use text::{parse, parse_plain, parse_plain_get, reply, response};

/// The program of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
