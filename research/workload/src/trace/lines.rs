//! The lines of a text trace, counted, and the fields of a line.
//!
//! Rejected: a reader of general CSV. The traces are not general CSV: they never quote, a quotation mark in a key
//! is part of the key, and so is a comma. A key is therefore what is left between the columns before it and those
//! behind it. And a general reader grows its buffer as long as a line goes on; here a line has a limit.

use std::io::{BufRead, Read};
use std::str::FromStr;

use super::TraceError;

/// No row of any format comes near it: a key has at most a few hundred bytes.
const LONGEST: usize = 1 << 16;

/// Counts and yields the lines of `R`, without their ends and without empty ones.
pub(super) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(reader: R) -> Lines<R> {
        Lines { reader, buffer: Vec::new(), number: 0 }
    }

    /// The next line and its number, counted from 1.
    pub(super) fn next(&mut self) -> Result<Option<(u64, &[u8])>, TraceError> {
        let failed = |source| TraceError::Read { source };
        loop {
            self.buffer.clear();
            let mut limited = self.reader.by_ref().take(LONGEST as u64 + 1);
            self.number += 1;
            if limited.read_until(b'\n', &mut self.buffer).map_err(failed)? == 0 {
                return Ok(None);
            }
            if self.buffer.last() == Some(&b'\n') {
                self.buffer.pop();
            } else if self.buffer.len() > LONGEST {
                self.reader.skip_until(b'\n').map_err(failed)?;
                return Err(TraceError::LineTooLong { line: self.number, longest: LONGEST });
            }
            if self.buffer.last() == Some(&b'\r') {
                self.buffer.pop();
            }
            if !self.buffer.is_empty() {
                return Ok(Some((self.number, &self.buffer)));
            }
        }
    }
}

/// Reads a field as a `T`. Surrounding blanks are not forgiven: no format here has them.
pub(super) fn parse<T: FromStr>(
    line: u64,
    column: &str,
    field: &[u8],
    wanted: &str,
) -> Result<T, TraceError> {
    let read = std::str::from_utf8(field).ok().and_then(|text| text.parse().ok());
    read.ok_or_else(|| TraceError::column(line, column, field, wanted))
}

/// A row whose second column is its key.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AroundKey<'a, const AFTER: usize> {
    pub(super) first: &'a [u8],
    pub(super) key: &'a [u8],
    pub(super) after: [&'a [u8]; AFTER],
}

impl<'a, const AFTER: usize> AroundKey<'a, AFTER> {
    /// Splits a row into its first column, its key, and the `AFTER` columns that stand behind the key.
    pub(super) fn split(row: &'a [u8]) -> Option<AroundKey<'a, AFTER>> {
        let comma = row.iter().position(|byte| *byte == b',')?;
        let (first, rest) = (&row[..comma], &row[comma + 1..]);
        let mut fields = rest.rsplitn(AFTER + 1, |byte| *byte == b',');
        let mut after: [&[u8]; AFTER] = [&[]; AFTER];
        for field in after.iter_mut().rev() {
            *field = fields.next()?;
        }
        Some(AroundKey { first, key: fields.next()?, after })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &[u8]) -> Vec<Result<(u64, Vec<u8>), String>> {
        let mut lines = Lines::new(text);
        let next = || match lines.next() {
            Ok(line) => line.map(|(number, line)| Ok((number, line.to_vec()))),
            Err(error) => Some(Err(error.to_string())),
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn lines_are_counted_with_the_empty_ones_and_yielded_without_them() {
        let expected = vec![Ok((1, b"a".to_vec())), Ok((3, b"b".to_vec())), Ok((5, b"c".to_vec()))];
        assert_eq!(all(b"a\n\nb\n\nc"), expected);
        assert_eq!(all(b"a\r\n\r\nb\r\n\r\nc\r\n"), expected);
        assert_eq!(all(b""), []);
    }

    #[test]
    fn a_line_without_end_is_refused_and_the_next_one_read() {
        let mut text = vec![b'x'; LONGEST];
        text.push(b'\n');
        assert_eq!(all(&text).len(), 1);
        assert!(all(&text)[0].is_ok(), "the longest line is still a line");

        let mut text = vec![b'x'; 3 * LONGEST];
        text.extend_from_slice(b"\nnext");
        let found = all(&text);
        assert!(found[0].as_ref().unwrap_err().contains("line 1 is longer"), "{:?}", found[0]);
        assert_eq!(found[1..], [Ok((2, b"next".to_vec()))]);
    }

    #[test]
    fn a_key_keeps_its_commas() {
        let split = AroundKey::split(b"1,a,b,,c,2,3");
        assert_eq!(split, Some(AroundKey { first: b"1", key: b"a,b,,c", after: [b"2", b"3"] }));
        let split = AroundKey::split(b"1,,2,3");
        assert_eq!(split, Some(AroundKey { first: b"1", key: b"", after: [b"2", b"3"] }));
        assert_eq!(AroundKey::<2>::split(b"1,2,3"), None);
        assert_eq!(AroundKey::<2>::split(b""), None);
    }
}
