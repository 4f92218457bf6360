//! What operations ask the heap for: lookups nothing, scans one piece, however long they are.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::Bound;

use lookaside_art::{Config, Tree, encode};

thread_local! { static ASKED: Cell<usize> = const { Cell::new(0) } }

struct Counting;

// SAFETY: the system's, and a count beside it that allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED.with(|asked| asked.set(asked.get() + 1));
        // SAFETY: by the caller's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: by the caller's contract.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn asked(work: impl FnOnce()) -> usize {
    let before = ASKED.get();
    work();
    ASKED.get() - before
}

#[test]
fn scans_ask_for_memory_once() {
    let config = Config::new().with_node_bytes(1 << 26).with_leaf_bytes(1 << 26);
    let tree = Tree::<[u8; 8], u64>::with_config(&config).unwrap();
    let reader = tree.pin();
    let key = |n: u64| encode::u64(n.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    (0..100_000).for_each(|n| assert!(reader.try_insert(&key(n), n).is_ok()));
    assert_eq!(asked(|| drop(std::hint::black_box(Box::new(7)))), 1, "nothing is counted");
    assert_eq!(asked(|| assert_eq!(reader.get(&key(5)), Some(&5))), 0);
    for entries in [1, 10, 100, 50_000] {
        let from = key(17);
        let range = || reader.range_of_bytes(Bound::Included(&from[..]), Bound::Unbounded);
        let back = || reader.range_of_bytes(Bound::Unbounded, Bound::Included(&from[..])).rev();
        assert_eq!(asked(|| assert!(range().take(entries).count() > 0)), 1, "{entries} up");
        assert_eq!(asked(|| assert!(back().take(entries).count() > 0)), 1, "{entries} down");
    }
}

/// Only paths of more nodes than a cursor has room for need another piece.
#[test]
fn scans_of_long_paths_ask_twice() {
    let config = Config::new().with_node_bytes(1 << 26).with_leaf_bytes(1 << 26);
    let tree = Tree::<[u8], usize>::with_config(&config).unwrap();
    let reader = tree.pin();
    let path = [1u8; 200];
    for length in 0..path.len() {
        assert!(reader.try_insert(&path[..length], length).is_ok());
    }
    let range = |from: usize| reader.range_of_bytes(Bound::Included(&path[..from]), Bound::Unbounded);
    assert_eq!(asked(|| assert!(range(3).map(|(_, length)| *length).take(5).eq(3..8))), 1);
    let twice = asked(|| assert!(range(150).map(|(_, length)| *length).eq(150..200)));
    // The second is made larger as it fills.
    assert!((2..=12).contains(&twice), "{twice}");
}
