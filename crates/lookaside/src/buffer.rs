//! The buffer: a table, the stripes that keep it equal to its index, and the account of what it is worth.
//!
//! It knows hashes and pointers only, like the table, and follows none. What stands behind a pointer, how keys are compared
//! and when memory is freed is for the faces above it: the safe map ([`crate::Map`]), and the C interface.
//!
//! ```text
//!   lookup:   Visit::find -- hit ------------------------------> done
//!                          \- miss: ticket -> the index -> Visit::emit
//!   write:    Buffer::write -> change the index -> (Write::put) -> drop
//! ```
//!
//! Several indexes may share one buffer: each has a [`Mark`].
//!
//! # Which epoch
//!
//! Tables are replaced while they are used, and the old one goes when all guards have gone that were pinned then. Whoever brings
//! guards of their own must bring them from one collector: that of [`Buffer::resize`] is the default one, that of
//! [`Buffer::resize_exclusively`] is the caller's. Nobody can check that cheaply, so it is a promise.
//!
//! # Seats
//!
//! What a thread keeps between visits, its random numbers, its part of the monitor's trials, waits for its next visit in a
//! thread-local list: so visits of one lookup each are watched and counted as long ones are.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam_epoch::Guard;
use parking_lot::Mutex;

use crate::config::CreateError;
use crate::current::Current;
use crate::mark::{MOST_MARK_BITS, Mark, NoMarkLeft};
use crate::monitor::{self, Monitor, Verdict, Watch};
use crate::random::Random;
use crate::slb::Slb;
use crate::stats::{Counts, Tally, Totals, count};
use crate::stripes::{Held, Stripes, Ticket};
use crate::table::{Emission, Parameters, Table};
use crate::word::Pointer;

/// Emissions that may wait for each other.
const EMISSIONS: usize = 8;

/// Buffers made so far.
static BUFFERS: AtomicU64 = AtomicU64::new(0);

/// A table in front of one index or several.
#[derive(Debug)]
pub struct Buffer<T: Table = Slb> {
    table: Current<T>,
    stripes: Stripes,
    config: Mutex<T::Config>,
    mark_bits: u32,
    marks: AtomicUsize,
    monitor: Monitor,
    totals: Totals,
    /// No other buffer's, ever.
    id: u64,
    seeds: AtomicU64,
    /// [`Table::counted`] of its tables, of any size.
    counted: u32,
}

impl<T: Table> Buffer<T> {
    /// A buffer for one index. Its monitor is on.
    ///
    /// # Errors
    /// [`CreateError`]: no size that a table can have, or no memory.
    pub fn new(config: &T::Config) -> Result<Buffer<T>, CreateError> {
        Buffer::for_indexes(config, 1)
    }

    /// A buffer for up to so many indexes, 256 at most.
    ///
    /// # Errors
    /// [`CreateError`]: no size that a table can have, no memory, or too many indexes.
    pub fn for_indexes(config: &T::Config, indexes: usize) -> Result<Buffer<T>, CreateError> {
        if !(1..=1 << MOST_MARK_BITS).contains(&indexes) {
            return Err(CreateError::Parameter {
                parameter: "indexes",
                value: indexes as f64,
                range: "1 to 256",
            });
        }
        let table = config.create()?;
        Ok(Buffer {
            counted: table.counted(),
            table: Current::new(table),
            stripes: Stripes::new()?,
            config: Mutex::new(config.clone()),
            mark_bits: indexes.next_power_of_two().trailing_zeros(),
            marks: AtomicUsize::new(0),
            monitor: Monitor::new(true),
            totals: Totals::default(),
            id: BUFFERS.fetch_add(1, Ordering::Relaxed),
            seeds: AtomicU64::new(0),
        })
    }

    /// A number for one more index.
    ///
    /// # Errors
    /// [`NoMarkLeft`] if there are as many as the buffer was made for.
    pub fn mark(&self) -> Result<Mark, NoMarkLeft> {
        let most = 1 << self.mark_bits;
        let number = self
            .marks
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| (taken < most).then_some(taken + 1))
            .map_err(|_| NoMarkLeft(most))?;
        Ok(Mark::new(number, self.mark_bits))
    }

    /// A thread's visit. Pins an epoch: what is removed meanwhile is freed only after the visit has ended.
    #[must_use]
    pub fn visit(&self) -> Visit<'_, T> {
        Visit {
            buffer: self,
            seat: self.own_seat(),
            emissions: Default::default(),
            waiting: Cell::new(0),
            guard: crossbeam_epoch::pin(),
            _collection: Collection,
        }
    }

    /// This thread's seat, if no other visit has it.
    fn own_seat(&self) -> Rc<Seat> {
        /// Buffers that a thread may visit in turn.
        const KEPT: usize = 8;
        thread_local! {
            static SEATS: RefCell<Vec<(u64, Rc<Seat>)>> = const { RefCell::new(Vec::new()) };
        }
        let kept = SEATS.try_with(|seats| {
            let mut seats = seats.borrow_mut();
            match seats.iter().find(|(id, seat)| *id == self.id && Rc::strong_count(seat) == 1) {
                Some((_, seat)) => Rc::clone(seat),
                None => {
                    if seats.len() == KEPT {
                        seats.remove(0);
                    }
                    let seat = Rc::new(self.seat());
                    seats.push((self.id, Rc::clone(&seat)));
                    seat
                }
            }
        });
        // Past the thread's destructors there is no list any more.
        kept.unwrap_or_else(|_| Rc::new(self.seat()))
    }

    /// What a thread keeps between visits.
    #[must_use]
    pub fn seat(&self) -> Seat {
        let random = Random::new(self.id << 32 ^ self.seeds.fetch_add(1, Ordering::Relaxed));
        Seat {
            phase: (random.next() >> 32) as u32,
            counted: self.counted,
            told: Cell::new(0),
            warming: Cell::new(None),
            random,
            tally: Tally::default(),
            filled: Cell::new(0),
            watch: Watch::new(),
        }
    }

    /// Begins a write of keys with this hash: waits for other writes of its stripe, and clears the table. The index is to
    /// be changed before what is returned is dropped, and the old entry to be retired after.
    ///
    /// `guard` pins the table for as long.
    ///
    /// # Safety
    /// As [`Buffer::table`].
    #[allow(unsafe_code)]
    pub unsafe fn write<'b>(&'b self, hash: u64, guard: &'b Guard) -> Write<'b, T> {
        let held = self.stripes.lock(hash);
        // SAFETY: the caller's promise.
        let table = unsafe { self.table.load(guard) };
        let cleared = table.clear(hash);
        Write { buffer: self, table, hash, cleared, _held: held }
    }

    /// Forgets a pointer that was emitted with this hash: for memory that is about to be freed without a write.
    pub fn forget(&self, hash: u64, pointer: Pointer) {
        self.pinned(|table| table.forget(hash, pointer));
    }

    /// Shows the table as it is now.
    #[allow(unsafe_code)]
    pub(crate) fn pinned<R>(&self, show: impl FnOnce(&T) -> R) -> R {
        let guard = crossbeam_epoch::pin();
        // SAFETY: `resize` retires tables to the default collector. Who resizes in another way promises that nobody does this.
        show(unsafe { self.table.load(&guard) })
    }

    /// Takes the stripe of a hash, as the paper's `SLB_lock` does.
    pub fn lock(&self, hash: u64) {
        self.stripes.lock_raw(hash);
    }

    /// Gives it back. Does nothing if nobody holds it.
    pub fn unlock(&self, hash: u64) {
        self.stripes.unlock_raw(hash);
    }

    /// The table as this guard sees it: for those who hold a stripe by [`Buffer::lock`] and write without tickets.
    ///
    /// # Safety
    /// The guard is of the collector to which old tables are retired, the default one or that of whom this buffer is resized by; or
    /// nobody resizes it while the table is used.
    #[inline]
    #[must_use]
    #[allow(unsafe_code)]
    pub unsafe fn table<'g>(&'g self, guard: &'g Guard) -> &'g T {
        // SAFETY: the caller's promise.
        unsafe { self.table.load(guard) }
    }

    /// Replaces the table by an empty one of another size, while it is used.
    ///
    /// # Errors
    /// [`CreateError`]: no size that a table can have, or no memory. Then the old one stays.
    pub fn resize(&self, size: usize) -> Result<(), CreateError> {
        // First: pinning may run the destructors of what was removed, which are free to resize, too.
        let guard = crossbeam_epoch::pin();
        let mut config = self.config.lock();
        let resized = config.with_size_of(size);
        let table = resized.create()?;
        // SAFETY: of the default collector, as the guards of visits are.
        #[allow(unsafe_code)]
        unsafe {
            self.table.replace(table, &guard);
        }
        *config = resized;
        // Tickets stay good: they speak of the index, and a write that is going on holds its stripe until that has changed.
        Ok(())
    }

    /// As [`Buffer::resize`], but waits until nobody holds a stripe, and then lets `publish` see the new table before anyone
    /// does: for faces whose threads read the table under a stripe, with no epoch pinned, or read it by another way. The old
    /// table goes when all have left whom `guard`'s collector knows.
    ///
    /// The caller holds no stripe.
    ///
    /// # Errors
    /// As [`Buffer::resize`].
    ///
    /// # Safety
    /// All who use the table hold a stripe, or have pinned `guard`'s collector. So nobody visits the buffer, or makes it forget,
    /// unless that is the default one.
    #[allow(unsafe_code)]
    pub unsafe fn resize_exclusively(
        &self,
        size: usize,
        guard: &Guard,
        publish: impl FnOnce(&T),
    ) -> Result<(), CreateError> {
        let mut config = self.config.lock();
        let resized = config.with_size_of(size);
        let table = resized.create()?;
        let stripes = self.stripes.lock_all();
        publish(&table);
        // SAFETY: the caller's promise.
        unsafe { self.table.replace(table, guard) };
        drop(stripes);
        *config = resized;
        Ok(())
    }

    /// As [`Visit::ticket`], for faces that keep their guards themselves.
    #[inline]
    pub fn ticket(&self, hash: u64) -> Ticket {
        self.stripes.ticket(hash)
    }

    /// The number of the stripe that [`Buffer::lock`] takes.
    #[inline]
    #[must_use]
    pub fn stripe_of(hash: u64) -> usize {
        Stripes::stripe_of(hash)
    }

    /// Lets the monitor watch, or not: if not, the table is always used.
    pub fn monitor(&self, watching: bool) {
        self.monitor.watch(watching);
    }

    /// The pointers of an index's warmest slots with their temperatures, warmest first. Walks over the table.
    #[must_use]
    pub fn hottest(&self, most: usize, mark: Mark) -> Vec<(Pointer, u8)> {
        self.pinned(|table| table.hottest(most, mark))
    }

    /// Pointers that the table has room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.pinned(T::capacity)
    }

    /// Pointers that it holds; counted by walking over it.
    #[must_use]
    pub fn occupancy(&self) -> usize {
        self.pinned(T::occupancy)
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.pinned(T::bytes)
    }

    /// What the monitor has found.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.monitor.verdict()
    }

    /// What threads have counted.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.totals.counts()
    }
}

/// What one thread keeps: random numbers, counts that it has not told yet, and its part of the monitor's trials.
#[derive(Debug)]
pub struct Seat {
    random: Random,
    /// Added to the number of hits: seats that are soon left would else never come to the first that counts.
    phase: u32,
    counted: u32,
    /// Lookups on account ([`Seat::find_on_account`]) of which the hits were told.
    told: Cell<u64>,
    /// The hit that counted last.
    warming: Cell<Option<(u64, usize)>>,
    tally: Tally,
    /// Free slots filled: not told to anyone, and so never reset.
    filled: Cell<u64>,
    watch: Watch,
}

/// For faces that keep guards and tables themselves, and count their lookups: the C interface.
impl Seat {
    /// Lookups between two calls of [`Seat::turn`].
    pub const TURN: u32 = monitor::BLOCK;
    /// A hit counts if its number, times this, is at most [`Table::counted`]. The golden ratio of 2^32: its multiples are spread
    /// evenly, and with no period that a program's own could meet.
    pub const STEP: u32 = 0x9e37_79b9;

    /// Whether the next [`Seat::TURN`] lookups are to ask the table: the monitor's decision. Tells the counts.
    #[cold]
    pub fn turn<T: Table>(&self, buffer: &Buffer<T>, table: &T) -> bool {
        self.tell(buffer);
        let uses = self.watch.uses_table(Seat::TURN, &buffer.monitor, &self.filled, || table.capacity());
        // The caller counts.
        self.told.set(self.watch.asked());
        // Who has ended the watching does not wait for the end of a long interval.
        uses || !buffer.monitor.is_watching()
    }

    /// Tells the buffer what was counted.
    pub fn tell<T: Table>(&self, buffer: &Buffer<T>) {
        // Of those that asked on account, the misses have been taken off already.
        let asked = self.watch.asked();
        let hits = asked - self.told.replace(asked);
        self.tally.hits.set(self.tally.hits.get().wrapping_add(hits));
        buffer.totals.take(&self.tally);
    }

    /// Counts lookups that this seat was not asked for: those answered by reading the table's lines, those that went on from
    /// there to the index, and those that did not ask because the monitor had switched the table off.
    #[inline]
    pub fn counted(&self, hits: u64, misses: u64, bypassed: u64) {
        let tally = &self.tally;
        tally.hits.set(tally.hits.get() + hits);
        tally.misses.set(tally.misses.get() + misses);
        tally.bypassed.set(tally.bypassed.get() + bypassed);
    }

    /// Offers what the index gave, where nobody writes meanwhile: the caller holds the stripe, or is alone.
    pub fn emit_held<T: Table>(&self, table: &T, hash: u64, pointer: Pointer) {
        self.emit(table, hash, |put| Some(put()), pointer);
    }

    /// Offers what the index gave. Dropped if a write of the stripe has begun since the ticket was taken.
    pub fn emit_ticketed<T: Table>(
        &self,
        buffer: &Buffer<T>,
        table: &T,
        ticket: &Ticket,
        hash: u64,
        pointer: Pointer,
    ) {
        self.emit(table, hash, |put| buffer.stripes.with_ticket(ticket, put), pointer);
    }

    /// Clears the slots of a hash; how many. The caller holds the stripe, or is alone.
    pub fn clear_held<T: Table>(&self, table: &T, hash: u64) -> usize {
        let (tally, cleared) = (&self.tally, table.clear(hash));
        count(&tally.invalidations);
        tally.cleared.set(tally.cleared.get() + cleared as u64);
        cleared
    }

    /// Puts a new entry where an old one was cleared. The caller holds the stripe, or is alone.
    pub fn put_held<T: Table>(&self, table: &T, hash: u64, pointer: Pointer) {
        table.insert(hash, pointer, &self.random);
    }

    /// The pointer emitted with this hash that `accept` takes, if the table has it.
    #[inline(always)]
    pub fn look<T: Table>(
        &self,
        table: &T,
        hash: u64,
        accept: impl FnMut(Pointer) -> bool,
    ) -> Option<Pointer> {
        self.find(table, hash, accept)
    }
}

impl Seat {
    #[inline(always)]
    fn uses_table(&self, lookups: u32, monitor: &Monitor, capacity: impl Fn() -> usize) -> bool {
        self.watch.uses_table(lookups, monitor, &self.filled, capacity)
            || self.uses_it_all_the_same(lookups, monitor)
    }

    /// Who has ended the watching does not wait for the end of a long interval.
    fn uses_it_all_the_same(&self, lookups: u32, monitor: &Monitor) -> bool {
        let uses = !monitor.is_watching();
        // Of those that ask, the watch has counted only those that it let ask.
        let counter = if uses { &self.tally.hits } else { &self.tally.bypassed };
        counter.set(counter.get().wrapping_add(u64::from(lookups)));
        uses
    }

    #[inline(always)]
    fn find<T: Table>(&self, table: &T, hash: u64, accept: impl FnMut(Pointer) -> bool) -> Option<Pointer> {
        let Some((slot, pointer)) = table.find(hash, accept) else {
            count(&self.tally.misses);
            return None;
        };
        self.hit(table, hash, slot);
        Some(pointer)
    }

    /// As [`Seat::find`], after [`Seat::uses_table`] has said so: that counts the lookup, so a hit has nothing to count.
    #[inline(always)]
    fn find_on_account<T: Table>(
        &self,
        table: &T,
        hash: u64,
        accept: impl FnMut(Pointer) -> bool,
    ) -> Option<Pointer> {
        let Some((slot, pointer)) = table.find(hash, accept) else {
            count(&self.tally.misses);
            self.tally.hits.set(self.tally.hits.get().wrapping_sub(1));
            return None;
        };
        self.confirm(table, hash, slot, 0);
        Some(pointer)
    }

    /// A hit of those that [`Seat::uses_table`] counted: the `nth` of the call.
    #[inline(always)]
    fn confirm<T: Table>(&self, table: &T, hash: u64, slot: usize, nth: usize) {
        self.warm_if_it_counts(table, hash, slot, self.watch.number().wrapping_add(nth as u32));
    }

    /// Counts a hit, and warms the slot if it is one that counts.
    #[inline(always)]
    fn hit<T: Table>(&self, table: &T, hash: u64, slot: usize) {
        let hits = self.tally.hits.get();
        self.tally.hits.set(hits.wrapping_add(1));
        self.warm_if_it_counts(table, hash, slot, (hits as u32).wrapping_add(self.phase));
    }

    #[inline(always)]
    fn warm_if_it_counts<T: Table>(&self, table: &T, hash: u64, slot: usize, number: u32) {
        if number.wrapping_mul(Seat::STEP) <= self.counted {
            self.warm(table, hash, slot);
        }
    }

    /// Warms the slot of the hit that counted before this one, whose line has come meanwhile. What a counter says decides
    /// branches; were they to wait for memory, then all lookups behind them would, too.
    ///
    /// # Panics
    /// Perhaps, if the slot is not what [`Table::find`] or [`Table::peek`] gave.
    #[inline(never)]
    pub fn warm<T: Table>(&self, table: &T, hash: u64, slot: usize) {
        if let Some((hash, slot)) = self.warming.replace(Some((hash, slot))) {
            table.warm(hash, slot, &self.random);
        }
    }

    /// `guarded` runs the insertion if the stripe allows it.
    #[inline]
    fn emit<T: Table>(
        &self,
        table: &T,
        hash: u64,
        guarded: impl FnOnce(&mut dyn FnMut() -> Emission) -> Option<Emission>,
        pointer: Pointer,
    ) {
        count(&self.tally.emissions);
        if table.wants(hash, &self.random) {
            let outcome = guarded(&mut || table.insert(hash, pointer, &self.random));
            if outcome == Some(Emission::Admitted) {
                count(&self.filled);
            }
            self.tally.emitted(outcome);
        }
    }
}

/// A thread at a buffer, with an epoch pinned.
#[derive(Debug)]
pub struct Visit<'b, T: Table = Slb> {
    buffer: &'b Buffer<T>,
    seat: Rc<Seat>,
    /// Tickets, hashes and pointers.
    emissions: [Cell<Option<(u64, u64, Pointer)>>; EMISSIONS],
    waiting: Cell<usize>,
    guard: Guard,
    /// Dropped when the guard is.
    _collection: Collection,
}

/// Sees to it that what is retired is also freed. An epoch is left, or pinned anew, without looking for what could be freed, and
/// the occasional look that pinning takes does not keep up with readers who write a lot.
#[derive(Debug)]
struct Collection;

thread_local! {
    /// What this thread has retired since it last collected.
    static RETIRED: Cell<u32> = const { Cell::new(0) };
}

impl Collection {
    /// Entries that may wait before a thread collects.
    const MOST: u32 = 128;

    /// Frees what can be, if much waits. To be called unpinned, or just pinned.
    fn collect(&self) {
        let much = RETIRED.try_with(|retired| {
            let much = retired.get() >= Collection::MOST;
            if much {
                // First: what is freed may visit maps, and come here.
                retired.set(0);
            }
            much
        });
        if much == Ok(true) {
            crossbeam_epoch::pin().flush();
        }
    }
}

impl Drop for Collection {
    fn drop(&mut self) {
        self.collect();
    }
}

/// To be called for each entry that is retired to the default collector.
pub(crate) fn retired() {
    // Past the thread's destructors others collect.
    let _ = RETIRED.try_with(|retired| retired.set(retired.get() + 1));
}

impl<'b, T: Table> Visit<'b, T> {
    /// The pinned epoch.
    #[inline(always)]
    #[must_use]
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// The buffer.
    #[must_use]
    pub fn buffer(&self) -> &'b Buffer<T> {
        self.buffer
    }

    /// Lets go of what was removed so far, and pins anew; tells the counts.
    pub fn refresh(&mut self) {
        self.emit_waiting();
        self.guard.repin();
        self.seat.tell(self.buffer);
        self._collection.collect();
    }

    /// Whether the next so many lookups are to ask the table: the monitor's decision. Counts them.
    #[inline(always)]
    pub(crate) fn uses_table(&self, lookups: u32) -> bool {
        self.seat.uses_table(lookups, &self.buffer.monitor, || self.table().capacity())
    }

    #[inline(always)]
    #[allow(unsafe_code)]
    fn table(&self) -> &T {
        // SAFETY: pinned by the default collector: see the head of this module.
        unsafe { self.buffer.table.load(&self.guard) }
    }

    /// The pointer emitted with this hash that `accept` takes, if the table has it.
    #[inline(always)]
    pub fn find(&self, hash: u64, accept: impl FnMut(Pointer) -> bool) -> Option<Pointer> {
        self.seat.find(self.table(), hash, accept)
    }

    /// Asks for the line of this hash.
    #[inline(always)]
    pub fn prefetch(&self, hash: u64) {
        self.table().prefetch(hash);
    }

    /// The slot and the pointer that are likely to be the answer.
    #[inline(always)]
    #[must_use]
    pub fn peek(&self, hash: u64) -> Option<(usize, Pointer)> {
        self.table().peek(hash)
    }

    /// What was peeked at was the answer to the `nth` lookup of those that [`Visit::uses_table`] let ask.
    #[inline(always)]
    pub(crate) fn confirm(&self, hash: u64, slot: usize, nth: usize) {
        self.seat.confirm(self.table(), hash, slot, nth);
    }

    /// As [`Visit::find`], for a lookup that [`Visit::uses_table`] let ask, and counted.
    #[inline(always)]
    pub(crate) fn find_on_account(&self, hash: u64, accept: impl FnMut(Pointer) -> bool) -> Option<Pointer> {
        self.seat.find_on_account(self.table(), hash, accept)
    }

    /// To be taken after a miss and before the index is searched.
    #[inline]
    pub fn ticket(&self, hash: u64) -> Ticket {
        self.buffer.stripes.ticket(hash)
    }

    /// Offers what the index gave. Dropped if a write of the stripe has begun since the ticket was taken.
    #[inline]
    pub fn emit(&self, ticket: &Ticket, hash: u64, pointer: Pointer) {
        let stripes = &self.buffer.stripes;
        self.seat.emit(self.table(), hash, |put| stripes.with_ticket(ticket, put), pointer);
    }

    /// As [`Visit::emit`], but done together with others, at the latest when the visit ends or is refreshed. Each emission takes
    /// words by atomic exchanges, and each of those waits for every load before it: together they wait once.
    #[inline]
    pub fn emit_soon(&self, ticket: &Ticket, hash: u64, pointer: Pointer) {
        let waiting = self.waiting.get();
        self.emissions[waiting].set(Some((ticket.number(), hash, pointer)));
        self.waiting.set(waiting + 1);
        if waiting + 1 == EMISSIONS {
            self.emit_waiting();
        }
    }

    fn emit_waiting(&self) {
        for emission in &self.emissions[..self.waiting.replace(0)] {
            if let Some((ticket, hash, pointer)) = emission.take() {
                self.emit(&Ticket::numbered(hash, ticket), hash, pointer);
            }
        }
    }

    /// Begins a write: see [`Buffer::write`].
    pub fn write(&self, hash: u64) -> Write<'_, T> {
        // Its own writes would void the tickets: a key that is read and written in turn would never be emitted.
        self.emit_waiting();
        // SAFETY: as in `table`.
        #[allow(unsafe_code)]
        let write = unsafe { self.buffer.write(hash, &self.guard) };
        let tally = &self.seat.tally;
        count(&tally.invalidations);
        tally.cleared.set(tally.cleared.get() + write.cleared as u64);
        write
    }
}

impl<T: Table> Drop for Visit<'_, T> {
    fn drop(&mut self) {
        // While still pinned: what was found is there.
        self.emit_waiting();
        self.seat.tell(self.buffer);
    }
}

/// The one owner of a buffer: needs no epoch, no stripe and no ticket.
#[derive(Debug)]
pub(crate) struct Ownership {
    seat: Seat,
}

impl Ownership {
    /// # Safety
    /// While this lives, nobody else reads the buffer or changes it, but to forget pointers; and whoever calls
    /// [`Buffer::resize`] has nothing of the table.
    #[allow(unsafe_code)]
    pub(crate) unsafe fn of<T: Table>(buffer: &Buffer<T>) -> Ownership {
        Ownership { seat: buffer.seat() }
    }

    #[inline(always)]
    #[allow(unsafe_code)]
    pub(crate) fn table<'b, T: Table>(&self, buffer: &'b Buffer<T>) -> &'b T {
        // SAFETY: the table is replaced only by the owner, who then has nothing of the old one: see `of`.
        unsafe { buffer.table.load(crossbeam_epoch::unprotected()) }
    }

    #[inline(always)]
    pub(crate) fn uses_table<T: Table>(&self, buffer: &Buffer<T>, lookups: u32) -> bool {
        self.seat.uses_table(lookups, &buffer.monitor, || self.table(buffer).capacity())
    }

    #[inline(always)]
    pub(crate) fn find<T: Table>(
        &self,
        buffer: &Buffer<T>,
        hash: u64,
        accept: impl FnMut(Pointer) -> bool,
    ) -> Option<Pointer> {
        self.seat.find_on_account(self.table(buffer), hash, accept)
    }

    /// As [`Visit::confirm`].
    #[inline(always)]
    pub(crate) fn confirm<T: Table>(&self, table: &T, hash: u64, slot: usize, nth: usize) {
        self.seat.confirm(table, hash, slot, nth);
    }

    pub(crate) fn emit<T: Table>(&self, buffer: &Buffer<T>, hash: u64, pointer: Pointer) {
        self.seat.emit(self.table(buffer), hash, |put| Some(put()), pointer);
    }

    /// Clears the table for a write; how many slots.
    pub(crate) fn clear<T: Table>(&self, buffer: &Buffer<T>, hash: u64) -> usize {
        self.seat.clear_held(self.table(buffer), hash)
    }

    /// Puts a new entry where an old one was cleared.
    pub(crate) fn put<T: Table>(&self, buffer: &Buffer<T>, hash: u64, pointer: Pointer) {
        self.table(buffer).insert(hash, pointer, &self.seat.random);
    }

    pub(crate) fn counts<T: Table>(&self, buffer: &Buffer<T>) -> Counts {
        self.seat.tell(buffer);
        buffer.counts()
    }
}

/// A write that has begun. Dropping it ends it.
#[derive(Debug)]
#[must_use = "the index is to be changed before this is dropped"]
pub struct Write<'b, T: Table> {
    buffer: &'b Buffer<T>,
    table: &'b T,
    hash: u64,
    cleared: usize,
    _held: Held<'b>,
}

impl<T: Table> Write<'_, T> {
    /// Puts the new entry where one of this tag was cleared; if none was, the key was not hot, and nothing happens.
    pub fn put(&self, pointer: Pointer) {
        if self.cleared > 0 {
            let random = Random::new(self.hash);
            self.table.insert(self.hash, pointer, &random);
        }
    }

    /// The buffer.
    #[must_use]
    pub fn buffer(&self) -> &Buffer<T> {
        self.buffer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::stlt::{StltConfig, Ways};

    fn pointer(key: u64) -> Pointer {
        Pointer::new(0x10_0000 + key).unwrap()
    }

    #[test]
    fn there_are_as_many_marks_as_asked_for_or_up_to_the_next_power_of_two() {
        for (asked, given) in [(1, 1), (2, 2), (3, 4), (128, 128), (129, 256), (256, 256)] {
            let buffer = Buffer::<Slb>::for_indexes(&Config::with_size(64), asked).unwrap();
            for _ in 0..given {
                buffer.mark().unwrap();
            }
            for _ in 0..3 {
                assert_eq!(buffer.mark(), Err(NoMarkLeft(given)));
            }
        }
        for asked in [0, 257, usize::MAX] {
            let outcome = Buffer::<Slb>::for_indexes(&Config::with_size(64), asked);
            assert!(matches!(outcome, Err(CreateError::Parameter { parameter: "indexes", .. })));
        }
    }

    #[test]
    fn a_mark_replaces_the_highest_bits_and_no_others() {
        for (indexes, bits) in [(1, 0), (2, 1), (16, 4), (256, 8)] {
            let buffer = Buffer::<Slb>::for_indexes(&Config::with_size(64), indexes).unwrap();
            for number in 0..indexes as u64 {
                let mark = buffer.mark().unwrap();
                for hash in [0, u64::MAX, 0x0123_4567_89ab_cdef, 1 << 63] {
                    let marked = u128::from(mark.on(hash));
                    assert_eq!(marked >> (64 - bits), u128::from(number));
                    assert_eq!(
                        marked as u64 & ((1u128 << (64 - bits)) - 1) as u64,
                        hash & ((1u128 << (64 - bits)) - 1) as u64
                    );
                }
            }
        }
    }

    /// The same key, and so the same hash but for the mark, in every index.
    fn equal_keys_never_meet<T: Table>(config: &T::Config) {
        let buffer = Buffer::<T>::for_indexes(config, 256).unwrap();
        let visit = buffer.visit();
        let marks: Vec<Mark> = (0..256).map(|_| buffer.mark().unwrap()).collect();
        for hash in [0, u64::MAX, 0xfedc_ba98_7654_3210] {
            for (number, mark) in marks.iter().enumerate() {
                let hash = mark.on(hash);
                let ticket = visit.ticket(hash);
                visit.emit(&ticket, hash, pointer(number as u64));
            }
            let mut found = 0;
            for (number, mark) in marks.iter().enumerate() {
                let own = pointer(number as u64);
                let mut asked = 0;
                let answer = visit.find(mark.on(hash), |pointer| {
                    assert_eq!(pointer, own, "another index's entry");
                    asked += 1;
                    true
                });
                assert_eq!(visit.peek(mark.on(hash)).map(|(_, found)| found), answer);
                assert_eq!(answer.is_some(), asked == 1);
                found += asked;
            }
            assert!(found > 0);
            // A write to one index leaves the others' entries alone.
            let kept = |number: usize| visit.find(marks[number].on(hash), |_| true).is_some();
            let before: Vec<bool> = (0..256).map(kept).collect();
            drop(visit.write(marks[3].on(hash)));
            let after: Vec<bool> = (0..256).map(kept).collect();
            assert!((0..256).all(|number| after[number] == (before[number] && number != 3)));
        }
    }

    #[test]
    fn equal_keys_of_indexes_that_share_a_buffer_never_meet() {
        equal_keys_never_meet::<Slb>(&Config::with_size(64));
        equal_keys_never_meet::<Slb>(&Config::with_size(1 << 16));
        for ways in [Ways::One, Ways::Two, Ways::Four, Ways::Eight] {
            equal_keys_never_meet::<crate::Stlt>(&StltConfig { ways, ..StltConfig::with_size(1 << 12) });
        }
    }

    #[test]
    fn what_happens_is_counted() {
        let buffer = Buffer::<Slb>::new(&Config::with_size(64)).unwrap();
        let mut visit = buffer.visit();
        let hash = |key: u64| (key + 1) << Pointer::BITS;
        let look = |visit: &Visit<'_>, key| visit.find(hash(key), |_| true).is_some();
        // Eight misses and emissions in a table of seven.
        for key in 0..8 {
            let ticket = visit.ticket(hash(key));
            assert!(!look(&visit, key));
            visit.emit(&ticket, hash(key), pointer(key));
        }
        assert_eq!(buffer.counts(), Counts::default(), "not told yet");
        assert!(look(&visit, 7) && look(&visit, 7));
        // Emitted again: there already. With a ticket from before a write: dropped.
        let ticket = visit.ticket(hash(7));
        visit.emit(&ticket, hash(7), pointer(7));
        let write = visit.write(hash(7));
        write.put(pointer(77));
        drop(write);
        visit.emit(&ticket, hash(7), pointer(7));
        assert_eq!(visit.find(hash(7), |_| true), Some(pointer(77)));
        let write = visit.write(hash(99));
        write.put(pointer(99));
        drop(write);
        assert!(!look(&visit, 99), "was not hot, and so is not put in");
        visit.refresh();
        let expected = Counts {
            hits: 3,
            misses: 9,
            bypassed: 0,
            emissions: 10,
            admissions: 8,
            evictions: 1,
            refused_tickets: 1,
            invalidations: 2,
            cleared: 1,
        };
        assert_eq!(buffer.counts(), expected);
        assert_eq!(buffer.counts().hit_ratio(), 0.25);
        assert_eq!(Counts::default().hit_ratio(), 0.0);
        assert!(look(&visit, 7));
        drop(visit);
        assert_eq!(buffer.counts(), Counts { hits: 4, ..expected }, "told by leaving");
    }

    #[test]
    fn tickets_are_void_from_the_moment_a_write_begins() {
        let buffer = Buffer::<Slb>::new(&Config::with_size(64)).unwrap();
        let visit = buffer.visit();
        let hash = 5 << Pointer::BITS;
        let emits = |ticket: &Ticket| {
            visit.emit(ticket, hash, pointer(1));
            let there = visit.find(hash, |_| true).is_some();
            buffer.forget(hash, pointer(1));
            there
        };
        let before = visit.ticket(hash);
        assert!(emits(&before) && emits(&before), "as often as one likes");
        let write = visit.write(hash);
        let during = visit.ticket(hash);
        assert!(!emits(&before) && !emits(&during));
        drop(write);
        assert!(!emits(&before) && !emits(&during) && emits(&visit.ticket(hash)));
        let before = visit.ticket(hash);
        buffer.lock(hash);
        assert!(!emits(&before) && !emits(&visit.ticket(hash)));
        buffer.unlock(hash);
        buffer.unlock(hash);
        assert!(!emits(&before) && emits(&visit.ticket(hash)));
    }

    #[test]
    fn a_resized_table_is_empty_and_a_refused_size_changes_nothing() {
        let buffer = Buffer::<Slb>::new(&Config::with_size(64)).unwrap();
        let visit = buffer.visit();
        let hash = 5 << Pointer::BITS;
        visit.emit(&visit.ticket(hash), hash, pointer(1));
        let old = visit.table();
        for size in [0, 63, usize::MAX] {
            assert!(buffer.resize(size).is_err());
            assert!(visit.find(hash, |_| true).is_some());
        }
        let ticket = visit.ticket(hash);
        buffer.resize(6400).unwrap();
        assert!(visit.find(hash, |_| true).is_none());
        assert_eq!((visit.table().capacity(), old.capacity(), old.occupancy()), (700, 7, 1));
        visit.emit(&ticket, hash, pointer(1));
        assert!(visit.find(hash, |_| true).is_some(), "the ticket speaks of the index, not of the table");
        // A write that began before the table was replaced.
        let write = visit.write(hash);
        buffer.resize(64).unwrap();
        write.put(pointer(2));
        drop(write);
        assert!(visit.find(hash, |_| true).is_none(), "put into a table that is gone");
        visit.emit(&visit.ticket(hash), hash, pointer(2));
        assert_eq!(visit.find(hash, |_| true), Some(pointer(2)));
    }
}
