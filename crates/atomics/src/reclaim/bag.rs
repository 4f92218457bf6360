//! What was retired, and how it is freed.

use std::panic::{AssertUnwindSafe, catch_unwind};

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
