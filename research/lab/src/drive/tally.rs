//! What came back, counted.

use std::ops::AddAssign;

/// Replies, counted. Of a run of several threads, their sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tally {
    /// Keys that were asked for, of the gets that were answered.
    pub(super) gets: u64,
    /// Values that came.
    pub(super) hits: u64,
    /// Sets that were carried out.
    pub(super) stored: u64,
    /// Requests that were answered with `SERVER_ERROR`: out of memory, for instance.
    pub(super) refused: u64,
    /// Requests that were answered, with whatever.
    pub(super) replies: u64,
    /// Bytes that came.
    pub(super) received: u64,
}

impl Tally {
    /// Keys asked for and sets, those that were refused included.
    pub(super) fn operations(&self) -> u64 {
        self.gets + self.stored + self.refused
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.gets += other.gets;
        self.hits += other.hits;
        self.stored += other.stored;
        self.refused += other.refused;
        self.replies += other.replies;
        self.received += other.received;
    }
}
