//! Why a trace, or one of its rows, cannot be read.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::row::RowError;

/// Why a trace, or one of its rows, cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum TraceError {
    /// The file cannot be opened.
    Open {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file has none of the known formats.
    Unrecognised {
        /// The file.
        path: PathBuf,
    },
    /// Reading or decompressing failed. Nothing comes after it.
    Read {
        /// The reason.
        source: io::Error,
    },
    /// The first line does not name the columns that the format has. Nothing comes after it.
    Header {
        /// What is missing.
        wanted: &'static str,
    },
    /// A row cannot be read. The next row comes after it.
    Row(RowError),
    /// A line is longer than any row can be. The next line comes after it.
    LineTooLong {
        /// The line, counted from 1.
        line: u64,
        /// The longest line that is read, in bytes.
        longest: usize,
    },
    /// A trace of numbers ends inside a number. Nothing comes after it.
    Truncated {
        /// How many whole numbers were read before.
        records: u64,
        /// How many bytes are left over.
        bytes: usize,
    },
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceError::Open { path, source } => {
                write!(f, "cannot open the trace {}: {source}", path.display())
            }
            TraceError::Unrecognised { path } => write!(
                f,
                "{} is no trace of a known format: give big-endian 32-bit keys (.trace.xz or .trace), or the csv \
                 of Meta's CDN, of Meta's key-value caches or of Twitter's clusters",
                path.display()
            ),
            TraceError::Read { source } => write!(f, "the trace cannot be read any further: {source}"),
            TraceError::Header { wanted } => {
                write!(f, "line 1 does not name the trace's columns: wanted {wanted}")
            }
            TraceError::Row(error) => error.fmt(f),
            TraceError::LineTooLong { line, longest } => {
                write!(f, "line {line} is longer than {longest} bytes: is this a text file?")
            }
            TraceError::Truncated { records, bytes } => {
                write!(f, "the trace ends with {bytes} bytes of a key after {records} keys: is it complete?")
            }
        }
    }
}

impl std::error::Error for TraceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            TraceError::Open { source, .. } | TraceError::Read { source } => Some(source),
            _ => None,
        }
    }
}

impl From<RowError> for TraceError {
    fn from(error: RowError) -> TraceError {
        TraceError::Row(error)
    }
}
