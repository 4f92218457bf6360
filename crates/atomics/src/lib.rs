//! What concurrent code synchronises with: the standard library's, or the model checker's.
//!
//! Under `--cfg loom` every access to these types is explored by loom in the orders and with the values that the memory
//! model allows. The code above is the same in both cases; this crate is the seam. (The mutex does
//! not poison: it is `parking_lot`'s, or loom's behind the same interface.)
//!
//! | face | for |
//! |---|---|
//! | the atomics, [`Mutex`], [`Condvar`], [`Arc`], [`fence`] and the hints | whatever is to be explored |
//! | [`reclaim`] | memory that readers may still look at |
//! | [`Bias`] | a lock that readers need not take as long as nobody writes |
//! | [`counters!`] | counters that threads do not share, added up when they are read |
//! | [`Within`] | which locks a thread holds while it runs its caller's code |
//!
//! ```
//! use lookaside_atomics::{AtomicU64, Hold, Ordering, Within, held, reclaim::Collector};
//!
//! // What all threads have done, and what one is doing.
//! let done = AtomicU64::new(0);
//! done.fetch_add(1, Ordering::Relaxed);
//!
//! // What is found while a guard is held stays.
//! let collector: Collector = Collector::new();
//! let guard = collector.pin();
//! drop(guard);
//! collector.collect();
//!
//! // A thread that would wait for itself is told.
//! let lock = 7u8;
//! let within = Within::enter(&lock, Hold::Exclusive);
//! assert_eq!(held(&lock), Some(Hold::Exclusive));
//! drop(within);
//! assert_eq!(held(&lock), None);
//! ```
//!
//! A module uses those of the floors below it:
//!
//! ```text
//!                 bias
//!               reclaim
//!   its parts: waiting > record > shared > barrier; bag, thread, turn
//!                seam
//!         modelled  standard           counters  within
//! ```
//!
//! # Loom's blind spot
//!
//! To decide which accesses to try in another order, loom 0.7 remembers only the last access to an object. Where a
//! thread loads and then stores, as every writer of a version word does, its load hides an earlier load by another
//! thread, and loom never tries the store before that load: whole models were "explored" in a single execution. So here
//! each atomic has a companion that every access touches first. The companion is only ever changed by relaxed
//! read-modify-writes, which hide nothing from each other and synchronise nothing: all orders are tried, and the load
//! or store behind it still sees whatever the memory model lets it see.

mod bias;
#[cfg(not(loom))]
mod counters;
#[cfg(loom)]
mod modelled;
pub mod reclaim;
mod seam;
#[cfg(not(loom))]
mod standard;
#[cfg(not(loom))]
mod within;

pub use bias::{Bias, Reading};
#[cfg(not(loom))]
pub use counters::{CounterSet, Counting, Registry};
pub use seam::*;
#[cfg(not(loom))]
pub use within::{Hold, Within, held};

/// The program of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
