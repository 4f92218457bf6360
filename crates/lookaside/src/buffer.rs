//! The buffer: a table, the stripes that keep it equal to its index, and the account of what it is worth.
//!
//! It knows hashes and pointers only, like the table, and follows none. What stands behind a pointer, how keys are
//! compared and when memory is freed is for the faces above it: the safe map ([`crate::Map`]), and the C interface.
//!
//! ```text
//!   lookup:   Visit::find -- hit ------------------------------> done
//!                          \- miss: ticket -> the index -> Visit::emit
//!   write:    Buffer::write -> change the index -> (Write::put) -> drop
//! ```
//!
//! Several indexes may share one buffer: each has a [`Mark`]. Hashes are taken as they are: they must be even in all of
//! their bits, or have been [mixed](crate::mix) (see [`crate::Hashing`]).
//!
//! # Who holds a table
//!
//! Tables are replaced while they are used ([`Buffer::resize`]; by lookups, where the table fits itself:
//! `Config::fits`), and the old one goes when all guards have gone that were there then. [`Buffer::resize`] and
//! [`crate::Visit::uses_table`] retire it to the buffer's own collector, which visits pin ([`Buffer::pin`]), and so
//! does [`Buffer::resize_exclusively`]; [`Buffer::fit_exclusively`] leaves it to the caller. Nobody can check cheaply
//! that all who look have pinned the buffer, so it is a promise.
//!
//! | module | who is at the buffer |
//! |---|---|
//! | `visit` | a thread among others: pinned, with tickets |
//! | `owned` | its one owner, whose map it is |
//! | `seat` | what either keeps: its account, its random numbers, its part of the monitor's trials |

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use atomics::reclaim::{self, Collector};
use parking_lot::Mutex;

use crate::config::{Config, CreateError};
use crate::current::Current;
pub use crate::current::Replaced;
use crate::fitting::{Account, Fitting, Passed, Step};
use crate::mark::{MOST_MARK_BITS, Mark, NoMarkLeft};
use crate::monitor::{Monitor, Verdict};
use crate::random::Random;
use crate::seat::Seat;
use crate::slb::Slb;
use crate::stats::{Counts, Totals};
use crate::stripes::{Held, Stripes, Ticket};
use crate::word::Pointer;

/// Buffers made so far.
static BUFFERS: AtomicU64 = AtomicU64::new(0);

/// Who holds one has pinned a buffer: see [`Buffer::pin`]. It stays on its thread.
#[derive(Debug)]
#[must_use = "the buffer is pinned only while it is held"]
pub struct Guard<'b>(pub(crate) reclaim::Guard<'b, Seat>);

impl Guard<'_> {
    /// Lets go of what was found, and pins anew. While this thread holds another guard of the buffer, nothing changes.
    /// What was retired may be freed here, and so user code run, as where a guard is dropped.
    #[inline(always)]
    pub fn refresh(&mut self) {
        self.0.refresh();
    }

    /// Retires an object: `free(object, context)` is called once, by any thread, when all have left who have pinned the
    /// buffer now; at the latest when the buffer is dropped. It may do what it likes, but in the last case: then it
    /// must not come by the buffer.
    ///
    /// # Safety
    /// Nobody who pins from now on can find the object, and it is retired once. Until the buffer has been dropped, any
    /// thread may call `free` with these arguments.
    #[allow(unsafe_code)]
    #[inline]
    pub unsafe fn retire(&self, object: *mut (), context: *const (), free: unsafe fn(*mut (), *const ())) {
        // SAFETY: the caller's promise.
        unsafe { self.0.retire(object, context, free) };
    }

    /// Retires a table that was replaced. It is not freed before this thread unpins, or refreshes its guard.
    ///
    /// # Safety
    /// Whoever may still be looking at it has pinned the buffer.
    #[allow(unsafe_code)]
    pub unsafe fn retire_table(&self, replaced: Replaced) {
        // SAFETY: the caller's promise.
        unsafe { replaced.retire(&self.0) };
    }
}

/// What the seats of a buffer begin with.
#[derive(Debug)]
struct Seats {
    /// Of this buffer, and of no other.
    number: u64,
    made: AtomicU64,
    /// [`Slb::counted`] of its tables, of any size.
    counted: u32,
}

impl Seats {
    fn seat(&self) -> Seat {
        let made = self.made.fetch_add(1, Ordering::Relaxed);
        Seat::new(Random::new(self.number << 32 ^ made), self.counted)
    }
}

/// A table in front of one index or several.
pub struct Buffer {
    pub(crate) table: Current,
    pub(crate) stripes: Stripes,
    fitting: Mutex<Fitting>,
    passed: Account,
    config: Mutex<Config>,
    mark_bits: u32,
    marks: AtomicUsize,
    pub(crate) monitor: Monitor,
    pub(crate) totals: Totals,
    seats: Arc<Seats>,
    /// Maps behind it.
    pub(crate) maps: AtomicUsize,
    /// Whom what is removed and replaced waits for.
    pub(crate) collector: Collector<Seat>,
}

impl Buffer {
    /// A buffer for one index. Its monitor is on.
    ///
    /// # Errors
    /// [`CreateError`]: no size that a table can have, or no memory.
    pub fn new(config: &Config) -> Result<Buffer, CreateError> {
        Buffer::for_indexes(config, 1)
    }

    /// A buffer for up to so many indexes, 256 at most.
    ///
    /// # Errors
    /// [`CreateError`]: no size that a table can have, no memory, or too many indexes.
    pub fn for_indexes(config: &Config, indexes: usize) -> Result<Buffer, CreateError> {
        if !(1..=1 << MOST_MARK_BITS).contains(&indexes) {
            return Err(CreateError::Parameter {
                parameter: "indexes",
                value: indexes as f64,
                range: "1 to 256",
            });
        }
        let table = Slb::new(config)?;
        let number = BUFFERS.fetch_add(1, Ordering::Relaxed);
        let seats = Arc::new(Seats { number, made: AtomicU64::new(0), counted: table.counted() });
        let made = Arc::clone(&seats);
        Ok(Buffer {
            table: Current::new(table),
            stripes: Stripes::new()?,
            fitting: Mutex::new(Fitting::new()),
            passed: Account::default(),
            config: Mutex::new(config.clone()),
            mark_bits: indexes.next_power_of_two().trailing_zeros(),
            marks: AtomicUsize::new(0),
            monitor: Monitor::new(true),
            totals: Totals::default(),
            seats,
            maps: AtomicUsize::new(0),
            collector: Collector::with_locals(move || made.seat()),
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

    /// What a thread keeps between visits.
    #[must_use]
    pub fn seat(&self) -> Seat {
        self.seats.seat()
    }

    /// Pins the buffer: no table goes that is there now, nor what is retired by a guard from now on, until the guard is
    /// dropped or refreshed.
    #[inline(always)]
    pub fn pin(&self) -> Guard<'_> {
        Guard(self.collector.pin())
    }

    /// Frees all that was retired to the buffer, by whichever thread, and that nobody holds.
    pub fn collect(&self) {
        self.collector.collect();
    }

    /// Begins a write of keys with this hash: waits for other writes of its stripe, and clears the table. The index is
    /// to be changed before what is returned is dropped, and the old entry to be retired after.
    ///
    /// # Safety
    /// As [`Buffer::table`], until what is returned is dropped.
    #[allow(unsafe_code)]
    #[inline]
    pub unsafe fn write(&self, hash: u64) -> Write<'_> {
        // SAFETY: the caller's promise.
        unsafe { self.begin(hash, |_| {}) }
    }

    /// As [`Buffer::write`]; before it clears the table, `accept` is shown what that has, as by [`Slb::find`].
    ///
    /// # Safety
    /// As there.
    #[allow(unsafe_code)]
    #[inline]
    pub(crate) unsafe fn write_over<'b>(
        &'b self,
        hash: u64,
        accept: impl FnMut(Pointer) -> bool,
    ) -> Write<'b> {
        // SAFETY: the caller's promise.
        unsafe {
            self.begin(hash, |table| {
                table.find(hash, accept);
            })
        }
    }

    #[allow(unsafe_code)]
    #[inline]
    unsafe fn begin<'b>(&'b self, hash: u64, look: impl FnOnce(&Slb)) -> Write<'b> {
        let held = self.stripes.lock(hash);
        // SAFETY: the caller's promise.
        look(unsafe { self.table.load() });
        let (mut cleared, mut kept) = (0, Cell::new(None));
        let vacate = |table: &'b Slb| {
            let (slots, slot) = table.vacate(hash);
            cleared += slots;
            give_up(kept.replace(slot.map(|slot| (table, slot))));
        };
        // SAFETY: the caller's promise.
        let table = unsafe { self.table.everywhere(vacate) };
        if kept.get_mut().is_some_and(|(of, _)| !std::ptr::eq(of, table)) {
            give_up(kept.take());
        }
        Write { buffer: self, table, hash, cleared, kept, _held: held }
    }

    /// Clears the slots of a hash; the table in use, and how many they were. For those who hold the hash's stripe, or
    /// are alone.
    ///
    /// # Safety
    /// As [`Buffer::table`].
    #[allow(unsafe_code)]
    #[inline]
    pub(crate) unsafe fn clear(&self, hash: u64) -> (&Slb, usize) {
        let mut cleared = 0;
        // SAFETY: the caller's promise.
        let table = unsafe { self.table.everywhere(|table| cleared += table.clear(hash)) };
        (table, cleared)
    }

    /// Forgets a pointer that was emitted with this hash: for memory that is about to be freed without a write.
    pub fn forget(&self, hash: u64, pointer: Pointer) {
        let _guard = self.pin();
        // SAFETY: as in `pinned`.
        #[allow(unsafe_code)]
        unsafe {
            self.forget_guarded(hash, pointer);
        }
    }

    /// As [`Buffer::forget`].
    ///
    /// # Safety
    /// As [`Buffer::table`].
    #[allow(unsafe_code)]
    #[inline]
    pub(crate) unsafe fn forget_guarded(&self, hash: u64, pointer: Pointer) {
        // SAFETY: the caller's promise.
        unsafe { self.table.everywhere(|table| table.forget(hash, pointer)) };
    }

    /// Shows the table as it is now.
    #[allow(unsafe_code)]
    pub(crate) fn pinned<R>(&self, show: impl FnOnce(&Slb) -> R) -> R {
        let _guard = self.pin();
        // SAFETY: `resize` retires tables to the buffer's collector. Who resizes in another way promises that nobody
        // does this.
        show(unsafe { self.table.load() })
    }

    /// Takes the stripe of a hash, as the paper's `SLB_lock` does.
    #[inline]
    pub fn lock(&self, hash: u64) {
        self.stripes.lock_raw(hash);
    }

    /// Gives it back. Does nothing if nobody holds it.
    #[inline]
    pub fn unlock(&self, hash: u64) {
        self.stripes.unlock_raw(hash);
    }

    /// The table in use: for those who hold a stripe by [`Buffer::lock`] and write without tickets.
    ///
    /// # Safety
    /// While it is used, the caller has pinned the buffer ([`Buffer::pin`]), or nobody resizes it or lets it fit itself
    /// ([`crate::Visit::uses_table`], [`Seat::turn`]).
    #[inline]
    #[must_use]
    #[allow(unsafe_code)]
    pub unsafe fn table(&self) -> &Slb {
        // SAFETY: the caller's promise.
        unsafe { self.table.load() }
    }

    /// Replaces the table by an empty one of another size, while it is used.
    ///
    /// # Errors
    /// [`CreateError`]: no size that a table can have, or no memory. Then the old one stays.
    pub fn resize(&self, size: usize) -> Result<(), CreateError> {
        let guard = self.pin();
        let none = Vec::new;
        // SAFETY: of the buffer's collector, as the guards of visits are.
        #[allow(unsafe_code)]
        unsafe {
            for table in self.resize_guarded(size, none, |_| {})?.into_iter().flatten() {
                guard.retire_table(table);
            }
        }
        // Tickets stay good: they speak of the index, and a write that is going on holds its stripe until that has
        // changed.
        Ok(())
    }

    /// As [`Buffer::resize`], but waits until nobody holds a stripe, and then lets `publish` see the new table before
    /// anyone does: for faces whose threads read the table under a stripe, with no epoch pinned, or read it by another
    /// way. The old table goes when all have left who have pinned the buffer.
    ///
    /// The caller holds no stripe.
    ///
    /// # Errors
    /// As [`Buffer::resize`].
    ///
    /// # Safety
    /// All who use the table hold a stripe, or have pinned the buffer, as `guard` has.
    #[allow(unsafe_code)]
    pub unsafe fn resize_exclusively(
        &self,
        size: usize,
        guard: &Guard<'_>,
        publish: impl FnOnce(&Slb),
    ) -> Result<(), CreateError> {
        // SAFETY: the caller's promise.
        unsafe {
            for table in self.resize_guarded(size, || self.stripes.lock_all(), publish)?.into_iter().flatten()
            {
                guard.retire_table(table);
            }
        }
        Ok(())
    }

    /// What was replaced.
    ///
    /// # Safety
    /// Who uses the table has pinned a collector to which what is given is retired, or holds one of these stripes.
    #[allow(unsafe_code)]
    unsafe fn resize_guarded<'b>(
        &'b self,
        size: usize,
        stripes: impl FnOnce() -> Vec<Held<'b>>,
        publish: impl FnOnce(&Slb),
    ) -> Result<[Option<Replaced>; 2], CreateError> {
        let mut fitting = self.fitting.lock();
        let mut config = self.config.lock();
        let resized = config.resized(size);
        let table = Slb::new(&resized)?;
        let stripes = stripes();
        publish(&table);
        let replaced = [self.table.abandon(), self.table.replace(table)];
        drop(stripes);
        *config = resized;
        fitting.begins_anew();
        self.passed.take();
        self.monitor.begins_anew();
        Ok(replaced.map(Replaced::some))
    }

    /// One step towards a table that fits what is asked for, by a thread that has nothing of the table and since the
    /// last step has done this; whether the next should come soon.
    ///
    /// # Safety
    /// All who use the table have pinned the buffer, as `guard` has.
    #[allow(unsafe_code)]
    pub(crate) unsafe fn fit(&self, passed: Passed, guard: &Guard<'_>) -> bool {
        // SAFETY: the caller's promise.
        let (soon, replaced) = unsafe { self.fit_under(passed, || Some(Vec::new()), |_| {}) };
        if let Some(replaced) = replaced {
            // SAFETY: the caller's promise.
            unsafe { guard.retire_table(replaced) };
        }
        soon
    }

    /// The same for faces as those of [`Buffer::resize_exclusively`]: when the table is to be replaced, all stripes are
    /// taken but those that this thread `holds`; while somebody has one for long, the old table stays. What was
    /// replaced is to be [retired](Guard::retire_table) by the caller.
    ///
    /// # Safety
    /// As [`Buffer::resize_exclusively`]; and this thread has nothing of the table.
    #[allow(unsafe_code)]
    pub unsafe fn fit_exclusively(
        &self,
        passed: Passed,
        holds: impl Fn(usize) -> bool,
        publish: impl FnOnce(&Slb),
    ) -> (bool, Option<Replaced>) {
        // SAFETY: the caller's promise.
        unsafe { self.fit_under(passed, || self.stripes.try_lock_all(holds), publish) }
    }

    /// # Safety
    /// Who uses the table has pinned a collector to which what is given is retired, or holds one of these stripes, or
    /// is this thread, which has nothing of it.
    #[allow(unsafe_code)]
    unsafe fn fit_under<'b>(
        &'b self,
        passed: Passed,
        stripes: impl FnOnce() -> Option<Vec<Held<'b>>>,
        publish: impl FnOnce(&Slb),
    ) -> (bool, Option<Replaced>) {
        self.passed.add(passed);
        // Else another thread does what there is to do. No user code runs under it: nothing is pinned, and nothing
        // freed.
        let Some(mut fitting) = self.fitting.try_lock() else { return (false, None) };
        // SAFETY: replaced under this lock only.
        let table = unsafe { self.table.load() };
        let replaced = match fitting.step(table, self.passed.take()) {
            Step::Nothing => None,
            Step::Fold(times) => match table.folded(times) {
                Some(folded) => {
                    fitting.copied(0);
                    self.table.begin(folded).some()
                }
                None => {
                    fitting.has_failed();
                    None
                }
            },
            Step::Copy { from, to } => {
                // SAFETY: under this lock there is one at a time.
                if let Some(successor) = unsafe { self.table.successor() } {
                    table.copy_lines(from..to, successor);
                }
                fitting.copied(to);
                None
            }
            Step::Succeed => match stripes() {
                Some(_held) => {
                    fitting.has_folded();
                    self.passed.take();
                    // SAFETY: as above.
                    unsafe { self.table.successor() }.inspect(|folded| publish(folded));
                    self.table.succeed()
                }
                // The copy cannot be given up either: who has a stripe may be clearing it.
                None => {
                    fitting.has_to_wait();
                    None
                }
            },
            // Made before the stripes are taken: nobody is to wait for the system to give memory.
            Step::Unfold => match Slb::new(&self.config.lock()) {
                Ok(whole) => match stripes() {
                    Some(_held) => {
                        fitting.has_unfolded();
                        self.passed.take();
                        self.monitor.begins_anew();
                        publish(&whole);
                        Some(self.table.replace(whole))
                    }
                    None => {
                        fitting.has_to_wait();
                        None
                    }
                },
                Err(_) => {
                    fitting.has_failed();
                    None
                }
            },
        };
        (fitting.is_at_work(), replaced)
    }

    /// As [`crate::Visit::ticket`], for faces that keep their guards themselves.
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

    /// Lets the monitor watch, or not: if not, the table is always used. A thread takes note when it refreshes its
    /// visit, or after 1024 lookups at most.
    pub fn monitor(&self, watching: bool) {
        self.monitor.watch(watching);
    }

    /// The pointers of an index's warmest slots with their temperatures, warmest first. Walks over the table.
    #[must_use]
    pub fn hottest(&self, most: usize, mark: Mark) -> Vec<(Pointer, u8)> {
        self.pinned(|table| table.hottest(most, mark))
    }

    /// Pointers that the table has room for now: it changes as the table fits itself (`Config::fits`).
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.pinned(Slb::capacity)
    }

    /// Pointers that it holds; counted by walking over it.
    #[must_use]
    pub fn occupancy(&self) -> usize {
        self.pinned(Slb::occupancy)
    }

    /// The table's bytes now: they change as it fits itself (`Config::fits`).
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.pinned(Slb::bytes)
    }

    /// What the monitor has found.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.monitor.verdict()
    }

    /// What threads have counted.
    #[must_use]
    #[allow(unsafe_code)]
    pub fn counts(&self) -> Counts {
        let mut counts = self.totals.counts();
        for seat in self.collector.locals() {
            // SAFETY: it stays as long as the collector. Of a seat, which is its thread's, only the tally is looked at,
            // whose numbers any thread may load.
            let tally = unsafe { &(*seat).tally };
            counts += tally.counts();
        }
        counts
    }
}

impl fmt::Debug for Buffer {
    /// Counts, without what would pin an epoch.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("counts", &self.counts())
            .field("verdict", &self.verdict())
            .finish_non_exhaustive()
    }
}

/// A write that has begun. Dropping it ends it.
#[derive(Debug)]
#[must_use = "the index is to be changed before this is dropped"]
pub struct Write<'b> {
    buffer: &'b Buffer,
    table: &'b Slb,
    hash: u64,
    pub(crate) cleared: usize,
    /// A slot of the table that is kept for what is put in.
    kept: Cell<Option<(&'b Slb, usize)>>,
    _held: Held<'b>,
}

/// Nothing will be put into this slot.
fn give_up(kept: Option<(&Slb, usize)>) {
    if let Some((table, _)) = kept {
        table.give_up();
    }
}

impl Drop for Write<'_> {
    #[inline]
    fn drop(&mut self) {
        give_up(self.kept.take());
    }
}

impl Write<'_> {
    /// Puts the new entry where one of this tag was cleared; if none was, the key was not hot, and nothing happens.
    #[inline]
    pub fn put(&self, pointer: Pointer) {
        if self.cleared > 0 {
            let random = Random::new(self.hash);
            match self.kept.take() {
                Some((table, slot)) => table.fill(slot, self.hash, pointer, &random),
                None => drop(self.table.insert(self.hash, pointer, &random)),
            }
        }
    }

    /// Pointers that the table has room for.
    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.table.capacity()
    }

    /// The buffer.
    #[must_use]
    pub fn buffer(&self) -> &Buffer {
        self.buffer
    }
}

#[cfg(test)]
mod tests;
