//! Traces of numbers: each request is its key, a big-endian signed 32-bit number, and nothing else.
//!
//! This is how the Caffeine simulator ships the traces of cache2k (`orm-busy`, `web07`), compressed by xz. Every
//! request is a read; sizes and times are not told. A composite workload gives each key a size from a published
//! distribution, and should say that it is one.

use std::io::{self, BufReader, Read};

use super::{Record, TraceError};
use crate::key::Key;

/// Reads big-endian 32-bit keys.
///
/// ```
/// use lookaside_workload::{key::Key, trace::Numbers};
///
/// let mut trace = Numbers::new(&[0, 0, 1, 2, 255, 255, 255, 255][..]);
/// assert_eq!(trace.next().unwrap()?.key, Key::Number(258));
/// assert_eq!(trace.next().unwrap()?.key, Key::Number(-1));
/// assert!(trace.next().is_none());
/// # Ok::<(), lookaside_workload::trace::TraceError>(())
/// ```
#[derive(Debug)]
pub struct Numbers<R> {
    reader: BufReader<R>,
    records: u64,
    ended: bool,
}

impl<R: Read> Numbers<R> {
    /// Reads from the first key on. `reader` is buffered here.
    pub fn new(reader: R) -> Numbers<R> {
        Numbers { reader: BufReader::with_capacity(1 << 16, reader), records: 0, ended: false }
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

impl<R: Read> Iterator for Numbers<R> {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let mut bytes = [0; 4];
        match fill(&mut self.reader, &mut bytes, self.records) {
            Ok(true) => {
                self.records += 1;
                Some(Ok(Record::get(Key::Number(i32::from_be_bytes(bytes)))))
            }
            Ok(false) => {
                self.ended = true;
                None
            }
            Err(error) => {
                self.ended = true;
                Some(Err(error))
            }
        }
    }
}
