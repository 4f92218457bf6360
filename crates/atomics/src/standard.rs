//! The standard library's primitives, and `parking_lot`'s mutex.

pub use std::hint::spin_loop;
pub use std::sync::Arc;
pub use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
pub use std::thread::yield_now;

pub use parking_lot::{Mutex, MutexGuard};
