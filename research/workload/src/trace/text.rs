//! Texts that are no recorded trace: one key a line, or comma-separated columns of which one is named.
//!
//! Every line is a lookup: such a text tells no operations. Quotation marks are those of comma-separated values, so that a
//! key may hold a comma. What is no text is refused with its line, rather than counted as keys.

use std::io::Read;

use csv::{ByteRecord, Reader, ReaderBuilder};

use super::{Record, TraceError};
use crate::key::Key;

/// Reads keys from a text.
///
/// ```
/// use lookaside_workload::trace::Keys;
///
/// let keys = Keys::lines(&b"user:1\nuser:2\nuser:1\n"[..]);
/// assert_eq!(keys.map(|record| record.unwrap().key.to_string()).collect::<Vec<_>>(), ["user:1", "user:2", "user:1"]);
/// let mut column = Keys::column(&b"time,id\n1,x\n"[..], "id")?;
/// assert_eq!(column.next().unwrap()?.key.to_string(), "x");
/// # Ok::<(), lookaside_workload::trace::TraceError>(())
/// ```
#[derive(Debug)]
pub struct Keys<R> {
    reader: Reader<R>,
    row: ByteRecord,
    /// The named column and its place, and how many there are.
    column: Option<(String, usize, usize)>,
    ended: bool,
}

impl<R: Read> Keys<R> {
    /// One key a line.
    pub fn lines(reader: R) -> Keys<R> {
        // Lines of different lengths are told apart here, in words that say what to do.
        let reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(reader);
        Keys { reader, row: ByteRecord::new(), column: None, ended: false }
    }

    /// The column of that name; line 1 names them.
    ///
    /// # Errors
    /// [`TraceError::NoColumn`] where line 1 does not name it, [`TraceError::Read`] where it cannot be read.
    pub fn column(reader: R, name: &str) -> Result<Keys<R>, TraceError> {
        let mut reader = ReaderBuilder::new().flexible(true).from_reader(reader);
        let header = reader.byte_headers().map_err(unreadable)?;
        let at = header.iter().position(|column| column == name.as_bytes()).ok_or_else(|| {
            let known = header.iter().map(|column| String::from_utf8_lossy(column).into_owned()).collect();
            TraceError::NoColumn { column: name.to_owned(), known }
        })?;
        let column = Some((name.to_owned(), at, header.len()));
        Ok(Keys { reader, row: ByteRecord::new(), column, ended: false })
    }

    /// The key of the row that was read.
    fn key(&self) -> Result<&[u8], String> {
        let columns = self.row.len();
        let (key, what) = match &self.column {
            None if columns != 1 => {
                return Err(format!(
                    "it has {columns} columns: name the one that holds the keys (--column NAME)"
                ));
            }
            None => (&self.row[0], "the key".to_owned()),
            Some((_, _, named)) if columns != *named => {
                return Err(format!("it has {columns} columns, and line 1 has {named}"));
            }
            Some((name, at, _)) => (&self.row[*at], format!("column '{name}'")),
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

impl<R: Read> Iterator for Keys<R> {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        match self.reader.read_byte_record(&mut self.row) {
            Ok(true) => {}
            Ok(false) => {
                self.ended = true;
                return None;
            }
            Err(error) => {
                self.ended = true;
                return Some(Err(unreadable(error)));
            }
        }
        let line = self.row.position().map_or(0, csv::Position::line);
        let key = self.key().map(|key| Key::Text(key.into()));
        Some(key.map(Record::get).map_err(|reason| TraceError::Line { line, reason }))
    }
}
