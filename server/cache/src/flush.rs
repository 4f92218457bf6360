//! Flushing: everything stored so far becomes invisible at once.
//!
//! An item carries the number of the flush it was stored after, modulo four: its *generation*. A flush raises the
//! current generation, one store, and from then on no lookup finds an older item. The old items are swept out by
//! housekeeping, by the hands, which take them first, and by whoever is short of memory ([`crate::reclaim`]).
//!
//! Two bits suffice because a generation is not used again before the items of its last use are gone: a sweep over all
//! pages that began after every operation that had seen the old generation was over ([`crate::epoch`] tells when that
//! is). A fourth flush that comes before the sweep of the first one is done waits for it; nobody flushes that often.
//!
//! A flush in the future is a time to wait for: housekeeping, or whoever looks at the clock first, carries it out.
//!
//! Rejected: a time of storing in every item (memcached), four bytes each, and items stored in the second of the flush
//! are in doubt; comparing stamps, which wrap.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use parking_lot::Mutex;

use crate::epoch::Epoch;
use crate::item::Generation;

/// Generations that may await their sweep before one is used again.
const MOST_UNSWEPT: u8 = 3;

/// The current generation and what is left of the earlier ones.
#[derive(Debug)]
pub(crate) struct Flushes {
    current: AtomicU8,
    /// Earlier generations of which items may be left: changed under the lock of `state`, looked at without it.
    unswept: AtomicU8,
    /// Flushes so far.
    flushed: AtomicU32,
    state: Mutex<Pending>,
}

#[derive(Debug, Default)]
struct Pending {
    /// The stamp of the last flush: operations pinned before it may have seen the generation before.
    last: Option<Epoch>,
    /// When a flush is due.
    due: Option<u32>,
}

/// Flushes whose items are being swept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sweep {
    stamp: Epoch,
}

impl Flushes {
    pub(crate) fn new() -> Self {
        Flushes {
            current: AtomicU8::new(0),
            unswept: AtomicU8::new(0),
            flushed: AtomicU32::new(0),
            state: Mutex::default(),
        }
    }

    /// The generation of items stored now. Who has pinned before may rely on its items not being swept away as older
    /// ones'.
    #[inline]
    pub(crate) fn generation(&self) -> Generation {
        // Relaxed: an operation concurrent with a flush may come before or after it; the fences of pin and stamp order
        // the rest.
        Generation::new(self.current.load(Ordering::Relaxed))
    }

    /// Starts the next generation, unless too many await their sweep: then nothing happens, and `false`. `stamp` gives
    /// the epoch after the change.
    pub(crate) fn flush(&self, stamp: impl FnOnce() -> Epoch) -> bool {
        let mut pending = self.state.lock();
        let unswept = self.unswept.load(Ordering::Relaxed);
        if unswept == MOST_UNSWEPT {
            return false;
        }
        self.unswept.store(unswept + 1, Ordering::Relaxed);
        self.current.store(self.current.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        self.flushed.fetch_add(1, Ordering::Relaxed);
        pending.last = Some(stamp());
        true
    }

    /// Flushes so far.
    pub(crate) fn flushed(&self) -> u32 {
        self.flushed.load(Ordering::Relaxed)
    }

    /// A flush is to take place at `second`, in place of one that was to; `None` calls that off.
    pub(crate) fn schedule(&self, second: Option<u32>) {
        self.state.lock().due = second;
    }

    /// Whether a scheduled flush is due; it is scheduled no more then.
    pub(crate) fn take_due(&self, now: u32) -> bool {
        self.state.lock().due.take_if(|due| *due <= now).is_some()
    }

    /// What a sweep over all pages that begins now would clear away, if all that are pinned are pinned since `safe`.
    pub(crate) fn begin_sweep(&self, safe: Epoch) -> Option<Sweep> {
        let pending = self.state.lock();
        let stamp = pending.last.filter(|_| self.is_pending())?;
        (stamp < safe).then_some(Sweep { stamp })
    }

    /// A sweep has been over all pages. If there was another flush meanwhile, that one's items await another sweep, and
    /// so do, to be safe, all others.
    pub(crate) fn end_sweep(&self, sweep: Sweep) {
        let mut pending = self.state.lock();
        if pending.last == Some(sweep.stamp) {
            self.unswept.store(0, Ordering::Relaxed);
            pending.last = None;
        }
    }

    /// Whether items of earlier generations may be left.
    #[inline]
    pub(crate) fn is_pending(&self) -> bool {
        self.unswept.load(Ordering::Relaxed) > 0
    }
}
