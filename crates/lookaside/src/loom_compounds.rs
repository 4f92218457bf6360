//! Compounds under the model checker: a look and a change under the stripe, beside readers who admit, and one thread
//! that makes what several ask for.
//!
//! As in `loom_tests` an index is a number: a key's value, and the pointer that it would find; zero for none. But it is
//! loaded and stored as indexes publish entries, who must be seen as they were made: with relaxed ones, a reader who
//! has found a new entry in the index could find the old one in the table behind that.

use atomics::{AtomicU64, Ordering};
use loom::sync::Arc;
use loom::thread;

use crate::Config;
use crate::pointer::Pointer;
use crate::random::Random;
use crate::single_flight::{Boarding, SingleFlight};
use crate::slb::Slb;
use crate::stripes::Stripes;

const HASH: u64 = 7 << 52;

/// Up to `preemptions` times a thread is interrupted where it need not be.
fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    let explored = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = explored.clone();
    builder.check(move || {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        model();
    });
    let explored = explored.load(std::sync::atomic::Ordering::Relaxed);
    println!("{explored} executions");
    assert!(explored >= 20, "only {explored} executions explored");
}

/// One key at a table of one line.
struct World {
    table: Slb,
    stripes: Stripes,
    index: AtomicU64,
}

impl World {
    /// The key's value, which the table has, too.
    fn with(value: u64) -> Arc<World> {
        let table = Slb::new(&Config::with_size(64)).unwrap();
        if let Some(pointer) = Pointer::new(value) {
            table.insert(HASH, pointer, &Random::new(0));
        }
        Arc::new(World { table, stripes: Stripes::new().unwrap(), index: AtomicU64::new(value) })
    }

    /// The value by the table, or else by the index, whose answer is admitted; zero if there is none.
    fn get(&self) -> u64 {
        if let Some((_, pointer)) = self.table.find(HASH, |_| true) {
            return pointer.address();
        }
        let ticket = self.stripes.ticket(HASH);
        // Acquire pairs with the release in `compound`.
        let found = self.index.load(Ordering::Acquire);
        if let Some(pointer) = Pointer::new(found) {
            self.stripes.with_ticket(&ticket, &mut || self.table.insert(HASH, pointer, &Random::new(0)));
        }
        found
    }

    /// What all compounds do: what is there is shown to `decide`, who says what is to be there, if anything changes.
    /// What was there.
    fn compound(&self, decide: impl FnOnce(u64) -> Option<u64>) -> u64 {
        let held = self.stripes.lock(HASH);
        let known = self.table.find(HASH, |_| true).map(|(_, pointer)| pointer.address());
        let cleared = self.table.clear(HASH);
        let old = known.unwrap_or_else(|| self.index.load(Ordering::Relaxed));
        let new = decide(old);
        if let Some(new) = new {
            // Release pairs with the acquire in `get`.
            self.index.store(new, Ordering::Release);
        }
        // An update puts the new one in, and who changed nothing what was there before.
        if cleared > 0
            && let Some(pointer) = Pointer::new(new.unwrap_or(old))
        {
            self.table.insert(HASH, pointer, &Random::new(0));
        }
        drop(held);
        old
    }
}

#[test]
fn no_update_is_lost() {
    check(3, || {
        let world = World::with(1);
        let other = thread::spawn({
            let world = world.clone();
            move || world.compound(|old| Some(old + 1))
        });
        let mut old = [world.compound(|old| Some(old + 1)), other.join().unwrap()];
        old.sort_unstable();
        assert_eq!(old, [1, 2]);
        assert_eq!((world.get(), world.index.load(Ordering::Relaxed)), (3, 3));
    });
}

#[test]
fn no_reader_goes_back() {
    check(2, || {
        let world = World::with(1);
        let other = thread::spawn({
            let world = world.clone();
            move || [(); 2].map(|()| world.compound(|old| Some(old + 1)))
        });
        let seen = [world.get(), world.get()];
        assert!(seen[0] <= seen[1], "{seen:?}");
        assert_eq!(other.join().unwrap(), [1, 2]);
        assert_eq!(world.get(), 3);
    });
}

#[test]
fn of_those_who_put_in_what_is_absent_one_does() {
    check(2, || {
        let world = World::with(0);
        let others = [5, 6].map(|value| {
            let world = world.clone();
            // As `try_insert`: a look at first.
            thread::spawn(move || match world.get() {
                0 => world.compound(|old| (old == 0).then_some(value)),
                found => found,
            })
        });
        let seen = world.get();
        let saw = others.map(|other| other.join().unwrap());
        let now = world.get();
        assert!(saw == [0, 5] || saw == [6, 0], "{saw:?}");
        assert!(now == if saw[0] == 0 { 5 } else { 6 });
        assert!(seen == 0 || seen == now);
    });
}

#[test]
fn what_is_removed_on_a_condition_met_it() {
    check(2, || {
        let world = World::with(2);
        let updater = thread::spawn({
            let world = world.clone();
            move || world.compound(|old| (old > 0).then_some(old + 1))
        });
        let remover = thread::spawn({
            let world = world.clone();
            move || world.compound(|old| (old.is_multiple_of(2)).then_some(0))
        });
        let outcome = (updater.join().unwrap(), remover.join().unwrap(), world.get());
        assert!([(2, 3, 3), (0, 2, 0)].contains(&outcome), "{outcome:?}");
    });
}

/// Asks for a value until it is there; makes it, if that is for this thread to do, in so many attempts.
fn ask(flights: &SingleFlight, value: &AtomicU64, made: &AtomicU64, fails: bool) {
    loop {
        if value.load(Ordering::Relaxed) != 0 {
            return;
        }
        match flights.board((1, 1)) {
            Boarding::Make(_flight) => {
                if value.load(Ordering::Relaxed) != 0 {
                    return;
                }
                if fails {
                    return;
                }
                made.fetch_add(1, Ordering::Relaxed);
                value.store(7, Ordering::Relaxed);
                return;
            }
            Boarding::LookAgain => {}
            Boarding::Ring => panic!("nobody waits for himself"),
        }
    }
}

#[test]
fn one_makes_what_others_wait_for_and_they_find_it() {
    for fails in [false, true] {
        check(3, move || {
            let world = Arc::new((SingleFlight::new(), AtomicU64::new(0), AtomicU64::new(0)));
            let other = thread::spawn({
                let world = world.clone();
                move || ask(&world.0, &world.1, &world.2, fails)
            });
            ask(&world.0, &world.1, &world.2, false);
            // Relaxed: who was told to look again sees what was made, by the list's lock.
            assert_eq!(world.1.load(Ordering::Relaxed), 7);
            other.join().unwrap();
            assert_eq!(world.2.load(Ordering::Relaxed), 1);
        });
    }
}

#[test]
fn of_two_who_would_wait_for_each_other_one_is_told() {
    check(3, || {
        let flights = Arc::new(SingleFlight::new());
        let ring = |flights: &SingleFlight, own, others| match flights.board((1, own)) {
            Boarding::Make(_own) => matches!(flights.board((1, others)), Boarding::Ring),
            _ => false,
        };
        let other = thread::spawn({
            let flights = flights.clone();
            move || ring(&flights, 1, 2)
        });
        // Both end, in all orders; a model that hangs is a failure.
        ring(&flights, 2, 1);
        other.join().unwrap();
    });
}
