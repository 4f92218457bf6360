//! A thread's visit to a buffer that others visit, too: pinned, it finds and emits, and what it finds stays while it lasts.
//!
//! # Emissions
//!
//! Each emission takes words by atomic exchanges, and each of those waits for every load before it. So those of a visit are
//! made together: they wait once. While it is pinned nothing that it found is freed, so it makes them before it ends or pins
//! anew. And before it writes: its own write would void the tickets of its stripe, and a key that is read and written in
//! turn would never be emitted.
//!
//! # Collection
//!
//! An epoch is left, or pinned anew, without looking for what could be freed, and the occasional look that pinning takes
//! does not keep up with readers who write a lot. So a thread counts what it retires, and looks when that is much. A table that
//! was replaced is much by itself: until it has gone, whoever ends or refreshes a visit looks for it, ever more rarely.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering, fence};

use crossbeam_epoch::Guard;

use crate::buffer::{Buffer, Replaced, Write};
use crate::countdown::Countdown;
use crate::seat::{self, GROUP, Seat};
use crate::slb::Slb;
use crate::stats::count;
use crate::stripes::Ticket;
use crate::table::Table;
use crate::word::Pointer;

/// Emissions that may wait for each other.
const EMISSIONS: usize = 8;

/// A thread at a buffer, with an epoch pinned.
#[derive(Debug)]
pub struct Visit<'b, T: Table = Slb> {
    buffer: &'b Buffer<T>,
    /// The seat's, while this lasts.
    countdown: Countdown,
    seat: Rc<Seat>,
    /// Tickets, hashes and pointers.
    emissions: [Cell<Option<(u64, u64, Pointer)>>; EMISSIONS],
    waiting: Cell<usize>,
    guard: Guard,
    /// Dropped when the guard is.
    _collection: Collection,
}

/// Sees to it that what is retired is also freed: see the head of this module.
#[derive(Debug)]
struct Collection;

thread_local! {
    /// What this thread has retired since it last collected.
    static RETIRED: Cell<u32> = const { Cell::new(0) };
    /// Ends of visits until this thread next looks for a table that waits, and from there to the look after that.
    static LOOK: Cell<(u32, u32)> = const { Cell::new((0, 1)) };
}

/// Tables that were retired to the default collector, and have not gone.
static WAITING: AtomicUsize = AtomicUsize::new(0);

impl Collection {
    /// Entries that may wait before a thread collects. A look frees some five hundred things, and an entry comes to up to four:
    /// two of its own, and a node of an index that retires to the same collector.
    const MOST: u32 = 128;
    /// Ends of visits from one look for a table to the next, at most. A look moves the epoch on by one at most, and not if some
    /// thread has not refreshed its visit since the last; what is retired goes when it has moved twice.
    const RARELY: u32 = 1024;

    /// Frees as much as was retired, if that is much. To be called unpinned, or just pinned.
    fn collect(&self) {
        let much = RETIRED.try_with(|retired| {
            // First: what is freed may visit maps, and come here.
            let much = if retired.get() >= Collection::MOST { retired.take() } else { 0 };
            much.div_ceil(Collection::MOST)
        });
        let one = u32::from(WAITING.load(Ordering::Relaxed) > 0 && self.is_time());
        // Past the thread's destructors others collect.
        (0..much.unwrap_or(0).max(one)).for_each(|_| crossbeam_epoch::pin().flush());
    }

    /// Whether a table that waits is to be looked for now.
    fn is_time(&self) -> bool {
        let is_time = LOOK.try_with(|look| {
            let (left, apart) = look.get();
            look.set(match left {
                0 => (apart, (2 * apart).min(Collection::RARELY)),
                left => (left - 1, apart),
            });
            left == 0
        });
        is_time.unwrap_or(false)
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
    let _ = RETIRED.try_with(|retired| retired.set(retired.get().saturating_add(1)));
}

/// Retires a table to the default collector, and looks for it often at first.
///
/// # Safety
/// As [`Replaced::retire`]; and `guard` is of the default collector.
#[allow(unsafe_code)]
pub(crate) unsafe fn retire<T: Send + 'static>(table: Replaced<T>, guard: &Guard) {
    WAITING.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the caller's promise.
    unsafe { table.retire(guard) };
    // Behind it, and so freed no earlier.
    guard.defer(|| WAITING.fetch_sub(1, Ordering::Relaxed));
    let _ = LOOK.try_with(|look| look.set((0, 1)));
}

/// Looks for tables, and for whatever was retired before them: by a thread that is in no call that a destructor must not come
/// between.
pub(crate) fn look() {
    // The first gives others what this thread has retired, the next two move the epoch, the last frees.
    (0..4).for_each(|_| crossbeam_epoch::pin().flush());
}

impl<'b, T: Table> Visit<'b, T> {
    /// Lookups that [`Visit::find_group`] takes at most.
    pub const GROUP: usize = GROUP;

    /// Pins an epoch.
    pub(crate) fn new(buffer: &'b Buffer<T>) -> Visit<'b, T> {
        let seat = seat::own(buffer);
        Visit {
            buffer,
            countdown: seat.countdown.clone(),
            seat,
            emissions: Default::default(),
            waiting: Cell::new(0),
            guard: crossbeam_epoch::pin(),
            _collection: Collection,
        }
    }

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

    /// Lets go of what was removed so far, and pins anew; tells the counts. As much as this thread's maps have retired is
    /// then freed, of what can be. Whoever retires records of his own to the same collector calls [`Guard::flush`] of
    /// [`Visit::guard`] behind this, once for some five hundred of them: crossbeam-epoch frees nothing by itself while a thread
    /// stays pinned.
    pub fn refresh(&mut self) {
        self.emit_waiting();
        self.guard.repin();
        // As `pin` has it and `repin` does not: what is found from here on was not loaded before the epoch was taken. Pairs
        // with the fence by which crossbeam-epoch stamps what is retired.
        fence(Ordering::SeqCst);
        self.seat.tell_of(&self.countdown, self.buffer);
        self._collection.collect();
    }

    /// Whether the next so many lookups are to ask the table, by [`Visit::find_on_account`] or [`Visit::find_group`]: the
    /// monitor's decision, which may be one for a lookup alone and another for several. Counts them: those that ask as hits, of which the misses are taken off. 1024 at most: more count
    /// as so many. Here a table that fits itself (`Config::fits`) is copied and replaced, some of it at a time: who never asks has
    /// one of one size.
    #[inline(always)]
    #[must_use]
    pub fn uses_table(&self, lookups: u32) -> bool {
        // SAFETY: pinned, as all who visit are.
        #[allow(unsafe_code)]
        let fit = |passed| unsafe { self.buffer.fit(passed, &self.guard) };
        self.seat.uses_table(&self.countdown, lookups, &self.buffer.monitor, || self.table().capacity(), fit)
    }

    #[inline(always)]
    #[allow(unsafe_code)]
    pub(crate) fn table(&self) -> &T {
        // SAFETY: pinned by the default collector: see the head of `buffer`.
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

    /// As [`Visit::find`], for a lookup that [`Visit::uses_table`] let ask, and counted.
    #[inline(always)]
    pub fn find_on_account(&self, hash: u64, accept: impl FnMut(Pointer) -> bool) -> Option<Pointer> {
        self.seat.find_on_account(&self.countdown, self.table(), hash, accept)
    }

    /// As many lookups together as there are hashes, which [`Visit::uses_table`] let ask, and counted. Their lines should be on
    /// their way ([`Visit::prefetch`]).
    ///
    /// `fetch` asks for the lines of an entry that may be an answer. `hit` is shown the number of a lookup and a pointer that
    /// may be its answer: it says whether it is, and then keeps it. `search` is to ask the index, with tickets taken there,
    /// for the lookups of these numbers; it is called at most twice: first while entries are on their way.
    ///
    /// # Panics
    /// If there are more than [`Visit::GROUP`].
    #[inline(always)]
    pub fn find_group(
        &self,
        hashes: &[u64],
        fetch: impl Fn(Pointer),
        hit: impl FnMut(usize, Pointer) -> bool,
        search: impl FnMut(&[usize]),
    ) {
        self.seat.find_group(&self.countdown, self.table(), hashes, fetch, hit, search);
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

    /// As [`Visit::emit`], but done together with others, at the latest when the visit ends or is refreshed. Each emission
    /// takes words by atomic exchanges, and each of those waits for every load before it: together they wait once.
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
        self.counted(unsafe { self.buffer.write(hash, &self.guard) })
    }

    /// As [`Visit::write`]; before it clears the table, `accept` is shown what that has, as by [`Visit::find`].
    #[inline]
    pub(crate) fn write_over(&self, hash: u64, accept: impl FnMut(Pointer) -> bool) -> Write<'_, T> {
        self.emit_waiting();
        // SAFETY: as in `table`.
        #[allow(unsafe_code)]
        self.counted(unsafe { self.buffer.write_over(hash, &self.guard, accept) })
    }

    fn counted<'v>(&self, write: Write<'v, T>) -> Write<'v, T> {
        let tally = &self.seat.tally;
        count(&tally.invalidations);
        tally.cleared.set(tally.cleared.get() + write.cleared as u64);
        write
    }

    /// A write did without the index.
    pub(crate) fn succeeded(&self) {
        count(&self.seat.tally.successions);
    }
}

impl<T: Table> Drop for Visit<'_, T> {
    fn drop(&mut self) {
        // While still pinned: what was found is there.
        self.emit_waiting();
        self.seat.tell_of(&self.countdown, self.buffer);
        self.seat.countdown.continue_from(&self.countdown);
    }
}
