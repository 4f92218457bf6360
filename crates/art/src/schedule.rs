//! When a tree is reorganised, and how gently.

use std::time::Duration;

/// When a tree is reorganised by itself: see [`Tree::keep_organized`](crate::Tree::keep_organized).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Schedule {
    /// From one look at the access log to the next.
    pub every: Duration,
    /// Keys are hot that have been sampled at least so often since the last look.
    pub samples: usize,
    /// Hot keys are moved if they lie in so many times the pages that they need: see [`crate::Assessment::gain`], and
    /// [`Tree::worth_moving`](crate::Tree::worth_moving) for how lookups of others count.
    pub gain: f64,
    /// Looks in a row that gain nothing, because nothing is to be gained, or was, or there is no room to move to, after
    /// which it ends; never, if zero. A look at a log without samples does not count: nobody asks for anything.
    pub patience: u32,
    /// Nodes and leaves looked at in one step, after which the thread rests.
    pub step: usize,
    /// For how many times as long as the step took: see [`crate::Reorganization::step_and_rest`].
    pub rest: f64,
}

impl Default for Schedule {
    fn default() -> Self {
        Schedule { every: Duration::from_secs(1), samples: 2, gain: 1.5, patience: 3, step: 256, rest: 1.0 }
    }
}

impl Schedule {
    /// The defaults: a look a second.
    #[must_use]
    pub fn new() -> Schedule {
        Schedule::default()
    }

    /// With a look [every](Schedule::every) so often.
    #[must_use]
    pub fn with_every(self, every: Duration) -> Schedule {
        Schedule { every, ..self }
    }

    /// For keys with so many [samples](Schedule::samples).
    #[must_use]
    pub fn with_samples(self, samples: usize) -> Schedule {
        Schedule { samples, ..self }
    }

    /// With this [patience](Schedule::patience).
    #[must_use]
    pub fn with_patience(self, patience: u32) -> Schedule {
        Schedule { patience, ..self }
    }

    /// With so much [rest](Schedule::rest).
    #[must_use]
    pub fn with_rest(self, rest: f64) -> Schedule {
        Schedule { rest, ..self }
    }
}
