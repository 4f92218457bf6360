//! Waiting until what has left a tree has been given back.

use std::time::{Duration, Instant};

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
