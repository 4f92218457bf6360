//! The traces of Twitter's memcached clusters (Yang, Yue and Rashmi, "A large scale analysis of hundreds of
//! in-memory cache clusters at Twitter", OSDI 2020), as published in `twitter/cache-trace`.
//!
//! There is no header. The columns are: time in seconds from the beginning, key (its parts between colons made
//! anonymous, of the true length), bytes of the key, bytes of the value, number of the client, operation in
//! memcached's words, time to live in seconds. The key is what stands between the first column and the last five,
//! commas and all.

use std::io::BufRead;

use super::lines::{AroundKey, Lines, parse};
use super::{Record, TraceError};
use crate::key::Key;
use crate::operation::CacheOperation;

/// Reads a trace of one of Twitter's clusters.
pub(super) fn reader(content: impl BufRead) -> impl FnMut() -> Result<Option<Record>, TraceError> {
    let mut lines = Lines::new(content);
    move || lines.next()?.map(|(number, line)| record(number, line)).transpose()
}

/// Reads one row.
pub(super) fn record(line: u64, row: &[u8]) -> Result<Record, TraceError> {
    let Some(AroundKey { first: time, key, after }) = AroundKey::split(row) else {
        return Err(TraceError::column(line, "(all)", row, "seven columns"));
    };
    let [key_size, size, client, name, seconds] = after;
    if key.is_empty() {
        return Err(TraceError::column(line, "key", key, "a key"));
    }
    let operation = CacheOperation::from_name(name)
        .ok_or_else(|| TraceError::column(line, "operation", name, "one of memcached's operations"))?;
    // None of these is kept; that they are numbers tells that the columns stand where they should.
    for (column, told) in [
        ("timestamp", time),
        ("key size", key_size),
        ("value size", size),
        ("client", client),
        ("ttl", seconds),
    ] {
        parse::<u64>(line, column, told, "a number")?;
    }
    Ok(Record { operation, ..Record::get(Key::Text(key.into())) })
}
