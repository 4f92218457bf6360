//! The protocol of [`super`] under the model checker: one who looks and one who unlinks, retires and collects, with
//! fences on both sides. Without that of the reader's side, what is freed is still looked at: the models see it.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use super::barrier::Kind;
use super::*;

struct World {
    collector: Collector,
    /// The number of an object, or none.
    link: AtomicU64,
    /// Loom panics if one is freed while it is looked at, or the other way round.
    objects: [UnsafeCell<u32>; 1],
}

// SAFETY: as loom checks.
unsafe impl Sync for World {}

const NOTHING: u64 = 9;

/// Retires the object that `object` points to.
unsafe fn free(object: *mut (), _: *const ()) {
    // SAFETY: an object of a world that outlives its collector's calls.
    let object = unsafe { &*object.cast::<UnsafeCell<u32>>() };
    // SAFETY: as loom checks.
    object.with_mut(|value| unsafe { *value = 0 });
}

impl World {
    fn new(kind: Kind) -> Arc<World> {
        Arc::new(World {
            collector: Collector::with_barrier(Barrier::of_kind(kind), || ()),
            link: AtomicU64::new(0),
            objects: [UnsafeCell::new(10)],
        })
    }

    /// What a reader finds; by its guard it stays.
    fn look(&self, _guard: &Guard<'_>) {
        // Acquire pairs with the release in `exchange`.
        let object = self.link.load(Ordering::Acquire);
        if object != NOTHING {
            // SAFETY: as loom checks.
            let value = self.objects[object as usize].with(|value| unsafe { *value });
            assert_eq!(u64::from(value), 10 + object);
        }
    }

    /// Puts another into the place of an object, and retires that.
    fn exchange(&self, old: u64, new: u64) {
        self.link.store(new, Ordering::Release);
        let object = std::ptr::from_ref(&self.objects[old as usize]).cast_mut();
        // SAFETY: nobody can find it any more; once.
        unsafe { self.collector.retire(object.cast(), std::ptr::null(), free) };
    }
}

/// With so many preemptions of a thread by another, at most.
fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

fn a_reader_pins(kind: Kind) {
    check(3, move || {
        let world = World::new(kind);
        let reader = {
            let world = world.clone();
            thread::spawn(move || world.look(&world.collector.pin()))
        };
        world.exchange(0, NOTHING);
        world.collector.collect();
        reader.join().unwrap();
    });
}

fn a_reader_refreshes(kind: Kind) {
    check(2, move || {
        let world = World::new(kind);
        let reader = {
            let world = world.clone();
            thread::spawn(move || {
                let mut guard = world.collector.pin();
                guard.refresh();
                world.look(&guard);
            })
        };
        world.exchange(0, NOTHING);
        world.collector.collect();
        reader.join().unwrap();
    });
}

#[test]
fn what_a_reader_finds_stays_until_it_leaves() {
    a_reader_pins(Kind::Fences);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn without_a_fence_behind_the_pin_it_does_not() {
    a_reader_pins(Kind::Missing);
}

#[test]
fn what_a_reader_finds_behind_a_refresh_stays() {
    a_reader_refreshes(Kind::Fences);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn without_a_fence_it_does_not_behind_a_refresh_either() {
    a_reader_refreshes(Kind::Missing);
}

/// Another scans between the stamp and the barrier of who retires.
#[test]
fn who_collects_meanwhile_frees_nothing_that_a_reader_has_found() {
    check(1, || {
        let world = World::new(Kind::Fences);
        let other = {
            let world = world.clone();
            thread::spawn(move || world.collector.collect())
        };
        let reader = {
            let world = world.clone();
            thread::spawn(move || world.look(&world.collector.pin()))
        };
        world.exchange(0, NOTHING);
        world.collector.collect();
        other.join().unwrap();
        reader.join().unwrap();
    });
}

/// One who collects takes what another has retired meanwhile: the epoch that is its stamp ends behind that.
#[test]
fn what_is_taken_has_the_stamp_of_an_epoch_that_ends_later() {
    check(2, || {
        let world = World::new(Kind::Fences);
        let writer = {
            let world = world.clone();
            thread::spawn(move || world.exchange(0, NOTHING))
        };
        let reader = {
            let world = world.clone();
            thread::spawn(move || {
                let guard = world.collector.pin();
                world.look(&guard);
                // So the writer has a record of its own, and is not told by this one's that the look is over.
                writer.join().unwrap();
                drop(guard);
            })
        };
        world.collector.collect();
        reader.join().unwrap();
    });
}
