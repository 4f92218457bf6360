//! Recorded requests, read one at a time.
//!
//! A trace is longer than memory may be, so each reader is an iterator that holds one row. Six formats are known,
//! each in a file of its own:
//!
//! | format | reader | what a row tells |
//! |---|---|---|
//! | one key a line, or a named column | [`Keys`] | the key |
//! | cache2k's, as the Caffeine simulator ships it | [`Numbers`] | the key, a number |
//! | libCacheSim's `oracleGeneral` | [`OracleGeneral`] | time, key (a number), value size |
//! | Meta's CDN | [`FbCdn`] | time, key (the object's URL), object size, time to live |
//! | Meta's key-value caches | [`CachelibKv`] | time, operation and how often, key's name and size, value size, time to live |
//! | Twitter's memcached clusters | [`TwitterTrace`] | time, operation, key, value size, time to live |
//!
//! [`Trace`] opens a file of any of them, compressed by gzip, xz or Zstandard or not. It looks at the content and not at
//! the name, because names are changed and say little: `.trace` is also what instructions are recorded in. Whatever is a
//! text and none of the recorded ones is a list of keys. Of the formats that are no text, one tells itself apart
//! ([`OracleGeneral`]); 32-bit keys could be anything, and have to be named ([`Choice::format`]).
//!
//! A row that cannot be read is an error with its line and column. The reader goes on behind it, so that the caller
//! decides whether one bad row spoils a trace. An error of the file itself ends the iteration.

mod cachelib_kv;
mod compressed;
mod error;
mod fb_cdn;
mod lines;
mod numbers;
mod oracle;
mod text;
mod twitter;

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::data::DataFolder;
use crate::generated::Generated;
use crate::key::Key;
use crate::operation::CacheOperation;

pub use cachelib_kv::CachelibKv;
pub use error::TraceError;
pub use fb_cdn::FbCdn;
pub use numbers::Numbers;
pub use oracle::OracleGeneral;
pub use text::Keys;
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

impl Record {
    /// A read of which nothing but the key is told.
    fn get(key: Key) -> Record {
        let operation = CacheOperation::Get;
        Record { key, operation, count: 1, key_size: None, value_size: None, ttl: None, timestamp: None }
    }
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
    /// A text with one key a line.
    Keys,
    /// Big-endian 32-bit numbers.
    Numbers,
    /// libCacheSim's `oracleGeneral`.
    OracleGeneral,
    /// Meta's CDN, comma-separated.
    FbCdn,
    /// Meta's key-value caches, comma-separated.
    CachelibKv,
    /// Twitter's clusters, comma-separated and without a header.
    Twitter,
}

/// How much of a file is looked at to tell its format, in bytes.
const LOOKED_AT: usize = 1 << 16;

/// Published traces of big-endian 32-bit numbers. The format has no mark, and these names are known.
const PUBLISHED: [&str; 4] = ["orm-busy.trace", "orm-busy.trace.xz", "web07.trace", "web07.trace.xz"];

impl Format {
    /// All of them.
    pub const ALL: [Format; 6] = [
        Format::Keys,
        Format::Numbers,
        Format::OracleGeneral,
        Format::FbCdn,
        Format::CachelibKv,
        Format::Twitter,
    ];

    /// Its name, as [`FromStr`] takes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Format::Keys => "keys",
            Format::Numbers => "be32",
            Format::OracleGeneral => "oracleGeneral",
            Format::FbCdn => "meta-cdn",
            Format::CachelibKv => "meta-kv",
            Format::Twitter => "twitter",
        }
    }

    /// Whether it is no text.
    #[must_use]
    pub fn is_binary(self) -> bool {
        matches!(self, Format::Numbers | Format::OracleGeneral)
    }

    /// The format of a file that begins with `start`, and ends there if it is `whole`.
    fn recognise(start: &[u8], whole: bool) -> Option<Format> {
        if !is_text(start, whole) {
            return oracle::is(start, whole).then_some(Format::OracleGeneral);
        }
        let line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        Some(if fb_cdn::is_header(line) {
            Format::FbCdn
        } else if cachelib_kv::is_header(line) {
            Format::CachelibKv
        } else if twitter::parse(1, line).is_ok() {
            Format::Twitter
        } else {
            Format::Keys
        })
    }
}

/// Whether these bytes, which may end within a character unless they are the `whole`, are lines of text.
fn is_text(bytes: &[u8], whole: bool) -> bool {
    let is_utf8 = match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none() && !whole,
    };
    is_utf8 && !bytes.iter().any(|&byte| text::is_no_text(byte) && !b"\r\n".contains(&byte))
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Keys => "one key a line",
            Format::Numbers => "big-endian 32-bit keys, as cache2k's",
            Format::OracleGeneral => "libCacheSim's binary records",
            Format::FbCdn => "Meta CDN csv",
            Format::CachelibKv => "Meta key-value csv",
            Format::Twitter => "Twitter csv",
        })
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Format, String> {
        let known = Format::ALL.into_iter().find(|format| format.name().eq_ignore_ascii_case(name));
        known.ok_or_else(|| format!("there are {}", Format::ALL.map(Format::name).join(", ")))
    }
}

/// How a trace is to be read, where its content does not tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    /// The format.
    pub format: Option<Format>,
    /// The column that holds the keys, in a comma-separated text with a header. It goes before the format.
    pub column: Option<String>,
}

/// A trace of any known format.
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
pub struct Trace {
    format: Option<Format>,
    records: Box<dyn Iterator<Item = Result<Record, TraceError>> + Send>,
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace").field("format", &self.format).finish_non_exhaustive()
    }
}

impl Trace {
    /// The generated trace `name`, such as `generated/orm-busy`, or `None` where there is none of that name.
    pub fn generated(name: &str) -> Option<Trace> {
        let requests = Generated::named(name)?;
        Some(Trace { format: None, records: Box::new(requests.map(Ok)) })
    }

    /// Opens the trace `path`, whose content tells its format.
    ///
    /// # Errors
    /// As [`Trace::read`].
    pub fn open(path: impl AsRef<Path>) -> Result<Trace, TraceError> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|source| TraceError::Open { path: path.to_owned(), source })?;
        Trace::read(file, path, &Choice::default())
    }

    /// Opens the trace `name`: `-`, which is standard input; a path; a generated trace; or a name in the data folder.
    ///
    /// # Errors
    /// [`TraceError::Absent`] where there is none of them, otherwise as [`Trace::read`].
    pub fn find(name: &str, choice: &Choice) -> Result<Trace, TraceError> {
        if name == "-" {
            return Trace::read(io::stdin(), Path::new("standard input"), choice);
        }
        let path = if Path::new(name).exists() {
            PathBuf::from(name)
        } else if let Some(trace) = Trace::generated(name) {
            return Ok(trace);
        } else {
            let found = DataFolder::find().and_then(|folder| folder.file(name));
            found.map_err(|elsewhere| TraceError::Absent { name: name.to_owned(), elsewhere })?
        };
        let file = File::open(&path).map_err(|source| TraceError::Open { path: path.clone(), source })?;
        Trace::read(file, &path, choice)
    }

    /// Reads a trace from `input`, which is called `path`.
    ///
    /// # Errors
    /// [`TraceError::Open`] where its beginning cannot be read or decompressed, [`TraceError::Unrecognised`] where it is no
    /// text and does not tell its format, [`TraceError::IsText`] where it is said to be no text and is,
    /// [`TraceError::NoColumn`] where it has not the column that was chosen.
    pub fn read(
        input: impl Read + Send + 'static,
        path: &Path,
        choice: &Choice,
    ) -> Result<Trace, TraceError> {
        let failed = |source| TraceError::Open { path: path.to_owned(), source };
        let input = BufReader::with_capacity(1 << 16, input);
        let mut content = compressed::decompress(input).map_err(failed)?;
        let mut start = Vec::new();
        content.by_ref().take(LOOKED_AT as u64).read_to_end(&mut start).map_err(failed)?;
        let whole = start.len() < LOOKED_AT;
        let is_published = path.file_name().is_some_and(|name| PUBLISHED.iter().any(|known| name == *known));
        let chosen = match choice.format {
            None if choice.column.is_some() => Some(Format::Keys),
            None if is_published => Some(Format::Numbers),
            chosen => chosen,
        };
        let format = match chosen {
            Some(format) if format.is_binary() && !start.is_empty() && is_text(&start, whole) => {
                return Err(TraceError::IsText { path: path.to_owned(), format });
            }
            Some(_) if choice.column.is_some() && !is_text(&start, whole) => {
                return Err(TraceError::Unrecognised { path: path.to_owned() });
            }
            Some(format) => format,
            None => Format::recognise(&start, whole)
                .ok_or_else(|| TraceError::Unrecognised { path: path.to_owned() })?,
        };
        let content = BufReader::with_capacity(1 << 16, Cursor::new(start).chain(content));
        let records = match &choice.column {
            Some(column) => Box::new(Keys::column(content, column)?),
            None => format.records(content),
        };
        Ok(Trace { format: Some(format), records })
    }

    /// The format that was recognised, or chosen; a generated trace has none.
    pub fn format(&self) -> Option<Format> {
        self.format
    }
}

impl Format {
    fn records(
        self,
        content: impl BufRead + Send + 'static,
    ) -> Box<dyn Iterator<Item = Result<Record, TraceError>> + Send> {
        match self {
            Format::Keys => Box::new(Keys::lines(content)),
            Format::Numbers => Box::new(Numbers::new(content)),
            Format::OracleGeneral => Box::new(OracleGeneral::new(content)),
            Format::FbCdn => Box::new(FbCdn::new(content)),
            Format::CachelibKv => Box::new(CachelibKv::new(content)),
            Format::Twitter => Box::new(TwitterTrace::new(content)),
        }
    }
}

impl Iterator for Trace {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.records.next()
    }
}
