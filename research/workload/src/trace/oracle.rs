//! `oracleGeneral`, the format in which libCacheSim publishes its traces.
//!
//! ```text
//!   | time, u32 | object, u64 | bytes of the object, u32 | number of the next request for it, i64 |     little-endian
//! ```
//!
//! Every request is a read. There is no mark, but the last field tells much: it is -1 (or the largest number) where the
//! object does not come again, and otherwise above the request's own number. Few other files keep to that.

use std::io::Read;

use super::numbers::fill;
use super::{Record, TraceError};
use crate::key::Key;

/// Bytes of a request.
const RECORD: usize = 24;
/// Requests that a file has to begin with before it is taken for one.
const TELLING: usize = 2;
/// No trace has so many requests.
const MOST_REQUESTS: i64 = 1 << 40;

struct Fields {
    time: u32,
    object: u64,
    next: i64,
}

impl Fields {
    fn of(bytes: &[u8; RECORD]) -> Fields {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        Fields { time: word(0), object: long(4), next: long(16).cast_signed() }
    }

    /// Whether the next request for the object can come where this, the request number `number`, says.
    fn is_possible(&self, number: u64) -> bool {
        matches!(self.next, -1 | i64::MAX)
            || (self.next < MOST_REQUESTS && u64::try_from(self.next).is_ok_and(|next| next > number))
    }
}

/// Whether a file that begins with `start`, and ends there if it is `whole`, is in this format.
pub(super) fn is(start: &[u8], whole: bool) -> bool {
    let (records, rest) = start.as_chunks::<RECORD>();
    if records.len() < TELLING || (whole && !rest.is_empty()) {
        return false;
    }
    let mut before = 0;
    (0..).zip(records).all(|(number, record)| {
        let fields = Fields::of(record);
        let in_order = fields.time >= before;
        before = fields.time;
        in_order && fields.is_possible(number)
    })
}

/// Reads libCacheSim's `oracleGeneral`.
pub(super) fn reader(mut content: impl Read) -> impl FnMut() -> Result<Option<Record>, TraceError> {
    let mut records = 0;
    move || {
        let mut bytes = [0; RECORD];
        if !fill(&mut content, &mut bytes, records)? {
            return Ok(None);
        }
        let fields = Fields::of(&bytes);
        records += 1;
        if !fields.is_possible(records - 1) {
            // What is wrong with one is wrong with all: they are of one length.
            return Err(TraceError::Impossible { record: records });
        }
        Ok(Some(Record::get(Key::Text(fields.object.to_string().into_bytes().into()))))
    }
}
