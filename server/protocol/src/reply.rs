//! Replies: the fixed lines as constants, the others written to the end of a byte vector.
//!
//! The hot one is the header of a value. It reserves room once for the longest header there can be, so that the pieces
//! are appended without growing the vector in between; numbers are formatted by `itoa`.

use crate::key::MAX_KEY_LENGTH;
use std::fmt::Display;
use std::io::Write;

/// The item was stored.
pub const STORED: &[u8] = b"STORED\r\n";
/// The condition of `add`, `replace`, `append` or `prepend` was not met.
pub const NOT_STORED: &[u8] = b"NOT_STORED\r\n";
/// `cas`: the item has another CAS id.
pub const EXISTS: &[u8] = b"EXISTS\r\n";
/// There is no such item.
pub const NOT_FOUND: &[u8] = b"NOT_FOUND\r\n";
/// `delete`: the item is gone.
pub const DELETED: &[u8] = b"DELETED\r\n";
/// `touch`: the item has its new time.
pub const TOUCHED: &[u8] = b"TOUCHED\r\n";
/// `flush_all`, `verbosity`, `cache_memlimit`: done.
pub const OK: &[u8] = b"OK\r\n";
/// The end of values or statistics.
pub const END: &[u8] = b"END\r\n";
/// `stats reset`: done.
pub const RESET: &[u8] = b"RESET\r\n";
/// What follows a data block, here and in requests.
pub const CRLF: &[u8] = b"\r\n";

/// The line before a value's data: `VALUE <key> <flags> <length>`, and the CAS id for `gets` and `gats`. The data and
/// [`CRLF`] are to follow.
#[inline]
pub fn value_header(out: &mut Vec<u8>, key: &[u8], flags: u32, length: usize, cas: Option<u64>) {
    const LONGEST: usize = b"VALUE ".len() + MAX_KEY_LENGTH + 3 * (1 + 20) + CRLF.len();
    out.reserve(LONGEST);
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
    append_number(out, b' ', u64::from(flags));
    append_number(out, b' ', length as u64);
    if let Some(cas) = cas {
        append_number(out, b' ', cas);
    }
    out.extend_from_slice(CRLF);
}

/// The reply to `incr` and `decr`: the number on a line.
pub fn number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    out.extend_from_slice(CRLF);
}

/// One statistic: `STAT <name> <value>`. After the last of them comes [`END`].
///
/// ```
/// # use lookaside_protocol::reply;
/// let mut out = Vec::new();
/// reply::stat(&mut out, format_args!("items:{}:number", 3), 71);
/// assert_eq!(out, b"STAT items:3:number 71\r\n");
/// ```
pub fn stat(out: &mut Vec<u8>, name: impl Display, value: impl Display) {
    write!(out, "STAT {name} {value}\r\n").expect("writing to a vector does not fail");
}

/// The reply to `version`. Some clients read a number out of it: let `version` start with one, as in `1.6.45-x`.
pub fn version(out: &mut Vec<u8>, version: &str) {
    out.extend_from_slice(b"VERSION ");
    out.extend_from_slice(version.as_bytes());
    out.extend_from_slice(CRLF);
}

#[inline]
fn append_number(out: &mut Vec<u8>, before: u8, number: u64) {
    out.push(before);
    // Flags and the length of a small value: nearly always one or two digits.
    if number < 10 {
        out.push(b'0' + number as u8);
    } else {
        out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    }
}

/// The error lines of memcached 1.6 that a server of the classic protocol can need.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorReply {
    /// There is no such command.
    Error,
    /// The command is known and the line is not right.
    BadFormat,
    /// `delete` with more than a key, a `0` and `noreply`.
    DeleteUsage,
    /// A time is not a number of 32 bits.
    InvalidExptime,
    /// A delta is not a number of 64 bits.
    InvalidDelta,
    /// `incr` or `decr` on a value that is not a number.
    NonNumeric,
    /// The data was not followed by CRLF.
    BadDataChunk,
    /// The item is larger than an item may be. The data is swallowed, and what `set` was to replace is deleted.
    TooLarge,
    /// No memory for the item. The data is swallowed, and what `set` was to replace is deleted.
    OutOfMemoryStoring,
    /// No memory for `incr`, `decr`, or anything else.
    OutOfMemory,
    /// `stats detail` is switched off.
    StatsDetailNotAllowed,
    /// `stats cachedump` is switched off.
    StatsCachedumpNotAllowed,
    /// `watch` is switched off.
    WatchNotAllowed,
    /// `lru_crawler` is switched off.
    LruCrawlerDisabled,
    /// `slabs reassign` is switched off.
    SlabReassignDisabled,
    /// `shutdown` is switched off. (It does say `SERVER_ERROR:`, with the colon.)
    ShutdownNotEnabled,
    /// `cache_memlimit` below 8 MiB.
    MemlimitTooSmall,
    /// `cache_memlimit` with what must be a number of bytes.
    MemlimitNotMegabytes,
    /// `cache_memlimit` with a size that cannot be had.
    MemlimitUnable,
    /// There are as many connections as there may be; this one is closed after the line.
    TooManyConnections,
}

impl ErrorReply {
    /// The line, with its CRLF.
    pub const fn bytes(self) -> &'static [u8] {
        match self {
            ErrorReply::Error => b"ERROR\r\n",
            ErrorReply::BadFormat => b"CLIENT_ERROR bad command line format\r\n",
            ErrorReply::DeleteUsage => {
                b"CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n"
            }
            ErrorReply::InvalidExptime => b"CLIENT_ERROR invalid exptime argument\r\n",
            ErrorReply::InvalidDelta => b"CLIENT_ERROR invalid numeric delta argument\r\n",
            ErrorReply::NonNumeric => b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
            ErrorReply::BadDataChunk => b"CLIENT_ERROR bad data chunk\r\n",
            ErrorReply::TooLarge => b"SERVER_ERROR object too large for cache\r\n",
            ErrorReply::OutOfMemoryStoring => b"SERVER_ERROR out of memory storing object\r\n",
            ErrorReply::OutOfMemory => b"SERVER_ERROR out of memory\r\n",
            ErrorReply::StatsDetailNotAllowed => b"CLIENT_ERROR stats detail not allowed\r\n",
            ErrorReply::StatsCachedumpNotAllowed => b"CLIENT_ERROR stats cachedump not allowed\r\n",
            ErrorReply::WatchNotAllowed => b"CLIENT_ERROR watch commands not allowed\r\n",
            ErrorReply::LruCrawlerDisabled => b"CLIENT_ERROR lru crawler disabled\r\n",
            ErrorReply::SlabReassignDisabled => b"CLIENT_ERROR slab reassignment disabled\r\n",
            ErrorReply::ShutdownNotEnabled => b"SERVER_ERROR: shutdown not enabled\r\n",
            ErrorReply::MemlimitTooSmall => b"MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n",
            ErrorReply::MemlimitNotMegabytes => {
                b"MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes\r\n"
            }
            ErrorReply::MemlimitUnable => b"MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust\r\n",
            ErrorReply::TooManyConnections => b"ERROR Too many open connections\r\n",
        }
    }

    /// The line without its CRLF.
    pub fn text(self) -> &'static str {
        str::from_utf8(self.bytes()).unwrap_or_default().trim_end()
    }
}
