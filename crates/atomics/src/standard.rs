//! The standard library's primitives, and `parking_lot`'s mutex and condition variable.

pub use std::hint::spin_loop;
pub use std::sync::Arc;
pub use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
pub use std::thread::yield_now;

pub use parking_lot::{Mutex, MutexGuard};

/// `parking_lot`'s, whose guards go in and come out: as loom's, which cannot be borrowed meanwhile.
#[derive(Debug, Default)]
pub struct Condvar(parking_lot::Condvar);

impl Condvar {
    /// One that nobody waits for.
    #[must_use]
    pub const fn new() -> Condvar {
        Condvar(parking_lot::Condvar::new())
    }

    /// Gives the lock away until somebody notifies, or for no reason.
    pub fn wait<'m, T>(&self, mut guard: MutexGuard<'m, T>) -> MutexGuard<'m, T> {
        self.0.wait(&mut guard);
        guard
    }

    /// Wakes all who wait.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}
