//! Failing the n-th allocation of a thread, for tests that walk through every allocation that an operation makes.

use std::cell::Cell;

thread_local! {
    static COUNTDOWN: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Runs `work` with the `nth` place for a node or leaf that this thread asks for (counted from 0) refused as if memory had
/// run out, and says whether that many were asked for.
pub fn fail_nth<R>(nth: usize, work: impl FnOnce() -> R) -> (R, bool) {
    COUNTDOWN.set(Some(nth));
    let result = work();
    (result, COUNTDOWN.take().is_none())
}

/// Whether the allocation about to be made is the one to refuse.
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
