//! Why a trace, or one of its rows, cannot be read.

use std::io;
use std::path::PathBuf;

use super::Format;
use crate::data::DataError;

/// Why a trace, or one of its rows, cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The file cannot be opened.
    #[error("cannot open the trace {}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Nothing of this name is here.
    #[error("there is no trace '{name}' here, and {elsewhere}")]
    Absent {
        /// As it was called.
        name: String,
        /// Why it is not in the data folder, either.
        elsewhere: DataError,
    },
    /// The file is no text, and its content does not tell which format it has.
    #[error(
        "{} is no text, and its content does not tell its format: name it (--format): {}",
        path.display(),
        binary_formats()
    )]
    Unrecognised {
        /// The file.
        path: PathBuf,
    },
    /// The file is a text, and was said to be none.
    #[error(
        "{} is a text, and no trace of {format} (--format {})",
        path.display(),
        format.name()
    )]
    IsText {
        /// The file.
        path: PathBuf,
        /// What it was said to be.
        format: Format,
    },
    /// Reading or decompressing failed. Nothing comes after it.
    #[error("the trace cannot be read any further: {source}")]
    Read {
        /// The reason.
        source: io::Error,
    },
    /// The first line does not name the columns that the format has. Nothing comes after it.
    #[error("line 1 does not name the trace's columns: wanted {wanted}")]
    Header {
        /// What is missing.
        wanted: &'static str,
    },
    /// The text has no column of this name.
    #[error("there is no column '{column}': it has {}", known.join(", "))]
    NoColumn {
        /// The column asked for.
        column: String,
        /// The columns there are.
        known: Vec<String>,
    },
    /// A line cannot be read. The next line comes after it.
    #[error("line {line}: {reason}")]
    Line {
        /// The line, counted from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// A line is longer than any row can be. The next line comes after it.
    #[error("line {line} is longer than {longest} bytes: is this a text file?")]
    LineTooLong {
        /// The line, counted from 1.
        line: u64,
        /// The longest line that is read, in bytes.
        longest: usize,
    },
    /// A request says that the next one for its key came before. Nothing comes after it.
    #[error(
        "request {record} says that the next one for its key came before it: is this libCacheSim's oracleGeneral?"
    )]
    Impossible {
        /// The request, counted from 1.
        record: u64,
    },
    /// A trace of records of one length ends inside a record. Nothing comes after it.
    #[error("the trace ends with {bytes} bytes of a request after {records} requests: is it complete?")]
    Truncated {
        /// How many whole records were read before.
        records: u64,
        /// How many bytes are left over.
        bytes: usize,
    },
}

/// A longer field is cut when an error shows it, in bytes.
const SHOWN: usize = 60;

impl TraceError {
    /// A column of a line holds something else than what is wanted there.
    pub(super) fn column(line: u64, column: &str, found: &[u8], wanted: &str) -> TraceError {
        let found = String::from_utf8_lossy(&found[..found.len().min(SHOWN)]);
        TraceError::Line { line, reason: format!("column {column}: found {found:?}, wanted {wanted}") }
    }

    /// Whether nothing comes after it.
    pub(super) fn is_last(&self) -> bool {
        !matches!(self, TraceError::Line { .. } | TraceError::LineTooLong { .. })
    }
}

/// The formats that are no text, with their names.
fn binary_formats() -> String {
    let binary = Format::ALL.into_iter().filter(|format| format.is_binary());
    binary.map(|format| format!("{} ({format})", format.name())).collect::<Vec<_>>().join(", ")
}
