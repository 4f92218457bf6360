//! Recorded accesses, in a file.
//!
//! ```text
//!   file:    "LKSIMTR" 1, then records
//!   record:  a variable-length number: zigzag(address - last address of this kind) * 4 + kind
//!            kind 0 is a load, 1 a store, 2 an instruction fetch
//! ```
//!
//! A number is written seven bits at a time, the lowest first, the eighth bit saying that more follow
//! (LEB128, as in DWARF). Differences are taken within a kind, because fetches walk forward while loads jump.
//! Programs repeat themselves, so what is left compresses well; that is left to whoever stores the file.

use std::io::{self, BufRead, Write};

use crate::machine::AccessKind;

const MAGIC: [u8; 8] = *b"LKSIMTR\x01";

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// Reading failed.
    #[error("the trace cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It does not begin as a trace does.
    #[error("this is not a trace of version 1: record it again with this version")]
    Magic,
    /// It ends, or goes wrong, in the middle of a record.
    #[error("record {record} of the trace is damaged: the file was cut off or overwritten")]
    Damaged {
        /// Counted from 0.
        record: u64,
    },
}

/// Writes a trace.
#[derive(Debug)]
pub struct TraceWriter<W> {
    to: W,
    last: [u64; 3],
}

const KINDS: [AccessKind; 3] = [AccessKind::Load, AccessKind::Store, AccessKind::Fetch];

impl<W: Write> TraceWriter<W> {
    /// Begins a trace.
    ///
    /// # Errors
    /// If writing fails.
    pub fn new(mut to: W) -> io::Result<TraceWriter<W>> {
        to.write_all(&MAGIC)?;
        Ok(TraceWriter { to, last: [0; 3] })
    }

    /// Adds an access.
    ///
    /// # Errors
    /// If writing fails.
    pub fn push(&mut self, address: u64, kind: AccessKind) -> io::Result<()> {
        let last = std::mem::replace(&mut self.last[kind as usize], address);
        let difference = address.wrapping_sub(last) as i64;
        let zigzag = (difference << 1 ^ difference >> 63) as u64;
        let mut rest = u128::from(zigzag) << 2 | kind as u128;
        while rest > 0x7f {
            self.to.write_all(&[rest as u8 | 0x80])?;
            rest >>= 7;
        }
        self.to.write_all(&[rest as u8])
    }

    /// Ends the trace, and gives back what it was written to.
    ///
    /// # Errors
    /// If flushing fails.
    pub fn finish(mut self) -> io::Result<W> {
        self.to.flush()?;
        Ok(self.to)
    }
}

/// Reads a trace, access by access.
#[derive(Debug)]
pub struct TraceReader<R> {
    from: R,
    last: [u64; 3],
    records: u64,
}

impl<R: BufRead> TraceReader<R> {
    /// Opens a trace.
    ///
    /// # Errors
    /// If reading fails, or it is none.
    pub fn new(mut from: R) -> Result<TraceReader<R>, TraceError> {
        let mut magic = [0; MAGIC.len()];
        match from.read_exact(&mut magic) {
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error.into()),
            Ok(()) if magic == MAGIC => {}
            _ => return Err(TraceError::Magic),
        }
        Ok(TraceReader { from, last: [0; 3], records: 0 })
    }

    fn byte(&mut self) -> io::Result<Option<u8>> {
        let byte = self.from.fill_buf()?.first().copied();
        self.from.consume(usize::from(byte.is_some()));
        Ok(byte)
    }

    fn record(&mut self) -> Result<Option<(u64, AccessKind)>, TraceError> {
        let damaged = TraceError::Damaged { record: self.records };
        let Some(mut byte) = self.byte()? else { return Ok(None) };
        let (mut word, mut shift) = (u128::from(byte & 0x7f), 7);
        while byte & 0x80 != 0 {
            match self.byte()? {
                Some(next) if shift < 70 => byte = next,
                _ => return Err(damaged),
            }
            word |= u128::from(byte & 0x7f) << shift;
            shift += 7;
        }
        let (Some(&kind), Ok(zigzag)) = (KINDS.get(word as usize & 3), u64::try_from(word >> 2)) else {
            return Err(damaged);
        };
        let difference = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
        let last = &mut self.last[kind as usize];
        *last = last.wrapping_add_signed(difference);
        self.records += 1;
        Ok(Some((*last, kind)))
    }
}

impl<R: BufRead> Iterator for TraceReader<R> {
    type Item = Result<(u64, AccessKind), TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.record().transpose()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(accesses in prop::collection::vec((any::<u64>(), 0..3_usize), 0..200)) {
            let mut writer = TraceWriter::new(Vec::new()).expect("memory");
            for &(address, kind) in &accesses {
                writer.push(address, KINDS[kind]).expect("memory");
            }
            let bytes = writer.finish().expect("memory");
            let read: Result<Vec<_>, _> = TraceReader::new(&bytes[..]).expect("a trace").collect();
            let expected: Vec<_> = accesses.iter().map(|&(address, kind)| (address, KINDS[kind])).collect();
            prop_assert_eq!(read.expect("undamaged"), expected);
        }

        #[test]
        fn any_bytes_are_a_trace_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let file = [&MAGIC[..], &bytes].concat();
            // At most one record a byte, and an error ends it.
            let records = TraceReader::new(&file[..]).expect("a trace").take_while(Result::is_ok).count();
            prop_assert!(records <= bytes.len());
        }
    }

    #[test]
    fn a_cut_is_noticed() {
        let mut writer = TraceWriter::new(Vec::new()).expect("memory");
        writer.push(1 << 40, AccessKind::Store).expect("memory");
        let bytes = writer.finish().expect("memory");
        let mut reader = TraceReader::new(&bytes[..bytes.len() - 1]).expect("a trace");
        assert!(matches!(reader.next(), Some(Err(TraceError::Damaged { record: 0 }))));
        assert!(matches!(TraceReader::new(&b"ELF"[..]).map(|_| ()), Err(TraceError::Magic)));
    }
}
