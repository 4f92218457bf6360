//! The traces of Meta's key-value caches that CacheLib publishes (`cachelib_kv_traces_1.csv` is a sample).
//!
//! ```text
//! op_time,key,key_size,op,op_count,size,cache_hits,ttl,usecase,sub_usecase
//! ```
//!
//! The key is a number in hexadecimal that stands for the real one. A row may stand for several requests: `op_count`.
//! The published years differ in the order of their columns and leave some out, so columns are found by their names;
//! `key`, `key_size`, `op` and `size` tell the format.

use std::io::BufRead;

use super::lines::{Lines, parse};
use super::{Record, TraceError};
use crate::key::Key;
use crate::operation::CacheOperation;

const WANTED: &str = "key, key_size, op and size among at most 16 columns";

/// More columns than any published year has.
const MOST_COLUMNS: usize = 16;

/// Whether `line` is the first line of this format.
pub(super) fn is_header(line: &[u8]) -> bool {
    Columns::find(line).is_some()
}

/// Where the columns stand.
#[derive(Debug, Clone, Copy)]
struct Columns {
    number: usize,
    key: usize,
    operation: usize,
    count: Option<usize>,
}

impl Columns {
    fn find(header: &[u8]) -> Option<Columns> {
        let names = || header.split(|byte| *byte == b',');
        let at = |name: &str| names().position(|column| column == name.as_bytes());
        let number = names().count();
        let is_one = number <= MOST_COLUMNS && at("key_size").is_some() && at("size").is_some();
        is_one.then_some(Columns { number, key: at("key")?, operation: at("op")?, count: at("op_count") })
    }

    fn record(&self, line: u64, row: &[u8]) -> Result<Record, TraceError> {
        let mut fields: [&[u8]; MOST_COLUMNS] = [&[]; MOST_COLUMNS];
        let mut number = 0;
        for field in row.split(|byte| *byte == b',') {
            if let Some(place) = fields.get_mut(number) {
                *place = field;
            }
            number += 1;
        }
        if number != self.number {
            return Err(TraceError::column(line, "(all)", row, "as many columns as line 1 has"));
        }

        let (key, name) = (fields[self.key], fields[self.operation]);
        if key.is_empty() {
            return Err(TraceError::column(line, "key", key, "a key"));
        }
        let operation = CacheOperation::from_name(name).ok_or_else(|| {
            TraceError::column(line, "op", name, "an operation such as GET, SET_LEASE or DELETE")
        })?;
        let count: u32 = match self.count {
            Some(column) => parse(line, "op_count", fields[column], "a number of requests")?,
            None => 1,
        };
        if count == 0 {
            return Err(TraceError::column(line, "op_count", b"0", "at least one request"));
        }
        Ok(Record { key: Key::Text(key.into()), operation, count })
    }
}

/// Reads a trace of Meta's key-value caches, from the header on.
pub(super) fn reader(content: impl BufRead) -> impl FnMut() -> Result<Option<Record>, TraceError> {
    let (mut lines, mut columns) = (Lines::new(content), None);
    move || {
        if columns.is_none() {
            let Some((_, header)) = lines.next()? else { return Ok(None) };
            columns = Columns::find(header);
        }
        let columns = columns.ok_or(TraceError::Header { wanted: WANTED })?;
        lines.next()?.map(|(number, line)| columns.record(number, line)).transpose()
    }
}
