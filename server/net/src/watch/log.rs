//! One thread's log of events, until the thread beside the workers takes them.
//!
//! A queue without a lock, and a count of the bytes in it, which bounds it. Nobody waits for anybody: who takes events
//! may lose its core in the midst of it, and does, for it gives way to the workers; those go on adding meanwhile.
//!
//! Rejected: *two buffers that are swapped under a lock*, whose writers dropped their event where they found it held.
//! A taker that lost its core with the lock in its hand had all events dropped that came until it was back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::event::{Event, What};

/// Bytes that a log may take: `worker_logbuf_size`.
pub(crate) const LOG_BYTES: usize = 64 << 10;

/// What has become of the events of all logs. Relaxed, all of it: numbers and counts that order nothing.
#[derive(Default)]
pub(super) struct Counts {
    /// The number of the last event.
    pub(super) number: AtomicU64,
    pub(super) written: AtomicU64,
    pub(super) dropped: AtomicU64,
}

/// One thread's log, or that of several who seldom have anything to tell.
pub(crate) struct Log {
    events: Sender<Event>,
    bytes: Arc<AtomicUsize>,
    /// As many as it may take.
    room: usize,
    counts: Arc<Counts>,
}

/// Where the events of a log are taken.
pub(super) struct LogReader {
    events: Receiver<Event>,
    bytes: Arc<AtomicUsize>,
}

/// A log with room for so many bytes, and its other end.
pub(super) fn log(room: usize, counts: Arc<Counts>) -> (Log, LogReader) {
    let (sender, receiver) = unbounded();
    let bytes = Arc::<AtomicUsize>::default();
    (Log { events: sender, bytes: bytes.clone(), room, counts }, LogReader { events: receiver, bytes })
}

/// What a log counts for an event.
fn bytes_of(key: &[u8]) -> usize {
    size_of::<Event>() + key.len()
}

impl Log {
    /// Notes an event, or drops it if there is no room.
    #[cold]
    pub(crate) fn write(&self, what: What, key: &[u8]) {
        let bytes = bytes_of(key);
        // Relaxed: a bound, beyond which no two threads rely on each other. Room is taken before it is used, so that
        // threads who share a log never use the same.
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > self.room {
            return self.drop_event(bytes);
        }
        let event = Event {
            at: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO),
            number: self.counts.number.fetch_add(1, Ordering::Relaxed) + 1,
            what,
            key: key.into(),
        };
        match self.events.send(event) {
            Ok(()) => {
                self.counts.written.fetch_add(1, Ordering::Relaxed);
            }
            // Nobody takes what is told after the server has gone.
            Err(_) => self.drop_event(bytes),
        }
    }

    fn drop_event(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.counts.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

impl LogReader {
    /// Shows each event that is here now, in order; how many there were.
    pub(super) fn take(&self, mut see: impl FnMut(&Event)) -> usize {
        // Not those that come meanwhile: other logs have waited longer.
        let mut taken = 0;
        for event in self.events.try_iter().take(self.events.len()) {
            see(&event);
            self.bytes.fetch_sub(bytes_of(&event.key), Ordering::Relaxed);
            taken += 1;
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::super::event::{Command, What};
    use super::*;

    fn deleted() -> What {
        What::Deleted { command: Command::Delete, class: 1, size: 1 }
    }

    /// However the thread that takes events and the one that writes them meet.
    #[test]
    fn nothing_is_dropped_while_there_is_room() {
        let counts = Arc::<Counts>::default();
        let (log, logged) = log(LOG_BYTES, counts.clone());
        let (seen, done) = (AtomicU64::new(0), AtomicBool::new(false));
        let count = 100_000;
        std::thread::scope(|scope| {
            let taker = scope.spawn(|| {
                while !done.load(Ordering::Acquire) || !logged.events.is_empty() {
                    logged.take(|event| {
                        // In order, and none is missing.
                        assert_eq!(event.number, seen.fetch_add(1, Ordering::Relaxed) + 1);
                    });
                }
            });
            for number in 0..count {
                while number - seen.load(Ordering::Relaxed) > 100 {
                    assert!(!taker.is_finished(), "it has failed");
                }
                log.write(deleted(), b"key");
            }
            // Release, to the loop above: what was written before is in the queue.
            done.store(true, Ordering::Release);
        });
        assert_eq!(seen.into_inner(), count);
        assert_eq!((counts.dropped.load(Ordering::Relaxed), log.bytes.load(Ordering::Relaxed)), (0, 0));
    }

    #[test]
    fn what_is_written_when_nobody_can_take_it_is_dropped() {
        let counts = Arc::<Counts>::default();
        let (log, logged) = log(LOG_BYTES, counts.clone());
        drop(logged);
        log.write(deleted(), b"key");
        assert_eq!((counts.dropped.load(Ordering::Relaxed), log.bytes.load(Ordering::Relaxed)), (1, 0));
    }
}
