//! Traces of numbers: each request is its key, a big-endian signed 32-bit number, and nothing else.
//!
//! This is how the Caffeine simulator ships the traces of cache2k (`orm-busy`, `web07`), compressed by xz. Every
//! request is a read; sizes and times are not told. A composite workload gives each key a size from a published
//! distribution, and should say that it is one.

use std::io::{self, BufReader, Read};

use liblzma::read::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream};

use super::{Record, TraceError};
use crate::key::Key;
use crate::operation::CacheOperation;

/// A well-made xz file asks for at most 65 MiB to decompress (`xz -9`); a hostile one could ask for 4 GiB.
const DECODER_MEMORY: u64 = 256 << 20;

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
pub struct Numbers<R> {
    reader: BufReader<R>,
    records: u64,
    ended: bool,
}

impl<R: Read> Numbers<R> {
    /// Reads uncompressed keys. `reader` is buffered here.
    pub fn new(reader: R) -> Numbers<R> {
        Numbers { reader: BufReader::with_capacity(1 << 16, reader), records: 0, ended: false }
    }
}

impl<R: Read> Numbers<XzDecoder<R>> {
    /// Reads keys compressed by xz, in one stream or in several.
    ///
    /// # Errors
    ///
    /// [`TraceError::Read`] where no decoder can be made, for want of memory.
    pub fn xz(reader: R) -> Result<Numbers<XzDecoder<R>>, TraceError> {
        let stream = Stream::new_stream_decoder(DECODER_MEMORY, CONCATENATED)
            .map_err(|error| TraceError::Read { source: error.into() })?;
        Ok(Numbers::new(XzDecoder::new_stream(reader, stream)))
    }
}

impl<R: Read> Iterator for Numbers<R> {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let mut bytes = [0; 4];
        let mut filled = 0;
        while filled < bytes.len() {
            match self.reader.read(&mut bytes[filled..]) {
                Ok(0) => {
                    self.ended = true;
                    let cut = TraceError::Truncated { records: self.records, bytes: filled };
                    return (filled > 0).then_some(Err(cut));
                }
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => {
                    self.ended = true;
                    return Some(Err(TraceError::Read { source }));
                }
            }
        }
        self.records += 1;
        Some(Ok(Record {
            key: Key::Number(i32::from_be_bytes(bytes)),
            operation: CacheOperation::Get,
            count: 1,
            key_size: None,
            value_size: None,
            ttl: None,
            timestamp: None,
        }))
    }
}
