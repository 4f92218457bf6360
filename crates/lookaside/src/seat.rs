//! What a thread keeps between its visits: random numbers, its account of hits and misses, its part of the monitor's
//! trials.
//!
//! A thread's seats wait for its next visit in a thread-local list: so visits of one lookup each are watched and
//! counted as long ones are.
//!
//! # On account
//!
//! Maps ask the monitor before each lookup, and that counts it. So a hit has nothing to count: hits are the lookups
//! that were let ask less those that missed. Nor has a lookup that was not let ask.
//!
//! # Which hits warm their slot
//!
//! Decided by the number of the lookup, before the bucket is looked at ([`crate::cadence`]); and then the slot of the
//! hit that counted before is warmed, whose line has come meanwhile: a hit writes one line at most, but another
//! bucket's than its own. A branch that depends on a line which is yet to come cannot be predicted, and a wrong guess
//! holds up all lookups behind it. Where every hit counts, as in the paper, each warms its own slot.

use std::cell::Cell;

use crate::cadence::Cadence;
use crate::countdown::Countdown;
use crate::fitting::Passed;
use crate::monitor::Monitor;
use crate::random::Random;
use crate::slb::{Emission, Slb};
use crate::stats::{Tally, Totals, count};
use crate::watch::{self, Lookups, Watch};
use crate::word::Pointer;

/// Keys looked up at once in a batch: enough to keep a core's misses busy, few enough to stay in its first-level cache.
pub(crate) const GROUP: usize = 16;

/// What one thread keeps: random numbers, counts that it has not told yet, and its part of the monitor's trials.
#[derive(Debug)]
pub struct Seat {
    pub(crate) random: Random,
    /// Which hits count. Begins anywhere: seats that are soon left would else never come to one that counts.
    cadence: Cadence,
    /// Hits until the next that counts, of those that are not on account.
    until: Cell<i32>,
    /// Lookups that the watch let ask ([`Seat::find_on_account`]), and those that it did not, that were told.
    told: Cell<(u64, u64)>,
    /// The hit that counted last.
    warming: Cell<Option<(u64, usize)>>,
    pub(crate) tally: Tally,
    /// Free slots filled: not told to anyone, and so never reset.
    pub(crate) filled: Cell<u64>,
    /// Keys thrown out since the table last was to fit.
    thrown_out: Cell<u64>,
    watch: Watch,
    /// That of who visits no longer, or of who looks up by the seat itself.
    pub(crate) countdown: Countdown,
}

/// For faces that keep guards and tables themselves, and count their lookups: the C interface.
impl Seat {
    /// Lookups between two calls of [`Seat::turn`].
    pub const TURN: u32 = watch::BLOCK;

    /// Counts lookups that this seat was not asked for: those answered by reading the table's lines, those that went on
    /// from there to the index, and those that did not ask because the monitor had switched the table off.
    #[inline]
    pub fn counted(&self, hits: u64, misses: u64, bypassed: u64) {
        let tally = &self.tally;
        tally.hits.set(tally.hits.get() + hits);
        tally.misses.set(tally.misses.get() + misses);
        tally.bypassed.set(tally.bypassed.get() + bypassed);
    }

    /// Offers what the index gave, where nobody writes meanwhile: the caller holds the stripe, or is alone.
    #[inline]
    pub fn emit_held(&self, table: &Slb, hash: u64, pointer: Pointer) {
        self.emit(table, hash, |put| Some(put()), pointer);
    }

    /// Puts a new entry where an old one was cleared. The caller holds the stripe, or is alone.
    #[inline]
    pub fn put_held(&self, table: &Slb, hash: u64, pointer: Pointer) {
        table.insert(hash, pointer, &self.random);
    }

    /// The pointer emitted with this hash that `accept` takes, if the table has it.
    #[inline(always)]
    pub fn find(&self, table: &Slb, hash: u64, accept: impl FnMut(Pointer) -> bool) -> Option<Pointer> {
        let Some((slot, pointer)) = table.find(hash, accept) else {
            count(&self.tally.misses);
            return None;
        };
        self.hit(table, hash, slot);
        Some(pointer)
    }

    /// What was peeked at ([`Slb::peek`]) was the answer: counts the hit, and warms its slot if it is one that counts.
    #[inline(always)]
    pub fn hit(&self, table: &Slb, hash: u64, slot: usize) {
        count(&self.tally.hits);
        let until = self.until.get() - 1;
        self.until.set(until);
        if until <= 0 {
            self.until.set(-self.reach(table, hash, slot, 0, 0));
        }
    }

    /// A number with which to begin another stream of random numbers.
    #[must_use]
    pub fn random(&self) -> u64 {
        self.random.next()
    }

    /// Whether the table hears of each hit at once, and not of one in some.
    #[must_use]
    pub fn counts_every_hit(&self) -> bool {
        self.cadence.counts_every()
    }

    /// Behind how many lookups the first is that counts.
    #[must_use]
    pub fn first_counted(&self) -> i32 {
        self.cadence.next()
    }

    /// A hit that may count, as one does of some lookups in a row: warms its slot if it does. Lookups are counted down;
    /// `due` is the one that was said to count next, `left` that of the hit, at it or behind. Which counts next.
    ///
    /// # Panics
    /// Perhaps, if the slot is not what [`Slb::find`] or [`Slb::peek`] gave.
    #[inline(never)]
    pub fn reach(&self, table: &Slb, hash: u64, slot: usize, due: i32, left: i32) -> i32 {
        if self.counts_every_hit() {
            // At once, by the paper's policy to its letter: nothing is gained there by waiting for the next.
            table.warm(hash, slot, &self.random);
            return left.saturating_sub(1);
        }
        let (counts, due) = self.cadence.due(due, left);
        if counts {
            self.warm(table, hash, slot);
        }
        due
    }
}

impl Seat {
    /// `counted` as by [`Slb::counted`].
    pub(crate) fn new(random: Random, counted: u32) -> Seat {
        let cadence = Cadence::new(counted, (random.next() >> 32) as u32);
        Seat {
            until: Cell::new(cadence.next()),
            told: Cell::new((0, 0)),
            warming: Cell::new(None),
            random,
            tally: Tally::default(),
            filled: Cell::new(0),
            thrown_out: Cell::new(0),
            watch: Watch::new(),
            countdown: Countdown::new(cadence.next()),
            cadence,
        }
    }

    /// [`Seat::tell`] by who keeps the countdown himself.
    #[inline]
    pub(crate) fn tell_of(&self, countdown: &Countdown, totals: &Totals, monitor: &Monitor) {
        let now = (self.watch.asked(countdown), self.watch.passed_by(countdown));
        let before = self.told.replace(now);
        // Of those that asked on account, the misses have been taken off already.
        self.tally.hits.set(self.tally.hits.get().wrapping_add(now.0 - before.0));
        self.tally.bypassed.set(self.tally.bypassed.get() + (now.1 - before.1));
        totals.take(&self.tally);
        self.watch.heed(countdown, monitor);
    }

    /// Whether the next so many lookups, one call, are to ask the table.
    #[inline(always)]
    pub(crate) fn uses_table(
        &self,
        countdown: &Countdown,
        lookups: u32,
        monitor: &Monitor,
        capacity: impl Fn() -> usize,
        fit: impl FnOnce(Passed) -> bool,
    ) -> bool {
        self.asks(countdown, Lookups::of_call(lookups), monitor, capacity, fit)
    }

    /// As [`Seat::turn`], whose caller counts.
    pub(crate) fn next_turn(
        &self,
        lookups: u32,
        monitor: &Monitor,
        capacity: impl Fn() -> usize,
        fit: impl FnOnce(Passed) -> bool,
    ) -> bool {
        let countdown = &self.countdown;
        let uses = self.asks(countdown, Lookups::of_block(lookups), monitor, capacity, fit);
        self.told.set((self.watch.asked(countdown), self.watch.passed_by(countdown)));
        uses
    }

    #[inline(always)]
    fn asks(
        &self,
        countdown: &Countdown,
        lookups: Lookups,
        monitor: &Monitor,
        capacity: impl Fn() -> usize,
        fit: impl FnOnce(Passed) -> bool,
    ) -> bool {
        let fit = |lookups| fit(Passed { lookups, evictions: self.thrown_out.take() });
        self.watch.uses_table(countdown, lookups, monitor, &self.filled, capacity, fit)
    }

    /// As [`Seat::find`], after [`Seat::uses_table`] has said so: that counts the lookup, so a hit has nothing to
    /// count. Of the lookups that it let ask together, `later` come behind this one.
    #[inline(always)]
    pub(crate) fn find_on_account(
        &self,
        countdown: &Countdown,
        table: &Slb,
        hash: u64,
        accept: impl FnMut(Pointer) -> bool,
        later: usize,
    ) -> Option<Pointer> {
        let Some((slot, pointer)) = table.find(hash, accept) else {
            self.missed(1);
            return None;
        };
        self.confirm(countdown, table, hash, slot, later);
        Some(pointer)
    }

    /// As [`crate::Visit::find_group`], in this table.
    #[inline(always)]
    pub(crate) fn find_group(
        &self,
        countdown: &Countdown,
        table: &Slb,
        hashes: &[u64],
        fetch: impl Fn(Pointer),
        mut hit: impl FnMut(usize, Pointer) -> bool,
        mut search: impl FnMut(&[usize]),
    ) {
        // What is peeked at is an answer of this moment, like any found in the table: it need not be looked for again.
        let mut peeked = [None; GROUP];
        let (mut missed, mut misses) = ([0; GROUP], 0);
        for (i, &hash) in hashes.iter().enumerate() {
            peeked[i] = table.peek(hash);
            match peeked[i] {
                Some((_, pointer)) => fetch(pointer),
                None => {
                    missed[misses] = i;
                    misses += 1;
                }
            }
        }
        // The index walks while the entries of the others are on their way: most of what the table does not have has no
        // candidate there either.
        if misses > 0 {
            self.missed(misses);
            search(&missed[..misses]);
            misses = 0;
        }
        for (i, &hash) in hashes.iter().enumerate() {
            let Some((slot, pointer)) = peeked[i] else { continue };
            let later = hashes.len() - 1 - i;
            if hit(i, pointer) {
                self.confirm(countdown, table, hash, slot, later);
                continue;
            }
            // It may be behind another with the same tag, or have been put there since.
            if self.find_on_account(countdown, table, hash, |pointer| hit(i, pointer), later).is_none() {
                missed[misses] = i;
                misses += 1;
            }
        }
        if misses > 0 {
            search(&missed[..misses]);
        }
    }

    /// So many of the lookups that [`Seat::uses_table`] counted were no hits.
    #[inline]
    fn missed(&self, lookups: usize) {
        let (tally, lookups) = (&self.tally, lookups as u64);
        tally.misses.set(tally.misses.get() + lookups);
        tally.hits.set(tally.hits.get().wrapping_sub(lookups));
    }

    /// A hit of those that [`Seat::uses_table`] counted: so many of its call come later.
    #[inline(always)]
    fn confirm(&self, countdown: &Countdown, table: &Slb, hash: u64, slot: usize, later: usize) {
        let (due, left) = (countdown.due(), countdown.left() + later as i32);
        if left <= due {
            countdown.set_due(self.reach(table, hash, slot, due, left));
        }
    }

    /// Warms the slot of the hit that counted before this one, whose line has come meanwhile. What a counter says
    /// decides branches; were they to wait for memory, then all lookups behind them would, too.
    #[inline]
    fn warm(&self, table: &Slb, hash: u64, slot: usize) {
        if let Some((hash, slot)) = self.warming.replace(Some((hash, slot))) {
            table.warm(hash, slot, &self.random);
        }
    }

    /// `guarded` runs the insertion if the stripe allows it.
    #[inline]
    pub(crate) fn emit(
        &self,
        table: &Slb,
        hash: u64,
        guarded: impl FnOnce(&mut dyn FnMut() -> Emission) -> Option<Emission>,
        pointer: Pointer,
    ) {
        count(&self.tally.emissions);
        if table.wants(hash, &self.random) {
            let outcome = guarded(&mut || table.insert(hash, pointer, &self.random));
            match outcome {
                Some(Emission::Admitted) => count(&self.filled),
                Some(Emission::Replaced) => count(&self.thrown_out),
                _ => {}
            }
            self.tally.emitted(outcome);
        }
    }
}
