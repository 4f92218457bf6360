//! Waiting until what has left a tree has been given back.

#![allow(dead_code, reason = "not every test needs both")]

use std::time::{Duration, Instant};

use lookaside_art::Memory;

/// Polls `leaves` until it gives this many, while epochs go by; so that nothing is left for a sanitizer to call a leak, and
/// what is removed is seen to come back.
pub(crate) fn await_leaves(expected: usize, leaves: impl Fn() -> usize) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while leaves() != expected {
        assert!(Instant::now() < deadline, "{} leaves for {expected} entries", leaves());
        crossbeam_epoch::pin().flush();
        std::thread::yield_now();
    }
}

/// Polls until nothing is in use: no leaf, no node of any kind, no key on the heap.
pub(crate) fn await_nothing(memory: impl Fn() -> Memory) {
    let deadline = Instant::now() + Duration::from_secs(20);
    let used = |memory: &Memory| {
        memory.leaves
            + memory.leaf_bytes
            + memory.heap_bytes
            + memory.nodes.map(|nodes| nodes.count).iter().sum::<usize>()
    };
    while used(&memory()) > 0 {
        assert!(Instant::now() < deadline, "of an empty tree there is left: {:?}", memory());
        crossbeam_epoch::pin().flush();
        std::thread::yield_now();
    }
}
