//! Texts that are no recorded trace: one key a line, or comma-separated columns of which one is named.
//!
//! Every line is a lookup: such a text tells no operations. Quotation marks are those of comma-separated values, so
//! that a key may hold a comma. What is no text is refused with its line, rather than counted as keys.

use std::io::Read;

use csv::{ByteRecord, ReaderBuilder};

use super::{Record, TraceError};
use crate::key::Key;

/// Where the keys are in a row.
struct Place {
    /// The named column and its place, and how many there are.
    column: Option<(String, usize, usize)>,
}

impl Place {
    /// The key of a row.
    fn key<'r>(&self, row: &'r ByteRecord) -> Result<&'r [u8], String> {
        let columns = row.len();
        let (key, what) = match &self.column {
            None if columns != 1 => {
                return Err(format!(
                    "it has {columns} columns: name the one that holds the keys (--column NAME)"
                ));
            }
            None => (&row[0], "the key".to_owned()),
            Some((_, _, named)) if columns != *named => {
                return Err(format!("it has {columns} columns, and line 1 has {named}"));
            }
            Some((name, at, _)) => (&row[*at], format!("column '{name}'")),
        };
        if key.is_empty() {
            return Err(format!("{what} is empty"));
        }
        match key.iter().find(|byte| is_no_text(**byte)) {
            Some(b'\n') => Err("a quotation mark begins the key, and none ends it in its line".into()),
            Some(byte) => Err(format!("{what} holds a byte {byte:#04x}: this is no text")),
            None => Ok(key),
        }
    }
}

/// Whether no line of a text holds this byte.
pub(super) fn is_no_text(byte: u8) -> bool {
    byte.is_ascii_control() && byte != b'\t'
}

fn unreadable(error: csv::Error) -> TraceError {
    let words = error.to_string();
    match error.into_kind() {
        csv::ErrorKind::Io(source) => TraceError::Read { source },
        _ => TraceError::Read { source: std::io::Error::other(words) },
    }
}

/// Reads a text with one key a line; or the column of that name, which line 1 names.
///
/// # Errors
/// [`TraceError::NoColumn`] where line 1 does not name it, [`TraceError::Read`] where it cannot be read.
pub(super) fn reader<R: Read>(
    content: R,
    column: Option<&str>,
) -> Result<impl FnMut() -> Result<Option<Record>, TraceError> + use<R>, TraceError> {
    // Lines of different lengths are told apart here, in words that say what to do.
    let mut reader = ReaderBuilder::new().has_headers(column.is_some()).flexible(true).from_reader(content);
    let mut place = Place { column: None };
    if let Some(name) = column {
        let header = reader.byte_headers().map_err(unreadable)?;
        let at = header.iter().position(|column| column == name.as_bytes()).ok_or_else(|| {
            let known = header.iter().map(|column| String::from_utf8_lossy(column).into_owned()).collect();
            TraceError::NoColumn { column: name.to_owned(), known }
        })?;
        place.column = Some((name.to_owned(), at, header.len()));
    }
    let mut row = ByteRecord::new();
    Ok(move || {
        if !reader.read_byte_record(&mut row).map_err(unreadable)? {
            return Ok(None);
        }
        let line = row.position().map_or(0, csv::Position::line);
        let key = place.key(&row).map_err(|reason| TraceError::Line { line, reason })?;
        Ok(Some(Record::get(Key::Text(key.into()))))
    })
}
