//! The trace of Meta's content delivery network that CacheLib ships (`fb_cdn_short_bigcache_traces.csv`).
//!
//! ```text
//! timestamp,cacheKey,OpType,objectSize,responseSize,responseHeaderSize,rangeStart,rangeEnd,TTL,SamplingRate
//! ```
//!
//! The key is the object's path, much like a URL. The value's size is `objectSize`: requests for a range of bytes
//! name the whole object, and two ranges of one object are two requests for one key. A size or a time to live of -1
//! was not known; 14 sizes and 11 times of the published sample are. `OpType` is a number, of which the published
//! sample has only 1, a get; another one is an error and not a guess.

use std::io::BufRead;

use super::lines::{AroundKey, Lines};
use super::{Record, TraceError, ttl, value_size};
use crate::key::Key;
use crate::operation::CacheOperation;
use crate::row::{RowError, parse};

const HEADER: &str = "timestamp,cacheKey,OpType,objectSize,responseSize,responseHeaderSize,\
    rangeStart,rangeEnd,TTL,SamplingRate";

/// Whether `line` is the first line of this format.
pub(super) fn is_header(line: &[u8]) -> bool {
    line == HEADER.as_bytes()
}

/// Reads Meta's CDN trace.
///
/// ```
/// use lookaside_workload::trace::FbCdn;
///
/// let text = "timestamp,cacheKey,OpType,objectSize,responseSize,responseHeaderSize,\
///             rangeStart,rangeEnd,TTL,SamplingRate\n\
///             1585119590,cdn:v/t1.0-1/o.png.webp,1,616,1161,542,-1,-1,1209600,0.00100000\n";
/// let record = FbCdn::new(text.as_bytes()).next().unwrap()?;
/// assert_eq!(record.key.to_string(), "cdn:v/t1.0-1/o.png.webp");
/// assert_eq!(record.value_size, Some(616));
/// # Ok::<(), lookaside_workload::trace::TraceError>(())
/// ```
#[derive(Debug)]
pub struct FbCdn<R> {
    lines: Lines<R>,
    header_seen: bool,
}

impl<R: BufRead> FbCdn<R> {
    /// Reads from the header on.
    pub fn new(reader: R) -> FbCdn<R> {
        FbCdn { lines: Lines::new(reader), header_seen: false }
    }
}

impl<R: BufRead> Iterator for FbCdn<R> {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.header_seen {
            match self.lines.next()? {
                Ok((_, line)) if is_header(line) => self.header_seen = true,
                Ok(_) => {
                    self.lines.end();
                    return Some(Err(TraceError::Header { wanted: HEADER }));
                }
                Err(error) => {
                    self.lines.end();
                    return Some(Err(error));
                }
            }
        }
        let line = self.lines.next()?;
        Some(line.and_then(|(number, line)| Ok(record(number, line)?)))
    }
}

fn record(line: u64, row: &[u8]) -> Result<Record, RowError> {
    let Some(AroundKey { first: time, key, after }) = AroundKey::split(row) else {
        return Err(RowError::new(line, "(all)", row, "ten columns"));
    };
    let [operation, object_size, _, _, _, _, seconds, _] = after;
    if key.is_empty() {
        return Err(RowError::new(line, "cacheKey", key, "a key"));
    }
    if operation != b"1" {
        return Err(RowError::new(line, "OpType", operation, "1, a get, the only operation published"));
    }
    let operation = CacheOperation::Get;
    let value_size = match object_size {
        b"-1" => None,
        told => value_size(operation, parse(line, "objectSize", told, "bytes, or -1")?),
    };
    Ok(Record {
        key: Key::Text(key.into()),
        operation,
        count: 1,
        key_size: u32::try_from(key.len()).ok(),
        value_size,
        ttl: ttl(parse(line, "TTL", seconds, "seconds")?),
        timestamp: Some(parse(line, "timestamp", time, "seconds since 1970")?),
    })
}
