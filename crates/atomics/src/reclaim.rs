//! Memory that readers may still look at: freed when everyone has left who could have found it.
//!
//! Each structure whose readers take no lock owns one [`Collector`]. A reader pins it and holds a [`Guard`] while it
//! looks; a writer unlinks an object and [retires](Guard::retire) it; the object is freed when all guards are gone, or
//! have been [refreshed](Guard::refresh), that were there when it was unlinked. Epochs as in Fraser, "Practical
//! lock-freedom" (2004), with an asymmetric barrier as in Meyer's and Wolff's, and Wasowicz's `seize`: readers are many
//! and pay nothing, collecting is rare and pays for both.
//!
//! ```
//! use std::sync::atomic::{AtomicPtr, Ordering};
//!
//! use lookaside_atomics::reclaim::Collector;
//!
//! let collector: Collector = Collector::new();
//! let current = AtomicPtr::new(Box::into_raw(Box::new(1)));
//!
//! let guard = collector.pin();
//! // SAFETY: acquire pairs with the release of the swap; what is found stays while the guard is held.
//! assert_eq!(unsafe { *current.load(Ordering::Acquire) }, 1);
//! let old = current.swap(Box::into_raw(Box::new(2)), Ordering::AcqRel);
//! // SAFETY: made by `Box::into_raw`, found by nobody who pins from here on, and retired once.
//! unsafe { guard.retire_box(old) };
//! drop(guard);
//!
//! // Frees all that nobody holds, at once. Else a thread does it by and by, for what it has retired itself.
//! collector.collect();
//! # drop(unsafe { Box::from_raw(current.into_inner()) });
//! ```
//!
//! # The protocol
//!
//! ```text
//!   pin, refresh:  record.epoch = epoch           collect:  take what was retired (and so unlinked before)
//!                  light barrier                            stamp = epoch, and epoch = epoch + 1
//!                  look                                     heavy barrier
//!   unpin:         record.epoch = none                      look at each record's epoch
//!                                                           free what has a stamp less than all of them
//! ```
//!
//! Claim: *when an object with stamp `s` is freed, nobody looks at it, and nobody will.* Let `R` be a thread that found
//! it: it loaded a pointer to it, behind a barrier, behind a store of its epoch `e`.
//!
//! 1. `e <= s`. Had `R` loaded an epoch above `s`, then from the addition that made it, or a later one: acquire there
//!    pairs with the release of the addition (and additions continue a release sequence). The object was unlinked
//!    before that addition, by the lock of the bag that it was taken from; so `R` would have found it unlinked.
//! 2. The scan that frees the object sees `R`'s store of `e`, or something later. This is what the two barriers are
//!    for: `R` stores its epoch and then loads the pointer; the collector unlinks (or was told of it) and then loads
//!    the epoch. If neither saw the other's store, the object would be freed while `R` looks at it.
//!    * *Both are sequentially consistent fences*, where there is no `membarrier`: one of the fences comes first in
//!      their order.
//!      If `R`'s does, the scan sees its store; if the collector's does, `R` sees the object unlinked.
//!    * *`membarrier`* (private, expedited) makes each running thread of the process execute a full fence at some point
//!      between the call and its return; a thread that is not running went through one when it was switched out, or
//!      goes through one before it runs on. If that point of `R`'s comes behind the store, the scan sees it. If it
//!      comes before the store, it comes before the load, too, which therefore sees the object unlinked. There is no
//!      third case, for the compiler keeps the store before the load: that is what is left of the light barrier, a
//!      compiler fence.
//! 3. What the scan sees instead of `e` allows to free the object: none, or an epoch above `s`. It was stored by `R`
//!    later than `e`, when its guard went or was refreshed. Each such store is a release, and the scan's load an
//!    acquire: all that `R` did with the object was done before it is freed.
//!
//! A record that is new is seen by the scan as well: it is put into the list of records before the store of its first
//! epoch, and the scan goes over the list behind the heavy barrier.
//!
//! A guard is refreshed by the function that pins ([`Record::enter`]), and there is no other. (Of its two halves a
//! refresh could do without the barrier, for what the scan sees instead of the new epoch is the older one, which holds
//! as much; the acquire it needs as pinning does: looks must not be made before the new epoch was loaded.)
//!
//! *Later scans need no barrier*: what was not free waits with its stamp, and step 2 holds for every scan behind the
//! barrier. Objects get into the list of those that wait behind their barrier; the list is locked while a scan goes on
//! that frees from it.
//!
//! One heavy barrier and one scan free all that nobody holds. Whether the process has `membarrier` is decided once,
//! before the first pin, for both sides: see [`Barrier`].
//!
//! # When
//!
//! What a thread retires lies in the bag of its record, which any thread can empty: nothing has to happen when a thread
//! ends. A thread collects
//!
//! * when it unpins or refreshes, and 64 objects or more are in its bag ([`Guard::retire_large`] counts as so many);
//! * at the second refresh, or the 1024th time that it unpins, after it has retired anything, however little;
//! * when it unpins or refreshes and was found to hold back what others had retired: then it looks again, without a
//!   barrier.
//!
//! It then takes what is in its own bag and in those of all threads that are not pinned, of which some may have ended.
//! [`Collector::collect`] takes everything. A collector that is dropped frees everything.
//!
//! # Destructors
//!
//! To free an object may run users' code, which may pin, unlink and retire in the same structure, and panic. No lock is
//! held then. A thread that is collecting already leaves what comes up meanwhile to the outermost call, which goes
//! round again: a chain of ten thousand objects, each of which retires the next, needs no more stack than one, also at
//! a thread's end, when its thread-locals are being destroyed. A panic ends where the object is freed, once the panic
//! hook has told.
//!
//! # Threads
//!
//! A thread finds its record by its number, the smallest that no other living thread has ([`thread`]). Behind the
//! record's own line lies what the structure keeps for each thread (`L`). A thread that is past the destructor which
//! gives its number back borrows a spare record for each guard; so does one whose number's record is held by a guard of
//! the number's last owner.
//!
//! # Rejected
//!
//! * *crossbeam-epoch*: its pin has a full fence (5 ns and more), it frees when it sees fit, at most some objects at a
//!   time, two grace periods after they were retired, and not at all while nobody pins: a map that is dropped leaves
//!   its values behind. One collector for the whole process lets a reader of one structure hold back all others.
//! * *`seize`*: has the barrier and a collector for each structure, but frees nothing before as many objects as there
//!   are threads have come together in a batch, and keeps the batch of a thread that has ended.
//! * *Hazard pointers*: a store and a barrier for each pointer that is followed.
//! * *The `thread_local` crate* for the records: past its own destructor it panics, and it gives a thread's number to
//!   the next while guards of the first, in other thread-locals, may still hold the record.
//! * *A thread-local list of collectors*: a search for each pin, and with more structures than it has room for, a new
//!   record.

#![allow(unsafe_code)]

mod bag;
mod barrier;
mod record;
mod shared;
#[cfg(not(loom))]
pub(crate) mod thread;
mod turn;
mod waiting;

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod tests;

use std::fmt;
use std::marker::PhantomData;
#[cfg(not(loom))]
use std::sync::OnceLock;

use crossbeam_utils::CachePadded;

use self::bag::{Batch, Retired};
use self::record::{INACTIVE, MOST, Padded, Record};
use self::shared::Shared;
use self::turn::Turn;
use self::waiting::Waiting;
use crate::seam::{AtomicBool, AtomicPtr, AtomicU64, Mutex, Ordering};

pub(crate) use self::barrier::Barrier;
#[cfg(test)]
pub(crate) use self::barrier::Kind;

pub use self::bag::quietly;
pub use self::turn::free_in_turn;

/// Threads whose records are found at once.
#[cfg(not(loom))]
const NEAR: usize = 64;

/// Frees what a structure's writers unlink, when its readers have left: see the module. `L` is what the structure keeps
/// for each thread.
pub struct Collector<L = ()> {
    shared: CachePadded<Shared>,
    /// All records, newest first.
    records: AtomicPtr<Padded<L>>,
    waiting: Mutex<Waiting<L>>,
    make: Box<dyn Fn() -> L + Send + Sync>,
    /// The records of threads by their numbers.
    #[cfg(not(loom))]
    near: [AtomicPtr<Record<L>>; NEAR],
    /// Those of numbers from [`NEAR`] times a power of two up to the next.
    #[cfg(not(loom))]
    far: [OnceLock<Slots<L>>; 26],
}

/// Records by the numbers of their threads.
#[cfg(not(loom))]
type Slots<L> = Box<[AtomicPtr<Record<L>>]>;

// SAFETY: records are reached by shared references and are `Sync`; what was retired may be freed by any thread, by the
// promise of who retired it; `make` is `Send`; what is kept for a thread moves from one to the next: `L: Send`.
unsafe impl<L: Send> Send for Collector<L> {}
// SAFETY: as above. A thread's `L` is reached by guards only, which are not `Sync`: see `Guard::local`.
unsafe impl<L: Send> Sync for Collector<L> {}

/// A thread that looks: what it can find now stays until this is dropped or [refreshed](Guard::refresh).
///
/// It stays on its thread.
///
/// ```compile_fail
/// fn send<T: Send>(_: T) {}
/// let collector: lookaside_atomics::reclaim::Collector = Default::default();
/// send(collector.pin());
/// ```
#[must_use = "what is found stays only while it is held"]
pub struct Guard<'c, L = ()> {
    collector: &'c Collector<L>,
    record: &'c Record<L>,
    on_this_thread: PhantomData<*mut ()>,
}

/// Which bags to empty.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bags {
    /// Those of threads that are not pinned: the others see to theirs when they unpin.
    Idle,
    All,
}

impl<L: Default + 'static> Default for Collector<L> {
    fn default() -> Self {
        Collector::new()
    }
}

impl<L: Default + 'static> Collector<L> {
    /// A collector of which nobody knows yet.
    #[must_use]
    pub fn new() -> Self {
        Collector::with_locals(L::default)
    }
}

impl<L> Collector<L> {
    /// A collector with what `make` makes for each thread that pins it, when it first does. What an ended thread had is
    /// the next one's, as it is.
    #[must_use]
    pub fn with_locals(make: impl Fn() -> L + Send + Sync + 'static) -> Self {
        Collector::with_barrier(Barrier::of_this_process(), make)
    }

    fn with_barrier(barrier: Barrier, make: impl Fn() -> L + Send + Sync + 'static) -> Self {
        let shared = Shared { epoch: AtomicU64::new(0), barrier, waits: AtomicBool::new(false) };
        Collector {
            shared: CachePadded::new(shared),
            records: AtomicPtr::new(std::ptr::null_mut()),
            waiting: Mutex::new(Waiting::default()),
            make: Box::new(make),
            #[cfg(not(loom))]
            near: [const { AtomicPtr::new(std::ptr::null_mut()) }; NEAR],
            #[cfg(not(loom))]
            far: [const { OnceLock::new() }; 26],
        }
    }

    /// Pins: what the thread can find from now on stays until the guard is dropped or refreshed. Guards of one thread
    /// can be held at the same time; the last that is dropped unpins.
    ///
    /// # Panics
    /// If a thread holds 2^32 guards.
    #[inline(always)]
    pub fn pin(&self) -> Guard<'_, L> {
        let record = self.enter_own().unwrap_or_else(|| self.enter_any());
        Guard { collector: self, record, on_this_thread: PhantomData }
    }

    /// Frees everything that was retired before the call, by whichever thread, and that no guard holds back; and what
    /// is retired by what runs meanwhile. Where this thread is freeing already, further up its stack, it is left to
    /// that call.
    pub fn collect(&self) {
        self.reclaim(Bags::All);
    }

    /// What is kept for each thread that has pinned so far, by its address: good while the collector is. Other threads
    /// may be at it, and change it.
    pub fn locals(&self) -> impl Iterator<Item = *const L> {
        self.records().map(|record| &raw const record.local)
    }

    /// As [`Guard::retire`], by who need not be pinned.
    ///
    /// # Safety
    /// As [`Guard::retire`].
    pub unsafe fn retire(&self, object: *mut (), context: *const (), free: unsafe fn(*mut (), *const ())) {
        // SAFETY: the caller's promise.
        unsafe { self.pin().retire(object, context, free) };
    }

    /// Enters by the record of this thread's number.
    #[cfg(not(loom))]
    #[inline(always)]
    fn enter_own(&self) -> Option<&Record<L>> {
        let thread = thread::current();
        // Acquire pairs with the release in `record_of_number`.
        let record = self.near.get(thread.number)?.load(Ordering::Acquire);
        // SAFETY: null or a record, which stays as long as the collector.
        let record = unsafe { record.as_ref() }?;
        record.enter_first(thread.identity, &self.shared).then_some(record)
    }

    #[cfg(loom)]
    fn enter_own(&self) -> Option<&Record<L>> {
        // The models' threads are not the system's, by whose thread-locals the number is known.
        None
    }

    /// Enters by the record of this thread's number, which it may not have yet, or by a spare one.
    #[cold]
    #[inline(never)]
    fn enter_any(&self) -> &Record<L> {
        #[cfg(not(loom))]
        if let Some(thread) = thread::numbered() {
            let record = self.record_of_number(thread.number);
            if record.enter_first(thread.identity, &self.shared) || record.enter_again(thread.identity) {
                return record;
            }
        }
        let free = self.records().find(|record| record.claim());
        let record = free.unwrap_or_else(|| self.add(Record::new((self.make)(), true)));
        record.enter_claimed(&self.shared);
        record
    }

    /// The record of this number, which is the calling thread's.
    #[cfg(not(loom))]
    fn record_of_number(&self, number: usize) -> &Record<L> {
        let slot = match self.near.get(number) {
            Some(slot) => slot,
            None => {
                let power = (number / NEAR).ilog2() as usize;
                let length = NEAR << power;
                let slots =
                    self.far[power].get_or_init(|| (0..length).map(|_| AtomicPtr::default()).collect());
                &slots[number - length]
            }
        };
        // Relaxed: only the owner of the number stores here, and numbers are handed on under a lock.
        let record = slot.load(Ordering::Relaxed);
        // SAFETY: null or a record, which stays as long as the collector.
        unsafe { record.as_ref() }.unwrap_or_else(|| {
            let record = self.add(Record::new((self.make)(), false));
            // Release pairs with the acquire in `enter_own`.
            slot.store(std::ptr::from_ref(record).cast_mut(), Ordering::Release);
            record
        })
    }

    /// Puts a record into the list.
    fn add(&self, record: Record<L>) -> &Record<L> {
        let record = Box::into_raw(Box::new(CachePadded::new(record)));
        let mut newest = self.records.load(Ordering::Relaxed);
        loop {
            // SAFETY: nobody else has it yet.
            unsafe { &mut *record }.next = newest;
            // Release pairs with the acquire in `records`; release sequences go on through it, as all are exchanges.
            match self.records.compare_exchange(newest, record, Ordering::Release, Ordering::Relaxed) {
                // SAFETY: it stays as long as the collector.
                Ok(_) => return unsafe { &*record },
                Err(newer) => newest = newer,
            }
        }
    }

    fn records(&self) -> impl Iterator<Item = &Record<L>> {
        // Acquire pairs with the release in `add`.
        let mut next = self.records.load(Ordering::Acquire).cast_const();
        std::iter::from_fn(move || {
            // SAFETY: null or a record, which stays as long as the collector, and whose `next` does not change.
            let record: &Record<L> = unsafe { next.as_ref() }?;
            next = record.next;
            Some(record)
        })
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Stamps what is in these bags, and frees what nobody holds back.
    #[cold]
    #[inline(never)]
    fn reclaim(&self, bags: Bags) {
        let Some(turn) = Turn::begin(self.address()) else { return };
        loop {
            self.stamp(self.gather(bags));
            self.free_unheld();
            if !turn.is_asked_again() {
                return;
            }
        }
    }

    /// Looks again for what waits, without a barrier.
    #[cold]
    #[inline(never)]
    fn look_again(&self) {
        if !self.shared.waits.load(Ordering::Relaxed) {
            return;
        }
        // Whoever has it scans right now.
        let held = self.waiting.try_lock().is_none_or(|waiting| waiting.is_held());
        if held {
            return;
        }
        if let Some(turn) = Turn::begin(self.address()) {
            self.free_unheld();
            if turn.is_asked_again() {
                drop(turn);
                self.reclaim(Bags::Idle);
            }
        }
    }

    fn gather(&self, bags: Bags) -> Vec<Retired> {
        let mut gathered = Vec::new();
        for record in self.records() {
            if bags == Bags::All || record.is_idle() {
                record.empty_into(&mut gathered);
            }
        }
        gathered
    }

    /// Lets what was retired wait until everyone has left who is pinned now.
    fn stamp(&self, mut retired: Vec<Retired>) {
        if self.shared.barrier.has_failed() {
            retired.append(&mut self.waiting.lock().unstamped);
        }
        if retired.is_empty() {
            return;
        }
        // Release pairs with the acquire in `Record::enter`: step 1 of the module's argument.
        let stamp = self.shared.epoch.fetch_add(1, Ordering::AcqRel);
        let is_behind_barrier = self.shared.barrier.heavy();
        let mut waiting = self.waiting.lock();
        if is_behind_barrier {
            waiting.batches.push(Batch { stamp, retired });
            self.shared.waits.store(true, Ordering::Relaxed);
        } else {
            waiting.unstamped.append(&mut retired);
        }
    }

    /// Frees what has a stamp less than the epochs of all who are pinned.
    fn free_unheld(&self) {
        let mut free = Vec::new();
        let mut waiting = self.waiting.lock();
        while !waiting.batches.is_empty() {
            // Locked: each batch that is there came behind its barrier, before this scan.
            let (oldest, holder) = self.oldest_reader();
            free.extend(waiting.batches.extract_if(.., |batch| batch.stamp < oldest));
            waiting.holder = None;
            if waiting.batches.is_empty() {
                break;
            }
            let Some(holder) = holder else { break };
            waiting.holder = Some(holder.into());
            holder.want();
            // It may have left between the scan and being told. If it does now, it looks here itself.
            if holder.epoch() == oldest {
                break;
            }
        }
        self.shared.waits.store(!waiting.batches.is_empty(), Ordering::Relaxed);
        drop(waiting);
        for retired in free.into_iter().flat_map(|batch| batch.retired) {
            // SAFETY: nobody looks at it, and nobody will: see the module.
            unsafe { retired.free() };
        }
    }

    /// The oldest epoch that is pinned, and whose it is.
    fn oldest_reader(&self) -> (u64, Option<&Record<L>>) {
        let mut oldest = (INACTIVE, None);
        for record in self.records() {
            let epoch = record.epoch();
            if epoch < oldest.0 {
                oldest = (epoch, Some(record));
            }
        }
        oldest
    }
}

impl<'c, L> Guard<'c, L> {
    /// The collector that is pinned.
    #[must_use]
    pub fn collector(&self) -> &'c Collector<L> {
        self.collector
    }

    /// What the structure keeps for this thread. Another guard that the thread holds may have the same: see
    /// [`Guard::is_nested`].
    #[inline(always)]
    #[must_use]
    pub fn local(&self) -> &L {
        &self.record.local
    }

    /// Whether this thread holds another guard with the same [`Guard::local`].
    #[inline(always)]
    #[must_use]
    pub fn is_nested(&self) -> bool {
        self.record.depth() > 1
    }

    /// Retires an object: `free(object, context)` is called once, by any thread, when no guard of the collector is held
    /// any more that is held now; at the latest when the collector is dropped. It may do what it likes, but in the last
    /// case: then it must not come by the collector. Whoever owns a collector calls [`Collector::collect`] first when
    /// it is dropped.
    ///
    /// # Safety
    /// Nobody who pins from now on can find the object: it was unlinked before. It is retired once. Until the collector
    /// has been dropped, any thread may call `free` with these arguments.
    #[inline]
    pub unsafe fn retire(&self, object: *mut (), context: *const (), free: unsafe fn(*mut (), *const ())) {
        self.record.put(Retired { object, context, free }, 1);
    }

    /// As [`Guard::retire`], of an object that is large: it does not wait for others.
    ///
    /// # Safety
    /// As [`Guard::retire`].
    pub unsafe fn retire_large(
        &self,
        object: *mut (),
        context: *const (),
        free: unsafe fn(*mut (), *const ()),
    ) {
        self.record.put(Retired { object, context, free }, MOST);
    }

    /// Retires a box.
    ///
    /// # Safety
    /// As [`Guard::retire`]; and the pointer came from [`Box::into_raw`].
    pub unsafe fn retire_box<T: Send>(&self, object: *mut T) {
        unsafe fn free<T>(object: *mut (), _: *const ()) {
            // SAFETY: the promise of `retire_box`, and called once.
            drop(unsafe { Box::from_raw(object.cast::<T>()) });
        }
        // SAFETY: the caller's promise; a `T` may be dropped by any thread.
        unsafe { self.retire(object.cast(), std::ptr::null(), free::<T>) };
    }

    /// Lets go of what was found, and pins anew: what others have retired so far is not held back by this guard any
    /// more. While this thread holds another guard of the collector, nothing changes.
    #[inline(always)]
    pub fn refresh(&mut self) {
        if self.is_nested() {
            return;
        }
        let shared = &self.collector.shared;
        // Two lines that are there anyway: the record's own and that of the epoch.
        if self.record.is_quiet() && !shared.waits.load(Ordering::Relaxed) {
            self.record.enter(shared);
        } else {
            self.refresh_and_collect();
        }
    }

    #[cold]
    #[inline(never)]
    fn refresh_and_collect(&mut self) {
        let collector = self.collector;
        let due = self.record.is_due_at_refresh();
        self.record.leave();
        // What is freed may pin, by the very record; and this thread may be past the end of its number.
        struct Again<'g, 'c, L>(&'g mut Guard<'c, L>);
        impl<L> Drop for Again<'_, '_, L> {
            fn drop(&mut self) {
                let collector = self.0.collector;
                self.0.record = collector.enter_own().unwrap_or_else(|| collector.enter_any());
            }
        }
        let _again = Again(self);
        match due {
            true => collector.reclaim(Bags::Idle),
            false => collector.look_again(),
        }
    }

    /// Unpins by a record in whose bag there is something, or that was found to hold something back, or that is a spare
    /// one.
    #[cold]
    #[inline(never)]
    fn unpin_and_collect(&mut self) {
        let Guard { collector, record, .. } = *self;
        let (kept, due) = (record.keeps(), record.is_due_at_unpin());
        let wanted = record.leave();
        // The outermost call goes round once more, and takes what this one has put into the bag.
        if kept && Turn::ask_again(collector.address()) {
            return;
        }
        if due {
            collector.reclaim(Bags::Idle);
        } else if wanted {
            collector.look_again();
        }
    }
}

impl<L> Drop for Guard<'_, L> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.record.unpin_quietly() {
            return;
        }
        self.unpin_and_collect();
    }
}

impl<L> Drop for Collector<L> {
    fn drop(&mut self) {
        loop {
            let mut left = self.gather(Bags::All);
            let waiting = self.waiting.get_mut();
            left.append(&mut waiting.unstamped);
            left.extend(waiting.batches.drain(..).flat_map(|batch| batch.retired));
            if left.is_empty() {
                break;
            }
            for retired in left {
                // SAFETY: there is no guard left.
                unsafe { retired.free() };
            }
        }
        let mut next = self.records.load(Ordering::Relaxed).cast_const();
        while !next.is_null() {
            // SAFETY: made in `add`, and nobody has it any more.
            let record = unsafe { Box::from_raw(next.cast_mut()) };
            next = record.next;
        }
    }
}

impl<L> fmt::Debug for Collector<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector").finish_non_exhaustive()
    }
}

impl<L> fmt::Debug for Guard<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").finish_non_exhaustive()
    }
}
