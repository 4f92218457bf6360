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

/// Reads Meta's CDN trace, from the header on.
pub(super) fn reader(content: impl BufRead) -> impl FnMut() -> Result<Option<Record>, TraceError> {
    let (mut lines, mut header_seen) = (Lines::new(content), false);
    move || {
        if !header_seen {
            let header = lines.next()?;
            header_seen = header.is_some_and(|(_, line)| is_header(line));
            if !header_seen {
                return header.map_or(Ok(None), |_| Err(TraceError::Header { wanted: HEADER }));
            }
        }
        Ok(lines.next()?.map(|(number, line)| record(number, line)).transpose()?)
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
