//! Lookups counted down: until the watch has something to do, and until the next hit that counts.
//!
//! Each lookup takes itself off one number. Its sign says whether lookups ask the table; so the two comparisons that
//! tell a lookup what to do are of that number alone, with one comparison for those that ask, as nearly all do: before
//! a quick index, two instructions more are a twentieth of its lookups. What is left at the hit that counts next is
//! beside it: a hit compares both.
//!
//! Whoever looks up keeps them himself while he visits ([`crate::Visit`]), and leaves them with the seat that he had:
//! behind the seat's pointer they would be another load, of which the next lookup's all wait.
//!
//! Rejected: *numbers below zero for lookups of a block that has ended*: then those that do not ask need two bounds to
//! be told from it.

use std::cell::Cell;

/// What is added to the number of those that do not ask: the two highest bits, which those that ask have not; far
/// enough from the ends of the numbers that what is due behind them is a number, too.
const PASSING: i32 = i32::MIN / 2;

/// What a lookup is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    Asks,
    PassesBy,
    /// There are not so many left: nothing was taken.
    Ended,
}

/// See the head of this module.
#[derive(Debug, Clone)]
pub(crate) struct Countdown {
    /// Lookups left; that and [`PASSING`] if they do not ask the table.
    left: Cell<i32>,
    /// What is left behind the lookup that counts next, if it is a hit.
    due: Cell<i32>,
}

impl Countdown {
    /// None are left; the first that counts is behind so many.
    pub(crate) fn new(due: i32) -> Countdown {
        Countdown { left: Cell::new(0), due: Cell::new(-due) }
    }

    /// Takes these from what is left, more than none and all of one call.
    #[inline(always)]
    pub(crate) fn take(&self, lookups: i32) -> Turn {
        let left = self.left.get();
        let turn = if left >= lookups {
            Turn::Asks
        } else if left & !PASSING >= lookups {
            Turn::PassesBy
        } else {
            return Turn::Ended;
        };
        self.left.set(left - lookups);
        turn
    }

    /// So many are left from now on, that ask or do not. The hit that counts next is as far away as it was, but where
    /// no lookup was a hit for long: it is not further behind than `behind`.
    pub(crate) fn set(&self, lookups: i32, asks: bool, behind: i32) {
        let ahead = (self.left.get() - self.due.get()).max(-behind);
        let left = if asks { lookups } else { PASSING + lookups };
        self.due.set(left - ahead);
        self.left.set(left);
    }

    /// Goes on where another is.
    pub(crate) fn continue_from(&self, other: &Countdown) {
        self.left.set(other.left.get());
        self.due.set(other.due.get());
    }

    /// Lookups left.
    pub(crate) fn rest(&self) -> i32 {
        self.left.get() & !PASSING
    }

    /// What is left behind the last lookup that was let ask.
    #[inline(always)]
    pub(crate) fn left(&self) -> i32 {
        self.left.get()
    }

    /// And behind that which counts next: see [`crate::cadence`].
    #[inline(always)]
    pub(crate) fn due(&self) -> i32 {
        self.due.get()
    }

    #[inline(always)]
    pub(crate) fn set_due(&self, due: i32) {
        self.due.set(due);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_taken_whole_or_not_at_all() {
        for asks in [true, false] {
            let turn = if asks { Turn::Asks } else { Turn::PassesBy };
            for (lookups, call) in
                [(0, 1), (1, 1), (1, 2), (1024, 1), (1024, 16), (1000, 16), (1024, 1024), (1023, 1024)]
            {
                let countdown = Countdown::new(5);
                countdown.set(lookups, asks, 1024);
                for taken in 1..=lookups / call {
                    assert_eq!(countdown.take(call), turn);
                    assert_eq!(countdown.rest(), lookups - taken * call);
                }
                for _ in 0..2 {
                    assert_eq!(countdown.take(call), Turn::Ended);
                    assert_eq!(countdown.rest(), lookups % call);
                }
            }
        }
    }

    #[test]
    fn what_counts_next_is_as_far_away_after_lookups_that_do_not_ask() {
        // The last is where none counts.
        for ahead in [1, 2, 700, 1 << 28] {
            let countdown = Countdown::new(ahead);
            let is_ahead = || countdown.left() - countdown.due();
            for (lookups, asks) in
                [(64 << 10, true), (1024, false), (1024, false), (512, true), (1024, false)]
            {
                countdown.set(lookups, asks, 1024);
                assert_eq!(is_ahead(), ahead);
            }
            countdown.set(1024, true, 1024);
            assert_eq!(countdown.due(), 1024 - ahead);
        }
        let countdown = Countdown::new(1);
        countdown.set(5000, true, 1024);
        assert_eq!(countdown.take(4000), Turn::Asks);
        countdown.set(5000, true, 1024);
        assert_eq!(countdown.due(), 5000 + 1024);
    }
}
