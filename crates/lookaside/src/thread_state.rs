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
//! # Hits
//!
//! A hit raises its slot's counter, by a load, a comparison and, while that is low, a store: it takes no random number
//! and calls nothing. Lines that are hit most have counters that are as high as can be, and are not written.
//!
//! Rejected: *one hit in eight*, which raised its counter ever more rarely: nine instructions to find out which, of
//! eighty, and fewer hits (81.9 instead of 83.0 % over a full table, Zipf 0.99).
//!
//! # Offers
//!
//! Each offer takes words by atomic exchanges, and each of those waits for every load before it. So those of a visit
//! are made together: they wait once. While it is pinned nothing that it found is freed, so they are made before it
//! ends or pins anew. And before it writes: its own write would void the tickets of its stripe, and a key that is read
//! and written in turn would never be admitted.

use std::cell::Cell;

use crate::monitor::Monitor;
use crate::monitor_sampler::{self, Lookups, MonitorSampler};
use crate::pointer::Pointer;
use crate::random::Random;
use crate::slb::{HitLines, Insertion, Slb};
use crate::stats::{Tally, Totals};

/// Keys looked up at once in a batch: enough to keep a core's misses busy, few enough to stay in its first-level cache.
pub(crate) const GROUP: usize = 16;

/// Offers that may wait for each other.
const OFFERS: usize = 8;

/// What one thread keeps: random numbers, what it has counted, and its part of the monitor's trials.
#[derive(Debug)]
pub struct ThreadState {
    pub(crate) tally: Tally,
    /// Offers that wait.
    waiting: Cell<usize>,
    pub(crate) sampler: MonitorSampler,
    pub(crate) random: Random,
    /// Free slots filled: not told to anyone, and so never reset.
    pub(crate) filled: Cell<u64>,
    /// Tickets, hashes and pointers.
    offers: [Cell<Option<(u64, u64, Pointer)>>; OFFERS],
}

/// For faces that keep guards and tables themselves, and count their lookups: the C interface.
impl ThreadState {
    /// Lookups between two calls of [`ThreadState::turn`].
    pub const TURN: u32 = monitor_sampler::BLOCK;

    /// Counts lookups that this state was not asked for: those answered by reading the table's lines, those that went
    /// on from there to the index, and those that did not ask because the monitor had switched the table off.
    #[inline]
    pub fn counted(&self, hits: u64, misses: u64, bypassed: u64) {
        self.tally.hits.add(hits);
        self.tally.misses.add(misses);
        self.tally.bypassed.add(bypassed);
    }

    /// Offers what the index gave, where nobody writes meanwhile: the caller holds the stripe, or is alone.
    #[inline]
    pub fn admit_held(&self, table: &Slb, hash: u64, pointer: Pointer) {
        self.admit(table, hash, |put| Some(put()), pointer);
    }

    /// As [`ThreadState::admit_held`], for who alone uses the table: its offers store as plainly as a table of one
    /// thread's.
    #[inline]
    pub fn admit_alone(&self, table: &Slb, hash: u64, pointer: Pointer) {
        self.admit_by(table, hash, || Some(table.insert_alone(hash, pointer, &self.random)));
    }

    /// Puts a new entry where an old one was cleared. The caller holds the stripe, or is alone.
    #[inline]
    pub fn put_held(&self, table: &Slb, hash: u64, pointer: Pointer) {
        table.insert(hash, pointer, &self.random);
    }

    /// The pointer admitted with this hash that `accept` takes, if the table has it.
    #[inline(always)]
    pub fn find(&self, table: &Slb, hash: u64, accept: impl FnMut(Pointer) -> bool) -> Option<Pointer> {
        let found = table.hit(hash, &self.random, accept);
        let tally = &self.tally;
        (if found.is_some() { &tally.hits } else { &tally.misses }).add(1);
        found
    }

    /// What was peeked at ([`Slb::peek`]) was the answer: counts the hit.
    #[inline(always)]
    pub fn hit(&self, table: &Slb, hash: u64, slot: usize) {
        self.tally.hits.add(1);
        table.warm(hash, slot, &self.random);
    }

    /// A number with which to begin another stream of random numbers.
    #[must_use]
    pub fn random(&self) -> u64 {
        self.random.next()
    }
}

impl ThreadState {
    pub(crate) fn new(random: Random) -> ThreadState {
        ThreadState {
            tally: Tally::default(),
            waiting: Cell::new(0),
            sampler: MonitorSampler::new(),
            random,
            filled: Cell::new(0),
            offers: Default::default(),
        }
    }

    /// Hands in what was counted, and takes note if the monitor watches no more: for states that no record has.
    #[inline]
    pub(crate) fn tell_of(&self, totals: &Totals, monitor: &Monitor) {
        totals.take(&self.tally);
        self.heed(monitor);
    }

    /// Takes note if the monitor watches no more.
    #[inline]
    pub(crate) fn heed(&self, monitor: &Monitor) {
        self.sampler.heed(&self.tally, monitor);
    }

    /// Whether the next so many lookups, one call, are to ask the table, of which `capacity` is the capacity. Counts
    /// them.
    #[inline(always)]
    pub(crate) fn uses_table(&self, lookups: u32, monitor: &Monitor, capacity: impl Fn() -> usize) -> bool {
        match self.uses_table_in_block(lookups.min(Self::TURN).into()) {
            Some(uses) => uses,
            None => self.next_block(Lookups::of_call(lookups), monitor, capacity),
        }
    }

    /// Counts these lookups, and says whether they ask the table; `None` if there is no room for them in the block:
    /// then the monitor is to be asked.
    #[inline(always)]
    fn uses_table_in_block(&self, lookups: u64) -> Option<bool> {
        let tally = &self.tally;
        let asked = tally.asked.get() + lookups;
        if asked <= tally.asked_end.get() {
            tally.asked.set(asked);
            return Some(true);
        }
        let passed = tally.passed.get() + lookups;
        if passed <= tally.passed_end.get() {
            tally.passed.set(passed);
            return Some(false);
        }
        None
    }

    #[cold]
    #[inline(never)]
    fn next_block(&self, lookups: Lookups, monitor: &Monitor, capacity: impl Fn() -> usize) -> bool {
        self.sampler.next_block(&self.tally, lookups, monitor, self.filled.get(), capacity)
    }

    /// As [`ThreadState::turn`], whose caller counts.
    pub(crate) fn next_turn(&self, lookups: u32, monitor: &Monitor, capacity: impl Fn() -> usize) -> bool {
        let uses = self.asks(Lookups::of_block(lookups), monitor, capacity);
        self.tally.leave_out();
        uses
    }

    /// As [`ThreadState::uses_table`], of any lookups that go one way.
    pub(crate) fn asks(&self, lookups: Lookups, monitor: &Monitor, capacity: impl Fn() -> usize) -> bool {
        match self.uses_table_in_block(lookups.number()) {
            Some(uses) => uses,
            None => self.next_block(lookups, monitor, capacity),
        }
    }

    /// As [`ThreadState::find`], after [`ThreadState::uses_table`] has said so for this lookup alone: that counts it,
    /// so a hit has nothing to count.
    #[inline(always)]
    pub(crate) fn find_on_account(
        &self,
        lines: HitLines<'_>,
        hash: u64,
        accept: impl FnMut(Pointer) -> bool,
    ) -> Option<Pointer> {
        let found = lines.hit(hash, &self.random, accept);
        if found.is_none() {
            self.tally.missed(1);
        }
        found
    }

    /// As [`crate::Pinned::find_group`], in these lines.
    ///
    /// # Panics
    /// If there are more than [`GROUP`].
    #[inline(always)]
    pub(crate) fn find_group(
        &self,
        lines: HitLines<'_>,
        hashes: &[u64],
        fetch: impl Fn(Pointer),
        mut hit: impl FnMut(usize, Pointer) -> bool,
        mut search: impl FnMut(&[usize]),
    ) {
        assert!(hashes.len() <= GROUP, "a group");
        // What is peeked at is an answer of this moment, like any found in the table: it need not be looked for again.
        let mut peeked = [None; GROUP];
        // A bit for each lookup that has missed.
        let mut missed = 0u32;
        for (i, (&hash, peeked)) in hashes.iter().zip(&mut peeked).enumerate() {
            *peeked = lines.peek(hash);
            match *peeked {
                Some((pointer, _)) => fetch(pointer),
                None => missed |= 1 << i,
            }
        }
        // The index walks while the entries of the others are on their way: most of what the table does not have has no
        // candidate there either.
        if missed != 0 {
            self.search_missed(missed, &mut search);
            missed = 0;
        }
        for (i, &hash) in hashes.iter().enumerate() {
            if let Some((pointer, counter)) = peeked[i] {
                if hit(i, pointer) {
                    lines.warm(hash, counter, &self.random);
                } else if !self.look_again(lines, hash, |pointer| hit(i, pointer)) {
                    missed |= 1 << i;
                }
            }
        }
        if missed != 0 {
            self.search_missed(missed, &mut search);
        }
    }

    /// Looks for what is not the first with its tag: it may be behind another, or have been put there since.
    #[cold]
    #[inline(never)]
    fn look_again(&self, lines: HitLines<'_>, hash: u64, hit: impl FnMut(Pointer) -> bool) -> bool {
        lines.hit(hash, &self.random, hit).is_some()
    }

    /// Counts those that have missed, and lets the index be asked for them.
    #[inline(never)]
    fn search_missed(&self, missed: u32, search: &mut impl FnMut(&[usize])) {
        let (mut numbers, mut misses) = ([0; GROUP], 0);
        for i in (0..GROUP).filter(|&i| missed >> i & 1 == 1) {
            numbers[misses] = i;
            misses += 1;
        }
        self.tally.missed(misses as u64);
        search(&numbers[..misses]);
    }

    /// `guarded` runs the insertion if the stripe allows it.
    #[inline]
    pub(crate) fn admit(
        &self,
        table: &Slb,
        hash: u64,
        guarded: impl FnOnce(&mut dyn FnMut() -> Insertion) -> Option<Insertion>,
        pointer: Pointer,
    ) {
        self.admit_by(table, hash, || guarded(&mut || table.insert(hash, pointer, &self.random)));
    }

    #[inline]
    fn admit_by(&self, table: &Slb, hash: u64, put: impl FnOnce() -> Option<Insertion>) {
        self.tally.offers.add(1);
        if table.wants(hash, &self.random) {
            let outcome = put();
            let tally = &self.tally;
            match outcome {
                None | Some(Insertion::Contended) => tally.refused_tickets.add(1),
                Some(Insertion::Admitted) => {
                    tally.admissions.add(1);
                    self.filled.set(self.filled.get() + 1);
                }
                Some(Insertion::Replaced) => {
                    tally.admissions.add(1);
                    tally.evictions.add(1);
                }
                Some(Insertion::Refused | Insertion::Present) => {}
            }
        }
    }

    /// Lets an offer wait for others: its ticket's number, its hash and its pointer. Whether no more can.
    #[inline]
    pub(crate) fn let_wait(&self, ticket: u64, hash: u64, pointer: Pointer) -> bool {
        let waiting = self.waiting.get();
        self.offers[waiting % OFFERS].set(Some((ticket, hash, pointer)));
        self.waiting.set(waiting + 1);
        waiting + 1 >= OFFERS
    }

    /// Whether offers wait.
    #[inline(always)]
    pub(crate) fn lets_wait(&self) -> bool {
        self.waiting.get() > 0
    }

    /// Those that wait, which then wait no longer.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (u64, u64, Pointer)> {
        self.offers[..self.waiting.replace(0)].iter().filter_map(Cell::take)
    }
}
