//! The error lines of the text protocols: classic and meta commands say the same ones.

/// The error lines of memcached 1.6 that a server of the text protocols can need.
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
    /// `stats detail` with another word than it knows.
    StatsDetailUsage,
    /// `stats cachedump` with fewer than two numbers.
    CachedumpUsage,
    /// `stats cachedump` of a class that there is not.
    IllegalSlabId,
    /// `lru_crawler metadump` is switched off.
    MetadumpNotAllowed,
    /// `lru_crawler mgdump` is switched off.
    MgdumpNotAllowed,
    /// Keys are listed for somebody else at the moment.
    CrawlerBusy,
    /// `lru_crawler` with a class that there is not.
    CrawlerBadClass,
    /// `lru_crawler` with no class at all.
    CrawlerNotStarted,
    /// `lru_crawler crawl` of the index, which nothing does.
    CrawlerFailed,
    /// `lru_crawler enable` where it is.
    CrawlerRuns,
    /// `lru_crawler sleep` with more than a second.
    CrawlerSleepTooLong,
    /// `lru tune` with more than is left.
    LruPercents,
    /// `lru tune` with a factor of nothing.
    LruFactors,
    /// `slabs reassign` with a class that there is not.
    SlabsBadClass,
    /// `slabs reassign` from a class to itself.
    SlabsSame,
    /// `slabs reassign` while a page is under way.
    SlabsBusy,
    /// `slabs reassign` from a class that has no page to give.
    SlabsNoSpare,
    /// `slabs automove window` with a number that is not one of seconds.
    AutomoveWindow,
    /// `shutdown` with another word than it knows.
    InvalidShutdownMode,
    /// As many watch as may.
    TooManyWatchers,
    /// No memory to keep half a request in; the connection is closed after the line.
    OutOfMemoryReading,
    /// `flush_all` is switched off.
    FlushNotAllowed,
    /// A meta command has a flag twice, or what is no character of ASCII for one.
    DuplicateFlag,
    /// A meta command has a flag that is none.
    InvalidFlag,
    /// `ma`: something is wrong with its flags.
    InvalidOrDuplicateFlag,
    /// A meta command has a flag whose token is not a number.
    BadToken,
    /// A meta command says that its key is base64, and it is not.
    DecodingKey,
    /// The opaque token of a meta command is too long.
    OpaqueTooLong,
    /// A meta command has too many flags.
    TooManyFlags,
    /// `ms` has a mode that is none.
    InvalidSetMode,
    /// `ma` has a mode that is none.
    InvalidArithmeticMode,
    /// A meta command's initial number (`J`) is none.
    InvalidInitial,
    /// A meta command's delta (`D`) is none.
    InvalidDeltaValue,
    /// `ma`: no memory for the item that is to be created.
    OutOfMemoryAllocating,
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
            ErrorReply::StatsDetailUsage => b"CLIENT_ERROR usage: stats detail on|off|dump\r\n",
            ErrorReply::CachedumpUsage => b"CLIENT_ERROR bad command line\r\n",
            ErrorReply::IllegalSlabId => b"CLIENT_ERROR Illegal slab id\r\n",
            ErrorReply::MetadumpNotAllowed => b"ERROR metadump not allowed\r\n",
            ErrorReply::MgdumpNotAllowed => b"ERROR key dump not allowed\r\n",
            ErrorReply::CrawlerBusy => b"BUSY currently processing crawler request\r\n",
            ErrorReply::CrawlerBadClass => b"BADCLASS invalid class id\r\n",
            ErrorReply::CrawlerNotStarted => b"NOTSTARTED no items to crawl\r\n",
            ErrorReply::CrawlerFailed => b"ERROR an unknown error happened\r\n",
            ErrorReply::CrawlerRuns => b"ERROR failed to start lru crawler thread\r\n",
            ErrorReply::CrawlerSleepTooLong => b"CLIENT_ERROR sleep must be one second or less\r\n",
            ErrorReply::LruPercents => b"ERROR hot and warm pcts must not exceed 80\r\n",
            ErrorReply::LruFactors => b"ERROR hot and warm age factors must be greater than 0\r\n",
            ErrorReply::SlabsBadClass => b"BADCLASS invalid src or dst class id\r\n",
            ErrorReply::SlabsSame => b"SAME src and dst class are identical\r\n",
            ErrorReply::SlabsBusy => b"BUSY currently processing reassign request\r\n",
            ErrorReply::SlabsNoSpare => b"NOSPARE source class has no spare pages\r\n",
            ErrorReply::AutomoveWindow => b"CLIENT_ERROR automove window too low or too high\r\n",
            ErrorReply::InvalidShutdownMode => b"CLIENT_ERROR invalid shutdown mode\r\n",
            ErrorReply::TooManyWatchers => b"WATCHER_TOO_MANY log watcher limit reached\r\n",
            ErrorReply::OutOfMemoryReading => b"SERVER_ERROR out of memory reading request\r\n",
            ErrorReply::FlushNotAllowed => b"CLIENT_ERROR flush_all not allowed\r\n",
            ErrorReply::DuplicateFlag => b"CLIENT_ERROR duplicate flag\r\n",
            ErrorReply::InvalidFlag => b"CLIENT_ERROR invalid flag\r\n",
            ErrorReply::InvalidOrDuplicateFlag => b"CLIENT_ERROR invalid or duplicate flag\r\n",
            ErrorReply::BadToken => b"CLIENT_ERROR bad token in command line format\r\n",
            ErrorReply::DecodingKey => b"CLIENT_ERROR error decoding key\r\n",
            ErrorReply::OpaqueTooLong => b"CLIENT_ERROR opaque token too long\r\n",
            ErrorReply::TooManyFlags => b"CLIENT_ERROR options flags are too long\r\n",
            ErrorReply::InvalidSetMode => b"CLIENT_ERROR invalid mode for ms M token\r\n",
            ErrorReply::InvalidArithmeticMode => b"CLIENT_ERROR invalid mode for ma M token\r\n",
            ErrorReply::InvalidInitial => b"CLIENT_ERROR invalid numeric initial value\r\n",
            ErrorReply::InvalidDeltaValue => b"CLIENT_ERROR invalid numeric delta value\r\n",
            ErrorReply::OutOfMemoryAllocating => b"SERVER_ERROR Out of memory allocating new item\r\n",
            ErrorReply::TooManyConnections => b"ERROR Too many open connections\r\n",
        }
    }

    /// The line without its CRLF.
    pub fn text(self) -> &'static str {
        str::from_utf8(self.bytes()).unwrap_or_default().trim_end()
    }
}
