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
//! Several indexes may share one buffer: each has a [`Mark`]. What is asked of hashes is said at [`crate::Map::sharing`].
//!
//! # Who holds a table
//!
//! Tables are replaced while they are used ([`Buffer::resize`]; by lookups, where the table fits itself: `Config::fits`), and
//! the old one goes when all guards have gone that were there then. [`Buffer::resize`] and [`Visit::uses_table`] retire it to the
//! buffer's own collector, which visits pin ([`Buffer::pin`]); [`Buffer::resize_exclusively`] and
//! [`Buffer::fit_exclusively`] to the caller's. Nobody can check cheaply that all who look have pinned the same, so it is a
//! promise.
//!
//! | module | who is at the buffer |
//! |---|---|
//! | `visit` | a thread among others: pinned, with tickets |
//! | `ownership` | its one owner |
//! | `seat` | what either keeps: its account, its random numbers, its part of the monitor's trials |

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use atomics::reclaim::{self, Collector};
use parking_lot::Mutex;

use crate::config::CreateError;
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
use crate::table::{Parameters, Table};
use crate::visit::Visit;
use crate::word::Pointer;

/// Buffers made so far.
static BUFFERS: AtomicU64 = AtomicU64::new(0);

/// Who holds one has pinned a buffer: see [`Buffer::pin`].
pub type Guard<'b> = reclaim::Guard<'b, Seat>;

/// What the seats of a buffer begin with.
#[derive(Debug)]
struct Seats {
    /// Of this buffer, and of no other.
    number: u64,
    made: AtomicU64,
    /// [`Table::counted`] of its tables, of any size.
    counted: u32,
}

impl Seats {
    fn seat(&self) -> Seat {
        let made = self.made.fetch_add(1, Ordering::Relaxed);
        Seat::new(Random::new(self.number << 32 ^ made), self.counted)
    }
}

/// A table in front of one index or several.
#[derive(Debug)]
pub struct Buffer<T: Table = Slb> {
    pub(crate) table: Current<T>,
    pub(crate) stripes: Stripes,
    fitting: Mutex<Fitting>,
    passed: Account,
    config: Mutex<T::Config>,
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

    /// A thread's visit. Pins the buffer: what is removed meanwhile is freed only after the visit has ended.
    #[must_use]
    pub fn visit(&self) -> Visit<'_, T> {
        Visit::new(self)
    }

    /// What a thread keeps between visits.
    #[must_use]
    pub fn seat(&self) -> Seat {
        self.seats.seat()
    }

    /// Pins the buffer: no table goes that is there now, nor what is retired by a guard from now on, until the guard is dropped or
    /// refreshed.
    #[inline(always)]
    pub fn pin(&self) -> Guard<'_> {
        self.collector.pin()
    }

    /// Frees all that was retired to the buffer, by whichever thread, and that nobody holds.
    pub fn collect(&self) {
        self.collector.collect();
    }

    /// Begins a write of keys with this hash: waits for other writes of its stripe, and clears the table. The index is to
    /// be changed before what is returned is dropped, and the old entry to be retired after.
    ///
    /// # Safety
    /// As [`Buffer::table`], until what is returned is dropped.
    #[allow(unsafe_code)]
    pub unsafe fn write(&self, hash: u64) -> Write<'_, T> {
        // SAFETY: the caller's promise.
        unsafe { self.begin(hash, |_| {}) }
    }

    /// As [`Buffer::write`]; before it clears the table, `accept` is shown what that has, as by [`Table::find`].
    ///
    /// # Safety
    /// As there.
    #[allow(unsafe_code)]
    #[inline]
    pub(crate) unsafe fn write_over<'b>(
        &'b self,
        hash: u64,
        accept: impl FnMut(Pointer) -> bool,
    ) -> Write<'b, T> {
        // SAFETY: the caller's promise.
        unsafe {
            self.begin(hash, |table| {
                table.find(hash, accept);
            })
        }
    }

    #[allow(unsafe_code)]
    #[inline]
    unsafe fn begin<'b>(&'b self, hash: u64, look: impl FnOnce(&T)) -> Write<'b, T> {
        let held = self.stripes.lock(hash);
        // SAFETY: the caller's promise.
        look(unsafe { self.table.load() });
        let (mut cleared, mut kept) = (0, Cell::new(None));
        let vacate = |table: &'b T| {
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

    /// Clears the slots of a hash; the table in use, and how many they were. For those who hold the hash's stripe, or are alone.
    ///
    /// # Safety
    /// As [`Buffer::table`].
    #[allow(unsafe_code)]
    pub(crate) unsafe fn clear(&self, hash: u64) -> (&T, usize) {
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
    pub(crate) unsafe fn forget_guarded(&self, hash: u64, pointer: Pointer) {
        // SAFETY: the caller's promise.
        unsafe { self.table.everywhere(|table| table.forget(hash, pointer)) };
    }

    /// Shows the table as it is now.
    #[allow(unsafe_code)]
    pub(crate) fn pinned<R>(&self, show: impl FnOnce(&T) -> R) -> R {
        let _guard = self.pin();
        // SAFETY: `resize` retires tables to the buffer's collector. Who resizes in another way promises that nobody does this.
        show(unsafe { self.table.load() })
    }

    /// Takes the stripe of a hash, as the paper's `SLB_lock` does.
    pub fn lock(&self, hash: u64) {
        self.stripes.lock_raw(hash);
    }

    /// Gives it back. Does nothing if nobody holds it.
    pub fn unlock(&self, hash: u64) {
        self.stripes.unlock_raw(hash);
    }

    /// The table in use: for those who hold a stripe by [`Buffer::lock`] and write without tickets.
    ///
    /// # Safety
    /// While it is used, the caller has pinned the collector to which old tables are retired, the buffer's ([`Buffer::pin`]) or
    /// that of whom this buffer is resized or fitted by; or nobody resizes it or lets it fit itself ([`Visit::uses_table`],
    /// [`Seat::turn`]).
    #[inline]
    #[must_use]
    #[allow(unsafe_code)]
    pub unsafe fn table(&self) -> &T {
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
                table.retire(&guard);
            }
        }
        // Tickets stay good: they speak of the index, and a write that is going on holds its stripe until that has changed.
        Ok(())
    }

    /// As [`Buffer::resize`], but waits until nobody holds a stripe, and then lets `publish` see the new table before anyone
    /// does: for faces whose threads read the table under a stripe, with no epoch pinned, or read it by another way. The old
    /// table goes when all have left whom `guard`'s collector knows, which need not be the buffer's.
    ///
    /// The caller holds no stripe.
    ///
    /// # Errors
    /// As [`Buffer::resize`].
    ///
    /// # Safety
    /// All who use the table hold a stripe, or have pinned `guard`'s collector. So nobody visits the buffer, or makes it
    /// forget, unless that is the buffer's.
    #[allow(unsafe_code)]
    pub unsafe fn resize_exclusively<L>(
        &self,
        size: usize,
        guard: &reclaim::Guard<'_, L>,
        publish: impl FnOnce(&T),
    ) -> Result<(), CreateError> {
        // SAFETY: the caller's promise.
        unsafe {
            for table in self.resize_guarded(size, || self.stripes.lock_all(), publish)?.into_iter().flatten()
            {
                table.retire(guard);
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
        publish: impl FnOnce(&T),
    ) -> Result<[Option<Replaced<T>>; 2], CreateError> {
        let mut fitting = self.fitting.lock();
        let mut config = self.config.lock();
        let resized = config.with_size_of(size);
        let table = resized.create()?;
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

    /// One step towards a table that fits what is asked for, by a thread that has nothing of the table and since the last step
    /// has done this; whether the next should come soon.
    ///
    /// # Safety
    /// All who use the table have pinned `guard`'s collector.
    #[allow(unsafe_code)]
    pub(crate) unsafe fn fit(&self, passed: Passed, guard: &Guard<'_>) -> bool {
        // SAFETY: the caller's promise.
        let (soon, replaced) = unsafe { self.fit_under(passed, || Some(Vec::new()), |_| {}) };
        if let Some(replaced) = replaced {
            // SAFETY: the caller's promise.
            unsafe { replaced.retire(guard) };
        }
        soon
    }

    /// The same for faces as those of [`Buffer::resize_exclusively`]: when the table is to be replaced, all stripes are taken but
    /// those that this thread `holds`; while somebody has one for long, the old table stays. What was replaced is to be retired
    /// to the caller's collector.
    ///
    /// # Safety
    /// As [`Buffer::resize_exclusively`]; and this thread has nothing of the table.
    #[allow(unsafe_code)]
    pub unsafe fn fit_exclusively(
        &self,
        passed: Passed,
        holds: impl Fn(usize) -> bool,
        publish: impl FnOnce(&T),
    ) -> (bool, Option<Replaced<T>>) {
        // SAFETY: the caller's promise.
        unsafe { self.fit_under(passed, || self.stripes.try_lock_all(holds), publish) }
    }

    /// # Safety
    /// Who uses the table has pinned a collector to which what is given is retired, or holds one of these stripes, or is this
    /// thread, which has nothing of it.
    #[allow(unsafe_code)]
    unsafe fn fit_under<'b>(
        &'b self,
        passed: Passed,
        stripes: impl FnOnce() -> Option<Vec<Held<'b>>>,
        publish: impl FnOnce(&T),
    ) -> (bool, Option<Replaced<T>>) {
        self.passed.add(passed);
        // Else another thread does what there is to do. No user code runs under it: nothing is pinned, and nothing freed.
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
            Step::Unfold => match self.config.lock().create() {
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

    /// Lets the monitor watch, or not: if not, the table is always used. A thread takes note when it refreshes its visit, or
    /// after 1024 lookups at most.
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
        self.pinned(T::capacity)
    }

    /// Pointers that it holds; counted by walking over it.
    #[must_use]
    pub fn occupancy(&self) -> usize {
        self.pinned(T::occupancy)
    }

    /// The table's bytes now: they change as it fits itself (`Config::fits`).
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

/// A write that has begun. Dropping it ends it.
#[derive(Debug)]
#[must_use = "the index is to be changed before this is dropped"]
pub struct Write<'b, T: Table> {
    buffer: &'b Buffer<T>,
    table: &'b T,
    hash: u64,
    pub(crate) cleared: usize,
    /// A slot of the table that is kept for what is put in.
    kept: Cell<Option<(&'b T, usize)>>,
    _held: Held<'b>,
}

/// Nothing will be put into this slot.
fn give_up<T: Table>(kept: Option<(&T, usize)>) {
    if let Some((table, slot)) = kept {
        table.give_up(slot);
    }
}

impl<T: Table> Drop for Write<'_, T> {
    #[inline]
    fn drop(&mut self) {
        give_up(self.kept.take());
    }
}

impl<T: Table> Write<'_, T> {
    /// Puts the new entry where one of this tag was cleared; if none was, the key was not hot, and nothing happens.
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
    pub(crate) fn capacity(&self) -> usize {
        self.table.capacity()
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

    /// A table of seven slots, six of them in use or all, by its own count and by ours.
    #[test]
    fn a_slot_that_is_kept_for_a_write_is_counted_once_and_in_the_end() {
        let hash = |key: u64| (key + 1) << 52;
        let config = Config { fits: true, ..Config::with_size(64) };
        let after = |end: fn(&Visit<'_>, Write<'_, Slb>)| {
            let buffer = Buffer::<Slb>::new(&config).unwrap();
            let visit = buffer.visit();
            for key in 0..7 {
                visit.emit(&visit.ticket(hash(key)), hash(key), pointer(key));
            }
            end(&visit, visit.write(hash(3)));
            let (counted, _) = visit.table().filled().unwrap();
            assert_eq!(counted, visit.table().occupancy());
            (counted, visit.find(hash(3), |_| true))
        };
        assert_eq!(after(|_, write| drop(write)), (6, None));
        assert_eq!(after(|_, write| write.put(pointer(9))), (7, Some(pointer(9))));
        // Another comes into the slot meanwhile, of another stripe.
        let taken = after(|visit, write| {
            let hash = 1 << 63;
            assert_ne!(Buffer::<Slb>::stripe_of(hash), Buffer::<Slb>::stripe_of(write.hash));
            visit.emit(&visit.ticket(hash), hash, pointer(8));
            assert_eq!(visit.find(hash, |_| true), Some(pointer(8)));
            write.put(pointer(9));
        });
        assert_eq!(taken, (7, Some(pointer(9))));
    }

    /// Where the table is being copied, that which is kept may be the copy's.
    #[test]
    #[allow(unsafe_code)]
    fn nothing_is_kept_in_a_table_that_is_only_a_copy() {
        let config = Config { fits: true, pages: crate::PageKind::Base, ..Config::with_size(128) };
        let buffer = Buffer::<Slb>::new(&config).unwrap();
        let visit = buffer.visit();
        let hash = 5 << Pointer::BITS;
        visit.emit(&visit.ticket(hash), hash, pointer(1));
        let none = buffer.table.begin(visit.table().folded(1).unwrap());
        assert!(none.some().is_none());
        // SAFETY: one thread.
        let copy = unsafe { buffer.table.successor() }.unwrap();
        visit.table().copy_lines(0..2, copy);
        assert_eq!((copy.filled(), copy.occupancy()), (Some((1, 1)), 1));
        let write = visit.write(hash);
        write.put(pointer(2));
        drop(write);
        assert_eq!((copy.filled(), copy.occupancy()), (Some((0, 1)), 0));
        assert_eq!((visit.table().filled(), visit.table().occupancy()), (Some((1, 2)), 1));
        assert_eq!(visit.find(hash, |_| true), Some(pointer(2)));
    }

    /// What a thread does that has found another at it, and what it does while a stripe is held.
    #[test]
    #[allow(unsafe_code)]
    fn lookups_count_wherever_they_are_told_and_a_held_stripe_puts_off_that_the_table_is_replaced() {
        let config = Config { pages: crate::PageKind::Base, ..Config::with_size(64 << 10) };
        let buffer = Buffer::<Slb>::new(&config).unwrap();
        let visit = buffer.visit();
        for key in 0..100u64 {
            let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            visit.emit(&visit.ticket(hash), hash, pointer(key));
        }
        drop(visit);
        let whole = buffer.capacity();
        let is_at_work_after = |lookups| {
            let (soon, replaced) =
                // SAFETY: nobody else uses the buffer.
                unsafe { buffer.fit_exclusively(Passed { lookups, evictions: 0 }, |_| false, |_| {}) };
            // SAFETY: as above.
            replaced.into_iter().for_each(|table| unsafe { table.free() });
            soon
        };
        assert!(!is_at_work_after(whole as u64), "it sees what there is");
        let other = buffer.fitting.lock();
        assert!(!is_at_work_after(whole as u64), "another is at it");
        drop(other);
        assert!(is_at_work_after(0), "what was told meanwhile has been forgotten");
        buffer.lock(7);
        for _ in 0..200 {
            assert!(is_at_work_after(0));
            assert_eq!(buffer.capacity(), whole);
        }
        buffer.unlock(7);
        assert!((0..200).any(|_| !is_at_work_after(0)), "never replaced");
        assert!(buffer.capacity() <= whole / 4);
        assert_eq!(buffer.occupancy(), 100);
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
            successions: 0,
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
