//! The requests of the classic protocol, as they come out of [`parse`](crate::parse).

use crate::key::{Key, Keys};

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
    /// `quit`: send what waits to be sent, then close.
    Quit,
}

/// `get` or `gets`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetRequest<'a> {
    /// At least one key.
    pub keys: Keys<'a>,
    /// Whether the reply states each value's CAS id (`gets`).
    pub with_cas: bool,
}

/// A storage command. `length` bytes of data and a CRLF follow the line.
///
/// If the data is not followed by a CRLF, `length + 2` bytes are consumed all the same, nothing is stored, and the
/// answer is [`ErrorReply::BadDataChunk`](crate::ErrorReply::BadDataChunk).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoreRequest<'a> {
    /// Which of the storage commands.
    pub verb: Verb,
    /// The key to store under.
    pub key: Key<'a>,
    /// The client's own 32 bits; ignored by append and prepend.
    pub flags: u32,
    /// The time to live, for [`expiry`](crate::expiry); ignored by append and prepend.
    pub exptime: i32,
    /// The length of the data in bytes, at most [`MAX_VALUE_LENGTH`](crate::MAX_VALUE_LENGTH), without its CRLF.
    pub length: usize,
    /// No reply wanted.
    pub noreply: bool,
}

/// The storage commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verb {
    /// Store whatever was there before.
    Set,
    /// Store if nothing is there.
    Add,
    /// Store if something is there.
    Replace,
    /// Put the data behind what is there.
    Append,
    /// Put the data before what is there.
    Prepend,
    /// Store if what is there has this CAS id. 0 is an id that no item has.
    Cas(u64),
}

/// The two directions of arithmetic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// `incr`: wraps at 64 bits.
    Increment,
    /// `decr`: stops at 0.
    Decrement,
}

/// What `stats` is asked about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StatsTopic {
    /// `stats`: the general counters.
    General,
    /// `stats reset`: set counters to zero; the answer is [`reply::RESET`](crate::reply::RESET).
    Reset,
    /// `stats settings`.
    Settings,
    /// `stats items`: by slab class.
    Items,
    /// `stats slabs`: by slab class.
    Slabs,
    /// `stats sizes`: a histogram, which memcached answers with `STAT sizes_status disabled` unless told to keep one.
    Sizes,
    /// `stats conns`: the open connections.
    Conns,
}
