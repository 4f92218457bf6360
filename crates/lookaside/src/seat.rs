//! What a thread keeps between its visits: random numbers, its account of hits and misses, its part of the monitor's
//! trials.
//!
//! It lies in the thread's record at the buffer's collector, which pinning finds anyway; all visits of the thread have
//! the same, also those that last at the same time. No call of it runs its caller's code in the middle of a change.
//!
//! # On account
//!
//! Maps ask the monitor before each lookup, and that counts it. So a hit has nothing to count: hits are the lookups
//! that were let ask less those that missed. Nor has a lookup that was not let ask.
//!
//! # Which hits warm their slot
//!
//! One lookup in eight does, if it is a hit: that of which the multiple of the golden ratio lies below a threshold.
//! Such multiples are spread evenly, so that no program's period meets them. It is decided before the bucket is looked
//! at; and then the slot of the hit that counted before is warmed, whose line has come meanwhile: a hit writes one line
//! at most, but another bucket's than its own. A branch that depends on a line which is yet to come cannot be
//! predicted, and a wrong guess holds up all lookups behind it. Where every hit counts, as in the paper, each warms its
//! own slot.
//!
//! # Emissions
//!
//! Each emission takes words by atomic exchanges, and each of those waits for every load before it. So those of a visit
//! are made together: they wait once. While it is pinned nothing that it found is freed, so they are made before it
//! ends or pins anew. And before it writes: its own write would void the tickets of its stripe, and a key that is read
//! and written in turn would never be emitted.

use std::cell::Cell;

use crate::monitor::Monitor;
use crate::random::Random;
use crate::slb::{Emission, Slb};
use crate::stats::{Tally, Totals};
use crate::watch::{self, Lookups, Watch};
use crate::word::Pointer;

/// Keys looked up at once in a batch: enough to keep a core's misses busy, few enough to stay in its first-level cache.
pub(crate) const GROUP: usize = 16;

/// Emissions that may wait for each other.
const EMISSIONS: usize = 8;

/// The golden ratio, of 2^32.
const STEP: u32 = 0x9e37_79b9;

/// The distance to the next that counts where none does: it may be reached, after seconds, and then nothing comes of
/// it.
const NEVER: i32 = 1 << 28;

/// What one thread keeps: random numbers, what it has counted, and its part of the monitor's trials.
#[derive(Debug)]
pub struct Seat {
    pub(crate) tally: Tally,
    /// Lookups count of which the multiple is at most this.
    counted: u32,
    /// Emissions that wait.
    waiting: Cell<usize>,
    watch: Watch,
    pub(crate) random: Random,
    /// The multiple of the lookup that was named last ([`Seat::first_counted`], [`Seat::reach`]).
    at: Cell<u32>,
    /// The hit that counted last.
    warming: Cell<Option<(u64, usize)>>,
    /// Free slots filled: not told to anyone, and so never reset.
    pub(crate) filled: Cell<u64>,
    /// Tickets, hashes and pointers.
    emissions: [Cell<Option<(u64, u64, Pointer)>>; EMISSIONS],
}

/// For faces that keep guards and tables themselves, and count their lookups: the C interface.
impl Seat {
    /// Lookups between two calls of [`Seat::turn`].
    pub const TURN: u32 = watch::BLOCK;

    /// Counts lookups that this seat was not asked for: those answered by reading the table's lines, those that went on
    /// from there to the index, and those that did not ask because the monitor had switched the table off.
    #[inline]
    pub fn counted(&self, hits: u64, misses: u64, bypassed: u64) {
        self.tally.hits.add(hits);
        self.tally.misses.add(misses);
        self.tally.bypassed.add(bypassed);
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
            self.tally.misses.add(1);
            return None;
        };
        self.hit(table, hash, slot);
        Some(pointer)
    }

    /// What was peeked at ([`Slb::peek`]) was the answer: counts the hit, and warms its slot if it is one that counts.
    #[inline(always)]
    pub fn hit(&self, table: &Slb, hash: u64, slot: usize) {
        self.tally.hits.add(1);
        // The watch was not asked, and so has not counted it.
        self.confirm(table, hash, slot, self.tally.hits.get() as u32);
    }

    /// A number with which to begin another stream of random numbers.
    #[must_use]
    pub fn random(&self) -> u64 {
        self.random.next()
    }

    /// Whether the table hears of each hit at once, and not of one in some.
    #[inline(always)]
    #[must_use]
    pub fn counts_every_hit(&self) -> bool {
        self.counted == u32::MAX
    }

    /// Behind how many lookups the first is that counts: for who counts lookups down himself.
    #[must_use]
    pub fn first_counted(&self) -> i32 {
        self.at.set((self.random.next() >> 32) as u32);
        self.next_counted()
    }

    /// How many lookups after the one that was named last the next is that counts: 1 is the next lookup.
    fn next_counted(&self) -> i32 {
        if self.counted == 0 {
            return NEVER;
        }
        let mut distance = 0;
        loop {
            distance += 1;
            let at = self.at.get().wrapping_add(STEP);
            self.at.set(at);
            if at <= self.counted {
                return distance;
            }
        }
    }

    /// A hit that may count, as one does of some lookups in a row: warms its slot if it does. Lookups are counted down;
    /// `due` is the one that was said to count next, `left` that of the hit, at it or behind. Which counts next.
    ///
    /// A hit behind one that counts does not count for being the first: else those behind a row of misses would count
    /// each time, and those behind them never.
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
        let mut due = due;
        while due > left {
            due = due.saturating_sub(self.next_counted());
        }
        if due == left {
            self.warm(table, hash, slot);
            due = due.saturating_sub(self.next_counted());
        }
        due
    }
}

impl Seat {
    /// `counted` as by [`Slb::counted`].
    pub(crate) fn new(random: Random, counted: u32) -> Seat {
        Seat {
            tally: Tally::default(),
            counted,
            waiting: Cell::new(0),
            watch: Watch::new(),
            at: Cell::new(0),
            warming: Cell::new(None),
            random,
            filled: Cell::new(0),
            emissions: Default::default(),
        }
    }

    /// Hands in what was counted, and takes note if the monitor watches no more: for seats that no record has.
    #[inline]
    pub(crate) fn tell_of(&self, totals: &Totals, monitor: &Monitor) {
        totals.take(&self.tally);
        self.heed(monitor);
    }

    /// Takes note if the monitor watches no more.
    #[inline]
    pub(crate) fn heed(&self, monitor: &Monitor) {
        self.watch.heed(&self.tally, monitor);
    }

    /// Whether the next so many lookups, one call, are to ask the table.
    #[inline(always)]
    pub(crate) fn uses_table(
        &self,
        lookups: u32,
        monitor: &Monitor,
        capacity: impl Fn() -> usize,
    ) -> bool {
        self.asks(Lookups::of_call(lookups), monitor, capacity)
    }

    /// As [`Seat::turn`], whose caller counts.
    pub(crate) fn next_turn(
        &self,
        lookups: u32,
        monitor: &Monitor,
        capacity: impl Fn() -> usize,
    ) -> bool {
        let uses = self.asks(Lookups::of_block(lookups), monitor, capacity);
        self.tally.leave_out();
        uses
    }

    #[inline(always)]
    fn asks(&self, lookups: Lookups, monitor: &Monitor, capacity: impl Fn() -> usize) -> bool {
        self.watch.uses_table(&self.tally, lookups, monitor, &self.filled, capacity)
    }

    /// As [`Seat::find`], after [`Seat::uses_table`] has said so for this lookup alone: that counts it, so a hit has
    /// nothing to count.
    #[inline(always)]
    pub(crate) fn find_on_account(
        &self,
        table: &Slb,
        hash: u64,
        accept: impl FnMut(Pointer) -> bool,
    ) -> Option<Pointer> {
        let Some((slot, pointer)) = table.find(hash, accept) else {
            self.tally.missed(1);
            return None;
        };
        self.confirm(table, hash, slot, self.tally.asked.get() as u32);
        Some(pointer)
    }

    /// As [`crate::Visit::find_group`], in this table.
    #[inline(always)]
    pub(crate) fn find_group(
        &self,
        table: &Slb,
        hashes: &[u64],
        fetch: impl Fn(Pointer),
        mut hit: impl FnMut(usize, Pointer) -> bool,
        mut search: impl FnMut(&[usize]),
    ) {
        // What is peeked at is an answer of this moment, like any found in the table: it need not be looked for again.
        let mut peeked = [None; GROUP];
        let (mut missed, mut misses) = ([0; GROUP], 0);
        for (i, (&hash, peeked)) in hashes.iter().zip(&mut peeked).enumerate() {
            *peeked = table.peek(hash);
            match *peeked {
                Some((_, pointer)) => fetch(pointer),
                None => {
                    missed[misses % GROUP] = i;
                    misses += 1;
                }
            }
        }
        // The index walks while the entries of the others are on their way: most of what the table does not have has no
        // candidate there either.
        if misses > 0 {
            self.tally.missed(misses as u64);
            search(&missed[..misses]);
            misses = 0;
        }
        let mut number = (self.tally.asked.get() as u32).wrapping_sub(hashes.len() as u32);
        for (i, (&hash, &peeked)) in hashes.iter().zip(&peeked).enumerate() {
            number = number.wrapping_add(1);
            let Some((slot, pointer)) = peeked else { continue };
            if hit(i, pointer) {
                self.confirm(table, hash, slot, number);
            // It may be behind another with the same tag, or have been put there since.
            } else if let Some((slot, _)) = table.find(hash, |pointer| hit(i, pointer)) {
                self.confirm(table, hash, slot, number);
            } else {
                self.tally.missed(1);
                missed[misses % GROUP] = i;
                misses += 1;
            }
        }
        if misses > 0 {
            search(&missed[..misses]);
        }
    }

    /// A hit, of the lookup of this number: warms its slot if that counts.
    #[inline(always)]
    fn confirm(&self, table: &Slb, hash: u64, slot: usize, number: u32) {
        if number.wrapping_mul(STEP) <= self.counted {
            self.count(table, hash, slot);
        }
    }

    /// A hit that counts. (With a threshold of 0 one in 2^32 comes here, and then nothing comes of it.)
    #[inline(never)]
    fn count(&self, table: &Slb, hash: u64, slot: usize) {
        match self.counts_every_hit() {
            true => table.warm(hash, slot, &self.random),
            false => self.warm(table, hash, slot),
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
        self.tally.emissions.add(1);
        if table.wants(hash, &self.random) {
            let outcome = guarded(&mut || table.insert(hash, pointer, &self.random));
            let tally = &self.tally;
            match outcome {
                None | Some(Emission::Contended) => tally.refused_tickets.add(1),
                Some(Emission::Admitted) => {
                    tally.admissions.add(1);
                    self.filled.set(self.filled.get() + 1);
                }
                Some(Emission::Replaced) => {
                    tally.admissions.add(1);
                    tally.evictions.add(1);
                }
                Some(Emission::Refused | Emission::Present) => {}
            }
        }
    }

    /// Lets an emission wait for others: its ticket's number, its hash and its pointer. Whether no more can.
    #[inline]
    pub(crate) fn let_wait(&self, ticket: u64, hash: u64, pointer: Pointer) -> bool {
        let waiting = self.waiting.get();
        self.emissions[waiting % EMISSIONS].set(Some((ticket, hash, pointer)));
        self.waiting.set(waiting + 1);
        waiting + 1 >= EMISSIONS
    }

    /// Whether emissions wait.
    #[inline(always)]
    pub(crate) fn lets_wait(&self) -> bool {
        self.waiting.get() > 0
    }

    /// Those that wait, which then wait no longer.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (u64, u64, Pointer)> {
        self.emissions[..self.waiting.replace(0)].iter().filter_map(Cell::take)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of lookups that repeat themselves, most of them misses, each of the hits counts as often as the others, and an
    /// eighth of them in all; also by who counts down himself.
    #[test]
    fn what_comes_behind_misses_counts_no_more_often() {
        for (period, hits) in [(23, 3), (8, 1), (100, 2), (13, 12), (1, 1)] {
            let rounds: u32 = if cfg!(miri) { 100 } else { 20_000 };
            let seat = Seat::new(Random::new(3), u32::MAX >> 3);
            let (mut counted, mut counted_down) = (vec![0; hits as usize], vec![0; hits as usize]);
            let (mut due, mut left) = (-seat.first_counted(), 0);
            for lookup in 0..rounds * period {
                left -= 1;
                let place = lookup % period;
                if place >= hits {
                    continue;
                }
                counted[place as usize] += u32::from(lookup.wrapping_mul(STEP) <= seat.counted);
                while due > left {
                    due -= seat.next_counted();
                }
                if due == left {
                    counted_down[place as usize] += 1;
                    due -= seat.next_counted();
                }
            }
            let expected = rounds / 8;
            for counted in counted.into_iter().chain(counted_down) {
                assert!(
                    counted.abs_diff(expected) <= expected / 10 + 2,
                    "{counted}, not {expected}: {period}, {hits}"
                );
            }
        }
    }

    #[test]
    fn every_hit_or_none() {
        let every = Seat::new(Random::new(5), u32::MAX);
        assert!(every.counts_every_hit() && (0..100).all(|_| every.next_counted() == 1));
        let none = Seat::new(Random::new(5), 0);
        assert!(!none.counts_every_hit() && none.next_counted() == NEVER);
    }
}
