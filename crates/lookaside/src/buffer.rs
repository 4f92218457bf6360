//! The buffer: a table, the stripes that keep it equal to its index, and the account of what it is worth.
//!
//! It knows hashes and pointers only, like the table, and follows none. What stands behind a pointer, how keys are
//! compared and when memory is freed is for the faces above it: the safe map ([`crate::Map`]), and the C interface.
//!
//! ```text
//!   lookup:   Pinned::find -- hit ------------------------------> done
//!                          \- miss: ticket -> the index -> Pinned::admit
//!   write:    Buffer::write -> change the index -> (Write::put) -> drop
//! ```
//!
//! Several indexes may share one buffer: each has a [`IndexId`]. Hashes are taken as they are: they must be even in all
//! of their bits, or have been [mixed](crate::mix) (see [`crate::Hashing`]).
//!
//! # Who holds a table
//!
//! Tables are replaced while they are used ([`Buffer::resize`]), and the old one goes when all guards have gone that
//! were there then: it is retired to the buffer's own collector, which visits pin ([`Buffer::pin`]). Nobody can check
//! cheaply that all who look have pinned the buffer, so it is a promise.
//!
//! | module | who is at the buffer |
//! |---|---|
//! | `pinned` | a thread among others: pinned, with tickets |
//! | `owned` | its one owner, whose map it is |
//! | `thread_state` | what either keeps: its account, its random numbers, its part of the monitor's trials |

use std::cell::Cell;
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use atomics::reclaim::{self, Collector};
use parking_lot::Mutex;

use crate::atomic_table::{AtomicTable, Replaced};
use crate::config::{Config, CreateError};
use crate::index_id::{IndexId, MOST_ID_BITS, NoIdLeft};
use crate::monitor::{Monitor, Verdict};
use crate::pointer::Pointer;
use crate::random::Random;
use crate::slb::Slb;
use crate::stats::{Counts, Totals};
use crate::stripes::{Held, Stripes, Ticket};
use crate::thread_state::ThreadState;

/// Buffers made so far.
static BUFFERS: AtomicU64 = AtomicU64::new(0);

/// Who holds one has pinned a buffer: see [`Buffer::pin`]. It stays on its thread.
#[derive(Debug)]
#[must_use = "the buffer is pinned only while it is held"]
pub struct Guard<'b>(pub(crate) reclaim::Guard<'b, ThreadState>);

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
    unsafe fn retire_table(&self, replaced: Replaced) {
        // SAFETY: the caller's promise.
        unsafe { replaced.retire(&self.0) };
    }
}

/// What the states of a buffer begin with.
#[derive(Debug)]
struct ThreadStates {
    /// Of this buffer, and of no other.
    number: u64,
    made: AtomicU64,
}

impl ThreadStates {
    fn thread_state(&self) -> ThreadState {
        let made = self.made.fetch_add(1, Ordering::Relaxed);
        ThreadState::new(Random::new(self.number << 32 ^ made))
    }
}

/// A table in front of one index or several.
pub struct Buffer {
    pub(crate) table: AtomicTable,
    pub(crate) stripes: Stripes,
    config: Mutex<Config>,
    id_bits: u32,
    ids: AtomicUsize,
    pub(crate) monitor: Monitor,
    pub(crate) totals: Totals,
    states: Arc<ThreadStates>,
    /// Maps behind it.
    pub(crate) maps: AtomicUsize,
    /// Whom what is removed and replaced waits for.
    pub(crate) collector: Collector<ThreadState>,
}

// It calls nothing that could panic in the middle of a change.
impl UnwindSafe for Buffer {}
impl RefUnwindSafe for Buffer {}

impl Buffer {
    /// A buffer for one index. Its monitor is on.
    ///
    /// # Errors
    /// [`CreateError`]: no size that a table can have, or no memory.
    pub fn new(config: &Config) -> Result<Buffer, CreateError> {
        Buffer::for_indexes(config, 1)
    }

    /// A buffer for up to so many indexes, 256 at most. A map that is dropped counts on: no more than so many ever
    /// stand behind it.
    ///
    /// # Errors
    /// [`CreateError`]: no size that a table can have, no memory, or too many indexes.
    pub fn for_indexes(config: &Config, indexes: usize) -> Result<Buffer, CreateError> {
        if !(1..=1 << MOST_ID_BITS).contains(&indexes) {
            return Err(CreateError::Parameter {
                parameter: "indexes",
                value: indexes as f64,
                range: "1 to 256",
            });
        }
        let table = Slb::new(config)?;
        let number = BUFFERS.fetch_add(1, Ordering::Relaxed);
        let states = Arc::new(ThreadStates { number, made: AtomicU64::new(0) });
        let made = Arc::clone(&states);
        Ok(Buffer {
            table: AtomicTable::new(table),
            stripes: Stripes::new()?,
            config: Mutex::new(config.clone()),
            id_bits: indexes.next_power_of_two().trailing_zeros(),
            ids: AtomicUsize::new(0),
            monitor: Monitor::new(true),
            totals: Totals::default(),
            states,
            maps: AtomicUsize::new(0),
            collector: Collector::with_locals(move || made.thread_state()),
        })
    }

    /// A number for one more index. None is given twice.
    ///
    /// # Errors
    /// [`NoIdLeft`] if there are as many as the buffer was made for.
    pub fn index_id(&self) -> Result<IndexId, NoIdLeft> {
        let most = 1 << self.id_bits;
        let number = self
            .ids
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| (taken < most).then_some(taken + 1))
            .map_err(|_| NoIdLeft(most))?;
        Ok(IndexId::new(number, self.id_bits))
    }

    /// What a thread keeps between visits.
    #[must_use]
    pub fn thread_state(&self) -> ThreadState {
        self.states.thread_state()
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
        let table = unsafe { self.table.load() };
        look(table);
        let (cleared, kept) = table.vacate(hash);
        Write { buffer: self, table, hash, cleared, kept: Cell::new(kept), _held: held }
    }

    /// Clears the slots of a hash; how many they were. For those who hold the hash's stripe, or are alone.
    ///
    /// # Safety
    /// As [`Buffer::table`].
    #[allow(unsafe_code)]
    #[inline]
    pub(crate) unsafe fn clear(&self, hash: u64) -> usize {
        // SAFETY: the caller's promise.
        unsafe { self.table.load() }.clear(hash)
    }

    /// Forgets a pointer that was admitted with this hash: for memory that is about to be freed without a write. Who
    /// may have been about to admit it has left the buffer since.
    pub fn forget(&self, hash: u64, pointer: Pointer) {
        let _guard = self.pin();
        // SAFETY: as in `with_table`.
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
        unsafe { self.table.load() }.forget(hash, pointer);
    }

    /// Shows the table as it is now.
    #[allow(unsafe_code)]
    pub(crate) fn with_table<R>(&self, show: impl FnOnce(&Slb) -> R) -> R {
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
    /// While it is used, the caller has pinned the buffer ([`Buffer::pin`]), or nobody resizes it.
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
            guard.retire_table(self.resize_guarded(size, none, |_| {})?);
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
            guard.retire_table(self.resize_guarded(size, || self.stripes.lock_all(), publish)?);
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
    ) -> Result<Replaced, CreateError> {
        let mut config = self.config.lock();
        let resized = config.resized(size);
        let table = Slb::new(&resized)?;
        let stripes = stripes();
        publish(&table);
        let replaced = self.table.replace(table);
        drop(stripes);
        *config = resized;
        self.monitor.begins_anew();
        Ok(replaced)
    }

    /// As [`crate::Pinned::ticket`], for faces that keep their guards themselves.
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
    pub fn hottest(&self, most: usize, id: IndexId) -> Vec<(Pointer, u8)> {
        self.with_table(|table| table.hottest(most, id))
    }

    /// Pointers that the table has room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.with_table(Slb::capacity)
    }

    /// Pointers that it holds; counted by walking over it.
    #[must_use]
    pub fn occupancy(&self) -> usize {
        self.with_table(Slb::occupancy)
    }

    /// The table's bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.with_table(Slb::bytes)
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
        for state in self.collector.locals() {
            // SAFETY: it stays as long as the collector. Of a state, which is its thread's, only the tally is looked
            // at, and of that only the `Number`s, which any thread may load.
            let tally = unsafe { &(*state).tally };
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
    /// A slot that was cleared, for what is put in.
    kept: Cell<Option<usize>>,
    _held: Held<'b>,
}

impl Write<'_> {
    /// Puts the new entry where one of this tag was cleared; if none was, the key was not hot, and nothing happens.
    #[inline]
    pub fn put(&self, pointer: Pointer) {
        if self.cleared > 0 {
            let random = Random::new(self.hash);
            match self.kept.take() {
                Some(slot) => self.table.fill(slot, self.hash, pointer, &random),
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
