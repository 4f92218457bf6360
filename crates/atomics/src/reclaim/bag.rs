//! What was retired, and how it is freed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use super::record::Record;

/// An object that nobody new can find.
#[derive(Debug)]
pub(super) struct Retired {
    pub(super) object: *mut (),
    pub(super) context: *const (),
    pub(super) free: unsafe fn(*mut (), *const ()),
}

// SAFETY: any thread may free it, by the promise of who retired it.
unsafe impl Send for Retired {}

impl Retired {
    /// # Safety
    /// Nobody looks at it, and nobody will.
    pub(super) unsafe fn free(self) {
        // SAFETY: the promises of the caller and of who retired it. Once: it is consumed.
        quietly(|| unsafe { (self.free)(self.object, self.context) });
    }
}

/// What was taken out of bags together.
#[derive(Debug)]
pub(super) struct Batch {
    /// The last epoch in which somebody may have found these.
    pub(super) stamp: u64,
    pub(super) retired: Vec<Retired>,
}

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

/// Runs a destructor, and lets nobody hear of its panics.
pub fn quietly(destructor: impl FnOnce()) {
    // Nobody sees what a panic left half done: it is gone.
    let mut outcome = catch_unwind(AssertUnwindSafe(destructor));
    // What it panicked with has a destructor, which might panic, too; and so on, though not for ever.
    for _ in 0..8 {
        let Err(payload) = outcome else { return };
        outcome = catch_unwind(AssertUnwindSafe(|| drop(payload)));
    }
    std::mem::forget(outcome);
}
