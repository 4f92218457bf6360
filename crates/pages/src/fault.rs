//! Failing the n-th allocation of a thread, for tests that walk through every allocation that an operation makes.
//!
//! A [`Countdown`] is one thread's, and one kind of allocation's: mappings have theirs here, and whoever cuts mappings
//! up may have another.

use std::cell::Cell;

/// Counts allocations, and says which one is to be refused.
#[derive(Debug)]
pub struct Countdown {
    left: Cell<Option<usize>>,
}

impl Countdown {
    /// Refuses none.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it is made in thread-local constants")]
    pub const fn new() -> Countdown {
        Countdown { left: Cell::new(None) }
    }

    /// Runs `work` with the `nth` allocation (counted from 0) refused, and says whether that many were asked for.
    pub fn fail_nth<R>(&self, nth: usize, work: impl FnOnce() -> R) -> (R, bool) {
        self.left.set(Some(nth));
        let result = work();
        (result, self.left.take().is_none())
    }

    /// Whether the allocation about to be made is the one to refuse.
    pub fn refuses_this_one(&self) -> bool {
        let left = self.left.get();
        self.left.set(left.and_then(|left| left.checked_sub(1)));
        left == Some(0)
    }
}

thread_local! {
    static MAPPINGS: Countdown = const { Countdown::new() };
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
    MAPPINGS.with(|mappings| mappings.fail_nth(nth, work))
}

pub(crate) fn refuses_this_one() -> bool {
    MAPPINGS.with(Countdown::refuses_this_one)
}
