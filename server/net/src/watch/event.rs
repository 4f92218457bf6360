//! An event, and the line that memcached writes of it.

use std::fmt::{self, Display, Write};
use std::os::fd::RawFd;
use std::time::Duration;

use cache::engine::Evicted;
use protocol::Streams;

use crate::connections::Place;

/// What has happened, when, to which key, and the how manieth event it was.
#[derive(Debug)]
pub(crate) struct Event {
    /// Unix time.
    pub(super) at: Duration,
    pub(super) number: u64,
    pub(super) what: What,
    pub(super) key: Box<[u8]>,
}

/// What has happened. Classes are numbered from 1 on, as statistics show them; 0 is none.
#[derive(Debug, Clone)]
pub(crate) enum What {
    /// A key was looked up.
    Fetched { status: Fetched, class: u8, size: usize, descriptor: RawFd },
    /// A value was to be stored.
    Stored { status: StoredAs, command: &'static str, ttl: u32, class: u8, size: usize, descriptor: RawFd },
    /// An item was deleted.
    Deleted { command: Command, class: u8, size: usize },
    /// An item made way for others.
    Evicted { fetched: bool, ttl: Option<u32>, last_access: u32, class: u8, size: usize },
    /// A request has come: its line, or what a frame says, stands in the key's place.
    Asked { descriptor: RawFd },
    /// It was answered: what with stands in the key's place.
    Answered { descriptor: RawFd },
    /// A value is sent.
    Sent { descriptor: RawFd },
    /// A client has come.
    Connected { peer: Place, descriptor: RawFd },
    /// A client has gone.
    Closed { peer: Place, ending: Ending, descriptor: RawFd },
}

/// What became of a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fetched {
    NotFound,
    Found,
    Flushed,
    Expired,
}

/// What became of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoredAs {
    NotStored,
    Stored,
    Exists,
    NotFound,
    TooLarge,
    NoMemory,
}

/// What an item was deleted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    Delete,
    MetaDelete,
}

/// Why a connection has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Error,
    Normal,
    IdleTimeout,
}

impl What {
    /// That an item has made way.
    pub(super) fn evicted(evicted: &Evicted<'_>) -> What {
        What::Evicted {
            fetched: evicted.fetched,
            ttl: evicted.ttl,
            last_access: evicted.idle,
            class: evicted.class + 1,
            size: evicted.value_len,
        }
    }

    /// The stream that it belongs to.
    pub(super) fn stream(&self) -> Streams {
        match self {
            What::Fetched { .. } => Streams::FETCHERS,
            What::Stored { .. } => Streams::MUTATIONS,
            What::Deleted { .. } => Streams::DELETIONS,
            What::Evicted { .. } => Streams::EVICTIONS,
            What::Connected { .. } | What::Closed { .. } => Streams::CONNEVENTS,
            What::Asked { .. } => Streams::RAWCMDS,
            // For the log alone.
            What::Answered { .. } | What::Sent { .. } => Streams::NONE,
        }
    }
}

impl Event {
    /// The line that is told of it, with its line feed.
    pub(super) fn write_line(&self, line: &mut String) {
        // memcached writes the microseconds without leading zeros; nobody could read them as a part of a second so.
        let _ = write!(line, "ts={}.{:06} gid={} ", self.at.as_secs(), self.at.subsec_micros(), self.number);
        let text = Printable(&self.key);
        let key = UriEncoded(&self.key);
        let _ = match &self.what {
            What::Fetched { status, class, size, descriptor } => writeln!(
                line,
                "type=item_get key={key} status={} clsid={class} cfd={descriptor} size={size}",
                match status {
                    Fetched::NotFound => "not_found",
                    Fetched::Found => "found",
                    Fetched::Flushed => "flushed",
                    Fetched::Expired => "expired",
                }
            ),
            What::Stored { status, command, ttl, class, size, descriptor } => writeln!(
                line,
                "type=item_store key={key} status={} cmd={command} ttl={ttl} clsid={class} cfd={descriptor} \
                 size={size}",
                match status {
                    StoredAs::NotStored => "not_stored",
                    StoredAs::Stored => "stored",
                    StoredAs::Exists => "exists",
                    StoredAs::NotFound => "not_found",
                    StoredAs::TooLarge => "too_large",
                    StoredAs::NoMemory => "no_memory",
                }
            ),
            What::Deleted { command, class, size } => writeln!(
                line,
                "type=deleted key={key} cmd={} clsid={class} size={size}",
                match command {
                    Command::Delete => "delete",
                    Command::MetaDelete => "md",
                }
            ),
            What::Evicted { fetched, ttl, last_access, class, size } => writeln!(
                line,
                "type=eviction key={key} fetch={} ttl={} la={last_access} clsid={class} size={size}",
                if *fetched { "yes" } else { "no" },
                ttl.map_or(-1, i64::from),
            ),
            What::Connected { peer, descriptor } => {
                writeln!(line, "type=conn_new {} cfd={descriptor}", Remote(peer))
            }
            What::Closed { peer, ending, descriptor } => writeln!(
                line,
                "type=conn_close {} reason={} cfd={descriptor}",
                Remote(peer),
                match ending {
                    Ending::Error => "error",
                    Ending::Normal => "normal",
                    Ending::IdleTimeout => "idle_timeout",
                }
            ),
            What::Asked { descriptor } => writeln!(line, "<{descriptor} {text}"),
            What::Answered { descriptor } | What::Sent { descriptor } => {
                writeln!(line, ">{descriptor} {text}")
            }
        };
    }

    /// The line of the server's own log, without a line feed, as memcached writes it with `-vv`; with `all` as with
    /// `-vvv`. Nothing for what is not logged.
    pub(super) fn write_log(&self, all: bool, line: &mut String) {
        let text = Printable(&self.key);
        let _ = match &self.what {
            What::Asked { descriptor } => write!(line, "<{descriptor} {text}"),
            What::Answered { descriptor } => write!(line, ">{descriptor} {text}"),
            What::Sent { descriptor } => write!(line, ">{descriptor} sending key {text}"),
            What::Connected { peer, descriptor } => {
                write!(line, "<{descriptor} new client connection {}", Remote(peer))
            }
            What::Closed { descriptor, .. } => write!(line, "<{descriptor} connection closed."),
            What::Fetched { status: Fetched::Found, .. } if all => write!(line, "> FOUND KEY {text}"),
            What::Fetched { .. } if all => write!(line, "> NOT FOUND {text}"),
            What::Fetched { .. } | What::Stored { .. } | What::Deleted { .. } | What::Evicted { .. } => {
                Ok(())
            }
        };
    }
}

/// Where a client is, in three words.
struct Remote<'a>(&'a Place);

impl Display for Remote<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Place::Tcp(address) => {
                write!(f, "rip={} rport={} transport=tcp", address.ip(), address.port())
            }
            Place::Unix(_) | Place::Nameless => f.write_str("rip=unix rport=0 transport=local"),
        }
    }
}

/// What a client has sent, as it stands in a log: nothing in it moves a terminal's cursor.
struct Printable<'a>(&'a [u8]);

impl Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &byte in self.0 {
            if byte == b' ' || byte.is_ascii_graphic() {
                f.write_char(char::from(byte))?;
            } else {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// A key as it stands in lines: what could be taken for something else in two hexadecimal digits.
pub(crate) struct UriEncoded<'a>(pub(crate) &'a [u8]);

impl Display for UriEncoded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &byte in self.0 {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                f.write_char(char::from(byte))?;
            } else {
                write!(f, "%{byte:02X}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(what: What, key: &[u8]) -> String {
        let mut line = String::new();
        let at = Duration::new(1_795_846_593, 41_577_000);
        Event { at, number: 13, what, key: key.into() }.write_line(&mut line);
        line.strip_prefix("ts=1795846593.041577 gid=13 type=").expect("the same of all").to_owned()
    }

    #[test]
    fn lines_are_those_of_memcached() {
        let got = What::Fetched { status: Fetched::Found, class: 1, size: 3, descriptor: 33 };
        assert_eq!(line(got, b"bar%x"), "item_get key=bar%25x status=found clsid=1 cfd=33 size=3\n");
        let missed = What::Fetched { status: Fetched::NotFound, class: 0, size: 0, descriptor: 33 };
        assert_eq!(
            line(missed, b"sp\x01c\xff"),
            "item_get key=sp%01c%FF status=not_found clsid=0 cfd=33 size=0\n"
        );
        let stored = What::Stored {
            status: StoredAs::Stored,
            command: "set",
            ttl: 100,
            class: 1,
            size: 3,
            descriptor: 33,
        };
        assert_eq!(
            line(stored, b"k"),
            "item_store key=k status=stored cmd=set ttl=100 clsid=1 cfd=33 size=3\n"
        );
        let deleted = What::Deleted { command: Command::MetaDelete, class: 1, size: 4 };
        assert_eq!(line(deleted, b"k"), "deleted key=k cmd=md clsid=1 size=4\n");
        let evicted = What::Evicted { fetched: true, ttl: None, last_access: 9, class: 2, size: 100 };
        assert_eq!(line(evicted, b"k"), "eviction key=k fetch=yes ttl=-1 la=9 clsid=2 size=100\n");
        let peer = Place::Tcp(([127, 0, 0, 1], 53142).into());
        let came = What::Connected { peer: peer.clone(), descriptor: 34 };
        assert_eq!(line(came, b""), "conn_new rip=127.0.0.1 rport=53142 transport=tcp cfd=34\n");
        let went = What::Closed { peer, ending: Ending::Normal, descriptor: 34 };
        assert_eq!(
            line(went, b""),
            "conn_close rip=127.0.0.1 rport=53142 transport=tcp reason=normal cfd=34\n"
        );
        let local = What::Closed { peer: Place::Nameless, ending: Ending::IdleTimeout, descriptor: 4 };
        assert_eq!(
            line(local, b""),
            "conn_close rip=unix rport=0 transport=local reason=idle_timeout cfd=4\n"
        );
    }
}
