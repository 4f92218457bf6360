//! The search for pages with dead items that nobody has noticed: expired, or flushed.
//!
//! Every page knows when the first of its items expires; what was flushed may lie on any page. A search goes all around
//! the pages, once for each second and each flush, from where the last one has stopped; in between, a word says that
//! there is nothing to be found.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::arena::PageNumber;
use crate::flush::Flushes;
use crate::page::Memory;

/// By what items are dead.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) now: u32,
    /// The flush before which all is dead.
    pub(crate) flush: u32,
}

impl Moment {
    fn word(self) -> u64 {
        u64::from(self.now) << 32 | u64::from(self.flush)
    }
}

/// A search for pages with dead items, and what it has come to.
pub(crate) struct Search {
    /// The moment at which there was none left.
    clear_at: AtomicU64,
    round: Mutex<Round>,
}

/// Once around the pages.
struct Round {
    moment: Moment,
    next: PageNumber,
    /// Pages still to be asked whether something on them has expired by that moment.
    unasked: PageNumber,
    /// Pages still to be walked for what was flushed before that moment.
    unwalked: PageNumber,
    /// When that flush was noticed, by the pool's clock: what has come to its class since holds nothing of before.
    noticed: u32,
}

impl Search {
    pub(crate) fn new() -> Self {
        let moment = Moment { now: 0, flush: 0 };
        Search {
            clear_at: AtomicU64::new(moment.word()),
            round: Mutex::new(Round { moment, next: 0, unasked: 0, unwalked: 0, noticed: 0 }),
        }
    }

    /// Whether nothing was left that was dead at that moment.
    pub(crate) fn is_over(&self, moment: Moment) -> bool {
        // Relaxed: a hint, and the search itself is under its lock.
        self.clear_at.load(Ordering::Relaxed) == moment.word()
    }

    /// The next page that may hold dead items; `None` once all have been asked.
    pub(crate) fn next(&self, moment: Moment, memory: Memory<'_>, flushes: &Flushes) -> Option<PageNumber> {
        let mut round = self.round.lock();
        let touched = memory.pool.touched();
        if round.moment.flush != moment.flush {
            round.unwalked = touched;
            round.noticed = memory.pool.turns();
        }
        if round.moment != moment {
            round.unasked = touched;
            round.moment = moment;
        }
        while round.unasked > 0 || round.unwalked > 0 {
            let page = if round.next < touched { round.next } else { 0 };
            round.next = page + 1;
            let may_be_flushed =
                round.unwalked > 0 && flushes.is_pending() && !memory.page(page).came_after(round.noticed);
            round.unasked = round.unasked.saturating_sub(1);
            round.unwalked = round.unwalked.saturating_sub(1);
            if may_be_flushed || memory.page(page).earliest_expiry() <= moment.now {
                return Some(page);
            }
        }
        self.clear_at.store(moment.word(), Ordering::Relaxed);
        None
    }
}
