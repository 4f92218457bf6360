//! Replies: the fixed lines as constants, the others written to the end of a byte vector.
//!
//! The hot one is the header of a value. It reserves room once for the longest header there can be, so that the pieces
//! are appended without growing the vector in between; numbers of more than two digits are formatted by `itoa`.

use crate::key::MAX_KEY_LENGTH;
use crate::number::{append, append_line};
use std::fmt::Display;
use std::io::Write;

/// The item was stored.
pub const STORED: &[u8] = b"STORED\r\n";
/// The condition of `add`, `replace`, `append` or `prepend` was not met.
pub const NOT_STORED: &[u8] = b"NOT_STORED\r\n";
/// `cas`: the item has another CAS id.
pub const EXISTS: &[u8] = b"EXISTS\r\n";
/// There is no such item.
pub const NOT_FOUND: &[u8] = b"NOT_FOUND\r\n";
/// `delete`: the item is gone.
pub const DELETED: &[u8] = b"DELETED\r\n";
/// `touch`: the item has its new time.
pub const TOUCHED: &[u8] = b"TOUCHED\r\n";
/// `flush_all`, `verbosity`, `cache_memlimit`: done.
pub const OK: &[u8] = b"OK\r\n";
/// The end of values or statistics.
pub const END: &[u8] = b"END\r\n";
/// `stats reset`: done.
pub const RESET: &[u8] = b"RESET\r\n";
/// What follows a data block, here and in requests.
pub const CRLF: &[u8] = b"\r\n";

/// The line before a value's data: `VALUE <key> <flags> <length>`, and the CAS id for `gets` and `gats`. The data and
/// [`CRLF`] are to follow.
#[inline(always)]
pub fn value_header(out: &mut Vec<u8>, key: &[u8], flags: u32, length: usize, cas: Option<u64>) {
    const LONGEST: usize = b"VALUE ".len() + MAX_KEY_LENGTH + 3 * (1 + 20) + CRLF.len();
    out.reserve(LONGEST);
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
    if flags == 0 {
        // As most have it.
        out.extend_from_slice(b" 0 ");
    } else {
        out.push(b' ');
        append(out, flags.into());
        out.push(b' ');
    }
    match cas {
        None => append_line(out, length as u64),
        Some(cas) => {
            append(out, length as u64);
            out.push(b' ');
            append_line(out, cas);
        }
    }
}

/// The reply to `incr` and `decr`: the number on a line.
pub fn number(out: &mut Vec<u8>, number: u64) {
    append_line(out, number);
}

/// One statistic: `STAT <name> <value>`. After the last of them comes [`END`].
///
/// ```
/// # use lookaside_protocol::reply;
/// let mut out = Vec::new();
/// reply::stat(&mut out, format_args!("items:{}:number", 3), 71);
/// assert_eq!(out, b"STAT items:3:number 71\r\n");
/// ```
pub fn stat(out: &mut Vec<u8>, name: impl Display, value: impl Display) {
    write!(out, "STAT {name} {value}\r\n").expect("writing to a vector does not fail");
}

/// The reply to `version`. Some clients read a number out of it: let `version` start with one, as in `1.6.45-x`.
pub fn version(out: &mut Vec<u8>, version: &str) {
    out.extend_from_slice(b"VERSION ");
    out.extend_from_slice(version.as_bytes());
    out.extend_from_slice(CRLF);
}
