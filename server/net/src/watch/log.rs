//! One thread's log of events, until the thread beside the workers takes it.
//!
//! The lock is held for a copy of some bytes by the one and for a swap of two buffers by the other. A thread that finds
//! it held drops its event rather than wait: who holds it may have lost its core.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::{Mutex, MutexGuard};

use super::event::{Event, What};

/// Bytes that a log may take: `worker_logbuf_size`.
pub(crate) const LOG_BYTES: usize = 64 << 10;

/// Events, and their keys one behind the other.
#[derive(Default)]
pub(crate) struct Entries {
    events: Vec<Event>,
    keys: Vec<u8>,
}

impl Entries {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    fn bytes(&self) -> usize {
        self.events.len() * size_of::<Event>() + self.keys.len()
    }

    /// Shows each event with its key, in order, and forgets all.
    pub(super) fn drain(&mut self, mut see: impl FnMut(&Event, &[u8])) {
        let mut keys = self.keys.as_slice();
        for event in &self.events {
            let (key, rest) = keys.split_at(event.key_len);
            keys = rest;
            see(event, key);
        }
        self.events.clear();
        self.keys.clear();
    }
}

/// One thread's log.
pub(crate) struct Log {
    entries: Arc<Mutex<Entries>>,
    number: Arc<AtomicU64>,
    written: Arc<AtomicU64>,
    dropped: Arc<AtomicU64>,
}

impl Log {
    pub(super) fn new(
        entries: Arc<Mutex<Entries>>,
        number: Arc<AtomicU64>,
        written: Arc<AtomicU64>,
        dropped: Arc<AtomicU64>,
    ) -> Self {
        Log { entries, number, written, dropped }
    }

    /// Notes an event, or drops it if there is no room.
    #[cold]
    pub(crate) fn write(&self, what: What, key: &[u8]) {
        Log::write_to_any(std::slice::from_ref(self), what, key);
    }

    /// Notes an event in the first of these logs that has room and that nobody holds at the moment.
    pub(super) fn write_to_any(logs: &[Log], what: What, key: &[u8]) {
        if let Some((log, entries)) = logs.iter().find_map(|log| Some((log, log.room_for(key)?))) {
            log.append(entries, what, key);
        } else if let Some(log) = logs.first() {
            // Relaxed, as all of these: numbers and counts that order nothing.
            log.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn room_for(&self, key: &[u8]) -> Option<MutexGuard<'_, Entries>> {
        let has_room = |entries: &Entries| entries.bytes() + size_of::<Event>() + key.len() <= LOG_BYTES;
        self.entries.try_lock().filter(|entries| has_room(entries))
    }

    fn append(&self, mut entries: MutexGuard<'_, Entries>, what: What, key: &[u8]) {
        entries.events.push(Event {
            at: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO),
            number: self.number.fetch_add(1, Ordering::Relaxed) + 1,
            what,
            key_len: key.len(),
        });
        entries.keys.extend_from_slice(key);
        self.written.fetch_add(1, Ordering::Relaxed);
    }
}
