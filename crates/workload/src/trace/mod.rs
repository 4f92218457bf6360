//! Recorded requests, read one at a time.
//!
//! A trace is longer than memory may be, so each reader is an iterator that holds one row. Four formats are known,
//! each in a file of its own:
//!
//! | format | reader | what a row tells |
//! |---|---|---|
//! | cache2k's, as the Caffeine simulator ships it | [`Numbers`] | the key, a number |
//! | Meta's CDN | [`FbCdn`] | time, key (the object's URL), object size, time to live |
//! | Meta's key-value caches | [`CachelibKv`] | time, operation and how often, key's name and size, value size, time to live |
//! | Twitter's memcached clusters | [`TwitterTrace`] | time, operation, key, value size, time to live |
//!
//! [`Trace`] opens a file of any of them. It looks at the first bytes and not at the name, because the formats tell
//! themselves apart and names are changed; only the uncompressed form of the first has no mark, and goes by its
//! extension `.trace`.
//!
//! A row that cannot be read is an error with its line and column. The reader goes on behind it, so that the caller
//! decides whether one bad row spoils a trace. An error of the file itself ends the iteration.

mod cachelib_kv;
mod error;
mod fb_cdn;
mod lines;
mod numbers;
mod twitter;

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use liblzma::read::XzDecoder;

use crate::data::{DataError, DataFolder};
use crate::generated::Generated;
use crate::key::Key;
use crate::operation::CacheOperation;

pub use cachelib_kv::CachelibKv;
pub use error::TraceError;
pub use fb_cdn::FbCdn;
pub use numbers::Numbers;
pub use twitter::TwitterTrace;

/// One row of a trace. What the format does not tell is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// What was asked for.
    pub key: Key,
    /// What was asked.
    pub operation: CacheOperation,
    /// How many times in this row, at least once.
    pub count: u32,
    /// Bytes of the key in the system that was recorded. The key above may be a name for it, of another length.
    pub key_size: Option<u32>,
    /// Bytes of the value. `None` also where a read found nothing: the traces then write 0.
    pub value_size: Option<u64>,
    /// Time to live in seconds. `None` also where the traces write 0 or less: no limit, or none told.
    pub ttl: Option<u32>,
    /// Seconds, since the trace's beginning or since 1970, as the trace counts.
    pub timestamp: Option<u64>,
}

/// What a trace writes as the value's size, as what it means.
fn value_size(operation: CacheOperation, size: u64) -> Option<u64> {
    (size > 0 || operation.carries_value()).then_some(size)
}

/// What a trace writes as the time to live, as what it means. A limit beyond 136 years is none.
fn ttl(seconds: i64) -> Option<u32> {
    u32::try_from(seconds).ok().filter(|seconds| *seconds > 0)
}

/// The format of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Big-endian 32-bit numbers in an xz file.
    NumbersXz,
    /// Big-endian 32-bit numbers, uncompressed.
    Numbers,
    /// Meta's CDN, comma-separated.
    FbCdn,
    /// Meta's key-value caches, comma-separated.
    CachelibKv,
    /// Twitter's clusters, comma-separated and without a header.
    Twitter,
    /// No file: see [`generated`](crate::generated).
    Generated,
}

impl Format {
    /// The format of a file that begins with `start`, or `None`. `start` should hold the whole first line.
    fn recognise(start: &[u8]) -> Option<Format> {
        const XZ: &[u8] = b"\xfd7zXZ\0";
        if start.starts_with(XZ) {
            return Some(Format::NumbersXz);
        }
        let line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if fb_cdn::is_header(line) {
            Some(Format::FbCdn)
        } else if cachelib_kv::is_header(line) {
            Some(Format::CachelibKv)
        } else if twitter::parse(1, line).is_ok() {
            Some(Format::Twitter)
        } else {
            None
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::NumbersXz => "32-bit keys, xz",
            Format::Numbers => "32-bit keys",
            Format::FbCdn => "Meta CDN csv",
            Format::CachelibKv => "Meta key-value csv",
            Format::Twitter => "Twitter csv",
            Format::Generated => "generated",
        })
    }
}

/// A file of any known format.
///
/// ```no_run
/// use lookaside_workload::trace::Trace;
/// use std::collections::HashSet;
///
/// let mut keys = HashSet::new();
/// for record in Trace::open("traces/orm-busy.trace.xz")? {
///     keys.insert(record?.key);
/// }
/// assert_eq!(keys.len(), 76_349);
/// # Ok::<(), lookaside_workload::trace::TraceError>(())
/// ```
#[derive(Debug)]
pub struct Trace {
    format: Format,
    reader: Reader,
}

/// One reader a format. The decoder of xz is boxed by its library, so that none is much larger than the others.
enum Reader {
    NumbersXz(Numbers<XzDecoder<BufReader<File>>>),
    Numbers(Numbers<BufReader<File>>),
    FbCdn(FbCdn<BufReader<File>>),
    CachelibKv(CachelibKv<BufReader<File>>),
    Twitter(TwitterTrace<BufReader<File>>),
    Generated(Generated),
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reader")
    }
}

impl Trace {
    /// The generated trace `name`, such as `generated/orm-busy`, or `None` where there is none of that name.
    pub fn generated(name: &str) -> Option<Trace> {
        let requests = Generated::named(name)?;
        Some(Trace { format: Format::Generated, reader: Reader::Generated(requests) })
    }

    /// Opens the trace `name`: a path, a generated trace, or a file of the data folder, such as `traces/orm-busy.trace.xz`; or
    /// says where that was looked for.
    ///
    /// # Errors
    ///
    /// As [`open`](Trace::open).
    pub fn named(name: &str) -> Result<Result<Trace, DataError>, TraceError> {
        if Path::new(name).exists() {
            return Trace::open(name).map(Ok);
        }
        if let Some(trace) = Trace::generated(name) {
            return Ok(Ok(trace));
        }
        match DataFolder::find().and_then(|folder| folder.file(name)) {
            Ok(path) => Trace::open(path).map(Ok),
            Err(absent) => Ok(Err(absent)),
        }
    }

    /// Opens the trace `path`.
    ///
    /// # Errors
    ///
    /// [`TraceError::Open`] where the file cannot be opened or its beginning not be read;
    /// [`TraceError::Unrecognised`] where it has none of the known formats.
    pub fn open(path: impl AsRef<Path>) -> Result<Trace, TraceError> {
        let path = path.as_ref();
        let failed = |source| TraceError::Open { path: path.to_owned(), source };
        let mut file = BufReader::with_capacity(1 << 16, File::open(path).map_err(failed)?);
        let format = match Format::recognise(file.fill_buf().map_err(failed)?) {
            Some(format) => format,
            None if path.extension().is_some_and(|extension| extension == "trace") => Format::Numbers,
            None => return Err(TraceError::Unrecognised { path: path.to_owned() }),
        };
        let reader = match format {
            Format::NumbersXz => Reader::NumbersXz(Numbers::xz(file)?),
            Format::Numbers => Reader::Numbers(Numbers::new(file)),
            Format::FbCdn => Reader::FbCdn(FbCdn::new(file)),
            Format::CachelibKv => Reader::CachelibKv(CachelibKv::new(file)),
            Format::Twitter => Reader::Twitter(TwitterTrace::new(file)),
            Format::Generated => return Err(TraceError::Unrecognised { path: path.to_owned() }),
        };
        Ok(Trace { format, reader })
    }

    /// The format that was recognised.
    pub fn format(&self) -> Format {
        self.format
    }
}

impl Iterator for Trace {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.reader {
            Reader::NumbersXz(reader) => reader.next(),
            Reader::Numbers(reader) => reader.next(),
            Reader::FbCdn(reader) => reader.next(),
            Reader::CachelibKv(reader) => reader.next(),
            Reader::Twitter(reader) => reader.next(),
            Reader::Generated(requests) => requests.next().map(Ok),
        }
    }
}
