//! `watch`: being told what happens.

use std::ops::BitOr;

use super::format::RequestLine;
use crate::token::Tokens;

/// A set of streams of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Streams(u32);

/// The streams by their names. Of system events and of those of memcached's proxy there are none here; who watches them
/// is told nothing, as by a memcached without a proxy.
const NAMES: [(&str, Streams); 10] = [
    ("fetchers", Streams::FETCHERS),
    ("mutations", Streams::MUTATIONS),
    ("evictions", Streams::EVICTIONS),
    ("connevents", Streams::CONNEVENTS),
    ("deletions", Streams::DELETIONS),
    ("sysevents", Streams::SYSEVENTS),
    ("rawcmds", Streams::RAWCMDS),
    ("proxyreqs", Streams::PROXYREQS),
    ("proxyevents", Streams::PROXYEVENTS),
    ("proxyuser", Streams::PROXYUSER),
];

impl Streams {
    /// None.
    pub const NONE: Streams = Streams(0);
    /// Keys that are looked up.
    pub const FETCHERS: Streams = Streams(1);
    /// Values that are stored, or not.
    pub const MUTATIONS: Streams = Streams(2);
    /// Items that make way for others.
    pub const EVICTIONS: Streams = Streams(4);
    /// Clients that come and go.
    pub const CONNEVENTS: Streams = Streams(8);
    /// Items that are deleted.
    pub const DELETIONS: Streams = Streams(16);
    /// What memcached's own threads do.
    pub const SYSEVENTS: Streams = Streams(32);
    /// Lines as they come.
    pub const RAWCMDS: Streams = Streams(64);
    /// What a proxy is asked.
    pub const PROXYREQS: Streams = Streams(128);
    /// What happens to a proxy's servers.
    pub const PROXYEVENTS: Streams = Streams(256);
    /// What a proxy's own program says.
    pub const PROXYUSER: Streams = Streams(512);

    /// A bit for each stream.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Whether it has one of those streams.
    pub const fn contains(self, other: Streams) -> bool {
        self.0 & other.0 != 0
    }

    fn named(name: &[u8]) -> Option<Streams> {
        NAMES.iter().find(|(known, _)| known.as_bytes() == name).map(|&(_, stream)| stream)
    }
}

impl BitOr for Streams {
    type Output = Streams;

    fn bitor(self, other: Streams) -> Streams {
        Streams(self.0 | other.0)
    }
}

/// `<stream>*`; without one: `fetchers`. `None` if there is no such stream.
pub(super) fn parse(rest: &[u8]) -> Option<Streams> {
    Tokens::after_name(rest)
        .try_fold(Streams::NONE, |streams, name| Streams::named(name).map(|stream| streams | stream))
        .map(|streams| if streams == Streams::NONE { Streams::FETCHERS } else { streams })
}

pub(super) fn write(line: &mut RequestLine<'_>, streams: Option<Streams>) {
    line.name("watch");
    match streams {
        Some(streams) => {
            for (name, stream) in NAMES {
                if streams.contains(stream) {
                    line.bytes(name.as_bytes());
                }
            }
        }
        None => line.bytes(b"unknown"),
    }
}
