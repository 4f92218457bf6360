//! Entries that go because of what they are, or where: what a caller's code may do meanwhile, its panics, and other
//! threads.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crate::unused;
use lookaside_art::{Config, OwnedTree, Tree, encode};

fn small() -> Config {
    Config::new().with_node_bytes(64 << 20).with_leaf_bytes(64 << 20)
}

/// Keys below nodes of all kinds, prefixes of each other, and some that lie on the heap; in order.
fn keys() -> Vec<Vec<u8>> {
    let fans = [(1, 3u16), (2, 12), (3, 40), (4, 256)];
    let fan = |(first, bytes): (u8, u16)| (0..bytes).map(move |n| vec![first, n as u8, 9, 9, 5]);
    let outside = (0..20).map(|n| [&[6; 600][..], &[n]].concat());
    let mut keys: Vec<_> = fans.into_iter().flat_map(fan).chain(outside).chain([vec![], vec![1]]).collect();
    keys.sort();
    keys
}

/// The panic of a caller's code that sees its end coming: not told to anybody.
fn panics(work: impl FnOnce()) {
    assert!(catch_unwind(AssertUnwindSafe(work)).is_err());
}

/// Where `keep` panics, at each place in turn: what it has refused is gone and dropped, once, and all else is there.
#[test]
fn a_panic_keeps_what_was_not_refused_of_one_owner() {
    for stop in [0, 1, 2, 63, 64, 65, 130, 200, 332] {
        let value = Arc::new(());
        let mut tree = OwnedTree::<[u8], (usize, Arc<()>)>::with_config(&small()).unwrap();
        for (n, key) in keys().iter().enumerate() {
            assert!(tree.insert(key, (n, value.clone())).unwrap().is_none());
        }
        panics(|| {
            tree.retain(|_, (n, _)| {
                if *n == stop {
                    resume_unwind(Box::new(()));
                }
                *n += 1000;
                *n % 3 == 0
            });
        });
        let kept = |n: &usize| *n >= stop || (*n + 1000).is_multiple_of(3);
        let left: Vec<usize> = (0..keys().len()).filter(kept).collect();
        assert!(tree.iter().map(|(_, (n, _))| *n % 1000).eq(left.iter().copied()), "stopped at {stop}");
        assert!(tree.iter().all(|(_, (n, _))| (*n >= 1000) == (*n % 1000 < stop)));
        assert_eq!((tree.len(), Arc::strong_count(&value)), (left.len(), left.len() + 1));
        assert_eq!(tree.memory().leaves, left.len());
        tree.clear();
        unused::assert_unused(&tree.memory());
        assert_eq!(Arc::strong_count(&value), 1);
    }
}

#[test]
fn a_panic_keeps_what_was_not_refused_of_a_shared_tree() {
    for stop in [0, 1, 100, 332] {
        let value = Arc::new(());
        let tree = Tree::<[u8], (usize, Arc<()>)>::with_config(&small()).unwrap();
        for (n, key) in keys().iter().enumerate() {
            assert!(tree.pin().insert(key, (n, value.clone())).unwrap().is_none());
        }
        panics(|| {
            tree.pin().retain(|_, (n, _)| {
                if *n == stop {
                    resume_unwind(Box::new(()));
                }
                *n % 3 == 0
            });
        });
        tree.collect();
        let left: Vec<usize> = (0..keys().len()).filter(|n| *n >= stop || *n % 3 == 0).collect();
        assert!(tree.pin().iter().map(|(_, (n, _))| *n).eq(left.iter().copied()), "stopped at {stop}");
        assert_eq!((tree.len(), Arc::strong_count(&value)), (left.len(), left.len() + 1));
        tree.pin().clear();
        tree.collect();
        unused::assert_unused(&tree.memory());
        assert_eq!((tree.len(), Arc::strong_count(&value)), (0, 1));
    }
}

/// A destructor's panic, in the middle of what goes together: the rest goes as well.
#[test]
fn a_destructor_that_panics_keeps_nothing_there() {
    struct Spiteful(Arc<AtomicUsize>);

    impl Drop for Spiteful {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
            resume_unwind(Box::new(()));
        }
    }

    let dropped = Arc::new(AtomicUsize::new(0));
    let mut tree = OwnedTree::<[u8], Spiteful>::with_config(&small()).unwrap();
    keys().iter().for_each(|key| assert!(tree.insert(key, Spiteful(dropped.clone())).unwrap().is_none()));
    let mut asked = 0;
    tree.retain(|_, _| {
        asked += 1;
        false
    });
    assert_eq!((asked, dropped.load(Ordering::Relaxed), tree.len()), (keys().len(), keys().len(), 0));
    unused::assert_unused(&tree.memory());
}

/// What `keep` puts into the tree while it looks at an entry is not what it refused: it is asked again, and that stays
/// or goes by itself. It may take the entry out, and everything else, as well.
#[test]
fn what_changes_while_it_is_looked_at_is_looked_at_again() {
    let tree = Tree::<[u8], u32>::with_config(&small()).unwrap();
    let reader = tree.pin();
    for n in 0..100u8 {
        assert_eq!(reader.insert(&[n], u32::from(n)).unwrap(), None);
    }
    let mut asked = Vec::new();
    reader.retain(|key, value| {
        asked.push(*value);
        match *value {
            // Replaced, and then kept; replaced, and then refused; gone, and back; gone.
            10 => assert_eq!(tree.pin().insert(key, 1010).unwrap(), Some(&10)),
            11 => assert_eq!(tree.pin().insert(key, 2011).unwrap(), Some(&11)),
            12 => {
                assert_eq!(tree.pin().remove(key), Some(&12));
                assert_eq!(tree.pin().insert(key, 1012).unwrap(), None);
            }
            13 => assert_eq!(tree.pin().remove(key), Some(&13)),
            90 => tree.pin().clear(),
            _ => {}
        }
        (1000..2000).contains(value)
    });
    assert_eq!(asked[8..16], [8, 9, 10, 1010, 11, 2011, 12, 1012]);
    assert_eq!(asked[16..19], [13, 14, 15]);
    assert!(tree.is_empty() && reader.iter().next().is_none());
}

/// Writers go on while one thread takes out what is a multiple of three, and another moves everything: who finds its
/// entry gone has left a multiple of three there.
#[test]
fn no_update_is_lost() {
    const WRITERS: u64 = 2;
    const KEYS: u64 = 64;
    let rounds =
        std::env::var("LOOKASIDE_STRESS_CHANGES").map_or(200, |changes| changes.parse::<u64>().unwrap() / 20);
    let tree = Tree::<[u8; 8], u64>::with_config(&small()).unwrap();
    let key = |writer: u64, n: u64| encode::u64((n * WRITERS + writer) << 5);
    let writing = AtomicBool::new(true);
    let removed = AtomicUsize::new(0);
    let last: Vec<u64> = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (tree, removed) = (&tree, &removed);
                scope.spawn(move || {
                    let mut reader = tree.pin();
                    for round in 0.. {
                        // Others may have got no time yet.
                        if round >= rounds && removed.load(Ordering::Relaxed) > 0 {
                            return round - 1;
                        }
                        for n in 0..KEYS {
                            let old = reader.insert(&key(writer, n), round).unwrap();
                            match (old, round) {
                                (None, 0) => {}
                                (None, _) => {
                                    assert_eq!((round - 1) % 3, 0, "a value that nobody had refused is gone");
                                    removed.fetch_add(1, Ordering::Relaxed);
                                }
                                (Some(old), _) => assert_eq!(*old + 1, round),
                            }
                        }
                        reader.refresh();
                    }
                    unreachable!("rounds have no end")
                })
            })
            .collect();
        let retainer = scope.spawn(|| {
            while writing.load(Ordering::Relaxed) {
                let mut before = None;
                tree.pin().retain(|key, value| {
                    assert!(before.is_none_or(|before| before <= *key), "in order");
                    before = Some(*key);
                    value % 3 != 0
                });
            }
        });
        let mover = scope.spawn(|| {
            let all: Vec<_> =
                (0..WRITERS).flat_map(|writer| (0..KEYS).map(move |n| key(writer, n))).collect();
            while writing.load(Ordering::Relaxed) {
                let mut reorganization = tree.reorganization(all.clone());
                while reorganization.step(16).is_continue() {}
                tree.collect();
            }
        });
        let ended: Vec<_> = writers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        writing.store(false, Ordering::Relaxed);
        retainer.join().unwrap();
        mover.join().unwrap();
        ended.into_iter().map(|ended| ended.unwrap()).collect()
    });
    tree.pin().retain(|_, value| value % 3 != 0);
    assert_eq!(tree.len(), last.iter().filter(|round| *round % 3 != 0).count() * KEYS as usize);
    tree.collect();
    assert_eq!(tree.memory().leaves, tree.len());
}

/// Several take entries from both ends while another puts them in: each entry is somebody's, once.
#[test]
fn each_entry_is_popped_by_one() {
    const ENTRIES: u64 = 6000;
    let tree = Tree::<[u8; 8], u64>::with_config(&small()).unwrap();
    let filling = AtomicBool::new(true);
    let mut popped: Vec<u64> = thread::scope(|scope| {
        let poppers: Vec<_> = [true, true, false]
            .into_iter()
            .map(|first| {
                let (tree, filling) = (&tree, &filling);
                scope.spawn(move || {
                    let mut mine = Vec::new();
                    loop {
                        // Before the look: who is told that the tree is empty after the last entry came, has seen it
                        // so.
                        let last = !filling.load(Ordering::Acquire);
                        let reader = tree.pin();
                        match if first { reader.pop_first() } else { reader.pop_last() } {
                            Some((key, value)) => {
                                assert_eq!(encode::to_u64(*key), *value);
                                mine.push(*value);
                            }
                            None if last => return mine,
                            None => thread::yield_now(),
                        }
                    }
                })
            })
            .collect();
        for n in 0..ENTRIES {
            // Not in order.
            let n = n * 7 % ENTRIES;
            assert!(tree.pin().try_insert(&encode::u64(n), n).is_ok());
        }
        filling.store(false, Ordering::Release);
        poppers.into_iter().flat_map(|popper| popper.join().unwrap()).collect()
    });
    popped.sort_unstable();
    assert!(popped.iter().copied().eq(0..ENTRIES), "{} popped", popped.len());
    tree.collect();
    assert_eq!((tree.len(), tree.memory().leaves), (0, 0));
}

/// When nobody puts anything in, each thread's entries come in order, and of two threads the later call never gets what
/// is before that of a call which had ended.
#[test]
fn entries_are_popped_in_order() {
    let tree = Tree::<[u8; 4], u32>::with_config(&small()).unwrap();
    (0..4000).for_each(|n| assert!(tree.pin().try_insert(&encode::u32(n * 3), n * 3).is_ok()));
    let ended = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let before = ended.load(Ordering::SeqCst);
                    let reader = tree.pin();
                    let Some((_, value)) = reader.pop_first() else { return };
                    let value = *value as usize + 1;
                    assert!(value > before, "{value} came after {before}");
                    ended.fetch_max(value, Ordering::SeqCst);
                }
            });
        }
    });
    assert_eq!((ended.load(Ordering::SeqCst), tree.len()), (3999 * 3 + 1, 0));
}
