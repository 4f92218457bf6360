//! A recorded trace, made ready to be played: its keys, and its requests rendered in windows.
//!
//! Traces here tell which keys were asked for and in which order, and nothing of sizes; values come from a published
//! distribution, and a key's size is a function of the key alone, so that every server is asked to hold the same items.
//!
//! # Windows
//! One request at a time, the time between two system calls is most of what is measured, and 5 million of them take
//! minutes. So requests are sent in windows, and yet the outcome is that of sending them one by one: *a window never
//! has a key twice*, and the sets that a window's misses are followed by are sent before the next window. So whenever a
//! key is asked for, all that the trace did to it before has been done. On a cache that holds everything the hits are
//! exactly those of the trace one by one; on one that evicts, what differs is that up to a window's worth of other keys
//! are touched in another order.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use serde::Serialize;
use workload::key::LONGEST_KEY;
use workload::operation::CacheOperation;
use workload::trace::{Choice, Trace};

use super::DriveError;
use super::items::Items;
use super::script::{Script, Writer};

/// Bytes of requests after which a window ends: the sockets' buffers take them also from a client that does not read
/// meanwhile.
const WINDOW_BYTES: usize = 16 << 10;

/// memcached's cost of an item beside its key and value, in bytes: a header of 48, a number for compare-and-swap of 8,
/// a zero behind the key, and a line's end behind the value.
pub const ITEM_OVERHEAD: u64 = 48 + 8 + 1 + 2;

/// A trace in memory.
#[derive(Debug)]
pub struct RecordedTrace {
    keys: Vec<Box<[u8]>>,
    requests: Vec<Request>,
    skipped: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Request {
    key: u32,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Get,
    Set,
}

/// All items of a trace together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct WorkingSet {
    /// Different keys.
    pub keys: u64,
    /// Bytes of the keys.
    pub key_bytes: u64,
    /// Bytes of their values.
    pub value_bytes: u64,
}

impl WorkingSet {
    /// Bytes that all items take, with [`ITEM_OVERHEAD`] each.
    #[must_use]
    pub fn item_bytes(&self) -> u64 {
        self.key_bytes + self.value_bytes + self.keys * ITEM_OVERHEAD
    }

    /// A `numerator / denominator` part of it in whole MiB, rounded up: what to give as `-m`.
    #[must_use]
    pub fn mebibytes(&self, numerator: u64, denominator: u64) -> u64 {
        (u128::from(self.item_bytes()) * u128::from(numerator)).div_ceil(u128::from(denominator) << 20) as u64
    }
}

impl RecordedTrace {
    /// Reads the trace `name`: `-`, which is standard input, a path, a generated trace, or a name in the data folder
    /// such as `traces/orm-busy.trace.xz`. `choice` says what its content does not tell; `most` requests are read, if
    /// it has so many.
    ///
    /// # Errors
    /// [`DriveError::Trace`] where it is not there or cannot be read, [`DriveError::Settings`] where a server cannot be
    /// asked for its keys, or there are none.
    pub fn read(name: &str, choice: &Choice, most: usize) -> Result<RecordedTrace, DriveError> {
        RecordedTrace::of(Trace::find(name, choice)?, most)
    }

    /// The same of a trace that is open.
    ///
    /// # Errors
    /// As [`RecordedTrace::read`].
    pub fn of(records: Trace, most: usize) -> Result<RecordedTrace, DriveError> {
        let mut trace = RecordedTrace { keys: Vec::new(), requests: Vec::new(), skipped: 0 };
        let mut numbers = HashMap::new();
        for (number, record) in (1u64..).zip(records) {
            let record = record?;
            let kind = match record.operation {
                CacheOperation::Get => Kind::Get,
                CacheOperation::Set => Kind::Set,
                _ => {
                    trace.skipped += u64::from(record.count);
                    continue;
                }
            };
            let key = match numbers.entry(record.key) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(unknown) => {
                    let mut text = Vec::new();
                    unknown.key().write(&mut text);
                    examine(&text).map_err(|reason| {
                        DriveError::Settings(format!("request {number} of the trace: {reason}"))
                    })?;
                    trace.keys.push(text.into_boxed_slice());
                    *unknown.insert(
                        u32::try_from(trace.keys.len() - 1).expect("a trace in memory has fewer keys"),
                    )
                }
            };
            // One row may stand for billions.
            let wanted = most.saturating_sub(trace.requests.len());
            let count = wanted.min(record.count as usize);
            trace.requests.extend(std::iter::repeat_n(Request { key, kind }, count));
            if trace.requests.len() >= most {
                break;
            }
        }
        if trace.requests.is_empty() {
            return Err(DriveError::Settings("the trace has no gets and no sets".into()));
        }
        // Keys of requests that were cut off do not count.
        let used = trace.requests.iter().map(|request| request.key + 1).max().unwrap_or(0);
        trace.keys.truncate(used as usize);
        Ok(trace)
    }

    /// A trace that gets `keys` in this order.
    #[must_use]
    pub fn of_gets<'k>(keys: impl IntoIterator<Item = &'k str>) -> RecordedTrace {
        let mut trace = RecordedTrace { keys: Vec::new(), requests: Vec::new(), skipped: 0 };
        let mut numbers = HashMap::new();
        for name in keys {
            let key = *numbers.entry(name).or_insert_with(|| {
                trace.keys.push(name.as_bytes().into());
                trace.keys.len() as u32 - 1
            });
            trace.requests.push(Request { key, kind: Kind::Get });
        }
        trace
    }

    /// A trace that gets these records, with the keys that `items` gives them.
    #[must_use]
    pub fn of_records(records: impl IntoIterator<Item = u64>, items: &Items) -> RecordedTrace {
        let mut trace = RecordedTrace { keys: Vec::new(), requests: Vec::new(), skipped: 0 };
        let (mut numbers, mut text) = (HashMap::new(), Vec::new());
        for record in records {
            let key = *numbers.entry(record).or_insert_with(|| {
                items.key(record, &mut text);
                trace.keys.push(text.as_slice().into());
                trace.keys.len() as u32 - 1
            });
            trace.requests.push(Request { key, kind: Kind::Get });
        }
        trace
    }

    /// One of so many parts of the trace, one after the other, with a letter before each key: no two parts have a key
    /// in common.
    ///
    /// # Panics
    /// If there are more parts than letters, or `part` is not one of them.
    #[must_use]
    pub fn part(&self, part: usize, of: usize) -> RecordedTrace {
        assert!(part < of && of <= 26, "part {part} of {of}");
        let at = |part: usize| self.requests.len() * part / of;
        let (mut numbers, mut keys) = (HashMap::new(), Vec::new());
        let renamed = |request: &Request| {
            let key = *numbers.entry(request.key).or_insert_with(|| {
                let letter = b'a' + part as u8;
                let key = std::iter::once(letter).chain(self.keys[request.key as usize].iter().copied());
                keys.push(key.collect());
                keys.len() as u32 - 1
            });
            Request { key, ..*request }
        };
        let requests = self.requests[at(part)..at(part + 1)].iter().map(renamed).collect();
        RecordedTrace { keys, requests, skipped: 0 }
    }

    /// Requests: gets and sets.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests.len() as u64
    }

    /// Requests that are neither, and are not played.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// What a cache that holds everything has at the end.
    #[must_use]
    pub fn working_set(&self, items: &Items) -> WorkingSet {
        WorkingSet {
            keys: self.keys.len() as u64,
            key_bytes: self.keys.iter().map(|key| key.len() as u64).sum(),
            value_bytes: self.keys.iter().map(|key| items.value_size(key) as u64).sum(),
        }
    }

    /// The trace in windows of up to `depth` requests.
    pub(super) fn windows(&self, items: &Items, depth: usize) -> Script {
        let mut writer = Writer::new(1, 1);
        let (mut inside, mut bytes, mut value) = (HashSet::new(), 0, Vec::new());
        for request in &self.requests {
            let key = &self.keys[request.key as usize];
            if inside.len() == depth || bytes > WINDOW_BYTES || inside.contains(&request.key) {
                writer.end_batch();
                inside.clear();
                bytes = 0;
            }
            inside.insert(request.key);
            bytes += key.len() + 6;
            match request.kind {
                Kind::Get => writer.get(key),
                Kind::Set => {
                    items.value(key, 0, &mut value);
                    writer.set(key, &value);
                }
            }
        }
        writer.end_batch();
        writer.finish()
    }
}

/// Refuses a key that a line of the protocol cannot hold: a server would take it for two, or for an error.
fn examine(key: &[u8]) -> Result<(), String> {
    if key.is_empty() || key.len() > LONGEST_KEY {
        return Err(format!("its key has {} bytes, and a server's from 1 to {LONGEST_KEY}", key.len()));
    }
    match key.iter().find(|byte| byte.is_ascii_control() || **byte == b' ') {
        Some(byte) => {
            Err(format!("its key holds a byte {byte:#04x}, and a server's neither blanks nor controls"))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use workload::trace::Format;

    fn windows(trace: &RecordedTrace, depth: usize) -> Vec<String> {
        let script = trace.windows(&Items::fixed(1, 3), depth);
        let text =
            |batch| String::from_utf8_lossy(script.bytes(script.part(batch, 0).0)).replace("\r\n", ";");
        (0..script.batches()).map(text).collect()
    }

    #[test]
    fn a_window_never_has_a_key_twice() {
        let trace = RecordedTrace::of_gets(["a", "b", "a", "a", "c", "d", "e"]);
        assert_eq!(windows(&trace, 3), ["get a;get b;", "get a;", "get a;get c;get d;", "get e;"]);
        assert_eq!(windows(&trace, 1).len(), 7);
        assert_eq!(trace.requests(), 7);
    }

    #[test]
    fn parts_have_all_requests_and_no_key_in_common() {
        let trace = RecordedTrace::of_records([1, 2, 1, 2, 2, 3], &Items::fixed(2, 3));
        assert_eq!(windows(&trace, 9), ["get 01;get 02;", "get 01;get 02;", "get 02;get 03;"]);
        assert_eq!(windows(&trace.part(0, 2), 9), ["get a01;get a02;", "get a01;"]);
        assert_eq!(windows(&trace.part(1, 2), 9), ["get b02;", "get b02;get b03;"]);
        assert_eq!(trace.part(1, 2).working_set(&Items::fixed(1, 1)).keys, 2);
    }

    #[test]
    fn the_working_set_is_every_key_once() {
        let trace = RecordedTrace::of_gets(["a", "bb", "a"]);
        let set = trace.working_set(&Items::fixed(1, 1_000_000));
        assert_eq!((set.keys, set.key_bytes, set.value_bytes), (2, 3, 2_000_000));
        assert_eq!(set.item_bytes(), 2_000_003 + 2 * 59);
        assert_eq!((set.mebibytes(1, 1), set.mebibytes(1, 2), set.mebibytes(1, 8)), (2, 1, 1));
    }

    #[test]
    fn a_row_that_stands_for_billions_is_cut_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kv.csv");
        let header = "op_time,key,key_size,op,op_count,size,cache_hits,ttl";
        fs::write(&path, format!("{header}\n1,a1,2,GET,4294967295,10,1,0\n2,b2,2,GET,1,10,1,0\n")).unwrap();
        let trace = RecordedTrace::read(path.to_str().unwrap(), &Choice::default(), 3).unwrap();
        assert_eq!((trace.requests(), trace.working_set(&Items::fixed(1, 1)).keys), (3, 1));
    }

    #[test]
    fn a_trace_is_read_from_a_path_and_cut_where_asked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("few.trace");
        let numbers: Vec<u8> = [7i32, -3, 7, 9].iter().flat_map(|number| number.to_be_bytes()).collect();
        fs::write(&path, numbers).unwrap();
        let choice = Choice { format: Some(Format::Numbers), ..Choice::default() };
        let read = |most| RecordedTrace::read(path.to_str().unwrap(), &choice, most).unwrap();
        assert_eq!(windows(&read(usize::MAX), 8), ["get 7;get -3;", "get 7;get 9;"]);
        let cut = read(3);
        assert_eq!((cut.requests(), cut.skipped()), (3, 0));
        assert_eq!(cut.working_set(&Items::fixed(1, 1)).keys, 2);
        let absent = RecordedTrace::read("traces/none.xz", &Choice::default(), 1).unwrap_err();
        assert!(absent.to_string().contains("none.xz"), "{absent}");
    }
}
