//! What has left the bags and is held back, and by whom.

use std::ptr::NonNull;

use super::bag::{Batch, Retired};
use super::record::Record;

/// What has been taken out of bags and is not free.
#[derive(Debug)]
pub(super) struct Waiting<L> {
    pub(super) batches: Vec<Batch>,
    /// For these there was no barrier: they get one when the next is to be had.
    pub(super) unstamped: Vec<Retired>,
    /// Whose epoch was the oldest at the last look.
    pub(super) holder: Option<NonNull<Record<L>>>,
}

// SAFETY: records are shared by all threads, and live as long as the collector, which has this.
unsafe impl<L: Send> Send for Waiting<L> {}

impl<L> Default for Waiting<L> {
    fn default() -> Self {
        Waiting { batches: Vec::new(), unstamped: Vec::new(), holder: None }
    }
}

impl<L> Waiting<L> {
    /// Whether all batches are held back by who held them at the last look.
    pub(super) fn is_held(&self) -> bool {
        // SAFETY: a record lives as long as the collector.
        let epoch = self.holder.map(|holder| unsafe { holder.as_ref() }.epoch());
        epoch.is_some_and(|epoch| self.batches.iter().all(|batch| batch.stamp >= epoch))
    }
}
