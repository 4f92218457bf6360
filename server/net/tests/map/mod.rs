//! A cache server as a plain map with a clock: what each request does, said as simply as possible and without any of
//! the server's own code.
//!
//! Times are Unix seconds. A number to compare and swap by is known here only by what it stands for, the version of an
//! item; which number the server takes for it is its own choice.

use std::collections::HashMap;

/// The storage commands but `cas`, which has a number more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Set,
    Add,
    Replace,
    Append,
    Prepend,
}

/// Which version a `cas` goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// That of the item that is there.
    Current,
    /// Another one.
    Other,
}

/// The time to live as a request gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Time {
    Never,
    /// Seconds from now on, at most thirty days.
    In(u32),
    /// So many seconds after the server's start.
    SinceStart(u32),
    /// Before the server was started.
    Past,
    /// The largest that can be said.
    Latest,
    Negative,
}

/// A piece of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Bytes(Vec<u8>),
    /// The number that stands for this version.
    Number(u64),
}

#[derive(Debug, Clone)]
struct Item {
    flags: u32,
    data: Vec<u8>,
    /// The second from which on it is gone.
    gone_at: Option<u64>,
    version: u64,
}

/// The map, the clock, and what is to happen when the clock shows it.
pub(crate) struct Map {
    items: HashMap<Vec<u8>, Item>,
    pub(crate) now: u64,
    started: u64,
    flush_at: Option<u64>,
    /// The second of which all that is stored is gone when it comes.
    hidden: Option<u64>,
    versions: u64,
    largest: usize,
}

const NOT_FOUND: &str = "NOT_FOUND";

impl Map {
    /// Empty, at this time, for values up to `largest` bytes with a key of one byte.
    pub(crate) fn new(now: u64, largest: usize) -> Map {
        Map { items: HashMap::new(), now, started: now, flush_at: None, hidden: None, versions: 0, largest }
    }

    /// The clock goes on, and what is due takes place.
    pub(crate) fn tick(&mut self, seconds: u64) {
        self.now += seconds;
        let now = self.now;
        if let Some(second) = self.flush_at.take_if(|second| *second <= now) {
            self.hidden = Some(second);
            self.items.clear();
        }
        self.items.retain(|_, item| item.gone_at.is_none_or(|second| second > now));
    }

    /// The number by which a time is said.
    pub(crate) fn said(&self, time: Time) -> String {
        match time {
            Time::Never => "0".into(),
            Time::In(seconds) => seconds.to_string(),
            Time::SinceStart(seconds) => (self.started + u64::from(seconds)).to_string(),
            Time::Past => "1500000000".into(),
            Time::Latest => i32::MAX.to_string(),
            Time::Negative => "-5".into(),
        }
    }

    fn gone_at(&self, time: Time) -> Option<u64> {
        match time {
            Time::Never => None,
            Time::In(seconds) => Some(self.now + u64::from(seconds)),
            Time::SinceStart(seconds) => Some(self.started + u64::from(seconds)),
            Time::Past | Time::Negative => Some(0),
            Time::Latest => Some(i32::MAX as u64),
        }
    }

    fn alive(&self, gone_at: Option<u64>) -> bool {
        gone_at.is_none_or(|second| second > self.now)
    }

    fn put(&mut self, key: &[u8], flags: u32, gone_at: Option<u64>, data: Vec<u8>) {
        self.versions += 1;
        self.items.remove(key);
        if self.alive(gone_at) && self.hidden != Some(self.now) {
            self.items.insert(key.to_vec(), Item { flags, data, gone_at, version: self.versions });
        }
    }

    fn fits(&self, key: &[u8], flags: u32, len: usize) -> bool {
        len + key.len() - 1 + if flags == 0 { 0 } else { 4 } <= self.largest
    }

    pub(crate) fn store(
        &mut self,
        verb: Verb,
        key: &[u8],
        flags: u32,
        time: Time,
        data: &[u8],
    ) -> &'static str {
        let extends = matches!(verb, Verb::Append | Verb::Prepend);
        if !self.fits(key, if extends { 0 } else { flags }, data.len()) {
            if verb == Verb::Set {
                self.items.remove(key);
            }
            return "SERVER_ERROR object too large for cache";
        }
        let there = self.items.get(key).cloned();
        match (verb, there) {
            (Verb::Set, _) | (Verb::Add, None) | (Verb::Replace, Some(_)) => {
                self.put(key, flags, self.gone_at(time), data.to_vec());
            }
            // What would become too large stays as it is.
            (Verb::Append | Verb::Prepend, Some(item))
                if !self.fits(key, item.flags, item.data.len() + data.len()) =>
            {
                return "NOT_STORED";
            }
            (Verb::Append, Some(item)) => {
                self.put(key, item.flags, item.gone_at, [&item.data, data].concat())
            }
            (Verb::Prepend, Some(item)) => {
                self.put(key, item.flags, item.gone_at, [data, &item.data].concat())
            }
            _ => return "NOT_STORED",
        }
        "STORED"
    }

    pub(crate) fn cas(
        &mut self,
        key: &[u8],
        flags: u32,
        time: Time,
        data: &[u8],
        wanted: Wanted,
    ) -> &'static str {
        match (self.items.contains_key(key), wanted) {
            (false, _) => NOT_FOUND,
            (true, Wanted::Other) => "EXISTS",
            (true, Wanted::Current) => {
                self.put(key, flags, self.gone_at(time), data.to_vec());
                "STORED"
            }
        }
    }

    /// The version of an item that is there.
    pub(crate) fn version(&self, key: &[u8]) -> Option<u64> {
        self.items.get(key).map(|item| item.version)
    }

    /// The values of those keys that are there. With a time: each of them is given it after it has been read.
    pub(crate) fn get(&mut self, keys: &[Vec<u8>], with_cas: bool, time: Option<Time>) -> Vec<Piece> {
        let mut reply = Vec::new();
        for key in keys {
            if let Some(item) = self.items.get(key) {
                let mut line = [b"VALUE ", key.as_slice()].concat();
                line.extend_from_slice(format!(" {} {}", item.flags, item.data.len()).as_bytes());
                if with_cas {
                    line.push(b' ');
                    reply.extend([Piece::Bytes(line), Piece::Number(item.version)]);
                    line = Vec::new();
                }
                let data = item.data.as_slice();
                reply.push(Piece::Bytes([line.as_slice(), b"\r\n", data, b"\r\n"].concat()));
            }
            if let Some(time) = time {
                self.touch(key, time);
            }
        }
        reply.push(Piece::Bytes(b"END\r\n".to_vec()));
        reply
    }

    pub(crate) fn touch(&mut self, key: &[u8], time: Time) -> &'static str {
        let gone_at = self.gone_at(time);
        let alive = self.alive(gone_at);
        let Some(item) = self.items.get_mut(key) else { return NOT_FOUND };
        item.gone_at = gone_at;
        if !alive {
            self.items.remove(key);
        }
        "TOUCHED"
    }

    pub(crate) fn delete(&mut self, key: &[u8]) -> &'static str {
        self.items.remove(key).map_or(NOT_FOUND, |_| "DELETED")
    }

    /// `incr` and, with a negative sign, `decr`.
    pub(crate) fn add(&mut self, key: &[u8], delta: u64, negative: bool) -> String {
        let Some(item) = self.items.get(key).cloned() else { return NOT_FOUND.into() };
        let Some(old) = number(&item.data) else {
            return "CLIENT_ERROR cannot increment or decrement non-numeric value".into();
        };
        let new = if negative { old.saturating_sub(delta) } else { old.wrapping_add(delta) };
        let mut data = new.to_string().into_bytes();
        data.resize(item.data.len().max(data.len()), b' ');
        self.put(key, item.flags, item.gone_at, data);
        new.to_string()
    }

    /// At once, or when a clock that has come so far goes on by the rest of a second; a delay of one second has none
    /// left.
    pub(crate) fn flush(&mut self, delay: Option<u32>) {
        self.flush_at = None;
        self.hidden = None;
        match delay {
            Some(delay @ 2..) => self.flush_at = Some(self.now + u64::from(delay) - 1),
            delay => {
                self.hidden = delay.filter(|delay| *delay == 1).map(|_| self.now);
                self.items.clear();
            }
        }
    }
}

/// A number with white space around it, or more behind that. Signs are not put into values here.
fn number(data: &[u8]) -> Option<u64> {
    let is_blank = |byte: &u8| (b'\t'..=b'\r').contains(byte) || *byte == b' ';
    let start = data.iter().position(|byte| !is_blank(byte))?;
    let digits = data[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let ends_well = data.get(start + digits).is_none_or(|byte| is_blank(byte) || *byte == 0);
    let digits = std::str::from_utf8(&data[start..start + digits]).ok()?;
    digits.parse().ok().filter(|_| ends_well)
}
