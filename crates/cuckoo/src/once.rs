//! One thread at a time that makes the value of a key: the others wait for it instead of making it as well.
//!
//! A closure that makes a value may take long, may use the map, and may panic. So it runs under no lock of the table's,
//! but under one of some mutexes, chosen by the key's hash; who waits for it sleeps. A thread that is in such a closure
//! already, of whatever map, takes the mutex if it is free and else goes on without: then two threads may make the
//! value of the same key, and one of them sees the other's. So there is no circle of threads that wait for each other,
//! and a map can be used, and filled, from within.
//!
//! Rejected: *a place holder in the table*, which every lookup would have to tell from an entry; *the table's own
//! locks*, which are spun for, and under which neighbours and growth would wait for the closure; *a panic for who comes
//! again*, where it is right to go on.

use std::cell::Cell;

use parking_lot::{Mutex, MutexGuard};

/// Mutexes: more than threads that make values at the same time.
const MUTEXES: usize = 64;

thread_local! {
    /// Values that this thread is making. Without a destructor.
    static MAKING: Cell<usize> = const { Cell::new(0) };
}

#[derive(Debug)]
pub(super) struct Once([Mutex<()>; MUTEXES]);

/// The right to make a value, or the knowledge that one must go on without.
pub(super) struct Making<'o> {
    _alone: Option<MutexGuard<'o, ()>>,
}

impl Default for Once {
    fn default() -> Self {
        Once([const { Mutex::new(()) }; MUTEXES])
    }
}

impl Once {
    /// Waits for whoever makes a value of this hash.
    pub(super) fn enter(&self, hash: u64) -> Making<'_> {
        // The hash may be weak: by all of its bits (Fibonacci hashing).
        let mutex = &self.0[(hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize % MUTEXES];
        let depth = MAKING.get();
        let alone = if depth == 0 { Some(mutex.lock()) } else { mutex.try_lock() };
        MAKING.set(depth + 1);
        Making { _alone: alone }
    }
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        MAKING.set(MAKING.get() - 1);
    }
}
