//! Many threads on one tree, with the history of every key checked: what a lookup or a scan shows must have been in the
//! tree at some moment while it went on, and what was there all the while must be shown.
//!
//! Each key is written by one thread, which numbers its changes: it announces a change before it makes it and records
//! it when it is made. A reader notes what was made before its lookup and what was announced when it returned; the
//! version it saw must lie between. Odd versions are those in which the key is in the tree; its value is its version.
//! Other threads reorganise the tree, and take out whole prefixes of keys of their own and put them in again.

use std::ops::Bound;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::unused;
use lookaside_art::{Config, Tree};
use outside::Random;

const KEYS: usize = 1 << 12;
const WRITERS: usize = 2;

fn changes() -> usize {
    std::env::var("LOOKASIDE_STRESS_CHANGES")
        .map_or(600_000, |changes| changes.parse().expect("a number of changes"))
}

/// Keys of different lengths, with common parts and prefixes of each other, in nodes of all kinds.
fn key(n: usize) -> Vec<u8> {
    let (a, b) = ((n / 64 * 37) as u8, (n % 64 * 5) as u8);
    match n % 4 {
        0 => vec![a, b],
        1 => vec![a, 9, 9, 9, b, 1],
        2 => vec![a, 9, 9, 9, b],
        _ => vec![a, b, b, (n % 7) as u8, 0],
    }
}

#[derive(Default)]
struct History {
    announced: AtomicU64,
    made: AtomicU64,
}

struct World {
    tree: Tree<[u8], u64>,
    /// In the order of the keys.
    keys: Vec<Vec<u8>>,
    histories: Vec<History>,
    writing: AtomicBool,
    begin: Barrier,
}

impl World {
    fn new(threads: usize) -> World {
        let config = Config::new().with_node_bytes(1 << 28).with_leaf_bytes(1 << 28);
        let mut keys: Vec<_> = (0..KEYS).map(key).collect();
        keys.sort();
        keys.dedup();
        let histories = keys.iter().map(|_| History::default()).collect();
        World {
            tree: Tree::with_config(&config).unwrap(),
            keys,
            histories,
            writing: AtomicBool::new(true),
            begin: Barrier::new(threads),
        }
    }

    fn write(&self, writer: usize, changes: usize) {
        self.begin.wait();
        let mut random = Random(0x1234_5678 + writer as u64);
        let mut reader = self.tree.pin();
        // Phases of growing and of shrinking, so that nodes change their kinds.
        for change in 0..changes {
            let n = random.below(self.keys.len() / WRITERS) * WRITERS + writer;
            let (history, key) = (&self.histories[n], &self.keys[n]);
            let version = history.made.load(Ordering::Relaxed);
            let is_there = version % 2 == 1;
            let removes = is_there && random.below(if change / 8192 % 2 == 0 { 5 } else { 1 }) == 0;
            if !is_there && change / 8192 % 2 == 1 && random.below(4) > 0 {
                continue;
            }
            let next = if removes || !is_there { version + 1 } else { version + 2 };
            history.announced.store(next, Ordering::SeqCst);
            if removes {
                assert_eq!(reader.remove(key), Some(&version));
            } else {
                let old = reader.insert(key, next).unwrap();
                assert_eq!(old.copied(), is_there.then_some(version));
            }
            history.made.store(next, Ordering::SeqCst);
            if change % 64 == 0 {
                reader.refresh();
            }
        }
    }

    fn judge(&self, n: usize, found: Option<u64>, made: u64, announced: u64) {
        match found {
            Some(version) => assert!(
                version % 2 == 1 && (made..=announced).contains(&version),
                "{:?}: {version} is not in {made}..={announced}",
                self.keys[n]
            ),
            // Absent before the first change of the interval, after its last, or in between.
            None => {
                assert!(made.is_multiple_of(2) || announced > made, "{:?} missed at {made}", self.keys[n]);
            }
        }
    }

    fn made(&self, n: usize) -> u64 {
        self.histories[n].made.load(Ordering::SeqCst)
    }

    fn announced(&self, n: usize) -> u64 {
        self.histories[n].announced.load(Ordering::SeqCst)
    }

    fn look_up(&self, seed: u64) -> usize {
        self.begin.wait();
        let mut random = Random(seed);
        let mut lookups = 0;
        let session = self.tree.session();
        while lookups == 0 || self.writing.load(Ordering::Relaxed) {
            let reader = session.pin();
            let wanted: Vec<usize> =
                (0..1 + random.below(50)).map(|_| random.below(self.keys.len())).collect();
            let made: Vec<u64> = wanted.iter().map(|&n| self.made(n)).collect();
            let mut found = vec![None; wanted.len()];
            if random.below(2) == 0 {
                let keys: Vec<&[u8]> = wanted.iter().map(|&n| &self.keys[n][..]).collect();
                reader.get_many(&keys, &mut found);
            } else {
                wanted.iter().zip(&mut found).for_each(|(&n, found)| *found = reader.get(&self.keys[n]));
            }
            for ((&n, made), found) in wanted.iter().zip(made).zip(found) {
                self.judge(n, found.copied(), made, self.announced(n));
            }
            lookups += wanted.len();
        }
        lookups
    }

    fn scan(&self, seed: u64) -> usize {
        self.begin.wait();
        let mut random = Random(seed);
        let mut shown = 0;
        while shown == 0 || self.writing.load(Ordering::Relaxed) {
            let reader = self.tree.pin();
            let from = random.below(self.keys.len());
            let to = (from + random.below(400)).min(self.keys.len() - 1);
            let made: Vec<u64> = (from..=to).map(|n| self.made(n)).collect();
            let (first, last) = (&self.keys[from][..], &self.keys[to][..]);
            let range = reader.range_of_bytes(Bound::Included(first), Bound::Included(last));
            let mut entries: Vec<(&[u8], u64)> = if random.below(2) == 0 {
                range.map(|(key, &version)| (key, version)).collect()
            } else {
                let mut entries: Vec<_> = range.rev().map(|(key, &version)| (key, version)).collect();
                entries.reverse();
                entries
            };
            assert!(entries.is_sorted_by(|(a, _), (b, _)| a < b), "out of order");
            let all = entries.len();
            for (n, made) in (from..=to).zip(made) {
                let found =
                    entries.iter().position(|(key, _)| *key == self.keys[n]).map(|at| entries.remove(at).1);
                self.judge(n, found, made, self.announced(n));
            }
            assert!(entries.is_empty(), "shown, but never put in: {entries:?}");
            shown += all;
        }
        shown
    }

    fn reorganize(&self) -> usize {
        self.begin.wait();
        let mut random = Random(99);
        let mut moved = 0;
        while moved == 0 || self.writing.load(Ordering::Relaxed) {
            let hot = (0..300).map(|_| self.keys[random.below(self.keys.len())].clone()).collect();
            let mut reorganization = self.tree.reorganization(hot);
            while reorganization.step(16).is_continue() {}
            let done = reorganization.done();
            assert!(!done.full && done.keys == 300, "{done:?}");
            moved += done.nodes + done.leaves;
        }
        moved
    }

    /// Keys of its own, among the others' nodes: their second byte is one that no other key has there.
    fn take_prefixes(&self) -> usize {
        self.begin.wait();
        let mut removed = 0;
        while removed == 0 || self.writing.load(Ordering::Relaxed) {
            for group in 0..64 {
                let prefix = [(group * 37) as u8, 254];
                let reader = self.tree.pin();
                let keys: Vec<Vec<u8>> = (0..20).map(|n| [&prefix[..], &[n, n, 7]].concat()).collect();
                keys.iter().for_each(|key| assert_eq!(reader.insert(key, 0).unwrap(), None));
                assert!(reader.prefix(&prefix).map(|(key, _)| key).eq(keys.iter().map(|key| &key[..])));
                assert_eq!(reader.remove_prefix(&prefix), keys.len());
                assert!(keys.iter().all(|key| reader.get(key).is_none()));
                assert_eq!(reader.prefix(&prefix).count(), 0);
                removed += keys.len();
            }
        }
        removed
    }
}

#[test]
fn histories_hold() {
    let world = World::new(WRITERS + 3);
    let changes = changes();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|w| {
                scope.spawn({
                    let world = &world;
                    move || world.write(w, changes)
                })
            })
            .collect();
        let looking = scope.spawn(|| world.look_up(7));
        let moving = scope.spawn(|| world.reorganize());
        let taking = scope.spawn(|| world.take_prefixes());
        for writer in writers {
            let outcome = writer.join();
            world.writing.store(false, Ordering::Relaxed);
            outcome.expect("a writer failed");
        }
        let counts = [looking.join().unwrap(), moving.join().unwrap(), taking.join().unwrap()];
        assert!(counts.iter().all(|&count| count > 0), "a thread had no turn: {counts:?}");
    });
    agrees_at_the_end(&world);
}

#[test]
fn scans_show_what_is_there() {
    let world = World::new(WRITERS + 2);
    let changes = changes();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|w| {
                scope.spawn({
                    let world = &world;
                    move || world.write(w, changes)
                })
            })
            .collect();
        let scanning = scope.spawn(|| world.scan(3));
        let moving = scope.spawn(|| world.reorganize());
        for writer in writers {
            let outcome = writer.join();
            world.writing.store(false, Ordering::Relaxed);
            outcome.expect("a writer failed");
        }
        let counts = [scanning.join().unwrap(), moving.join().unwrap()];
        assert!(counts.iter().all(|&count| count > 0), "a thread had no turn: {counts:?}");
    });
    agrees_at_the_end(&world);
}

/// When all is quiet, the tree is what the histories say.
fn agrees_at_the_end(world: &World) {
    let reader = world.tree.pin();
    let expected: Vec<(&[u8], u64)> = (0..world.keys.len())
        .filter(|&n| world.made(n) % 2 == 1)
        .map(|n| (&world.keys[n][..], world.made(n)))
        .collect();
    let found: Vec<(&[u8], u64)> = reader.iter().map(|(key, &version)| (key, version)).collect();
    assert_eq!(found, expected);
    assert_eq!(world.tree.len(), expected.len());
    // All the memory of what has left comes back, once nobody is pinned.
    let entries = expected.len();
    drop(reader);
    world.tree.collect();
    assert_eq!(world.tree.memory().leaves, entries);
    // When nobody disturbs, a reorganisation does what it is there for, whatever it comes after: what is hot lies
    // together, and what was moved before makes room for it.
    let mut begun = Vec::new();
    for round in 0..20 {
        let reader = world.tree.pin();
        let hot: Vec<Vec<u8>> = reader.iter().map(|(key, _)| key.to_vec()).collect();
        let mut reorganization = world.tree.reorganization(hot.clone());
        while reorganization.step(usize::MAX).is_continue() {}
        let (done, after) = (reorganization.done(), world.tree.assess(hot.iter().map(Vec::as_slice)));
        assert_eq!((done.keys, done.full), (entries, false));
        assert!(2 * after.pages < 3 * after.packed, "round {round}: {after:?}");
        let found = reader.iter().map(|(key, &version)| (key, version));
        let made = (0..world.keys.len()).map(|n| (&world.keys[n][..], world.made(n)));
        assert!(found.eq(made.filter(|(_, version)| version % 2 == 1)), "round {round}");
        drop((reader, reorganization));
        world.tree.collect();
        assert_eq!(world.tree.memory().leaves, entries);
        begun.push(world.tree.memory().begun_bytes);
    }
    assert!(begun[5..].iter().all(|&bytes| bytes == begun[5]), "it grows with every round: {begun:?}");
}

/// Writers put entries in below a prefix and take them out, while others remove the prefix, and move what is there.
/// Nothing that was there when a removal began is there when it has ended, nothing is counted twice or not at all, and
/// what is beside the prefix stays.
#[test]
fn a_prefix_is_removed_under_the_hands_of_its_writers() {
    const KEYS: usize = 512;
    let config = Config::new().with_node_bytes(1 << 28).with_leaf_bytes(1 << 28);
    let tree = Tree::<[u8], u64>::with_config(&config).unwrap();
    // All in one subtree below two bytes that are skipped: of Node256, Node48, and small ones, with keys that end
    // within.
    let key = |n: usize| match n % 4 {
        0 => vec![7, 7, 7, (n / 2) as u8],
        1 => vec![7, 7, 7, (n / 16) as u8, 3, (n * 5) as u8],
        _ => vec![7, 7, 7, (n / 64) as u8, (n * 3) as u8, (n / 2) as u8, 1],
    };
    let mut keys: Vec<Vec<u8>> = (0..KEYS).map(key).collect();
    keys.sort();
    keys.dedup();
    let beside: Vec<Vec<u8>> = (0..300u16).map(|n| [&[7, 8][..], &n.to_be_bytes()].concat()).collect();
    beside.iter().for_each(|key| assert!(tree.pin().try_insert(key, 0).is_ok()));
    let histories: Vec<History> = keys.iter().map(|_| History::default()).collect();
    let (begin, writing) = (Barrier::new(WRITERS + 2), AtomicBool::new(true));
    let write = |writer: usize| {
        begin.wait();
        let mut random = Random(0x9876 + writer as u64);
        let mut reader = tree.pin();
        let (mut came, mut went) = (0, 0);
        for change in 0..changes() / 2 {
            let n = random.below(keys.len() / WRITERS) * WRITERS + writer;
            let version = histories[n].made.load(Ordering::Relaxed);
            let seen = if random.below(4) == 0 {
                let seen = reader.remove(&keys[n]).copied();
                went += usize::from(seen.is_some());
                seen
            } else {
                histories[n].announced.store(version + 1, Ordering::SeqCst);
                let seen = reader.insert(&keys[n], version + 1).unwrap().copied();
                histories[n].made.store(version + 1, Ordering::SeqCst);
                came += usize::from(seen.is_none());
                seen
            };
            // Only this one writes this key: what was there is its own last word, or nothing.
            assert!(seen.is_none_or(|seen| seen == version), "{seen:?} is not {version}");
            if change % 64 == 0 {
                reader.refresh();
            }
        }
        (came, went)
    };
    let take = || {
        begin.wait();
        let (mut taken, mut round) = (0, 0usize);
        while taken == 0 || writing.load(Ordering::Relaxed) {
            let reader = tree.pin();
            let prefix: &[u8] = if round % 2 == 0 { &[7, 7] } else { &[7, 7, 7, (round / 2 % 256) as u8] };
            let made: Vec<u64> =
                histories.iter().map(|history| history.made.load(Ordering::SeqCst)).collect();
            taken += reader.remove_prefix(prefix);
            for ((key, history), made) in keys.iter().zip(&histories).zip(made) {
                let Some(&version) = reader.get(key) else { continue };
                let announced = history.announced.load(Ordering::SeqCst);
                assert!(version <= announced, "{key:?}: {version} was never announced");
                let gone = key.starts_with(prefix);
                assert!(
                    !gone || version > made,
                    "{key:?}: {version} was there before the prefix was removed"
                );
            }
            assert!(reader.prefix(&[7, 8]).map(|(key, _)| key).eq(beside.iter().map(|key| &key[..])));
            round += 1;
        }
        taken
    };
    let mover = || {
        begin.wait();
        let mut moved = 0;
        while moved == 0 || writing.load(Ordering::Relaxed) {
            let mut reorganization = tree.reorganization(keys.clone());
            while reorganization.step(16).is_continue() {}
            assert!(!reorganization.done().full);
            moved += reorganization.done().nodes;
        }
    };
    let (came, went, taken) = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let write = &write;
                scope.spawn(move || write(writer))
            })
            .collect();
        let (taking, moving) = (scope.spawn(take), scope.spawn(mover));
        let written: Vec<_> = writers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        writing.store(false, Ordering::Relaxed);
        let taken = taking.join().unwrap();
        moving.join().unwrap();
        let written = written.into_iter().map(|outcome| outcome.expect("a writer failed"));
        let (came, went) = written.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        (came, went, taken)
    });
    let left = came - went - taken;
    assert!(taken > 0 && went > 0, "{came} came, {went} went, {taken} were taken");
    let reader = tree.pin();
    assert_eq!((reader.prefix(&[7, 7]).count(), tree.len()), (left, left + beside.len()));
    assert_eq!(reader.remove_prefix(&[7]), left + beside.len());
    drop(reader);
    tree.collect();
    unused::assert_unused(&tree.memory());
}

#[test]
fn threads_fighting_for_one_node_lose_nothing() {
    let config = Config::new().with_node_bytes(1 << 26).with_leaf_bytes(1 << 26);
    for round in 0..changes() / 100 {
        let tree = Tree::<[u8; 2], usize>::with_config(&config).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4usize {
                let tree = &tree;
                scope.spawn(move || {
                    let reader = tree.pin();
                    for n in 0..16 {
                        let byte = (n * 4 + thread + round) as u8;
                        assert_eq!(reader.insert(&[1, byte], thread).unwrap(), None);
                        assert_eq!(reader.get(&[1, byte]), Some(&thread));
                    }
                    for n in 0..15 {
                        let byte = (n * 4 + thread + round) as u8;
                        assert_eq!(reader.remove(&[1, byte]), Some(&thread));
                        assert_eq!(reader.get(&[1, byte]), None);
                    }
                });
            }
        });
        assert_eq!((tree.len(), tree.pin().iter().count()), (4, 4));
        if round >= 200 {
            break;
        }
    }
}
