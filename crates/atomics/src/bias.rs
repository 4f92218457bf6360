//! A bias towards readers, for a lock that is shared: as long as nobody writes, readers need not take it.
//!
//! To take a lock shared and to give it back are two atomic exchanges of a word of all threads, whose line goes from
//! core to core: where a search is short, two threads are no faster than one. So while the lock is *biased*, a reader
//! only says so in a slot of its thread. Who writes takes the lock as ever, *revokes* the bias, and waits until all
//! such readers have left. That is dear, so a lock is biased when a thousand readers in turn have taken it and nobody
//! has written.
//!
//! ```text
//!   reader:  slot = slot + 1                        writer:  take the lock alone
//!            light barrier                                   if biased: biased = no
//!            if biased: read, slot = slot - 1                           heavy barrier
//!            else: slot = slot - 1, take the lock                       wait for each slot to be none
//!                  the 1024th of them: biased = yes          write, give the lock back
//!                  read, give the lock back
//! ```
//!
//! Claim: *while a writer writes, nobody reads who has not taken the lock.* A reader stores to its slot and then looks
//! for the bias; the writer revokes it and then looks at the slots. Of the two looks one sees the other's store: that
//! is what the barriers are for, as in [`reclaim`](crate::reclaim), step 2. If it is the writer's, it waits for the
//! slot; and since the slot is left by a release, which its look acquires, all has been read by then. If it is the
//! reader's, it finds no bias; or one that was set since, by who has the lock shared, so the writer has given it back.
//! And *what a reader reads is what the last writer has left*: the store that sets the bias is a release, behind the
//! writer's by the lock, and the reader's look an acquire.
//!
//! Slots belong to the numbers of threads, of which no two that live have the same. A thread whose number is too high,
//! or that has none, takes the lock: one that has pinned no [collector](crate::reclaim) yet, or whose thread-locals are
//! being destroyed. A thread that reads already may read once more, whoever waits: the writer waits for its outer slot
//! anyway. It must not wait for the lock then, which the writer has.
//!
//! # Rejected
//!
//! * *The table of readers of the paper*, one for all locks: threads that collide there take the lock, and to enter
//!   takes an exchange and a full fence.
//! * *A [collector](crate::reclaim) for each lock*, whose guards say the same and more: with one thread it took longer
//!   than the lock.
//! * *To be biased from the start*, or at once again when somebody has written: every write would wait for the barrier.
//!
//! # Literature
//!
//! Dice and Kogan, "BRAVO: Biased Locking for Reader-Writer Locks", USENIX ATC 2019.

use std::marker::PhantomData;
use std::sync::OnceLock;

use crossbeam_utils::CachePadded;

use crate::reclaim::Barrier;
use crate::seam::{AtomicBool, AtomicU32, Ordering};

/// Readers in turn that take a lock before it is biased. A writer that revokes that waits for a barrier, up to some
/// microseconds, and for those who read.
#[cfg(not(loom))]
const READERS: u32 = 1024;
#[cfg(loom)]
const READERS: u32 = 1;

/// Threads that need not take a lock.
#[cfg(not(loom))]
const THREADS: usize = 64;
#[cfg(loom)]
const THREADS: usize = 3;

/// What stands beside a lock, so that readers need not take it: see the module.
#[derive(Debug, Default)]
pub struct Bias {
    biased: AtomicBool,
    /// Who have taken the lock shared since it was had alone, more or less: two at once may count as one.
    taken: AtomicU32,
    /// Made when the lock is biased first: most never are.
    readers: OnceLock<Box<Readers>>,
}

#[derive(Debug)]
struct Readers {
    barrier: Barrier,
    /// How often each thread reads what the lock guards, itself within itself.
    slots: [CachePadded<AtomicU32>; THREADS],
}

/// A reader that has not taken the lock. It stays on its thread.
#[derive(Debug)]
#[must_use = "others may write when it is dropped"]
pub struct Reading<'b> {
    slot: &'b AtomicU32,
    _here: PhantomData<*const ()>,
}

impl Bias {
    /// None yet.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Bias {
        Bias { biased: AtomicBool::new(false), taken: AtomicU32::new(0), readers: OnceLock::new() }
    }

    /// Begins to read what the lock guards, without it, until what is returned is dropped; `None` where the lock is
    /// wanted.
    #[cfg(not(loom))]
    #[inline(always)]
    pub fn enter(&self) -> Option<Reading<'_>> {
        // Only so that a lock without it costs nothing.
        if !self.is_set() {
            return None;
        }
        self.enter_as(crate::reclaim::thread::current().number)
    }

    /// By the thread of this number.
    #[inline(always)]
    fn enter_as(&self, number: usize) -> Option<Reading<'_>> {
        let readers = self.readers.get()?;
        let slot = &**readers.slots.get(number)?;
        // Relaxed: by the barrier, who revokes sees it; nobody else stores there.
        slot.store(slot.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        let reading = Reading { slot, _here: PhantomData };
        // Pairs with the heavy one in `wait_for_readers`.
        readers.barrier.light();
        // Acquire pairs with the release in `set`: what is read is what the last writer has left.
        self.biased.load(Ordering::Acquire).then_some(reading)
    }

    /// Counts who has the lock shared, and sets the bias if it is time.
    #[inline]
    pub fn count_shared(&self) {
        // Relaxed: a lost count is no harm.
        let taken = self.taken.load(Ordering::Relaxed) + 1;
        self.taken.store(taken, Ordering::Relaxed);
        if taken >= READERS {
            self.set();
        }
    }

    #[cold]
    fn set(&self) {
        self.readers.get_or_init(|| Readers::new(Barrier::of_this_process()));
        self.taken.store(0, Ordering::Relaxed);
        // The thread has a number from here on, if it can have one.
        #[cfg(not(loom))]
        let _ = crate::reclaim::thread::numbered();
        // Release pairs with the acquire in `enter_as`.
        self.biased.store(true, Ordering::Release);
    }

    /// Whether there may be readers who have not taken the lock.
    #[inline]
    #[must_use]
    pub fn is_set(&self) -> bool {
        // Relaxed: whoever has the lock alone sees what those who had it shared have done.
        self.biased.load(Ordering::Relaxed)
    }

    /// By who has the lock alone, before anything is written: waits until nobody reads who has not taken it. Must not
    /// be called by a thread that [reads](Bias::enter) itself.
    ///
    /// # Panics
    /// If the system refuses the barrier, which it had granted: nobody can know who reads then.
    #[inline]
    pub fn revoke(&self) {
        self.taken.store(0, Ordering::Relaxed);
        if self.is_set() {
            self.wait_for_readers();
        }
    }

    #[cold]
    fn wait_for_readers(&self) {
        let Readers { barrier, slots } = &**self.readers.get().expect("made before it was set");
        // Relaxed: by the barrier, who enters sees it.
        self.biased.store(false, Ordering::Relaxed);
        if !barrier.heavy() {
            // As it was: nothing has been written. Release as in `set`.
            self.biased.store(true, Ordering::Release);
            panic!(
                "the system refuses membarrier, which it granted before: allow it in the filter of system calls, or \
                 put that in force before this process has threads"
            );
        }
        for slot in slots {
            let mut wait = Wait::default();
            // Acquire pairs with the release of who leaves: all has been read.
            while slot.load(Ordering::Acquire) > 0 {
                wait.some();
            }
        }
    }
}

impl Drop for Reading<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // Release pairs with the acquire in `wait_for_readers`.
        self.slot.store(self.slot.load(Ordering::Relaxed) - 1, Ordering::Release);
    }
}

impl Readers {
    fn new(barrier: Barrier) -> Box<Readers> {
        Box::new(Readers { barrier, slots: std::array::from_fn(|_| CachePadded::new(AtomicU32::new(0))) })
    }
}

/// Waits ever longer: a reader that has lost its core, or whose comparison of keys waits for something, should not cost
/// another core.
#[derive(Default)]
struct Wait {
    #[cfg(not(loom))]
    backoff: crossbeam_utils::Backoff,
}

impl Wait {
    #[cfg(not(loom))]
    fn some(&mut self) {
        const LONG: std::time::Duration = std::time::Duration::from_micros(100);
        if self.backoff.is_completed() {
            std::thread::sleep(LONG);
        } else {
            self.backoff.snooze();
        }
    }

    #[cfg(loom)]
    fn some(&mut self) {
        crate::seam::yield_now();
    }
}

#[cfg(all(test, loom))]
#[allow(unsafe_code)]
mod loom_tests {
    use std::sync::Arc;

    use loom::cell::UnsafeCell;
    use loom::thread;

    use super::*;
    use crate::reclaim::Kind;
    use crate::seam::Mutex;

    struct World {
        bias: Bias,
        /// For readers, too, of whom there is one at a time.
        lock: Mutex<()>,
        /// Loom panics if it is read while it is written.
        value: UnsafeCell<u32>,
    }

    // SAFETY: as loom checks.
    unsafe impl Sync for World {}

    impl World {
        fn biased(kind: Kind) -> Arc<World> {
            let world = World::unbiased(kind);
            world.bias.set();
            world
        }

        fn unbiased(kind: Kind) -> Arc<World> {
            let bias = Bias::default();
            bias.readers.set(Readers::new(Barrier::of_kind(kind))).expect("the first");
            Arc::new(World { bias, lock: Mutex::new(()), value: UnsafeCell::new(0) })
        }

        fn look(&self) -> u32 {
            // SAFETY: as loom checks.
            self.value.with(|value| unsafe { *value })
        }

        fn read(&self, number: usize) -> u32 {
            let Some(_reading) = self.bias.enter_as(number) else {
                let _locked = self.lock.lock();
                self.bias.count_shared();
                return self.look();
            };
            self.look()
        }

        fn write(&self) {
            let _locked = self.lock.lock();
            self.bias.revoke();
            // SAFETY: as loom checks.
            self.value.with_mut(|value| unsafe { *value += 1 });
        }
    }

    /// With so many preemptions of a thread by another, at most.
    fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(preemptions);
        builder.check(model);
    }

    fn one_reads_while_one_writes(kind: Kind) {
        check(3, move || {
            let world = World::biased(kind);
            let reader = {
                let world = world.clone();
                thread::spawn(move || (world.read(1), world.read(1)))
            };
            world.write();
            let (first, second) = reader.join().unwrap();
            assert!(first <= second && second <= 1);
            assert_eq!(world.read(0), 1);
        });
    }

    #[test]
    fn nobody_reads_what_is_written() {
        one_reads_while_one_writes(Kind::Fences);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn without_the_readers_barrier_somebody_does() {
        one_reads_while_one_writes(Kind::Missing);
    }

    /// Biased by who has taken the lock since, and not by who reads.
    fn one_reads_what_another_has_biased(world: fn(Kind) -> Arc<World>) {
        check(2, move || {
            let world = world(Kind::Fences);
            let other = {
                let world = world.clone();
                thread::spawn(move || world.read(1))
            };
            let reader = {
                let world = world.clone();
                thread::spawn(move || world.bias.enter_as(2).map(|_reading| world.look()))
            };
            world.write();
            other.join().unwrap();
            assert!(reader.join().unwrap().is_none_or(|value| value <= 1));
        });
    }

    #[test]
    fn what_is_read_is_what_was_written_before_it_was_biased() {
        one_reads_what_another_has_biased(World::unbiased);
    }

    #[test]
    fn what_is_read_is_what_was_written_before_it_was_biased_once_more() {
        one_reads_what_another_has_biased(World::biased);
    }

    /// The reader of one biases it again for the next.
    #[test]
    fn what_is_biased_again_is_revoked_again() {
        check(3, || {
            let world = World::biased(Kind::Fences);
            let reader = {
                let world = world.clone();
                thread::spawn(move || world.read(1))
            };
            world.write();
            world.write();
            assert!(reader.join().unwrap() <= 2);
            assert_eq!(world.read(0), 2);
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::thread;

    use parking_lot::RwLock;

    use super::*;
    use crate::reclaim::Kind;
    use crate::seam::AtomicU64;

    /// Two words that writers change one after the other.
    #[derive(Default)]
    struct World {
        bias: Bias,
        lock: RwLock<()>,
        words: [AtomicU64; 2],
    }

    impl World {
        /// What is there, and whether the lock was not taken for it.
        fn read(&self) -> (u64, bool) {
            self.read_and(Bias::count_shared)
        }

        /// The same; if the lock was taken, this was done with it.
        fn read_and(&self, with_the_lock: impl FnOnce(&Bias)) -> (u64, bool) {
            let guard = self.bias.enter();
            let locked = guard.is_none().then(|| {
                let locked = self.lock.read();
                with_the_lock(&self.bias);
                locked
            });
            let [first, second] = self.words.each_ref().map(|word| word.load(Ordering::Relaxed));
            assert_eq!(first, second, "half of a write");
            drop(locked);
            (first, guard.is_some())
        }

        fn write(&self) {
            let _locked = self.lock.write();
            self.bias.revoke();
            for word in &self.words {
                word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            }
        }
    }

    #[test]
    fn it_is_set_when_many_have_read_and_revoked_by_who_writes() {
        let world = World::default();
        for _ in 0..READERS {
            assert_eq!(world.read(), (0, false));
        }
        assert_eq!(world.read(), (0, true));
        world.write();
        assert!(!world.bias.is_set());
        (1..READERS).for_each(|_| assert_eq!(world.read(), (1, false)));
        world.write();
        assert_eq!(world.read(), (2, false), "the count begins anew");
    }

    #[test]
    fn who_writes_waits_for_who_reads() {
        let world = World::default();
        world.bias.set();
        let guard = world.bias.enter().expect("it is biased");
        thread::scope(|scope| {
            let writer = scope.spawn(|| world.write());
            while world.bias.is_set() {
                thread::yield_now();
            }
            assert!(world.bias.enter().is_none(), "nobody comes in while somebody waits");
            assert!(world.lock.try_read().is_none() && !writer.is_finished());
            drop(guard);
        });
        assert_eq!(world.read(), (1, false));
    }

    #[test]
    fn who_writes_waits_for_the_last_of_a_thread_in_whichever_order_they_go() {
        let world = World::default();
        world.bias.set();
        let [first, second] = [(); 2].map(|()| world.bias.enter().expect("it is biased"));
        thread::scope(|scope| {
            let writer = scope.spawn(|| world.write());
            while world.bias.is_set() {
                thread::yield_now();
            }
            drop(first);
            let slots = &world.bias.readers.get().expect("made").slots;
            assert_eq!(slots.iter().map(|slot| slot.load(Ordering::Relaxed)).sum::<u32>(), 1);
            assert!(!writer.is_finished());
            drop(second);
        });
        assert_eq!(world.read(), (1, false));
    }

    #[test]
    fn where_the_barrier_is_refused_nothing_is_written() {
        let world = World::default();
        world.bias.readers.set(Readers::new(Barrier::of_kind(Kind::Refused))).expect("the first");
        world.bias.set();
        let write = std::panic::AssertUnwindSafe(|| world.write());
        assert!(std::panic::catch_unwind(write).is_err());
        assert_eq!(world.read(), (0, true));
    }

    /// Where it is biased as soon as anybody reads.
    #[test]
    fn nobody_sees_half_of_a_write() {
        const WRITES: u64 = 2_000;
        let (world, begin) = (World::default(), std::sync::Barrier::new(3));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    begin.wait();
                    let mut before = 0;
                    while before < WRITES {
                        let (now, _) = world.read_and(Bias::set);
                        assert!(now >= before, "an old value came back");
                        before = now;
                    }
                });
            }
            begin.wait();
            (0..WRITES).for_each(|_| world.write());
        });
        assert_eq!(world.read().0, WRITES);
    }
}
