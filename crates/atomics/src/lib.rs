//! What concurrent code synchronises with: the standard library's, or the model checker's.
//!
//! Under `--cfg loom` every access to these types is explored by loom in the orders and with the values that the memory
//! model allows. The code above is the same in both cases; this crate is the seam.
//!
//! Counters that threads do not share are here too: see [`counters!`]; which locks a thread holds: see [`Within`]; and memory
//! that readers may still look at: see [`reclaim`].
//!
//! # Loom's blind spot
//!
//! To decide which accesses to try in another order, loom 0.7 remembers only the last access to an object. Where a thread
//! loads and then stores, as every writer of a version word does, its load hides an earlier load by another thread, and
//! loom never tries the store before that load: whole models were "explored" in a single execution. So here each atomic
//! has a companion that every access touches first. The companion is only ever changed by relaxed read-modify-writes,
//! which hide nothing from each other and synchronise nothing: all orders are tried, and the load or store behind it
//! still sees whatever the memory model lets it see.

#[cfg(not(loom))]
mod standard {
    pub use std::hint::spin_loop;
    pub use std::sync::Arc;
    pub use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
    pub use std::thread::yield_now;

    pub use parking_lot::{Mutex, MutexGuard};
}

#[cfg(not(loom))]
mod counters;
#[cfg(loom)]
mod modelled;
pub mod reclaim;
#[cfg(not(loom))]
mod within;

#[cfg(not(loom))]
pub use counters::{CounterSet, Counting, Registry};
#[cfg(loom)]
pub use modelled::*;
#[cfg(not(loom))]
pub use standard::*;
#[cfg(not(loom))]
pub use within::{Hold, Within, held};

/// The program of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
