//! `watch`: what happens in the server, told line by line to clients who ask for it.
//!
//! ```text
//!   worker 0: request --> event --> its log ---+
//!   worker 1: ...     --> event --> its log ---+--> aside: lines --> a buffer for each watcher --> its socket
//!   listener: ...     --> event --> its log ---+
//! ```
//!
//! A request pays for it only while somebody watches: then it appends an event to its worker's own [`Log`], which has
//! room for [`LOG_BYTES`]. The thread beside the workers ([`crate::aside`]) takes the events of each log in turn, makes
//! lines of them and sends them. Nobody waits for anybody: an event for which a log has no room is dropped and counted,
//! a line for which a watcher's buffer has none is skipped, counted, and the watcher is told how many were when there
//! is room again. The lines of one thread come in order; those of several can be put in order by their `gid`.
//!
//! The server's own log of requests (`-vv`, or `verbosity 2`) goes the same way, and is bounded by the same logs.

mod event;
mod log;
mod watcher;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use cache::engine::Cache;
use parking_lot::Mutex;

use event::Event;
pub(crate) use event::{Command, Ending, Fetched, StoredAs, UriEncoded, What};
use log::{Counts, LogReader};
pub(crate) use log::{LOG_BYTES, Log};
use protocol::Streams;
use tracing::debug;
pub(crate) use watcher::{WATCHER_BYTES, Watcher};

/// As many may watch at the same time.
const MOST_WATCHERS: usize = 20;
/// Bytes that the log of evictions may take, which all threads share.
const EVICTIONS_BYTES: usize = 4 * LOG_BYTES;
/// The bits of [`Observers`] that are no stream's: `stats detail` counts; requests are logged; lookups are, too.
const DETAIL: u32 = 1 << 31;
const LOGGED: u32 = 1 << 30;
const ALL_LOGGED: u32 = 1 << 29;
const NO_STREAMS: u32 = DETAIL | LOGGED | ALL_LOGGED;
/// The target of the lines that are logged, with `tracing`, of requests, as [`Settings::verbosity`] asks for it.
///
/// [`Settings::verbosity`]: crate::Settings::verbosity
pub const REQUESTS: &str = "lookaside::requests";

/// Who looks on: the streams that somebody watches, whether `stats detail` counts, and whether requests are logged. One
/// word, so that a request has one question to ask: is it zero?
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Observers(u32);

impl Observers {
    /// Whether nobody looks on.
    #[inline]
    pub(crate) fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether somebody watches one of these streams.
    #[inline]
    pub(crate) fn watch(self, streams: Streams) -> bool {
        self.0 & streams.bits() != 0
    }

    /// Whether `stats detail` counts.
    #[inline]
    pub(crate) fn detail(self) -> bool {
        self.0 & DETAIL != 0
    }

    /// Whether requests are logged.
    #[inline]
    pub(crate) fn log(self) -> bool {
        self.0 & LOGGED != 0
    }

    /// Whether requests are told as they come: they are logged, or somebody watches them.
    #[inline]
    pub(crate) fn hear_requests(self) -> bool {
        self.0 & (LOGGED | Streams::RAWCMDS.bits()) != 0
    }

    /// Whether lookups are told.
    #[inline]
    pub(crate) fn hear_lookups(self) -> bool {
        self.0 & (ALL_LOGGED | Streams::FETCHERS.bits()) != 0
    }

    /// Whether it is told that clients come and go.
    #[inline]
    pub(crate) fn hear_clients(self) -> bool {
        self.0 & (LOGGED | Streams::CONNEVENTS.bits()) != 0
    }
}

/// What has become of events and lines since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Logged {
    /// Events that a log had no room for.
    pub(crate) dropped: u64,
    /// Events that came into a log.
    pub(crate) written: u64,
    /// Lines that a watcher's buffer had no room for.
    pub(crate) skipped: u64,
    /// Lines that came into a watcher's buffer.
    pub(crate) sent: u64,
}

/// The logs of all threads, and who watches.
#[derive(Default)]
pub(crate) struct Watch {
    observers: AtomicU32,
    watchers: Mutex<Vec<Arc<Mutex<Watcher>>>>,
    logs: Mutex<Vec<LogReader>>,
    counts: Arc<Counts>,
    /// Of the events that were dropped, those of which the server's own log has told.
    told_dropped: AtomicU64,
    skipped: AtomicU64,
    sent: AtomicU64,
    /// Switches the cache's telling of evictions.
    tell_evictions: OnceLock<Box<dyn Fn(bool) + Send + Sync>>,
}

/// A watcher's place among all, left when this is dropped.
pub(crate) struct Seat {
    watch: Arc<Watch>,
    pub(crate) watcher: Arc<Mutex<Watcher>>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut watchers = self.watch.watchers.lock();
        watchers.retain(|watcher| !Arc::ptr_eq(watcher, &self.watcher));
        self.watch.set_streams(&watchers);
    }
}

impl Watch {
    /// A log for one thread.
    pub(crate) fn join(&self) -> Log {
        self.join_with(LOG_BYTES)
    }

    fn join_with(&self, room: usize) -> Log {
        let (log, logged) = log::log(room, self.counts.clone());
        self.logs.lock().push(logged);
        log
    }

    /// Hears of the evictions of a cache while somebody watches them. All threads that evict share a log.
    pub(crate) fn hear_of_evictions(self: &Arc<Self>, cache: &Cache) {
        let (log, kept) = (self.join_with(EVICTIONS_BYTES), cache.clone());
        cache.when_evicted(move |evicted| log.write(What::evicted(evicted), evicted.key));
        // There is one cache for each.
        let _ = self.tell_evictions.set(Box::new(move |on| kept.tell_evictions(on)));
    }

    /// Who looks on at the moment.
    #[inline]
    pub(crate) fn observers(&self) -> Observers {
        // Relaxed: who looks on a little later has missed a little.
        Observers(self.observers.load(Ordering::Relaxed))
    }

    /// Switches the counts by prefix.
    pub(crate) fn switch_detail(&self, on: bool) {
        if on {
            self.observers.fetch_or(DETAIL, Ordering::Relaxed);
        } else {
            self.observers.fetch_and(!DETAIL, Ordering::Relaxed);
        }
    }

    /// Logs requests from `-vv` on, and lookups from `-vvv` on.
    pub(crate) fn set_verbosity(&self, level: u32) {
        let log = match level {
            0 | 1 => 0,
            2 => LOGGED,
            _ => LOGGED | ALL_LOGGED,
        };
        let change = |observers| Some(observers & !(LOGGED | ALL_LOGGED) | log);
        let _ = self.observers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
    }

    /// One more watcher, who is told all that happens from here on; `None` if there are as many as there may be.
    pub(crate) fn enter(self: &Arc<Self>, streams: Streams) -> Option<Seat> {
        let mut watchers = self.watchers.lock();
        if watchers.len() == MOST_WATCHERS {
            return None;
        }
        let seen = self.counts.number.load(Ordering::Relaxed);
        let watcher = Arc::new(Mutex::new(Watcher::new(streams, seen)));
        watchers.push(watcher.clone());
        self.set_streams(&watchers);
        Some(Seat { watch: self.clone(), watcher })
    }

    /// How many watch.
    pub(crate) fn watchers(&self) -> usize {
        self.watchers.lock().len()
    }

    /// Has events of the streams that somebody watches, and of no others, logged from now on.
    fn set_streams(&self, watchers: &[Arc<Mutex<Watcher>>]) {
        let all = watchers.iter().fold(Streams::NONE, |all, watcher| all | watcher.lock().streams());
        let change = |observers| Some(observers & NO_STREAMS | all.bits());
        // It sets it, whatever it was.
        let _ = self.observers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
        if let Some(tell) = self.tell_evictions.get() {
            tell(all.contains(Streams::EVICTIONS));
        }
    }

    /// Makes lines of all events that were logged and adds them to the watchers' buffers, and to the server's own log
    /// if it has such lines; how many events there were.
    pub(crate) fn tell(&self) -> usize {
        let mut line = String::new();
        let (mut sent, mut skipped) = (0, 0);
        let observers = self.observers();
        let taken = self.take(|event| {
            line.clear();
            if observers.log() {
                event.write_log(observers.0 & ALL_LOGGED != 0, &mut line);
                if !line.is_empty() {
                    debug!(target: REQUESTS, "{line}");
                    line.clear();
                }
            }
            for watcher in self.watchers.lock().iter() {
                let mut watcher = watcher.lock();
                if watcher.wants(event) {
                    if line.is_empty() {
                        event.write_line(&mut line);
                    }
                    let count = if watcher.add(&line) { &mut sent } else { &mut skipped };
                    *count += 1;
                }
            }
        });
        let dropped = self.counts.dropped.load(Ordering::Relaxed);
        let missing = dropped - self.told_dropped.swap(dropped, Ordering::Relaxed);
        if observers.log() && missing > 0 {
            debug!(target: REQUESTS, "{missing} lines are missing: there was no room");
        }
        self.sent.fetch_add(sent, Ordering::Relaxed);
        self.skipped.fetch_add(skipped, Ordering::Relaxed);
        taken
    }

    /// Takes all events that were logged and shows each of them; how many there were.
    fn take(&self, mut see: impl FnMut(&Event)) -> usize {
        self.logs.lock().iter().map(|logged| logged.take(&mut see)).sum()
    }

    /// What has become of events and lines.
    pub(crate) fn logged(&self) -> Logged {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Logged {
            dropped: of(&self.counts.dropped),
            written: of(&self.counts.written),
            skipped: of(&self.skipped),
            sent: of(&self.sent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_at_most_twenty_watchers() {
        let watch = Arc::new(Watch::default());
        let mut seats: Vec<Seat> = (0..30).filter_map(|_| watch.enter(Streams::FETCHERS)).collect();
        assert_eq!((seats.len(), watch.watchers()), (MOST_WATCHERS, MOST_WATCHERS));
        seats.pop();
        assert!(watch.enter(Streams::FETCHERS).is_some());
        drop(seats);
        assert!(watch.watchers() == 0 && watch.observers().is_none());
    }

    #[test]
    fn detail_and_streams_do_not_disturb_each_other() {
        let watch = Arc::new(Watch::default());
        assert!(watch.observers().is_none());
        watch.switch_detail(true);
        let seat = watch.enter(Streams::FETCHERS);
        assert!(watch.observers().detail() && watch.observers().watch(Streams::FETCHERS));
        watch.switch_detail(false);
        assert!(watch.observers().watch(Streams::FETCHERS) && !watch.observers().watch(Streams::MUTATIONS));
        drop(seat);
        assert!(watch.observers().is_none());
    }

    #[test]
    fn each_is_told_what_it_watches_from_its_beginning_on() {
        let watch = Arc::new(Watch::default());
        let log = watch.join();
        let get = |key: &[u8]| {
            log.write(What::Fetched { status: Fetched::Found, class: 1, size: 1, descriptor: 7 }, key);
        };
        let first = watch.enter(Streams::FETCHERS).expect("room");
        get(b"one");
        let second = watch.enter(Streams::FETCHERS | Streams::DELETIONS).expect("room");
        get(b"two");
        log.write(What::Deleted { command: Command::Delete, class: 1, size: 1 }, b"three");
        assert_eq!(watch.tell(), 3);
        let told = |seat: &Seat| {
            let mut lines = Vec::new();
            seat.watcher.lock().send(&mut lines).expect("a vector takes all");
            let lines = String::from_utf8(lines).expect("text");
            lines.lines().map(|line| line.split("key=").nth(1).expect("a key").to_owned()).collect::<Vec<_>>()
        };
        let keys = |lines: Vec<String>| {
            lines.iter().map(|line| line.split(' ').next().unwrap_or_default().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(keys(told(&first)), ["one", "two"]);
        assert_eq!(keys(told(&second)), ["two", "three"]);
        assert_eq!(watch.logged(), Logged { dropped: 0, written: 3, skipped: 0, sent: 4 });
    }

    #[test]
    fn what_a_log_has_no_room_for_is_dropped_and_counted() {
        let watch = Watch::default();
        let log = watch.join();
        let other = watch.join();
        let mut count = 0;
        while watch.logged().dropped == 0 {
            log.write(
                What::Fetched { status: Fetched::Found, class: 1, size: 3, descriptor: 7 },
                &[b'k'; 250],
            );
            count += 1;
        }
        other.write(What::Fetched { status: Fetched::NotFound, class: 0, size: 0, descriptor: 7 }, b"x");
        assert!(count * 250 <= LOG_BYTES + 250 && count > 100, "{count}");
        let mut numbers = Vec::new();
        let taken = watch.take(|event| {
            numbers.push(event.number);
            assert!(event.key.len() == 250 || *event.key == *b"x");
        });
        assert_eq!(taken, count);
        assert!(numbers.is_sorted());
        assert_eq!(watch.logged(), Logged { dropped: 1, written: count as u64, skipped: 0, sent: 0 });
        // And there is room again.
        log.write(What::Fetched { status: Fetched::Found, class: 1, size: 3, descriptor: 7 }, b"k");
        assert_eq!(watch.take(|_| {}), 1);
    }
}
