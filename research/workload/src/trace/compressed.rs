//! Compressed files, told by their first bytes and read whole.
//!
//! All three formats allow several parts one behind the other in one file, as `cat` and parallel compressors make them.
//! A reader that stops at the end of the first would take a part of the trace for all of it: each part is read, and a
//! file that ends within one is an error.

use std::io::{self, BufRead, Read};

use flate2::bufread::MultiGzDecoder;
use liblzma::bufread::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream};

/// A well-made xz file asks for at most 65 MiB to decompress (`xz -9`); a hostile one could ask for 4 GiB.
const XZ_MEMORY: u64 = 256 << 20;

const GZIP: &[u8] = b"\x1f\x8b";
const XZ: &[u8] = b"\xfd7zXZ\0";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
/// A frame to be skipped, with which parallel compressors of Zstandard begin: behind a byte of 0x50 to 0x5f.
const SKIPPED: &[u8] = b"\x2a\x4d\x18";

/// What `input` holds: decompressed if it begins as gzip, xz or Zstandard does, and as it is otherwise.
///
/// # Errors
/// Where its beginning cannot be read, or there is no memory for a decoder.
pub(super) fn decompress<'i>(mut input: impl BufRead + Send + 'i) -> io::Result<Box<dyn Read + Send + 'i>> {
    let start = input.fill_buf()?;
    Ok(if start.starts_with(GZIP) {
        Box::new(MultiGzDecoder::new(input))
    } else if start.starts_with(XZ) {
        let stream = Stream::new_stream_decoder(XZ_MEMORY, CONCATENATED)?;
        Box::new(XzDecoder::new_stream(input, stream))
    } else if start.starts_with(ZSTD)
        || (start.first().is_some_and(|first| first >> 4 == 5) && start[1..].starts_with(SKIPPED))
    {
        Box::new(zstd::Decoder::with_buffer(input)?)
    } else {
        Box::new(input)
    })
}
