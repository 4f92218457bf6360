//! What all threads at a collector read.

use super::barrier::Barrier;
use crate::seam::{AtomicBool, AtomicU64};

/// What pinning reads and only collecting writes.
pub(super) struct Shared {
    pub(super) epoch: AtomicU64,
    pub(super) barrier: Barrier,
    /// Whether there is something with a stamp that could not be freed yet.
    pub(super) waits: AtomicBool,
}
