//! The keys of a trace, numbered, and what was asked of them.
//!
//! A trace is whatever `workload::trace` reads.
//!
//! What a table makes of a lookup depends on whether the index has the key: a miss of a key that is not there is
//! followed by no emission. Every key is taken to be there from the beginning; a delete removes it, and the next write
//! brings it back.

use std::collections::HashMap;

use indicatif::ProgressBar;
use workload::operation::CacheOperation;
use workload::trace::{Choice, Trace};

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

    fn finish(self, name: &str) -> Result<KeyTrace, AdviceError> {
        let mut keys = vec![Box::default(); self.numbers.len()];
        for (key, number) in self.numbers {
            keys[number as usize] = key;
        }
        if !self.requests.iter().any(|request| request.kind.is_lookup()) {
            return Err(AdviceError::NoLookups(name.to_owned()));
        }
        Ok(KeyTrace { keys, requests: self.requests })
    }
}

impl KeyTrace {
    /// Reads the trace `name`: `-`, which is standard input, a path, a generated trace, or a name in the data folder
    /// such as `traces/orm-busy.trace.xz`. `choice` says what its content does not tell; `most` requests are read, if
    /// it has so many.
    ///
    /// # Errors
    /// [`AdviceError`], where it is not there, is none, or has a row that cannot be read.
    pub fn read(
        name: &str,
        choice: &Choice,
        most: usize,
        progress: &ProgressBar,
    ) -> Result<KeyTrace, AdviceError> {
        progress.set_message("reading the trace");
        let mut numbering = Numbering::default();
        let mut text = Vec::new();
        'reading: for record in Trace::find(name, choice)? {
            let record = record?;
            text.clear();
            record.key.write(&mut text);
            for _ in 0..record.count {
                if numbering.requests.len() == most {
                    break 'reading;
                }
                numbering.add(&text, record.operation)?;
                if numbering.requests.len().is_multiple_of(TOLD_EVERY) {
                    progress.tick();
                }
            }
        }
        numbering.finish(name)
    }

    /// Different keys.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.keys.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, column: Option<&str>) -> Result<KeyTrace, AdviceError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.csv");
        std::fs::write(&path, text).unwrap();
        let choice = Choice { column: column.map(str::to_owned), ..Choice::default() };
        KeyTrace::read(path.to_str().unwrap(), &choice, usize::MAX, &ProgressBar::hidden())
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
        let absent =
            KeyTrace::read("no-such-trace", &Choice::default(), 9, &ProgressBar::hidden()).unwrap_err();
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
