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
//! A flush in the future is a second to wait for. When it comes, housekeeping flushes, and until it is over the current
//! generation *hides*: what is stored gets the generation before, so it is as good as flushed when it comes. (That is
//! what memcached does, which then takes every item of that second or an earlier one for flushed.) Whether it hides is
//! a bit of the same word, so that nobody sees the one without the other; the clock says when the second is over, and
//! not whoever clears the bit, so nothing is hidden that is stored after it. What was hidden after a sweep had begun
//! awaits another one.
//!
//! Rejected: a time of storing in every item (memcached), four bytes each, and items stored in the second of the flush
//! are in doubt; comparing stamps, which wrap.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering, fence};

use parking_lot::Mutex;

use crate::epoch::Epoch;
use crate::item::Generation;

/// Generations that may await their sweep before one is used again.
const MOST_UNSWEPT: u8 = 3;

/// The bit of the current generation that says that it hides.
const HIDES: u8 = 0x80;

/// The current generation and what is left of the earlier ones.
#[derive(Debug)]
pub(crate) struct Flushes {
    /// The flushes so far, modulo 128, and [`HIDES`]: changed under the lock of `state`.
    current: AtomicU8,
    /// The last second of which what is stored is hidden, while the current generation hides.
    hidden: AtomicU32,
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
    /// When a flush is due, and what is stored is hidden.
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
            hidden: AtomicU32::new(0),
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

    /// The generation of an item that is stored at `now`.
    #[inline]
    pub(crate) fn generation_to_store(&self, pinned: Generation, now: u32) -> Generation {
        #[cold]
        fn hiding(flushes: &Flushes, current: u8, pinned: Generation, now: u32) -> Generation {
            // Pairs with the release of `start`: who has seen the bit sees the second.
            fence(Ordering::Acquire);
            if now <= flushes.hidden.load(Ordering::Relaxed) { Generation::before(current) } else { pinned }
        }
        let current = self.current.load(Ordering::Relaxed);
        if current & HIDES == 0 { pinned } else { hiding(self, current, pinned, now) }
    }

    /// Starts the next generation, unless too many await their sweep: then nothing happens, and `false`. `stamp` gives
    /// the epoch after the change.
    pub(crate) fn flush(&self, stamp: impl FnOnce() -> Epoch) -> bool {
        self.start(&mut self.state.lock(), 0, stamp)
    }

    /// Carries out the flush that is due by this second, if one is; false if too many await their sweep. It is
    /// scheduled no more then, and what is stored until the second is over is hidden.
    pub(crate) fn flush_due(&self, second: u32, stamp: impl FnOnce() -> Epoch) -> bool {
        let mut pending = self.state.lock();
        let Some(due) = pending.due.filter(|due| *due <= second) else {
            if self.current.load(Ordering::Relaxed) & HIDES != 0
                && self.hidden.load(Ordering::Relaxed) < second
            {
                self.hide_no_more(&mut pending, stamp);
            }
            return true;
        };
        let hides = if due == second {
            self.hidden.store(due, Ordering::Relaxed);
            HIDES
        } else {
            0
        };
        let started = self.start(&mut pending, hides, stamp);
        if started {
            pending.due = None;
        }
        started
    }

    fn start(&self, pending: &mut Pending, hides: u8, stamp: impl FnOnce() -> Epoch) -> bool {
        let current = self.current.load(Ordering::Relaxed);
        // The generation before is one that awaits its sweep if something was hidden in it since the last one.
        let unswept = self.unswept.load(Ordering::Relaxed).max(u8::from(current & HIDES != 0));
        if unswept == MOST_UNSWEPT {
            return false;
        }
        self.unswept.store(unswept + 1, Ordering::Relaxed);
        // Release: pairs with the fence of `generation_to_store`.
        self.current.store(current.wrapping_add(1) & !HIDES | hides, Ordering::Release);
        self.flushed.fetch_add(1, Ordering::Relaxed);
        pending.last = Some(stamp());
        true
    }

    /// What is stored from now on is hidden no more.
    fn hide_no_more(&self, pending: &mut Pending, stamp: impl FnOnce() -> Epoch) {
        let current = self.current.load(Ordering::Relaxed);
        self.unswept.store(self.unswept.load(Ordering::Relaxed).max(1), Ordering::Relaxed);
        self.current.store(current & !HIDES, Ordering::Relaxed);
        pending.last = Some(stamp());
    }

    /// Flushes so far.
    pub(crate) fn flushed(&self) -> u32 {
        self.flushed.load(Ordering::Relaxed)
    }

    /// A flush is to take place at `second`, in place of one that was to, or that is hiding what is stored; `None`
    /// calls that off.
    pub(crate) fn schedule(&self, second: Option<u32>, stamp: impl FnOnce() -> Epoch) {
        let mut pending = self.state.lock();
        pending.due = second;
        if self.current.load(Ordering::Relaxed) & HIDES != 0 {
            self.hide_no_more(&mut pending, stamp);
        }
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
