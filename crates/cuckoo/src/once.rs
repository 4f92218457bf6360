//! One thread at a time that makes the value of a key: the others wait for it instead of making it as well.
//!
//! ```text
//!   get_or_make:  is it there?  ->  wait for whoever makes it  ->  is it there now?  ->  make it, put it in
//! ```
//!
//! A closure that makes a value may take long, may use the map, and may panic. So it runs under no lock of the table's,
//! but under one of some mutexes, chosen by the key's hash; who waits for it sleeps. A panic gives the mutex back, and
//! the next finds nothing, and makes the value. A thread that is in such a closure already, of whatever map, takes the
//! mutex if it is free and else goes on without: then two threads may make the value of the same key, and one of them
//! sees the other's. So there is no circle of threads that wait for each other, and a map can be used, and filled, from
//! within.
//!
//! Rejected: *a place holder in the table*, which every lookup would have to tell from an entry; *the table's own
//! locks*, which are spun for, and under which neighbours and growth would wait for the closure; *a panic for who comes
//! again*, where it is right to go on.

use std::cell::Cell;

use atomics::{Mutex, MutexGuard};

/// Mutexes: more than threads that make values at the same time.
#[cfg(not(loom))]
const MUTEXES: usize = 64;
/// A model has few.
#[cfg(loom)]
const MUTEXES: usize = 2;

#[cfg(not(loom))]
thread_local! {
    /// Values that this thread is making. Without a destructor.
    static MAKING: Cell<usize> = const { Cell::new(0) };
}

#[cfg(loom)]
loom::thread_local! {
    static MAKING: Cell<usize> = Cell::new(0);
}

/// Which mutex is a hash's. It may be weak: by all of its bits (Fibonacci hashing).
pub(crate) fn number_of(hash: u64) -> usize {
    (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize % MUTEXES
}

/// The mutexes of a map.
#[derive(Debug)]
pub(crate) struct Once([Mutex<()>; MUTEXES]);

/// The right to make a value, or the knowledge that one must go on without.
struct Making<'o> {
    _alone: Option<MutexGuard<'o, ()>>,
}

impl Default for Once {
    fn default() -> Self {
        Once(std::array::from_fn(|_| Mutex::new(())))
    }
}

impl Once {
    /// What `find` finds for a key of this hash, or else what `put` makes and puts where `find` looks. `put` may find
    /// that another thread was faster, and then gives what that has put there.
    #[inline]
    pub(crate) fn get_or_make<K, T>(
        &self,
        hash: u64,
        key: K,
        find: impl Fn(&K) -> Option<T>,
        put: impl FnOnce(K) -> T,
    ) -> T {
        if let Some(found) = find(&key) {
            return found;
        }
        let _making = self.enter(hash);
        match find(&key) {
            Some(found) => found,
            None => put(key),
        }
    }

    /// Waits for whoever makes a value of this hash.
    fn enter(&self, hash: u64) -> Making<'_> {
        let mutex = &self.0[number_of(hash)];
        let depth = MAKING.with(Cell::get);
        let alone = if depth == 0 { Some(mutex.lock()) } else { mutex.try_lock() };
        MAKING.with(|making| making.set(depth + 1));
        Making { _alone: alone }
    }
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        MAKING.with(|making| making.set(making.get() - 1));
    }
}
