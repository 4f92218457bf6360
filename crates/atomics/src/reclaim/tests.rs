use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Barrier as Meeting, LazyLock};
use std::thread;

use super::barrier::{Barrier, Kind};
use super::*;

/// How many of its objects have been freed.
#[derive(Default)]
struct World {
    collector: Collector,
    freed: Arc<AtomicUsize>,
}

/// Counts when it is dropped.
struct Counting(Arc<AtomicUsize>);

impl Drop for Counting {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl World {
    fn freed(&self) -> usize {
        self.freed.load(Ordering::Relaxed)
    }

    /// Retires so many objects that nobody ever found.
    fn retire(&self, guard: &Guard<'_>, objects: usize) {
        for _ in 0..objects {
            let object = Box::into_raw(Box::new(Counting(Arc::clone(&self.freed))));
            // SAFETY: nobody else knows it.
            unsafe { guard.retire_box(object) };
        }
    }
}

#[test]
fn what_is_retired_is_freed_when_all_have_left_who_were_there() {
    let (world, meeting) = (World::default(), Meeting::new(2));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut reader = world.collector.pin();
            for refreshes in [true, false] {
                meeting.wait();
                // Another retires and collects.
                meeting.wait();
                let before = world.freed();
                // Nobody else comes by any more: who held it back frees it.
                match refreshes {
                    true => reader.refresh(),
                    false => reader = world.collector.pin(),
                }
                assert_eq!(world.freed(), before + usize::from(refreshes));
            }
            drop(reader);
        });
        for retired in 0..2 {
            meeting.wait();
            world.retire(&world.collector.pin(), 1);
            world.collector.collect();
            assert_eq!(world.freed(), retired, "held back");
            meeting.wait();
        }
    });
    assert_eq!(world.freed(), 2);
}

#[test]
fn who_comes_later_holds_nothing_back() {
    let (world, meeting) = (World::default(), Meeting::new(2));
    thread::scope(|scope| {
        let first = scope.spawn(|| {
            let first = world.collector.pin();
            meeting.wait();
            meeting.wait();
            drop(first);
        });
        meeting.wait();
        world.retire(&world.collector.pin(), 1);
        world.collector.collect();
        // Holds back nothing of what was collected before it came, but what comes now.
        let later = world.collector.pin();
        meeting.wait();
        first.join().unwrap();
        assert_eq!(world.freed(), 1);
        world.retire(&later, 1);
        world.collector.collect();
        assert_eq!(world.freed(), 1);
        drop(later);
        assert_eq!(world.freed(), 2);
    });
}

#[test]
fn at_most_sixty_four_wait_when_a_thread_has_unpinned() {
    let world = World::default();
    for retired in 1..1000 {
        world.retire(&world.collector.pin(), 1);
        assert!(retired - world.freed() < 64);
    }
    let guard = world.collector.pin();
    world.retire(&guard, 1000);
    drop(guard);
    assert_eq!(world.freed(), 1999);
}

#[test]
fn nothing_waits_longer_than_two_refreshes_or_a_thousand_unpins() {
    let world = World::default();
    let mut guard = world.collector.pin();
    world.retire(&guard, 1);
    guard.refresh();
    guard.refresh();
    assert_eq!(world.freed(), 1);
    world.retire(&guard, 1);
    drop(guard);
    (0..64).for_each(|_| drop(world.collector.pin()));
    assert_eq!(world.freed(), 1, "a barrier for so few would be felt");
    (64..1024).for_each(|_| drop(world.collector.pin()));
    assert_eq!(world.freed(), 2);
}

#[test]
fn a_large_object_waits_for_no_others() {
    let world = World::default();
    let guard = world.collector.pin();
    unsafe fn count(freed: *mut (), _: *const ()) {
        // SAFETY: lives as long as the world.
        unsafe { &*freed.cast::<AtomicUsize>() }.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: the counter outlives the collector's use of it.
    unsafe { guard.retire_large(Arc::as_ptr(&world.freed).cast_mut().cast(), std::ptr::null(), count) };
    assert_eq!(world.freed(), 0);
    drop(guard);
    assert_eq!(world.freed(), 1);
}

#[test]
fn another_frees_what_an_ended_thread_has_left() {
    let world = World::default();
    thread::scope(|scope| {
        scope.spawn(|| world.retire(&world.collector.pin(), 3)).join().unwrap();
        assert_eq!(world.freed(), 0);
        world.retire(&world.collector.pin(), 64);
        assert_eq!(world.freed(), 67, "as this thread collects its own");
        scope.spawn(|| world.retire(&world.collector.pin(), 3)).join().unwrap();
        world.collector.collect();
        assert_eq!(world.freed(), 70);
    });
}

#[test]
fn a_collector_that_is_dropped_frees_everything() {
    let World { collector, freed } = World::default();
    let world = World { collector, freed: Arc::clone(&freed) };
    world.retire(&world.collector.pin(), 5);
    drop(world);
    assert_eq!(freed.load(Ordering::Relaxed), 5);
}

#[test]
fn the_last_guard_of_a_thread_counts() {
    let world = World::default();
    let mut outer = world.collector.pin();
    let inner = world.collector.pin();
    assert!(outer.is_nested());
    world.retire(&inner, 100);
    drop(inner);
    assert!(!outer.is_nested());
    assert_eq!(world.freed(), 0);
    let inner = world.collector.pin();
    (0..10).for_each(|_| outer.refresh());
    world.collector.collect();
    assert_eq!(world.freed(), 0, "the inner one has not let go");
    drop(inner);
    outer.refresh();
    assert_eq!(world.freed(), 100);
}

#[test]
fn each_thread_has_its_own_and_leaves_it_to_the_next() {
    let made = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&made);
    let collector = Collector::with_locals(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        RefCell::new(0)
    });
    for round in 1..=3 {
        *collector.pin().local().borrow_mut() += 1;
        assert_eq!(*collector.pin().local().borrow(), round);
        thread::scope(|scope| {
            let other = scope.spawn(|| *collector.pin().local().borrow());
            assert_eq!(other.join().unwrap(), 0);
        });
    }
    let made = made.load(Ordering::Relaxed);
    assert!((2..=4).contains(&made), "{made}");
}

/// Many more threads at a time than have their records near.
#[test]
fn any_number_of_threads_pins() {
    let world = World::default();
    let threads = 3 * NEAR;
    let meeting = Meeting::new(threads);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let guard = world.collector.pin();
                meeting.wait();
                world.retire(&guard, 1);
                assert_eq!(world.freed(), 0);
                meeting.wait();
            });
        }
    });
    world.collector.collect();
    assert_eq!(world.freed(), threads);
    assert!(world.collector.records().count() >= threads);
}

/// Retires another when it is dropped, as long as there are more to come.
struct Chain {
    world: &'static World,
    left: usize,
}

impl Drop for Chain {
    fn drop(&mut self) {
        self.world.freed.fetch_add(1, Ordering::Relaxed);
        if self.left > 0 {
            let next = Chain { world: self.world, left: self.left - 1 };
            // SAFETY: nobody else knows it.
            unsafe { self.world.collector.pin().retire_box(Box::into_raw(Box::new(next))) };
        }
    }
}

const LONG: usize = 100_000;

/// In turn, and not each on top of another.
#[test]
fn a_chain_is_freed_at_once_and_needs_no_stack() {
    // Not leaked: the leak detector finds what a static has.
    static WORLD: LazyLock<World> = LazyLock::new(World::default);
    let world: &'static World = &WORLD;
    let first = Chain { world, left: LONG };
    // SAFETY: nobody else knows it.
    unsafe { world.collector.pin().retire_box(Box::into_raw(Box::new(first))) };
    world.collector.collect();
    assert_eq!(world.freed(), LONG + 1);
}

/// Each drops the next, and counts.
struct Link(Arc<AtomicUsize>, usize);

impl Drop for Link {
    fn drop(&mut self) {
        unsafe fn free(link: *mut (), _: *const ()) {
            // SAFETY: of a box, see below.
            drop(unsafe { Box::from_raw(link.cast::<Link>()) });
        }
        self.0.fetch_add(1, Ordering::Relaxed);
        if self.1 > 0 {
            let next = Box::into_raw(Box::new(Link(Arc::clone(&self.0), self.1 - 1)));
            // SAFETY: nobody else knows it.
            unsafe { free_in_turn(next.cast(), std::ptr::null(), free) };
            assert!(self.1 != LONG / 2, "a panic in the middle");
        }
    }
}

#[test]
fn what_is_freed_in_turn_needs_no_stack() {
    let freed = Arc::new(AtomicUsize::new(0));
    let first = Link(Arc::clone(&freed), LONG);
    drop(first);
    assert_eq!(freed.load(Ordering::Relaxed), LONG + 1);
    drop(Link(Arc::clone(&freed), 0));
    assert_eq!(freed.load(Ordering::Relaxed), LONG + 2);
}

/// Drops what it has when the thread ends.
struct AtEnd(RefCell<Vec<Box<dyn FnOnce()>>>);

impl Drop for AtEnd {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(|last| last());
    }
}

thread_local! {
    static AT_END: AtEnd = const { AtEnd(RefCell::new(Vec::new())) };
}

fn at_end(last: impl FnOnce() + 'static) {
    AT_END.with(|at_end| at_end.0.borrow_mut().push(Box::new(last)));
}

/// Destructors run from the last that was made to the first.
#[test]
fn a_thread_that_is_ending_frees_a_chain_without_stack() {
    static WORLD: LazyLock<World> = LazyLock::new(World::default);
    let world: &'static World = &WORLD;
    thread::spawn(move || {
        // Before the thread has its number.
        at_end(move || {
            assert!(thread::current().name().is_none());
            assert!(super::thread::numbered().is_none(), "past its number");
            let guard = world.collector.pin();
            let first = Chain { world, left: LONG };
            // SAFETY: nobody else knows it.
            unsafe { guard.retire_box(Box::into_raw(Box::new(first))) };
            world.retire(&guard, 64);
        });
        drop(world.collector.pin());
    })
    .join()
    .unwrap();
    assert_eq!(world.freed(), LONG + 1 + 64);
}

/// Its number is another's then, but its record is not.
#[test]
fn a_guard_that_outlives_its_threads_number_keeps_what_it_has_found() {
    static WORLD: LazyLock<World> = LazyLock::new(World::default);
    let world: &'static World = &WORLD;
    let ending = Arc::new((Meeting::new(2), Meeting::new(2)));
    let meetings = Arc::clone(&ending);
    let thread = thread::spawn(move || {
        let guard = RefCell::new(None);
        let (past, go) = (Arc::clone(&meetings), meetings);
        // Dropped when the number has gone.
        AT_END.with(|_| {});
        let kept = guard.replace(Some(world.collector.pin()));
        assert!(kept.is_none());
        at_end(move || {
            assert!(super::thread::numbered().is_none(), "past its number");
            past.0.wait();
            go.1.wait();
            // More of them now, each by a record of its own.
            let more = (world.collector.pin(), world.collector.pin());
            world.retire(&more.0, 1);
            drop(more);
            drop(guard);
        });
    });
    ending.0.wait();
    world.retire(&world.collector.pin(), 1);
    world.collector.collect();
    // Of whichever number: all of those that have none now pin, that of the ended thread among them.
    let others: Vec<_> = (0..4)
        .map(|_| {
            let (ready, stop) = (Arc::new(Meeting::new(2)), Arc::new(Meeting::new(2)));
            let (told, stopped) = (Arc::clone(&ready), Arc::clone(&stop));
            let thread = thread::spawn(move || {
                let guard = world.collector.pin();
                world.collector.collect();
                assert_eq!(world.freed(), 0, "the guard is there still");
                drop(guard);
                told.wait();
                stopped.wait();
            });
            ready.wait();
            (thread, stop)
        })
        .collect();
    assert_eq!(world.freed(), 0);
    ending.1.wait();
    thread.join().unwrap();
    world.collector.collect();
    assert_eq!(world.freed(), 2);
    for (thread, stop) in others {
        stop.wait();
        thread.join().unwrap();
    }
}

#[test]
fn a_destructor_that_panics_takes_nothing_else_with_it() {
    struct Panics(#[expect(dead_code)] Counting);
    impl Drop for Panics {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new("on purpose"));
        }
    }
    let world = World::default();
    let guard = world.collector.pin();
    for _ in 0..10 {
        world.retire(&guard, 1);
        let object = Box::into_raw(Box::new(Panics(Counting(Arc::clone(&world.freed)))));
        // SAFETY: nobody else knows it.
        unsafe { guard.retire_box(object) };
    }
    drop(guard);
    world.collector.collect();
    assert_eq!(world.freed(), 20);
}

/// A filter that came into force when the process had begun.
#[test]
fn without_the_barrier_that_was_promised_nothing_is_freed_but_by_dropping() {
    let freed = Arc::new(AtomicUsize::new(0));
    let collector = Collector::with_barrier(Barrier::of_kind(Kind::Refused), || ());
    let world = World { collector, freed: Arc::clone(&freed) };
    for _ in 0..3 {
        let mut guard = world.collector.pin();
        world.retire(&guard, 100);
        guard.refresh();
        drop(guard);
        world.collector.collect();
    }
    assert_eq!(world.freed(), 0);
    drop(world);
    assert_eq!(freed.load(Ordering::Relaxed), 300);
}

/// Readers follow links that writers exchange; what is freed says so.
fn readers_and_writers(kind: fn() -> Barrier) {
    struct Object(AtomicBool);
    impl Drop for Object {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let exchanges = if cfg!(miri) { 300 } else { 100_000 };
    let collector = Collector::with_barrier(kind(), || ());
    let new = || Box::into_raw(Box::new(Object(AtomicBool::new(false))));
    let links: Vec<AtomicPtr<Object>> = (0..4).map(|_| AtomicPtr::new(new())).collect();
    let at_work = AtomicUsize::new(2);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for exchange in 0..exchanges {
                    let guard = collector.pin();
                    let old = links[exchange % links.len()].swap(new(), Ordering::AcqRel);
                    // SAFETY: taken out by the swap, by nobody else.
                    unsafe { guard.retire_box(old) };
                }
                at_work.fetch_sub(1, Ordering::Relaxed);
            });
            scope.spawn(|| {
                let mut guard = collector.pin();
                let mut round = 0usize;
                while at_work.load(Ordering::Relaxed) > 0 {
                    // SAFETY: found under the guard, and read before it is refreshed or dropped.
                    let object = unsafe { &*links[round % links.len()].load(Ordering::Acquire) };
                    (0..round % 7).for_each(|_| std::hint::spin_loop());
                    assert!(!object.0.load(Ordering::Relaxed), "freed while it was looked at");
                    round += 1;
                    match round % 3 {
                        0 => guard.refresh(),
                        1 => guard = collector.pin(),
                        _ => {}
                    }
                }
            });
        }
    });
    for link in links {
        // SAFETY: nobody else has them any more.
        drop(unsafe { Box::from_raw(link.into_inner()) });
    }
}

#[test]
fn readers_find_nothing_freed_by_the_barrier_of_this_process() {
    readers_and_writers(Barrier::of_this_process);
}

#[test]
fn readers_find_nothing_freed_by_fences() {
    readers_and_writers(|| Barrier::of_kind(Kind::Fences));
}

#[cfg(all(target_os = "linux", not(any(miri, lookaside_portable))))]
#[test]
fn this_process_has_the_cheap_barrier_where_the_system_has_it() {
    use rustix::thread::{MembarrierQuery, membarrier_query};
    let has_it = membarrier_query().contains(MembarrierQuery::REGISTER_PRIVATE_EXPEDITED);
    let chosen = Collector::<()>::new().shared.barrier.kind();
    assert_eq!(chosen == Kind::Membarrier, has_it);
}
