//! Traces of numbers: each request is its key, a big-endian signed 32-bit number, and nothing else.
//!
//! This is how the Caffeine simulator ships the traces of cache2k (`orm-busy`, `web07`), compressed by xz. Every
//! request is a read; sizes and times are not told. A composite workload gives each key a size from a published
//! distribution, and should say that it is one.

use std::io::{self, Read};

use super::{Record, TraceError};
use crate::key::Key;

/// Reads them, one after the other.
pub(super) fn reader(mut content: impl Read) -> impl FnMut() -> Result<Option<Record>, TraceError> {
    let mut records = 0;
    move || {
        let mut bytes = [0; 4];
        let there = fill(&mut content, &mut bytes, records)?;
        records += 1;
        Ok(there.then(|| Record::get(Key::Number(i32::from_be_bytes(bytes)))))
    }
}

/// Reads a record of a fixed length, behind `records` others; false at the end of the trace.
pub(super) fn fill(reader: &mut impl Read, record: &mut [u8], records: u64) -> Result<bool, TraceError> {
    let mut filled = 0;
    while filled < record.len() {
        match reader.read(&mut record[filled..]) {
            Ok(0) if filled == 0 => return Ok(false),
            Ok(0) => return Err(TraceError::Truncated { records, bytes: filled }),
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => return Err(TraceError::Read { source }),
        }
    }
    Ok(true)
}
