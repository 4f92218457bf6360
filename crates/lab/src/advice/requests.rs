//! The keys of a trace, numbered, and what was asked of them.
//!
//! A trace is one of the recorded formats that `workload::trace` knows, or a text: one key a line, or comma-separated
//! columns of which one is named. A text tells no operations, so that all of its lines are lookups.
//!
//! What a table makes of a lookup depends on whether the index has the key: a miss of a key that is not there is followed by
//! no emission. Every key is taken to be there from the beginning; a delete removes it, and the next write brings it back.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use indicatif::ProgressBar;
use workload::data::DataFolder;
use workload::operation::CacheOperation;
use workload::trace::{Trace, TraceError};

use super::AdviceError;

/// Rows between two movements of the progress bar.
const TOLD_EVERY: usize = 1 << 16;

/// What is asked of a key, as a table sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A lookup of a key that the index has.
    Lookup,
    /// A lookup of a key that has been deleted.
    LookupOfNothing,
    /// A value replaces another.
    Write,
    /// The key is removed.
    Delete,
}

impl Kind {
    pub(super) fn is_lookup(self) -> bool {
        matches!(self, Kind::Lookup | Kind::LookupOfNothing)
    }
}

/// One request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) key: u32,
    pub(super) kind: Kind,
}

/// The requests of a trace, in memory: eight bytes each, and every key once.
#[derive(Debug)]
pub struct KeyTrace {
    pub(super) keys: Vec<Box<[u8]>>,
    pub(super) requests: Vec<Request>,
}

/// Numbers keys as they first occur, and knows which have been deleted.
#[derive(Default)]
struct Numbering {
    numbers: HashMap<Box<[u8]>, u32>,
    deleted: Vec<bool>,
    requests: Vec<Request>,
}

impl Numbering {
    fn add(&mut self, key: &[u8], operation: CacheOperation) -> Result<(), AdviceError> {
        let number = match self.numbers.get(key) {
            Some(&number) => number,
            None => {
                let next = u32::try_from(self.deleted.len()).map_err(|_| AdviceError::TooLong)?;
                self.numbers.insert(key.into(), next);
                self.deleted.push(false);
                next
            }
        };
        let deleted = &mut self.deleted[number as usize];
        let kind = match operation {
            read if read.is_read() && *deleted => Kind::LookupOfNothing,
            read if read.is_read() => Kind::Lookup,
            CacheOperation::Delete => Kind::Delete,
            _ => Kind::Write,
        };
        match kind {
            Kind::Delete => *deleted = true,
            Kind::Write => *deleted = false,
            Kind::Lookup | Kind::LookupOfNothing => {}
        }
        // Positions are 32-bit numbers, of which the last means never.
        if self.requests.len() >= u32::MAX as usize {
            return Err(AdviceError::TooLong);
        }
        self.requests.push(Request { key: number, kind });
        Ok(())
    }

    fn finish(self, path: PathBuf) -> Result<KeyTrace, AdviceError> {
        let mut keys = vec![Box::default(); self.numbers.len()];
        for (key, number) in self.numbers {
            keys[number as usize] = key;
        }
        if !self.requests.iter().any(|request| request.kind.is_lookup()) {
            return Err(AdviceError::NoLookups(path));
        }
        Ok(KeyTrace { keys, requests: self.requests })
    }
}

impl KeyTrace {
    /// Reads the trace `name`: a path, a generated trace, or a name in the data folder such as `traces/orm-busy.trace.xz`.
    /// `column` names the column of the keys in a text that has several; `most` requests are read, if it has so many.
    ///
    /// # Errors
    /// [`AdviceError`], where it is not there, is none, or has a row that cannot be read.
    pub fn read(
        name: &str,
        column: Option<&str>,
        most: usize,
        progress: &ProgressBar,
    ) -> Result<KeyTrace, AdviceError> {
        if let Some(trace) = Trace::generated(name) {
            return read_recorded(name.into(), trace, most, progress);
        }
        let path = find(name)?;
        // Its format is recognised by its beginning, and then it is read from there.
        let is_file = std::fs::metadata(&path).is_ok_and(|metadata| metadata.is_file());
        if !is_file {
            let reason =
                "it is no file: a trace is read twice from its beginning, so keep it in a file first";
            return Err(AdviceError::File(path, reason.into()));
        }
        progress.set_message("reading the trace");
        if let Some(column) = column {
            return read_column(path, column, most, progress);
        }
        match Trace::open(&path) {
            Ok(trace) => read_recorded(path, trace, most, progress),
            Err(TraceError::Unrecognised { .. }) => read_lines(path, most, progress),
            Err(error) => Err(error.into()),
        }
    }

    /// Different keys.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.keys.len()
    }
}

fn find(name: &str) -> Result<PathBuf, AdviceError> {
    if Path::new(name).exists() {
        return Ok(name.into());
    }
    let found = DataFolder::find().and_then(|folder| folder.file(name));
    found.map_err(|elsewhere| AdviceError::Absent { name: name.to_owned(), elsewhere })
}

fn tell(progress: &ProgressBar, requests: usize) {
    if requests.is_multiple_of(TOLD_EVERY) {
        progress.tick();
    }
}

fn read_recorded(
    path: PathBuf,
    trace: Trace,
    most: usize,
    progress: &ProgressBar,
) -> Result<KeyTrace, AdviceError> {
    let mut numbering = Numbering::default();
    let mut text = Vec::new();
    for record in trace {
        let record = record?;
        text.clear();
        record.key.write(&mut text);
        for _ in 0..record.count {
            if numbering.requests.len() == most {
                return numbering.finish(path);
            }
            numbering.add(&text, record.operation)?;
            tell(progress, numbering.requests.len());
        }
    }
    numbering.finish(path)
}

/// One key a line.
fn read_lines(path: PathBuf, most: usize, progress: &ProgressBar) -> Result<KeyTrace, AdviceError> {
    let unreadable = |error: csv::Error| unreadable(&path, error);
    // Lines of different lengths are told apart here, in words that say what to do.
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_path(&path);
    let reader = reader.as_mut().map_err(|error| AdviceError::File(path.clone(), error.to_string()))?;
    let (mut numbering, mut row) = (Numbering::default(), csv::ByteRecord::new());
    while numbering.requests.len() < most && reader.read_byte_record(&mut row).map_err(unreadable)? {
        let line = row.position().map_or(0, csv::Position::line);
        let malformed = |reason: String| AdviceError::Row { path: path.clone(), line, reason };
        if row.len() != 1 {
            let reason =
                format!("it has {} columns: name the one that holds the keys (--column NAME)", row.len());
            return Err(malformed(reason));
        }
        if row[0].is_empty() {
            return Err(malformed("the key is empty".into()));
        }
        if row[0].contains(&b'\n') {
            return Err(malformed("a quotation mark begins the key, and none ends it in its line".into()));
        }
        numbering.add(&row[0], CacheOperation::Get)?;
        tell(progress, numbering.requests.len());
    }
    numbering.finish(path)
}

/// A named column.
fn read_column(
    path: PathBuf,
    name: &str,
    most: usize,
    progress: &ProgressBar,
) -> Result<KeyTrace, AdviceError> {
    let unreadable = |error: csv::Error| unreadable(&path, error);
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_path(&path);
    let reader = reader.as_mut().map_err(|error| AdviceError::File(path.clone(), error.to_string()))?;
    let header = reader.byte_headers().map_err(unreadable)?.clone();
    let at = header.iter().position(|column| column == name.as_bytes()).ok_or_else(|| {
        let known = header.iter().map(|column| String::from_utf8_lossy(column).into_owned()).collect();
        AdviceError::NoColumn { path: path.clone(), column: name.to_owned(), known }
    })?;
    let (mut numbering, mut row) = (Numbering::default(), csv::ByteRecord::new());
    while numbering.requests.len() < most && reader.read_byte_record(&mut row).map_err(unreadable)? {
        let line = row.position().map_or(0, csv::Position::line);
        let malformed = |reason: String| AdviceError::Row { path: path.clone(), line, reason };
        if row.len() != header.len() {
            return Err(malformed(format!("it has {} columns, and line 1 has {}", row.len(), header.len())));
        }
        if row[at].is_empty() {
            return Err(malformed(format!("column '{name}' is empty")));
        }
        numbering.add(&row[at], CacheOperation::Get)?;
        tell(progress, numbering.requests.len());
    }
    numbering.finish(path)
}

fn unreadable(path: &Path, error: csv::Error) -> AdviceError {
    AdviceError::File(path.to_owned(), error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, column: Option<&str>) -> Result<KeyTrace, AdviceError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.csv");
        std::fs::write(&path, text).unwrap();
        KeyTrace::read(path.to_str().unwrap(), column, usize::MAX, &ProgressBar::hidden())
    }

    fn numbers(trace: &KeyTrace) -> Vec<u32> {
        trace.requests.iter().map(|request| request.key).collect()
    }

    #[test]
    fn a_line_is_a_key_and_a_named_column_holds_keys() {
        let lines = read("b\na\nb\n\"a,c\"\n", None).unwrap();
        assert_eq!(numbers(&lines), [0, 1, 0, 2]);
        assert_eq!(&*lines.keys[2], b"a,c");
        let column = read("time,id\n1,x\n2,y\n3,x\n", Some("id")).unwrap();
        assert_eq!(numbers(&column), [0, 1, 0]);
        assert!(column.requests.iter().all(|request| request.kind == Kind::Lookup));
    }

    #[test]
    fn what_cannot_be_read_is_told_with_its_line() {
        for (text, column, reason) in [
            ("a\nb,c\n", None, "line 2"),
            ("a\nb,c\n", None, "--column"),
            ("id,time\nx,1\ny\n", Some("id"), "line 3"),
            ("id,time\nx,1\n,2\n", Some("id"), "column 'id' is empty"),
            ("id,time\nx,1\n", Some("key"), "it has id, time"),
            ("a\n\"\"\n", None, "the key is empty"),
            ("a\n\"b\nc\n\"d\n", None, "line 2"),
            ("", None, "no lookups"),
            ("id\n", Some("id"), "no lookups"),
        ] {
            let error = read(text, column).unwrap_err().to_string();
            assert!(error.contains(reason), "{text:?}: {error}");
        }
        // What cannot be read twice is not read at all.
        let pipe = KeyTrace::read("/dev/null", None, 9, &ProgressBar::hidden()).unwrap_err();
        assert!(pipe.to_string().contains("it is no file"), "{pipe}");
        let absent = KeyTrace::read("no-such-trace", None, 9, &ProgressBar::hidden()).unwrap_err();
        assert!(absent.to_string().contains("no-such-trace"), "{absent}");
    }

    #[test]
    fn deletes_and_writes_decide_what_a_lookup_finds() {
        let mut numbering = Numbering::default();
        use CacheOperation::{Delete, Get, Set};
        for operation in [Get, Delete, Get, Set, Get] {
            numbering.add(b"k", operation).unwrap();
        }
        let kinds: Vec<_> = numbering.requests.iter().map(|request| request.kind).collect();
        assert_eq!(kinds, [Kind::Lookup, Kind::Delete, Kind::LookupOfNothing, Kind::Write, Kind::Lookup]);
    }
}
