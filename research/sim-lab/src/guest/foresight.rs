//! What the host is asked for before a request is executed.
//!
//! A guest's own arrays are larger than the host's caches, and a lookup would wait for one of their lines after the
//! other: of the samples of a profiler (chains, and a red-black tree, of a million keys) a third lay there without a
//! clock, a sixth with it. But requests are known before they are made. So some are drawn ahead, and with each request
//! that is executed the lookups of those behind it are followed one step further, as far as the lines that the step
//! before asked for have led:
//!
//! ```text
//!   requests    executed now |  1   2   3   4  ahead
//!   its lookup               |  ... node <- bucket <- hash of the key     each arrow is a line of the host's
//! ```
//!
//! Nothing that is simulated changes, and nothing is drawn that would not have been: what is asked for does not depend
//! on what is executed. A tree's path is too long for this; the red-black tree asks for both children of a node while
//! the guest compares its key.
//!
//! Rejected: to ask as well, with each line that a request to come will read, for what the simulated caches and page
//! tables keep of it. What that takes in instructions is more than it spares in waiting: a tenth slower without a
//! clock.

use std::collections::VecDeque;

use super::requests::Request;

/// Requests behind the next one that are followed together with it.
const AHEAD: usize = 4;

/// How far a lookup has been followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trail {
    /// Not at all.
    #[default]
    Begins,
    /// To this bucket, whose line is on its way.
    Bucket(u32),
    /// To this node.
    Node(u32),
    /// As far as it is worth.
    Ends,
}

/// A request that is yet to come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Foreseen {
    pub(super) request: Request,
    /// What the table in front is asked, once it is known.
    pub(super) integer: Option<u64>,
    pub(super) trail: Trail,
}

/// The next few of so many requests.
#[derive(Debug)]
pub(super) struct Foresight {
    next: VecDeque<Foreseen>,
    /// How many more are to be drawn.
    left: u64,
}

impl Foresight {
    pub(super) fn of(requests: u64) -> Foresight {
        Foresight { next: VecDeque::with_capacity(AHEAD + 1), left: requests }
    }

    /// The next request, if there is one. It and those behind it were taken a step further by `follow`.
    #[inline]
    pub(super) fn next(
        &mut self,
        mut draw: impl FnMut() -> Request,
        follow: impl FnMut(&mut Foreseen),
    ) -> Option<Foreseen> {
        while self.left > 0 && self.next.len() <= AHEAD {
            self.left -= 1;
            self.next.push_back(Foreseen { request: draw(), integer: None, trail: Trail::Begins });
        }
        self.next.iter_mut().for_each(follow);
        self.next.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Distribution;
    use super::super::requests::Requests;
    use super::*;

    #[test]
    fn requests_come_in_their_order_each_followed_some_steps_and_no_more_are_drawn() {
        let drawn = || Requests::new(Distribution::Latest, 1000, 3).expect("legal");
        let (mut ahead, mut one_by_one) = (drawn(), drawn());
        let mut foresight = Foresight::of(50);
        let mut steps = Vec::new();
        for number in 0..50_u64 {
            let step = |foreseen: &mut Foreseen| {
                foreseen.integer = Some(foreseen.integer.unwrap_or_default() + 1);
            };
            let next = foresight.next(|| ahead.next(), step);
            let next = next.expect("fifty were asked for");
            assert_eq!(next.request, one_by_one.next(), "{number}");
            steps.push(next.integer.expect("followed"));
        }
        assert!(foresight.next(|| ahead.next(), |_| ()).is_none());
        assert_eq!(ahead.next(), one_by_one.next(), "the next request is the one that it would be");
        assert_eq!(steps[..5], [1, 2, 3, 4, 5]);
        assert!(steps[5..].iter().all(|&steps| steps == 5));
    }
}
