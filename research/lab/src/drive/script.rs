//! What is sent, rendered before the clock starts.
//!
//! A script is a list of batches. A batch is what one client sends in one go before it waits for all the replies: one
//! request or many, keys drawn, lines and values spelled out. While the clock runs, sending a batch is one system call
//! on a piece of memory that is there already.
//!
//! Where keys are spread over several servers, a batch has a part for each of them (a *lane*), and a multi-key get is
//! split as memcached's client libraries split it: each server is asked for its own keys.

use std::ops::Range;

use twox_hash::XxHash3_64;

use super::resp;

/// What servers are spoken to in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// memcached's classic text protocol.
    #[default]
    Classic,
    /// RESP2, the protocol of Redis.
    Resp,
}

/// Rendered batches.
#[derive(Debug, Default)]
pub(super) struct Script {
    bytes: Vec<u8>,
    /// Batch by batch, a part for each lane.
    parts: Vec<Part>,
    lanes: usize,
    operations: u64,
}

/// What one server gets of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    end: usize,
    /// Replies that it is answered with: as many as it has requests.
    pub(super) replies: u32,
    /// Keys that its gets ask for.
    pub(super) keys: u32,
}

impl Script {
    pub(super) fn batches(&self) -> usize {
        self.parts.len() / self.lanes.max(1)
    }

    /// Operations in all batches: a key that is asked for is one, and so is a set.
    pub(super) fn operations(&self) -> u64 {
        self.operations
    }

    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    pub(super) fn part(&self, batch: usize, lane: usize) -> (Range<usize>, Part) {
        let at = batch * self.lanes + lane;
        let start = if at == 0 { 0 } else { self.parts[at - 1].end };
        let part = self.parts[at];
        (start..part.end, part)
    }

    #[inline]
    pub(super) fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[range]
    }
}

/// A script that is being written.
#[derive(Debug)]
pub(super) struct Writer {
    script: Script,
    lanes: Vec<Lane>,
    keys_per_get: usize,
    dialect: Dialect,
}

/// The part of the batch that is being written.
#[derive(Debug, Default)]
struct Lane {
    finished: Vec<u8>,
    /// A get that waits for more keys.
    get: Vec<u8>,
    keys_in_get: usize,
    replies: u32,
    keys: u32,
}

impl Lane {
    fn add_key(&mut self, key: &[u8], dialect: Dialect) {
        match dialect {
            Dialect::Classic => {
                if self.keys_in_get == 0 {
                    self.get.extend_from_slice(b"get");
                }
                self.get.push(b' ');
                self.get.extend_from_slice(key);
            }
            Dialect::Resp => resp::append_word(key, &mut self.get),
        }
        self.keys_in_get += 1;
        self.keys += 1;
    }

    fn finish_get(&mut self, dialect: Dialect) {
        if self.keys_in_get > 0 {
            match dialect {
                Dialect::Classic => {
                    self.finished.extend_from_slice(&self.get);
                    self.finished.extend_from_slice(b"\r\n");
                }
                Dialect::Resp => resp::append_get(self.keys_in_get, &self.get, &mut self.finished),
            }
            self.get.clear();
            self.keys_in_get = 0;
            self.replies += 1;
        }
    }
}

impl Writer {
    /// A script for `lanes` servers whose gets have up to `keys_per_get` keys.
    pub(super) fn new(lanes: usize, keys_per_get: usize) -> Writer {
        Writer {
            script: Script { lanes, ..Script::default() },
            lanes: (0..lanes).map(|_| Lane::default()).collect(),
            keys_per_get,
            dialect: Dialect::Classic,
        }
    }

    /// The same in another dialect.
    pub(super) fn in_dialect(self, dialect: Dialect) -> Writer {
        Writer { dialect, ..self }
    }

    fn lane(&mut self, key: &[u8]) -> &mut Lane {
        let lanes = self.lanes.len();
        &mut self.lanes[lane_of(key, lanes)]
    }

    /// Asks for `key`.
    pub(super) fn get(&mut self, key: &[u8]) {
        let (most, dialect) = (self.keys_per_get, self.dialect);
        self.script.operations += 1;
        let lane = self.lane(key);
        lane.add_key(key, dialect);
        if lane.keys_in_get == most {
            lane.finish_get(dialect);
        }
    }

    /// Stores `value` under `key`, before the get that is being put together.
    pub(super) fn set(&mut self, key: &[u8], value: &[u8]) {
        let dialect = self.dialect;
        self.script.operations += 1;
        let lane = self.lane(key);
        match dialect {
            Dialect::Classic => set(key, value, &mut lane.finished),
            Dialect::Resp => resp::append_command(&[b"SET", key, value], &mut lane.finished),
        }
        lane.replies += 1;
    }

    /// Ends the batch. One without requests is none: nobody would answer it.
    pub(super) fn end_batch(&mut self) {
        if self.lanes.iter().all(|lane| lane.keys_in_get == 0 && lane.replies == 0) {
            return;
        }
        for lane in &mut self.lanes {
            lane.finish_get(self.dialect);
            self.script.bytes.extend_from_slice(&lane.finished);
            let part = Part { end: self.script.bytes.len(), replies: lane.replies, keys: lane.keys };
            self.script.parts.push(part);
            lane.finished.clear();
            (lane.replies, lane.keys) = (0, 0);
        }
    }

    pub(super) fn script(&self) -> &Script {
        &self.script
    }

    pub(super) fn finish(self) -> Script {
        self.script
    }
}

/// Which of `lanes` servers has `key`.
pub(super) fn lane_of(key: &[u8], lanes: usize) -> usize {
    if lanes == 1 { 0 } else { (XxHash3_64::oneshot(key) % lanes as u64) as usize }
}

/// Appends a set.
pub(super) fn set(key: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"set ");
    out.extend_from_slice(key);
    out.extend_from_slice(b" 0 0 ");
    out.extend_from_slice(value.len().to_string().as_bytes());
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// The length of the request that `requests` begins with, which is one of those written here.
pub(super) fn request_length(requests: &[u8]) -> usize {
    let line = memchr::memchr(b'\n', requests).map_or(requests.len(), |end| end + 1);
    if !requests.starts_with(b"set ") {
        return line;
    }
    let length = requests[..line].trim_ascii_end().rsplit(|byte| *byte == b' ').next().unwrap_or_default();
    let data: usize = std::str::from_utf8(length).ok().and_then(|length| length.parse().ok()).unwrap_or(0);
    (line + data + 2).min(requests.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(script: &Script, batch: usize, lane: usize) -> (&str, u32, u32) {
        let (range, part) = script.part(batch, lane);
        (std::str::from_utf8(script.bytes(range)).unwrap(), part.replies, part.keys)
    }

    #[test]
    fn gets_are_gathered_and_sets_go_before_them() {
        let mut writer = Writer::new(1, 3);
        for key in ["a", "b", "c", "d"] {
            writer.get(key.as_bytes());
        }
        writer.set(b"e", b"12");
        writer.end_batch();
        writer.get(b"f");
        writer.set(b"f", b"");
        writer.end_batch();
        writer.end_batch();
        let script = writer.finish();
        assert_eq!((script.batches(), script.operations()), (2, 7));
        assert_eq!(text(&script, 0, 0), ("get a b c\r\nset e 0 0 2\r\n12\r\nget d\r\n", 3, 4));
        assert_eq!(text(&script, 1, 0), ("set f 0 0 0\r\n\r\nget f\r\n", 2, 1));
        assert_eq!(script.size(), script.part(1, 0).0.end);
    }

    #[test]
    fn requests_are_told_apart_by_their_length() {
        let mut requests = b"get a b\r\n".to_vec();
        set(b"key", b"12345\nget x\r\n", &mut requests);
        requests.extend_from_slice(b"get c\r\n");
        assert_eq!(request_length(&requests), 9);
        assert_eq!(request_length(&requests[9..]), "set key 0 0 13\r\n".len() + 13 + 2);
    }

    #[test]
    fn every_server_is_asked_for_its_own_keys() {
        let mut writer = Writer::new(3, 100);
        for key in 0..100 {
            writer.get(format!("key{key}").as_bytes());
        }
        writer.end_batch();
        let script = writer.finish();
        let mut keys = 0;
        for lane in 0..3 {
            let (line, replies, asked) = text(&script, 0, lane);
            assert_eq!((replies, line.matches("\r\n").count()), (1, 1));
            let asked_for: Vec<_> = line.trim_end().split(' ').skip(1).collect();
            assert_eq!(asked_for.len(), asked as usize);
            assert!(asked_for.iter().all(|key| lane_of(key.as_bytes(), 3) == lane), "{asked_for:?}");
            keys += asked;
        }
        assert_eq!(keys, 100);
    }
}
