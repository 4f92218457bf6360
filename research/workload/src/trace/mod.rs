//! Recorded requests, read one at a time.
//!
//! A trace is longer than memory may be, so each reader holds one row. Six formats are known, each in a file of its
//! own:
//!
//! | format | file | what a row tells |
//! |---|---|---|
//! | one key a line, or a named column | `text` | the key |
//! | cache2k's, as the Caffeine simulator ships it | `numbers` | the key, a number |
//! | libCacheSim's `oracleGeneral` | `oracle` | the key, a number |
//! | Meta's CDN | `fb_cdn` | the key, the object's URL |
//! | Meta's key-value caches | `cachelib_kv` | a name for the key, operation and how often |
//! | Twitter's memcached clusters | `twitter` | key, operation |
//!
//! [`Trace`] opens a file of any of them, compressed by gzip, xz or Zstandard or not. It looks at the content and not
//! at the name, because names are changed and say little: `.trace` is also what instructions are recorded in. Whatever
//! is a text and none of the recorded ones is a list of keys. Of the formats that are no text, one tells itself apart
//! (`oracleGeneral`); 32-bit keys could be anything, and have to be named ([`Choice::format`]).
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

pub use crate::record::Record;
pub use error::TraceError;

/// The records of a trace, or what is wrong with a row.
type Records<'c> = Box<dyn Iterator<Item = Result<Record, TraceError>> + Send + 'c>;

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
        } else if twitter::record(1, line).is_ok() {
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
    records: Records<'static>,
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
    /// [`TraceError::Open`] where its beginning cannot be read or decompressed, [`TraceError::Unrecognised`] where it
    /// is no text and does not tell its format, [`TraceError::IsText`] where it is said to be no text and is,
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
            Some(column) => records(text::reader(content, Some(column))?),
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
    /// Reads a trace of this format.
    ///
    /// ```
    /// use lookaside_workload::{key::Key, trace::Format};
    ///
    /// let mut trace = Format::Numbers.records(&[0, 0, 1, 2, 255, 255, 255, 255][..]);
    /// assert_eq!(trace.next().unwrap()?.key, Key::Number(258));
    /// assert_eq!(trace.next().unwrap()?.key, Key::Number(-1));
    /// assert!(trace.next().is_none());
    /// # Ok::<(), lookaside_workload::trace::TraceError>(())
    /// ```
    pub fn records<'c>(
        self,
        content: impl BufRead + Send + 'c,
    ) -> Box<dyn Iterator<Item = Result<Record, TraceError>> + Send + 'c> {
        match self {
            Format::Keys => match text::reader(content, None) {
                Ok(reader) => records(reader),
                Err(error) => Box::new(std::iter::once(Err(error))),
            },
            Format::Numbers => records(numbers::reader(content)),
            Format::OracleGeneral => records(oracle::reader(content)),
            Format::FbCdn => records(fb_cdn::reader(content)),
            Format::CachelibKv => records(cachelib_kv::reader(content)),
            Format::Twitter => records(twitter::reader(content)),
        }
    }
}

/// What a reader gives, to its end or to an error that nothing comes after.
fn records<'c>(mut read: impl FnMut() -> Result<Option<Record>, TraceError> + Send + 'c) -> Records<'c> {
    let mut ended = false;
    Box::new(std::iter::from_fn(move || {
        if ended {
            return None;
        }
        let next = read().transpose();
        ended = next.as_ref().is_none_or(|next| next.as_ref().is_err_and(TraceError::is_last));
        next
    }))
}

impl Iterator for Trace {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.records.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::CacheOperation;

    #[test]
    fn a_row_of_each_format_tells_what_it_has() {
        let one = |format: Format, text: &str| format.records(text.as_bytes()).next().unwrap().unwrap();
        let header = "timestamp,cacheKey,OpType,objectSize,responseSize,responseHeaderSize,rangeStart,rangeEnd,TTL,\
                      SamplingRate";
        let row = "1585119590,cdn:v/t1.0-1/o.png.webp,1,616,1161,542,-1,-1,1209600,0.00100000";
        let cdn = one(Format::FbCdn, &format!("{header}\n{row}\n"));
        assert_eq!(cdn.key.to_string(), "cdn:v/t1.0-1/o.png.webp");
        let header = "op_time,key,key_size,op,op_count,size,cache_hits,ttl,usecase,sub_usecase";
        let row = "604038471,749ab7237b8d0372,47,GET_LEASE,7,10,7,0,176962275,176962275";
        let kv = one(Format::CachelibKv, &format!("{header}\n{row}\n"));
        assert_eq!((kv.operation, kv.count), (CacheOperation::Get, 7));
        let twitter = one(Format::Twitter, "0,q:q:1:8WTPbnu1ne8,17,552,20,add,1209600\n");
        assert_eq!(
            (twitter.key.to_string().as_str(), twitter.operation),
            ("q:q:1:8WTPbnu1ne8", CacheOperation::Set)
        );
        let keys = Format::Keys.records(&b"user:1\nuser:2\nuser:1\n"[..]);
        let keys: Vec<_> = keys.map(|record| record.unwrap().key.to_string()).collect();
        assert_eq!(keys, ["user:1", "user:2", "user:1"]);
        let choice = Choice { column: Some("id".into()), ..Choice::default() };
        let mut column = Trace::read(&b"time,id\n1,x\n"[..], Path::new("keys.csv"), &choice).unwrap();
        assert_eq!(column.next().unwrap().unwrap().key.to_string(), "x");
    }
}
