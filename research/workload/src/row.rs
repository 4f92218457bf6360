//! What is wrong with one row of a text file: which line, which column, what stands there and what should.

use std::str::FromStr;

/// A longer field is cut when an error shows it.
const SHOWN: usize = 60;

/// One field of one row that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: found {found:?}, wanted {wanted}")]
pub struct RowError {
    /// The line, counted from 1.
    pub line: u64,
    /// The column's name.
    pub column: &'static str,
    /// What stands there, cut to 60 bytes, with what is not text replaced.
    pub found: String,
    /// What should stand there.
    pub wanted: &'static str,
}

impl RowError {
    pub(crate) fn new(line: u64, column: &'static str, found: &[u8], wanted: &'static str) -> RowError {
        let shown = &found[..found.len().min(SHOWN)];
        RowError { line, column, found: String::from_utf8_lossy(shown).into_owned(), wanted }
    }
}

/// Reads the text `field` as a `T`. Surrounding blanks are not forgiven: no format here has them.
pub(crate) fn parse<T: FromStr>(
    line: u64,
    column: &'static str,
    field: &[u8],
    wanted: &'static str,
) -> Result<T, RowError> {
    std::str::from_utf8(field)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| RowError::new(line, column, field, wanted))
}
