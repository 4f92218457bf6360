//! The trace of Meta's content delivery network that CacheLib ships (`fb_cdn_short_bigcache_traces.csv`).
//!
//! ```text
//! timestamp,cacheKey,OpType,objectSize,responseSize,responseHeaderSize,rangeStart,rangeEnd,TTL,SamplingRate
//! ```
//!
//! The key is the object's path, much like a URL. Requests for a range of bytes name the whole object: two ranges of
//! one object are two requests for one key. `OpType` is a number, of which the published sample has only 1, a get;
//! another one is an error and not a guess.

use std::io::BufRead;

use super::lines::{AroundKey, Lines};
use super::{Record, TraceError};
use crate::key::Key;

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
        lines.next()?.map(|(number, line)| record(number, line)).transpose()
    }
}

fn record(line: u64, row: &[u8]) -> Result<Record, TraceError> {
    let Some(AroundKey { key, after, .. }) = AroundKey::<8>::split(row) else {
        return Err(TraceError::column(line, "(all)", row, "ten columns"));
    };
    if key.is_empty() {
        return Err(TraceError::column(line, "cacheKey", key, "a key"));
    }
    if after[0] != b"1" {
        return Err(TraceError::column(line, "OpType", after[0], "1, a get, the only operation published"));
    }
    Ok(Record::get(Key::Text(key.into())))
}
