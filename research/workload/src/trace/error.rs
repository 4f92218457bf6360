//! Why a trace, or one of its rows, cannot be read.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::Format;
use crate::data::DataError;
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
    /// Nothing of this name is here.
    Absent {
        /// As it was called.
        name: String,
        /// Why it is not in the data folder, either.
        elsewhere: DataError,
    },
    /// The file is no text, and its content does not tell which format it has.
    Unrecognised {
        /// The file.
        path: PathBuf,
    },
    /// The file is a text, and was said to be none.
    IsText {
        /// The file.
        path: PathBuf,
        /// What it was said to be.
        format: Format,
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
    /// The text has no column of this name.
    NoColumn {
        /// The column asked for.
        column: String,
        /// The columns there are.
        known: Vec<String>,
    },
    /// A row cannot be read. The next row comes after it.
    Row(RowError),
    /// A line holds no key. The next line comes after it.
    Line {
        /// The line, counted from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// A line is longer than any row can be. The next line comes after it.
    LineTooLong {
        /// The line, counted from 1.
        line: u64,
        /// The longest line that is read, in bytes.
        longest: usize,
    },
    /// A request says that the next one for its key came before. Nothing comes after it.
    Impossible {
        /// The request, counted from 1.
        record: u64,
    },
    /// A trace of records of one length ends inside a record. Nothing comes after it.
    Truncated {
        /// How many whole records were read before.
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
            TraceError::Absent { name, elsewhere } => {
                write!(f, "there is no trace '{name}' here, and {elsewhere}")
            }
            TraceError::Unrecognised { path } => {
                write!(
                    f,
                    "{} is no text, and its content does not tell its format: name it (--format)",
                    path.display()
                )?;
                let mut separator = ": ";
                for format in Format::ALL.into_iter().filter(|format| format.is_binary()) {
                    write!(f, "{separator}{} ({format})", format.name())?;
                    separator = ", ";
                }
                Ok(())
            }
            TraceError::IsText { path, format } => {
                write!(
                    f,
                    "{} is a text, and no trace of {format} (--format {})",
                    path.display(),
                    format.name()
                )
            }
            TraceError::Read { source } => write!(f, "the trace cannot be read any further: {source}"),
            TraceError::Header { wanted } => {
                write!(f, "line 1 does not name the trace's columns: wanted {wanted}")
            }
            TraceError::NoColumn { column, known } => {
                write!(f, "there is no column '{column}': it has {}", known.join(", "))
            }
            TraceError::Row(error) => error.fmt(f),
            TraceError::Line { line, reason } => write!(f, "line {line}: {reason}"),
            TraceError::Impossible { record } => write!(
                f,
                "request {record} says that the next one for its key came before it: is this libCacheSim's \
                 oracleGeneral?"
            ),
            TraceError::LineTooLong { line, longest } => {
                write!(f, "line {line} is longer than {longest} bytes: is this a text file?")
            }
            TraceError::Truncated { records, bytes } => {
                write!(
                    f,
                    "the trace ends with {bytes} bytes of a request after {records} requests: is it complete?"
                )
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
