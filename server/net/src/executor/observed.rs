//! What is done only while somebody looks on: events for those who watch, and counts by prefix.
//!
//! A command asks one question, [`Executor::is_observed`], which is a word of the executor's own, read once a turn from
//! what all share; all else is out of its way.

use std::os::fd::RawFd;

use cache::engine::{Counts, Expiry, Hit};
use protocol::{DetailRequest, ErrorReply, Streams, reply};

use super::{After, Executor};
use crate::executor::Errand;
use crate::output::Output;
use crate::watch::{Command, Ending, Fetched, StoredAs, What};

/// What is known of an item that a command met.
#[derive(Debug, Clone, Copy)]
pub(super) struct Met {
    pub(super) class: u8,
    pub(super) size: usize,
}

/// Bytes of a request, or of a reply, that are told.
const MOST_TOLD: usize = 2048;

impl Met {
    pub(super) fn of(hit: &Hit<'_>) -> Met {
        Met { class: hit.class(), size: hit.value_len() }
    }
}

impl Executor {
    /// Begins a turn of the connection with this socket.
    pub(crate) fn begin_turn(&mut self, descriptor: RawFd) {
        self.descriptor = descriptor;
        self.look_around();
    }

    /// Sees who looks on at the moment.
    pub(super) fn look_around(&mut self) {
        self.observers = self.shared.watch.observers();
    }

    /// Whether requests are told as they come.
    #[inline]
    pub(crate) fn hears_requests(&self) -> bool {
        self.observers.hear_requests()
    }

    /// A request has come, of which this is to be told.
    #[cold]
    pub(crate) fn observe_request(&self, text: &[u8]) {
        let text = &text[..text.len().min(MOST_TOLD)];
        self.log.write(What::Asked { descriptor: self.descriptor }, text);
    }

    /// It was answered like this.
    #[cold]
    pub(crate) fn observe_reply(&self, text: &[u8]) {
        if self.observers.log() {
            let text = &text[..text.len().min(MOST_TOLD)];
            self.log.write(What::Answered { descriptor: self.descriptor }, text);
        }
    }

    /// Whether somebody looks on.
    #[inline]
    pub(super) fn is_observed(&self) -> bool {
        !self.observers.is_none()
    }

    /// A key was looked up.
    #[cold]
    pub(super) fn observe_get(&self, key: &[u8], met: Option<Met>, before: &Counts) {
        if self.observers.detail() {
            self.prefixes.note(key, |uses| {
                uses.gets += 1;
                uses.hits += u64::from(met.is_some());
            });
        }
        self.observe_lookup(key, met, before);
        if met.is_some() && self.observers.log() {
            self.log.write(What::Sent { descriptor: self.descriptor }, key);
        }
    }

    /// A key was looked up by another command than a get.
    #[cold]
    pub(super) fn observe_lookup(&self, key: &[u8], met: Option<Met>, before: &Counts) {
        if !self.observers.hear_lookups() {
            return;
        }
        let counts = self.session.counts();
        let status = match met {
            Some(_) => Fetched::Found,
            None if counts.expired > before.expired => Fetched::Expired,
            None if counts.flushed > before.flushed => Fetched::Flushed,
            None => Fetched::NotFound,
        };
        let (class, size) = met.map_or((0, 0), |met| (met.class + 1, met.size));
        self.log.write(What::Fetched { status, class, size, descriptor: self.descriptor }, key);
    }

    /// A value was to be stored. `class` is that of the item that was made for it, if one was.
    #[cold]
    pub(super) fn observe_store(
        &self,
        key: &[u8],
        status: StoredAs,
        command: &'static str,
        expiry: Expiry,
        met: Option<Met>,
    ) {
        if self.observers.detail() && status != StoredAs::TooLarge {
            self.prefixes.note(key, |uses| uses.sets += 1);
        }
        if self.observers.watch(Streams::MUTATIONS) {
            let ttl = match expiry {
                Expiry::Never => 0,
                // It wraps where it has passed, as memcached's does.
                Expiry::At(second) => second.wrapping_sub(self.shared.cache.time()),
            };
            let (class, size) = met.map_or((0, 0), |met| (met.class + 1, met.size));
            let descriptor = self.descriptor;
            self.log.write(What::Stored { status, command, ttl, class, size, descriptor }, key);
        }
    }

    /// What is there now, before something is done with it.
    #[cold]
    pub(super) fn before_a_change(&mut self, key: &[u8]) -> Option<Met> {
        let pinned = self.session.pin();
        let hit = pinned.peek(key)?;
        Some(Met::of(&hit))
    }

    /// A key is about to be stored or deleted: memcached looks it up first, and tells so. What is there now.
    #[cold]
    pub(super) fn observe_target(&mut self, key: &[u8]) -> Option<Met> {
        let before = self.session.counts();
        let met = self.before_a_change(key);
        self.observe_lookup(key, met, &before);
        met
    }

    /// A key was deleted, if it was there.
    #[cold]
    pub(super) fn observe_delete(&self, key: &[u8], command: Command, met: Option<Met>) {
        if self.observers.detail() {
            self.prefixes.note(key, |uses| uses.deletes += 1);
        }
        if let Some(Met { class, size }) = met
            && self.observers.watch(Streams::DELETIONS)
        {
            self.log.write(What::Deleted { command, class: class + 1, size }, key);
        }
    }

    /// A client has come.
    pub(crate) fn observe_arrival(&self, peer: &crate::connections::Place, descriptor: RawFd) {
        if self.shared.watch.observers().hear_clients() {
            self.log.write(What::Connected { peer: peer.clone(), descriptor }, b"");
        }
    }

    /// A client has gone.
    pub(crate) fn observe_parting(
        &self,
        peer: &crate::connections::Place,
        ending: Ending,
        descriptor: RawFd,
    ) {
        if self.shared.watch.observers().hear_clients() {
            self.log.write(What::Closed { peer: peer.clone(), ending, descriptor }, b"");
        }
    }

    /// Has a client watch.
    pub(super) fn watch(&mut self, streams: Option<Streams>, output: &mut Output) -> After {
        let refused = match streams {
            _ if !self.shared.settings.watch_allowed => ErrorReply::WatchNotAllowed,
            None => ErrorReply::Error,
            Some(streams) => match self.shared.watch.enter(streams) {
                None => ErrorReply::TooManyWatchers,
                Some(seat) => {
                    output.bytes().extend_from_slice(reply::OK);
                    return self.goes_aside(Errand::Watch(seat));
                }
            },
        };
        output.bytes().extend_from_slice(refused.bytes());
        After::GoOn
    }

    /// Counts by prefix, or no more, or says what was counted.
    pub(crate) fn detail(&mut self, request: DetailRequest, output: &mut Output) {
        if !self.shared.settings.dumps_allowed {
            return output.bytes().extend_from_slice(ErrorReply::StatsDetailNotAllowed.bytes());
        }
        let answer = match request {
            DetailRequest::On | DetailRequest::Off => {
                self.shared.watch.switch_detail(request == DetailRequest::On);
                self.look_around();
                reply::OK
            }
            DetailRequest::Dump => {
                self.shared.prefixes.write(output.bytes());
                reply::END
            }
            DetailRequest::Unknown => ErrorReply::StatsDetailUsage.bytes(),
        };
        output.bytes().extend_from_slice(answer);
    }
}
