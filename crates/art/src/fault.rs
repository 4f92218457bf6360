//! Failing the n-th place for a node, leaf or long key, for tests that walk through every allocation that an operation
//! makes.

use pages::fault::Countdown;

thread_local! {
    static PLACES: Countdown = const { Countdown::new() };
}

/// Runs `work` with the `nth` place for a node, a leaf, or a key on the heap that this thread asks for (counted from 0)
/// refused as if memory had run out, and says whether that many were asked for.
pub fn fail_nth<R>(nth: usize, work: impl FnOnce() -> R) -> (R, bool) {
    PLACES.with(|places| places.fail_nth(nth, work))
}

pub(crate) fn refuses_this_one() -> bool {
    PLACES.with(Countdown::refuses_this_one)
}
