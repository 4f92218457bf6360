//! The error lines of the text protocols: classic and meta commands say the same ones.

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
