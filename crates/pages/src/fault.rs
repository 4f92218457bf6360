//! Failing the n-th mapping of a thread, for tests that walk through every allocation a constructor makes.

use std::cell::Cell;

thread_local! {
    static COUNTDOWN: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Runs `work` with the `nth` mapping that this thread asks for (counted from 0) refused as if memory had run out,
/// and says whether that many were asked for.
///
/// ```
/// use lookaside_pages::{fault, PageKind, Region};
///
/// let (mapped, reached) = fault::fail_nth(0, || Region::map(4096, PageKind::Base));
/// assert!(mapped.is_err() && reached);
/// ```
pub fn fail_nth<R>(nth: usize, work: impl FnOnce() -> R) -> (R, bool) {
    COUNTDOWN.set(Some(nth));
    let result = work();
    (result, COUNTDOWN.take().is_none())
}

/// Whether the mapping about to be made is the one to refuse.
pub(crate) fn refuse_this_one() -> bool {
    match COUNTDOWN.get() {
        Some(0) => {
            COUNTDOWN.set(None);
            true
        }
        Some(left) => {
            COUNTDOWN.set(Some(left - 1));
            false
        }
        None => false,
    }
}
