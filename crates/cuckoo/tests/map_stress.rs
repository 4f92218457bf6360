//! Threads on one map, and what each of them saw.
//!
//! *Histories.* Three threads use one key at a time, while the map grows and displaces around it. Each notes when an
//! operation began and ended, and what it said. For each key there must be an order of all its operations that agrees
//! with these times and in which each says what it says of a map that one thread uses (linearizability: Herlihy and
//! Wing, 1990); it is searched for as by Wing and Gong (1993).
//!
//! *Walks.* Who goes through the map meanwhile is told each key that is there throughout, once.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hasher};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use lookaside_cuckoo::{HashMap, HashMapRef};
use outside::Random;

const THREADS: usize = 3;
/// Operations of a thread on one key.
const OPERATIONS: usize = 4;

/// How many changes each test makes, about: fewer under the sanitizers.
fn changes() -> usize {
    let asked = std::env::var("LOOKASIDE_STRESS_CHANGES").ok();
    asked.and_then(|changes| changes.parse().ok()).unwrap_or(20_000)
}

#[derive(Debug, Clone, Copy)]
enum Operation {
    Get,
    GetMany,
    Insert(u64),
    TryInsert(u64),
    GetOrInsertWith(u64),
    Update(u64),
    UpdateOrInsert(u64),
    Remove,
    /// If the value is odd.
    RemoveIf,
}

/// What an operation says: the value that it found or made, and whether it did what it is for.
type Answer = (Option<u64>, bool);

#[derive(Debug, Clone, Copy)]
struct Event {
    operation: Operation,
    answer: Answer,
    began: u64,
    ended: u64,
}

fn updated(old: u64, by: u64) -> u64 {
    old.wrapping_mul(31).wrapping_add(by)
}

impl Operation {
    fn any(random: &mut Random) -> Operation {
        let value = random.below(1000) as u64;
        match random.below(10) {
            0 => Operation::Get,
            1 => Operation::GetMany,
            2 => Operation::Insert(value),
            3 | 4 => Operation::TryInsert(value),
            5 => Operation::GetOrInsertWith(value),
            6 => Operation::Update(value),
            7 => Operation::UpdateOrInsert(value),
            8 => Operation::Remove,
            _ => Operation::RemoveIf,
        }
    }

    /// What the map says.
    fn of_map<S: BuildHasher>(self, map: &HashMapRef<'_, u64, u64, S>, key: u64) -> Answer {
        match self {
            Operation::Get => (map.get(&key).copied(), true),
            Operation::GetMany => {
                let mut values = [None; 3];
                map.get_many(&[&key, &(key + 1), &key], &mut values);
                (values[0].copied(), true)
            }
            Operation::Insert(value) => (map.insert(key, value).copied(), true),
            Operation::TryInsert(value) => match map.try_insert(key, value) {
                Ok(value) => (Some(*value), true),
                Err(error) => (Some(*error.current), false),
            },
            Operation::GetOrInsertWith(value) => (Some(*map.get_or_insert_with(key, || value)), true),
            Operation::Update(by) => (map.update(key, |old| updated(*old, by)).copied(), true),
            Operation::UpdateOrInsert(by) => {
                (Some(*map.update_or_insert(key, |old| updated(*old, by), by)), true)
            }
            Operation::Remove => (map.remove(&key).copied(), true),
            Operation::RemoveIf => match map.remove_if(&key, |_, value| value % 2 == 1) {
                Ok(removed) => (removed.map(|(_, value)| *value), true),
                Err((_, value)) => (Some(*value), false),
            },
        }
    }

    /// What it says where the key has this value, and the value that it leaves.
    fn of_model(self, old: Option<u64>) -> (Answer, Option<u64>) {
        match (self, old) {
            (Operation::Get | Operation::GetMany, _) => ((old, true), old),
            (Operation::Insert(value), _) => ((old, true), Some(value)),
            (Operation::TryInsert(value), None) => ((Some(value), true), Some(value)),
            (Operation::TryInsert(_), _) => ((old, false), old),
            (Operation::GetOrInsertWith(value), None) => ((Some(value), true), Some(value)),
            (Operation::GetOrInsertWith(_), _) => ((old, true), old),
            (Operation::Update(by), _) => {
                let new = old.map(|old| updated(old, by));
                ((new, true), new)
            }
            (Operation::UpdateOrInsert(by), _) => {
                let new = Some(old.map_or(by, |old| updated(old, by)));
                ((new, true), new)
            }
            (Operation::Remove, _) => ((old, true), None),
            (Operation::RemoveIf, Some(value)) if value % 2 == 0 => ((old, false), old),
            (Operation::RemoveIf, _) => ((old, true), None),
        }
    }
}

/// Whether the events that are not among `done` can follow, where the key has this value.
fn can_follow(
    events: &[Event],
    done: u32,
    value: Option<u64>,
    failed: &mut HashSet<(u32, Option<u64>)>,
) -> bool {
    let open = || (0..events.len()).filter(|i| done & 1 << i == 0);
    let Some(first_end) = open().map(|i| events[i].ended).min() else { return true };
    if failed.contains(&(done, value)) {
        return false;
    }
    let found = open().filter(|&i| events[i].began <= first_end).any(|i| {
        let (answer, next) = events[i].operation.of_model(value);
        answer == events[i].answer && can_follow(events, done | 1 << i, next, failed)
    });
    if !found {
        failed.insert((done, value));
    }
    found
}

#[test]
fn the_judge_knows_wrong_from_right() {
    let event = |operation, answer, began, ended| Event { operation, answer, began, ended };
    let judge = |events: &[Event]| can_follow(events, 0, None, &mut HashSet::new());
    let put = event(Operation::TryInsert(5), (Some(5), true), 0, 3);
    assert!(judge(&[put, event(Operation::Get, (None, true), 1, 2)]));
    assert!(judge(&[put, event(Operation::Get, (Some(5), true), 1, 2)]));
    assert!(!judge(&[put, event(Operation::Get, (None, true), 4, 5)]), "it was there by then");
    assert!(!judge(&[put, event(Operation::TryInsert(6), (Some(6), true), 1, 2)]), "both succeeded");
    let increments = [1, 2].map(|start| event(Operation::Update(1), (Some(156), true), start, 9));
    assert!(!judge(&[put, increments[0], increments[1]]), "an update was lost");
}

/// Of so few bits that buckets overflow into the stash, or of all.
#[derive(Clone)]
struct Narrow(u32);

struct NarrowHasher(u32, u64);

impl BuildHasher for Narrow {
    type Hasher = NarrowHasher;

    fn build_hasher(&self) -> NarrowHasher {
        NarrowHasher(self.0, 0)
    }
}

impl Hasher for NarrowHasher {
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are words")
    }

    fn write_u64(&mut self, word: u64) {
        self.1 = (word.wrapping_add(1)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn finish(&self) -> u64 {
        self.1 >> (64 - self.0)
    }
}

fn histories_are_linearizable(bits: u32, rounds: usize) {
    let map = HashMap::with_hasher(Narrow(bits));
    let (clock, barrier) = (AtomicU64::new(0), Barrier::new(THREADS));
    let histories: Vec<Vec<[Event; OPERATIONS]>> = std::thread::scope(|scope| {
        let run = |thread: usize| {
            let (map, clock, barrier) = (&map, &clock, &barrier);
            move || {
                let mut random = Random(0x1234_5678_9abc + thread as u64);
                let tick = || clock.fetch_add(1, Ordering::SeqCst);
                let round = |round: usize| {
                    let mut pinned = map.pin();
                    barrier.wait();
                    std::array::from_fn(|_| {
                        let operation = Operation::any(&mut random);
                        let began = tick();
                        let answer = operation.of_map(&pinned, round as u64);
                        let event = Event { operation, answer, began, ended: tick() };
                        // Neighbours come and go: buckets fill, split, and lose their entries to others.
                        let neighbour = (1 << 40) + random.below(1 << 12) as u64;
                        match random.below(3) {
                            0 => drop(pinned.remove(&neighbour).copied()),
                            _ => drop(pinned.insert(neighbour, neighbour).copied()),
                        }
                        pinned.refresh();
                        event
                    })
                };
                (0..rounds).map(round).collect()
            }
        };
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(run(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for round in 0..rounds {
        let events: Vec<Event> = histories.iter().flat_map(|history| history[round]).collect();
        assert!(can_follow(&events, 0, None, &mut HashSet::new()), "no order explains {events:#?}");
    }
}

#[test]
fn each_key_has_one_history() {
    histories_are_linearizable(64, changes() / 10);
}

#[test]
fn keys_in_the_stash_have_one_history() {
    histories_are_linearizable(4, changes() / 40);
}

#[test]
fn a_value_is_made_once_however_many_ask() {
    let map = HashMap::new();
    let (made, barrier) = (AtomicUsize::new(0), Barrier::new(THREADS));
    let rounds = changes() / 20;
    // Joined by hand here and below: the thread sanitizer does not see the end of a scope.
    std::thread::scope(|scope| {
        let run = |_| {
            scope.spawn(|| {
                for key in 0..rounds {
                    barrier.wait();
                    let value = *map.pin().get_or_insert_with(key, || {
                        std::thread::yield_now();
                        made.fetch_add(1, Ordering::Relaxed)
                    });
                    assert_eq!(map.get_cloned(&key), Some(value));
                }
            })
        };
        let threads: Vec<_> = (0..THREADS).map(run).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    assert_eq!(made.load(Ordering::Relaxed), rounds);
}

#[test]
fn no_increment_is_lost() {
    const COUNTERS: u64 = 8;
    let map = HashMap::new();
    let increments = changes() as u64;
    std::thread::scope(|scope| {
        let run = |thread: u64| {
            let map = &map;
            scope.spawn(move || {
                let (mut pinned, mut random) = (map.pin(), Random(77 + thread));
                for number in 0..increments {
                    let counter = random.below(COUNTERS as usize) as u64;
                    pinned.update_or_insert(counter, |count| count + 1, 1);
                    if number % 16 == 0 {
                        pinned.refresh();
                    }
                }
            })
        };
        let threads: Vec<_> = (0..4).map(run).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    assert_eq!(map.pin().values().sum::<u64>(), 4 * increments);
}

/// Keys below `STAYS` are there throughout; others come and go, and move them about.
#[test]
fn a_walk_tells_each_key_that_stays_once() {
    const STAYS: u64 = 2000;
    let map = HashMap::new();
    (0..STAYS).for_each(|key| _ = map.pin().insert(key, key));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let run = |thread: u64| {
            let (map, is_over) = (&map, &is_over);
            scope.spawn(move || {
                let (mut pinned, mut random) = (map.pin(), Random(99 + thread));
                // So many that the map grows all the time, for as long as there are walks.
                let mut newest = STAYS + thread;
                while !is_over.load(Ordering::Relaxed) && newest < 3_000_000 {
                    newest += 2;
                    pinned.insert(newest, newest);
                    pinned.remove(&(STAYS + random.below((newest - STAYS) as usize) as u64));
                    pinned.refresh();
                }
            })
        };
        let threads: Vec<_> = (0..2).map(run).collect();
        let walks = (changes() / 200).max(5);
        for walk in 0..walks {
            let mut told = vec![0; STAYS as usize];
            let pinned = map.pin();
            if walk % 4 == 3 {
                pinned.retain(|key, _| {
                    told.get_mut(*key as usize).into_iter().for_each(|told| *told += 1);
                    *key < STAYS || key % 8 != 0
                });
            } else {
                let stay = pinned.keys().filter(|key| **key < STAYS);
                stay.for_each(|key| told[*key as usize] += 1);
            }
            let wrong: Vec<_> = told.iter().enumerate().filter(|(_, told)| **told != 1).collect();
            assert!(wrong.is_empty(), "walk {walk}: {wrong:?}");
        }
        is_over.store(true, Ordering::Relaxed);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    let pinned = map.pin();
    assert!((0..STAYS).all(|key| pinned.get(&key) == Some(&key)));
    assert_eq!(pinned.iter().count(), pinned.len());
}
