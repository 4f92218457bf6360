//! Slots, counters, stripes and tickets under the model checker: every interleaving and every reordering that the
//! memory model allows, on a table of one line and with one stripe, where everybody meets.
//!
//! An index is a number here, the pointer that it would find, loaded and stored relaxed: what order there is between it
//! and the table is the protocol's.
//!
//! Run by `ci/safety`: `RUSTFLAGS="--cfg loom" cargo test -p lookaside --lib --release`.

use atomics::{AtomicU64, Ordering};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use crate::Config;
use crate::atomic_table::AtomicTable;
use crate::bucket::{Bucket, Word};
use crate::config::CounterPolicy;
use crate::pointer::Pointer;
use crate::random::Random;
use crate::slb::{Insertion, Slb};
use crate::stripes::Stripes;
use crate::wide::Words;

/// Unlike each other in the bits of their tags, and alike in all others.
const HASH: u64 = 7 << 52;
const OTHER: u64 = 8 << 52;

/// Every hit counts, and one of a full counter lowers another.
const EVERY_HIT: u32 = 256;

fn pointer(number: u64) -> Pointer {
    Pointer::new(number).unwrap()
}

/// Up to `preemptions` times a thread is interrupted where it need not be: loom's own advice for larger models.
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
    // A model that explores next to nothing proves nothing: see the crate `atomics` for how that can happen.
    let explored = explored.load(std::sync::atomic::Ordering::Relaxed);
    println!("{explored} executions");
    assert!(explored >= 50, "only {explored} executions explored");
}

/// What a pointer points to: written before it is admitted, read by whoever finds it.
#[derive(Default)]
struct Entry(UnsafeCell<u64>);

// SAFETY: the model checker looks at every access, and says where two of them race.
#[allow(unsafe_code)]
unsafe impl Sync for Entry {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Send for Entry {}

#[allow(unsafe_code)]
impl Entry {
    fn write(&self, value: u64) {
        // SAFETY: checked by the model.
        self.0.with_mut(|place| unsafe { *place = value });
    }

    fn read(&self) -> u64 {
        // SAFETY: checked by the model.
        self.0.with(|place| unsafe { *place })
    }
}

#[test]
fn a_slot_is_found_whole_and_what_it_points_to_is_there() {
    check(3, || {
        let world = Arc::new((Bucket::default(), [Entry::default(), Entry::default(), Entry::default()]));
        let first = Word::new(HASH, pointer(1));
        world.1[1].write(10);
        assert!(world.0.exchange(0, Word::EMPTY, first));
        let writer = thread::spawn({
            let world = world.clone();
            move || {
                world.1[2].write(20);
                assert!(world.0.exchange(0, first, Word::new(OTHER, pointer(2))));
            }
        });
        for hash in [HASH, OTHER] {
            let found = world.0.find(hash, |_| true).map(|(_, found)| found);
            if let Some(found) = found {
                let expected = if hash == HASH { 1 } else { 2 };
                assert_eq!(found, pointer(expected), "one key's tag over another's pointer");
                assert_eq!(world.1[found.address() as usize].read(), 10 * expected);
            }
        }
        writer.join().unwrap();
        assert_eq!(world.0.find(HASH, |_| true).map(|(_, found)| found), None);
    });
}

/// An entry is made, and admitted; who finds it in the table sees it as it was made.
#[test]
fn entries_are_there_before_they_are_found_in_the_cache_table() {
    check(3, || {
        let world = Arc::new((slb(), [Entry::default(), Entry::default(), Entry::default()]));
        let admitter = thread::spawn({
            let world = world.clone();
            move || {
                let outcomes = [1, 2].map(|number| {
                    world.1[number as usize].write(number);
                    world.0.insert(HASH, pointer(number), &Random::new(0))
                });
                outcomes[1]
            }
        });
        for _ in 0..2 {
            if let Some(found) = world.0.hit(HASH, &Random::new(0), |_| true) {
                assert_eq!(world.1[found.address() as usize].read(), found.address());
            }
        }
        assert_eq!(admitter.join().unwrap(), Insertion::Admitted);
        let found = world.0.hit(HASH, &Random::new(0), |found| found == pointer(2));
        assert!(found.is_some());
    });
}

/// A full line, of which the next to come throws out the first: pointers, and words that are ten times as much.
fn full_of_pairs() -> (Slb, Words, u64) {
    let table = slb();
    let words = Words::beside(&table, table.config()).unwrap();
    for number in 1..=7 {
        words.insert(&table, HASH, pointer(number), 10 * number, &Random::new(0));
    }
    let first = (0..).find(|&seed| Random::new(seed).below(7) == 0).unwrap();
    (table, words, first)
}

/// The pair that is found first, if nobody writes meanwhile.
fn first_pair((table, words, _): &(Slb, Words, u64)) -> Option<u64> {
    let mut found = None;
    words.find(table, HASH, |pointer, word| {
        assert_eq!(word, 10 * pointer.address(), "the word of another");
        found = Some(pointer.address());
        true
    });
    found
}

#[test]
fn a_pointer_is_found_with_its_own_word_and_what_it_points_to_is_there() {
    check(2, || {
        let world = Arc::new((full_of_pairs(), Entry::default()));
        let writer = thread::spawn({
            let world = world.clone();
            move || {
                let (table, words, seed) = &world.0;
                world.1.write(8);
                words.insert(table, HASH, pointer(8), 80, &Random::new(*seed));
            }
        });
        match first_pair(&world.0) {
            None | Some(1) => {}
            Some(found) => assert_eq!((found, world.1.read()), (8, 8)),
        }
        writer.join().unwrap();
        assert_eq!(first_pair(&world.0), Some(8));
    });
}

#[test]
fn of_two_who_put_pairs_in_one_comes_after_the_other_or_goes_away() {
    check(2, || {
        let world = Arc::new(full_of_pairs());
        let insert = |world: &(Slb, Words, u64), number| {
            world.1.insert(&world.0, HASH, pointer(number), 10 * number, &Random::new(world.2));
        };
        let other = thread::spawn({
            let world = world.clone();
            move || insert(&world, 8)
        });
        insert(&world, 9);
        let found = first_pair(&world);
        assert!(matches!(found, None | Some(8 | 9)), "{found:?}");
        other.join().unwrap();
        assert!(matches!(first_pair(&world), Some(8 | 9)));
    });
}

#[test]
fn of_those_who_change_a_slot_one_wins() {
    check(3, || {
        let bucket = Arc::new(Bucket::default());
        let words = [1, 2, 3].map(|number| Word::new(HASH, pointer(number)));
        let others = [1, 2].map(|which| {
            let bucket = bucket.clone();
            thread::spawn(move || bucket.exchange(0, Word::EMPTY, words[which]))
        });
        let mut won = vec![bucket.exchange(0, Word::EMPTY, words[0])];
        won.extend(others.map(|other| other.join().unwrap()));
        let winners: Vec<_> = words.into_iter().zip(won).filter(|(_, won)| *won).collect();
        assert_eq!(winners, [(bucket.load(0), true)]);
    });
}

/// Two hits at once, on slots next to each other, both one below full.
#[test]
fn counters_that_race_lose_counts_and_never_run_over_into_their_neighbours() {
    check(3, || {
        let bucket = Arc::new(Bucket::default());
        for slot in [2, 3] {
            bucket.welcome(slot, 254, CounterPolicy::EveryHit);
        }
        bucket.welcome(4, 7, CounterPolicy::EveryHit);
        let other = thread::spawn({
            let bucket = bucket.clone();
            move || {
                bucket.raise(3, EVERY_HIT, &Random::new(2));
                bucket.raise(2, EVERY_HIT, &Random::new(2));
            }
        });
        bucket.raise(2, EVERY_HIT, &Random::new(1));
        other.join().unwrap();
        let after = bucket.temperatures();
        // Raised once, twice or, where a count was lost, not at all; lowered when a full one was hit.
        assert!((253..=255).contains(&after[2]) && (253..=255).contains(&after[3]), "{after:?}");
        assert!((6..=7).contains(&after[4]), "{after:?}");
        assert!(after[2] == 255 || after[3] == 255, "somebody's count is kept: {after:?}");
        assert_eq!([0, 1, 5, 6].map(|slot| after[slot]), [0; 4]);
    });
}

/// An index of one key, behind its table.
struct World {
    table: Slb,
    stripes: Stripes,
    index: AtomicU64,
}

fn slb() -> Slb {
    that_counts(CounterPolicy::Never)
}

fn that_counts(counters: CounterPolicy) -> Slb {
    Slb::new(&Config::with_size(64).counters(counters)).unwrap()
}

impl World {
    fn new(table: Slb) -> Arc<World> {
        Arc::new(World { table, stripes: Stripes::new().unwrap(), index: AtomicU64::new(1) })
    }

    /// The pointers of the key that the table has.
    fn found(&self) -> Vec<u64> {
        let mut found = Vec::new();
        self.table.find(HASH, |pointer| {
            found.push(pointer.address());
            false
        });
        found
    }

    /// A lookup as the map makes it: what the table has, or what the index has, which is then admitted.
    fn look(&self) -> u64 {
        if let Some(found) = self.table.hit(HASH, &Random::new(0), |_| true) {
            return found.address();
        }
        self.miss();
        0
    }

    fn miss(&self) {
        let ticket = self.stripes.ticket(HASH);
        let found = self.index.load(Ordering::Relaxed);
        if found != 0 {
            self.stripes
                .with_ticket(&ticket, &mut || self.table.insert(HASH, pointer(found), &Random::new(0)));
        }
    }

    /// A write as the map makes it: 0 removes the key.
    fn write(&self, next: u64) {
        let held = self.stripes.lock(HASH);
        let (cleared, kept) = self.table.vacate(HASH);
        self.index.store(next, Ordering::Relaxed);
        match kept {
            Some(slot) if next != 0 => self.table.fill(slot, HASH, pointer(next), &Random::new(0)),
            None if next != 0 && cleared > 0 => {
                self.table.insert(HASH, pointer(next), &Random::new(0));
            }
            _ => {}
        }
        drop(held);
    }

    /// What the table has is what the index has.
    fn agree(&self) {
        let (found, index) = (self.found(), self.index.load(Ordering::Relaxed));
        assert!(found.len() <= 1, "twice: {found:?}");
        assert!(found.iter().all(|&found| found == index), "{found:?} is stale: the index has {index}");
    }
}

/// A miss finds the entry; before it admits it, a write removes or replaces it.
fn offer_against_write(next: u64) {
    check(3, move || {
        let world = World::new(slb());
        let writer = thread::spawn({
            let world = world.clone();
            move || {
                world.write(next);
                // From here on the old one must not be seen, by this thread at least.
                let found = world.found();
                assert!(found.iter().all(|&found| found == next), "{found:?} after a write of {next}");
            }
        });
        world.miss();
        writer.join().unwrap();
        world.agree();
    });
}

#[test]
fn an_entry_that_is_removed_is_not_admitted_again() {
    offer_against_write(0);
}

#[test]
fn an_entry_that_is_replaced_is_not_admitted_again() {
    offer_against_write(2);
}

/// It is in the table already; a second thread admits it anew while it is replaced.
#[test]
fn an_update_leaves_the_new_entry_or_none() {
    check(2, || {
        let world = World::new(slb());
        world.miss();
        assert_eq!(world.found(), [1]);
        let writer = thread::spawn({
            let world = world.clone();
            move || {
                world.write(2);
                assert_eq!(world.found(), [2], "it was hot, and stays");
            }
        });
        let seen = world.look();
        assert!(seen <= 2);
        world.miss();
        writer.join().unwrap();
        world.agree();
        assert_eq!(world.found(), [2]);
    });
}

#[test]
fn two_who_admit_the_same_put_it_in_once() {
    check(3, || {
        let world = World::new(slb());
        let other = thread::spawn({
            let world = world.clone();
            move || world.miss()
        });
        world.miss();
        other.join().unwrap();
        // At least one of them got the word.
        assert_eq!(world.found(), [1]);
        assert_eq!((world.table.occupancy(), world.table.clear(HASH), world.table.occupancy()), (1, 1, 0));
    });
}

/// Also where their tickets have the same number, which each puts back.
#[test]
fn of_two_who_admit_each_is_alone() {
    check(3, || {
        let world = World::new(slb());
        let alone = Arc::new(Entry::default());
        let admit = |world: &World, alone: &Entry| {
            let ticket = world.stripes.ticket(HASH);
            u64::from(world.stripes.with_ticket(&ticket, &mut || alone.write(alone.read() + 1)).is_some())
        };
        let other = thread::spawn({
            let (world, alone) = (world.clone(), alone.clone());
            move || admit(&world, &alone)
        });
        let admitted = admit(&world, &alone);
        let both = admitted + other.join().unwrap();
        assert!(both > 0);
        assert_eq!(alone.read(), both);
    });
}

#[test]
fn two_who_admit_against_one_who_writes() {
    check(2, || {
        let world = World::new(slb());
        let threads = [
            thread::spawn({
                let world = world.clone();
                move || world.miss()
            }),
            thread::spawn({
                let world = world.clone();
                move || world.write(2)
            }),
        ];
        world.miss();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        world.agree();
    });
}

/// The second write's number must not be the first one's ticket.
#[test]
fn a_ticket_does_not_outlive_two_writes() {
    check(3, || {
        let world = World::new(slb());
        let writer = thread::spawn({
            let world = world.clone();
            move || {
                world.write(0);
                world.write(2);
            }
        });
        world.miss();
        writer.join().unwrap();
        world.agree();
    });
}

/// The paper's way beside the tickets': whoever holds the stripe is alone.
#[test]
fn the_papers_lock_keeps_out_writes_and_offers() {
    check(2, || {
        let world = World::new(slb());
        let alone = Arc::new(Entry::default());
        let locker = thread::spawn({
            let (world, alone) = (world.clone(), alone.clone());
            move || {
                world.stripes.lock_raw(HASH);
                alone.write(alone.read() + 1);
                // As the paper's user does it: no ticket, for nobody else writes.
                world.table.clear(HASH);
                world.index.store(3, Ordering::Relaxed);
                world.table.insert(HASH, pointer(3), &Random::new(0));
                world.stripes.unlock_raw(HASH);
            }
        });
        let ticket = world.stripes.ticket(HASH);
        let found = world.index.load(Ordering::Relaxed);
        world.stripes.with_ticket(&ticket, &mut || {
            alone.write(alone.read() + 1);
            world.table.insert(HASH, pointer(found), &Random::new(0))
        });
        let held = world.stripes.lock(HASH);
        alone.write(alone.read() + 1);
        drop(held);
        locker.join().unwrap();
        assert!((2..=3).contains(&alone.read()));
        assert_eq!(world.found(), [3]);
        world.agree();
        // Nobody holds it: nothing happens, and tickets stay good.
        let ticket = world.stripes.ticket(HASH);
        world.stripes.unlock_raw(HASH);
        assert_eq!(world.stripes.with_ticket(&ticket, &mut || 5), Some(5));
    });
}

/// A hit warms the slot that a write clears: the slot must stay cleared.
#[test]
fn a_hit_does_not_bring_back_what_a_write_clears() {
    check(3, || {
        let world = World::new(that_counts(CounterPolicy::EveryHit));
        world.miss();
        let writer = thread::spawn({
            let world = world.clone();
            move || {
                world.write(0);
                assert_eq!(world.found(), []);
            }
        });
        let seen = world.table.hit(HASH, &Random::new(0), |_| true);
        assert!(seen.is_none_or(|seen| seen == pointer(1)));
        writer.join().unwrap();
        assert_eq!(world.found(), []);
        assert_eq!(world.table.occupancy(), 0);
    });
}

/// A dead entry's pointer is forgotten while others come and go in its bucket, and while a hit warms it.
#[test]
fn a_pointer_is_forgotten_among_others_of_its_bucket() {
    check(2, || {
        let table = Arc::new(slb());
        assert_eq!(table.insert(HASH, pointer(1), &Random::new(0)), Insertion::Admitted);
        let other = thread::spawn({
            let table = table.clone();
            move || {
                let _ = table.hit(HASH, &Random::new(0), |_| true);
                // Finds a place, or takes one.
                table.insert(OTHER, pointer(2), &Random::new(0))
            }
        });
        table.forget(HASH, pointer(1));
        assert!(table.hit(HASH, &Random::new(0), |found| found == pointer(1)).is_none());
        let outcome = other.join().unwrap();
        assert!(table.hit(HASH, &Random::new(0), |_| true).is_none());
        let there = table.hit(OTHER, &Random::new(0), |_| true);
        assert_eq!(there.is_some(), outcome != Insertion::Contended);
        assert_eq!(table.occupancy(), usize::from(there.is_some()));
    });
}

/// Which the paper's admission goes by.
#[test]
fn the_number_of_filled_slots_is_right_in_the_end() {
    check(2, || {
        let config = Config::paper(64).counters(CounterPolicy::Never).log_ratio(1);
        let table = Arc::new(Slb::new(&config).unwrap());
        for number in 1..7 {
            assert_eq!(table.insert(OTHER, pointer(number), &Random::new(0)), Insertion::Admitted);
        }
        let other = thread::spawn({
            let table = table.clone();
            move || table.insert(HASH, pointer(9), &Random::new(0))
        });
        let cleared = table.clear(HASH);
        let outcome = other.join().unwrap();
        assert_eq!(outcome, Insertion::Admitted);
        let full = cleared == 0;
        assert_eq!(table.occupancy(), 6 + usize::from(full));
        // A full table throttles: it does not want what has never been logged.
        assert_eq!(table.wants(1, &Random::new(0)), !full);
    });
}

/// Another's comes into the slot that is kept, or the last that is free, or throws out one.
fn the_number_of_filled_slots_is_right_after(ends: fn(&Slb, usize), filled: usize) {
    check(2, move || {
        let config = Config::paper(64).counters(CounterPolicy::Never).log_ratio(1);
        let table = Arc::new(Slb::new(&config).unwrap());
        assert_eq!(table.insert(HASH, pointer(9), &Random::new(0)), Insertion::Admitted);
        for number in 1..6 {
            assert_eq!(table.insert(OTHER, pointer(number), &Random::new(0)), Insertion::Admitted);
        }
        let other = thread::spawn({
            let table = table.clone();
            move || table.insert(OTHER, pointer(6), &Random::new(0))
        });
        let (cleared, kept) = table.vacate(HASH);
        assert_eq!(cleared, 1);
        ends(&table, kept.unwrap());
        assert_eq!(other.join().unwrap(), Insertion::Admitted);
        assert_eq!(table.occupancy(), filled);
        assert_eq!(table.wants(1, &Random::new(0)), filled < table.capacity());
    });
}

#[test]
fn the_number_of_filled_slots_is_right_when_one_was_kept_and_filled() {
    let fill = |table: &Slb, slot| table.fill(slot, HASH, pointer(10), &Random::new(0));
    the_number_of_filled_slots_is_right_after(fill, 7);
}

#[test]
fn the_number_of_filled_slots_is_right_when_nothing_is_put_in() {
    the_number_of_filled_slots_is_right_after(|_, _| {}, 6);
}

/// A table, its stripes and an index, of which the table is replaced by an empty one.
struct Replaceable {
    table: AtomicTable,
    stripes: Stripes,
    index: AtomicU64,
}

#[allow(unsafe_code)]
impl Replaceable {
    fn slb() -> Slb {
        Slb::new(&Config::with_size(64).counters(CounterPolicy::Never)).unwrap()
    }

    fn now(&self) -> &Slb {
        // SAFETY: what is replaced is kept to the end.
        unsafe { self.table.load() }
    }

    fn look_up(&self) {
        let ticket = self.stripes.ticket(HASH);
        if self.index.load(Ordering::Relaxed) == 1 {
            let table = self.now();
            self.stripes.with_ticket(&ticket, &mut || table.insert(HASH, pointer(1), &Random::new(0)));
        }
    }

    fn remove(&self) {
        let held = self.stripes.lock(HASH);
        self.now().clear(HASH);
        self.index.store(0, Ordering::Relaxed);
        drop(held);
    }
}

/// Whichever table it was admitted into: who clears it under the stripe sees that one, if anybody will.
#[test]
fn what_a_write_removes_while_the_table_is_replaced_is_not_found_after_it() {
    check(2, || {
        let world = Arc::new(Replaceable {
            table: AtomicTable::new(Replaceable::slb()),
            stripes: Stripes::new().unwrap(),
            index: AtomicU64::new(1),
        });
        let admitter = thread::spawn({
            let world = world.clone();
            move || world.look_up()
        });
        let resizer = thread::spawn({
            let world = world.clone();
            move || world.table.replace(Replaceable::slb())
        });
        world.remove();
        let found = |world: &Replaceable| world.now().hit(HASH, &Random::new(0), |_| true);
        assert_eq!(found(&world), None, "the one who removed it");
        admitter.join().unwrap();
        let replaced = resizer.join().unwrap();
        assert_eq!(found(&world), None, "and everyone");
        // SAFETY: nobody looks at it any more.
        #[allow(unsafe_code)]
        unsafe {
            replaced.free();
        }
    });
}
