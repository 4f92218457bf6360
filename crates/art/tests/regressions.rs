//! What went wrong once, and must not again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use lookaside_art::{OwnedTree, Reason, Tree, encode};
use outside::{Resource, limited};

/// Spread over all numbers.
fn key(n: u64) -> [u8; 8] {
    encode::u64(n.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// A tree claimed 40 GiB of addresses, and could not be made where a process may not have as many (`ulimit -v`). It
/// begins with few now, and claims more as it grows; and it leaves some to others.
#[test]
fn trees_grow_where_addresses_are_limited() {
    limited("regressions::trees_grow_where_addresses_are_limited", Resource::As, 128 << 20, || {
        let shared = Tree::<[u8; 8], u64>::new().unwrap();
        let mut owned = OwnedTree::<[u8], u64>::new().unwrap();
        let reader = shared.pin();
        for n in 0..100_000 {
            assert_eq!(reader.insert(&key(n), n).unwrap(), None);
            assert_eq!(owned.insert(&key(n), n).unwrap(), None);
        }
        assert!((0..100_000).all(|n| reader.get(&key(n)) == Some(&n) && owned.get(&key(n)) == Some(&n)));
        assert!(Vec::<u8>::new().try_reserve(64 << 20).is_ok(), "nothing is left");
    });
}

/// The same: it comes to what the limit leaves, says then that it is full, and goes on when something has been removed.
#[test]
fn a_tree_comes_to_what_a_limit_on_addresses_leaves() {
    const LIMIT: usize = 24 << 20;
    limited("regressions::a_tree_comes_to_what_a_limit_on_addresses_leaves", Resource::As, LIMIT, || {
        let mut tree = OwnedTree::<[u8; 8], u64>::new().unwrap();
        let full = (0..).find_map(|n| tree.insert(&key(n), n).err()).unwrap();
        assert_eq!(full.reason, Reason::Full);
        assert!(tree.memory().begun_bytes > LIMIT / 2, "{:?}", tree.memory());
        assert!((0..full.value).all(|n| tree.get(&key(n)) == Some(&n)));
        assert_eq!(tree.remove(&key(0)), Some(0));
        assert_eq!(tree.insert(&key(0), 1).unwrap(), None);
    });
}

/// Counts those that are there.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(there: &Arc<AtomicUsize>) -> Counted {
        there.fetch_add(1, Ordering::Relaxed);
        Counted(Arc::clone(there))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A tree with so many values, and how many of these are there.
fn counted(values: u64) -> (Tree<[u8; 8], Counted>, Arc<AtomicUsize>) {
    let there = Arc::default();
    let tree = Tree::new().unwrap();
    (0..values).for_each(|n| assert!(tree.pin().try_insert(&key(n), Counted::new(&there)).is_ok()));
    (tree, there)
}

/// How many values are there that are not in the tree.
fn waiting(tree: &Tree<[u8; 8], Counted>, there: &AtomicUsize) -> usize {
    there.load(Ordering::Relaxed) - tree.len()
}

/// 40 values of 20 MB were removed, and then came 10,000 readers and refreshes, and the tree was dropped: 802 MB
/// stayed, and no destructor had run. What left the tree waited until its thread had deferred 64 things, and nobody
/// could do anything about it.
#[test]
fn values_that_were_removed_are_dropped() {
    let (tree, there) = counted(40);
    (0..40).for_each(|n| assert!(tree.pin().remove(&key(n)).is_some()));
    for _ in 0..100 {
        let mut reader = tree.pin();
        (0..100).for_each(|_| reader.refresh());
    }
    assert_eq!(there.load(Ordering::Relaxed), 0);
    assert_eq!(tree.memory().leaves, 0);
}

/// The same with a tree that is dropped: everything goes with it, before that returns, whichever thread removed it, and
/// whatever other trees hold.
#[test]
fn a_tree_that_is_dropped_leaves_nothing_behind() {
    let (other, _) = counted(1);
    let _held = other.pin();
    let (tree, there) = counted(1000);
    thread::scope(|scope| {
        for part in 0..4 {
            let (tree, there) = (&tree, &there);
            scope.spawn(move || {
                let reader = tree.pin();
                (part * 100..part * 100 + 30).for_each(|n| assert!(reader.remove(&key(n)).is_some()));
                let old = reader.insert(&key(999), Counted::new(there)).unwrap();
                assert!(old.is_some());
            });
        }
    });
    // Moved, it has the same storage.
    let tree = Box::new(tree);
    assert!(there.load(Ordering::Relaxed) >= tree.len());
    drop(tree);
    assert_eq!(there.load(Ordering::Relaxed), 0);
}

/// The same behind a map: what the tree frees last are handles of entries, which another collector frees.
#[test]
fn a_map_over_a_tree_leaves_nothing_behind() {
    let there = Arc::default();
    let table = lookaside::Config::with_size(1 << 12);
    let map = lookaside::Map::with_index(Tree::<[u8; 8], _>::new().unwrap(), &table).unwrap();
    (0..1000u64).for_each(|n| drop(map.insert(n, Counted::new(&there))));
    thread::scope(|scope| {
        for part in 0..4u64 {
            let (map, there) = (&map, &there);
            scope.spawn(move || {
                (part * 100..part * 100 + 30).for_each(|n| assert!(map.remove(&n).is_some()));
                assert!(map.insert(999, Counted::new(there)).is_some());
                assert_eq!((900..1000).filter(|n| map.pin().get(n).is_some()).count(), 100);
            });
        }
    });
    drop(map);
    assert_eq!(there.load(Ordering::Relaxed), 0);
}

/// At most 64 values of a thread wait behind a refresh or a reader's end, and none for longer than two refreshes.
#[test]
fn few_values_wait_and_none_for_long() {
    let (tree, there) = counted(2000);
    let mut reader = tree.pin();
    for n in 0..1000 {
        assert!(reader.remove(&key(n)).is_some());
        if n % 7 == 0 {
            reader.refresh();
            assert!(waiting(&tree, &there) <= 64, "{n}");
        }
    }
    reader.refresh();
    reader.refresh();
    assert_eq!(waiting(&tree, &there), 0);
    drop(reader);
    for n in 1000..2000 {
        assert!(tree.pin().remove(&key(n)).is_some());
        assert!(waiting(&tree, &there) <= 64, "{n}");
    }
    // However few there were: without a refresh, other readers will do.
    (0..1024).for_each(|_| drop(tree.pin()));
    assert_eq!(there.load(Ordering::Relaxed), 0);
}

/// A reader that writes as much as it likes leaves no more behind when it is refreshed, or dropped.
#[test]
fn a_reader_that_writes_a_lot_frees_as_much() {
    let (tree, there) = counted(10);
    let mut reader = tree.pin();
    for round in 0..100 {
        (0..1000).for_each(|n| assert!(reader.insert(&key(n % 10), Counted::new(&there)).unwrap().is_some()));
        if round % 2 == 0 {
            reader.refresh();
        } else {
            drop(reader);
            reader = tree.pin();
        }
        assert!(waiting(&tree, &there) <= 64, "{round}");
    }
}

/// What a thread has removed when it ends is not lost with it: others drop it.
#[test]
fn a_thread_that_ends_hands_over_what_it_removed() {
    let (tree, there) = counted(100);
    let (removed, has_removed) = channel();
    let (end, ends) = channel::<()>();
    thread::scope(|scope| {
        let tree = &tree;
        scope.spawn(move || {
            let reader = tree.pin();
            (0..40).for_each(|n| assert!(reader.remove(&key(n)).is_some()));
            removed.send(()).unwrap();
            ends.recv().unwrap_err();
        });
        has_removed.recv().unwrap();
        tree.collect();
        assert_eq!(waiting(tree, &there), 40, "it is pinned");
        drop(end);
    });
    // One more, and two refreshes: this thread takes what the other has left, too.
    let mut reader = tree.pin();
    assert!(reader.remove(&key(40)).is_some());
    (0..2).for_each(|_| reader.refresh());
    assert_eq!(waiting(&tree, &there), 0);
}

/// What another thread's reader has been shown stays as long as it is neither refreshed nor dropped; then it goes.
#[test]
fn what_a_reader_was_shown_stays_and_then_goes() {
    let (tree, there) = counted(10);
    let (shown, was_shown) = channel();
    let (go_on, goes_on) = channel();
    thread::scope(|scope| {
        let reading = &tree;
        scope.spawn(move || {
            let mut reader = reading.pin();
            for _ in 0..2 {
                let seen = reader.iter().count();
                shown.send(seen).unwrap();
                goes_on.recv().unwrap();
                reader.refresh();
            }
            shown.send(0).unwrap();
            goes_on.recv().unwrap();
        });
        assert_eq!(was_shown.recv(), Ok(10));
        (0..5).for_each(|n| assert!(tree.pin().remove(&key(n)).is_some()));
        tree.collect();
        assert_eq!(waiting(&tree, &there), 5);
        go_on.send(()).unwrap();
        assert_eq!(was_shown.recv(), Ok(5));
        tree.collect();
        assert_eq!(waiting(&tree, &there), 0);
        (5..10).for_each(|n| assert!(tree.pin().remove(&key(n)).is_some()));
        tree.collect();
        assert_eq!(waiting(&tree, &there), 5);
        go_on.send(()).unwrap();
        assert_eq!(was_shown.recv(), Ok(0));
        tree.collect();
        assert_eq!(waiting(&tree, &there), 0);
        go_on.send(()).unwrap();
    });
}

/// Memory of nodes and leaves comes back, too, however little was written at a time: what is inserted and removed again
/// and again needs no more of it.
#[test]
fn memory_that_was_freed_is_used_again() {
    let tree = Tree::<[u8; 8], Arc<()>>::new().unwrap();
    let value = Arc::new(());
    let mut begun = Vec::new();
    for _ in 0..50 {
        let mut reader = tree.pin();
        for n in 0..2000 {
            assert!(reader.try_insert(&key(n), Arc::clone(&value)).is_ok());
            if n % 20 == 0 {
                reader.refresh();
            }
        }
        drop(reader);
        (0..2000).for_each(|n| assert!(tree.pin().remove(&key(n)).is_some()));
        begun.push(tree.memory().begun_bytes);
    }
    assert_eq!(begun[49], begun[4], "{begun:?}");
    tree.collect();
    let memory = tree.memory();
    assert_eq!((memory.leaves, memory.node_bytes(), Arc::strong_count(&value)), (0, 0, 1), "{memory:?}");
}
