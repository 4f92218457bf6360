//! Where an entry stands in a succession ([`super::succession`]): a word of each entry.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Of a first: the address of its successor, whose one handle it owns, or zero. Of a successor: the address of its
/// first, and the lowest bit set. Changed under the stripe of the entry's hash.
#[derive(Debug, Default)]
pub(super) struct Place(AtomicUsize);

/// The lowest bit of a successor's place: entries lie at multiples of eight.
const SUCCEEDS: usize = 1;

impl Place {
    /// The successor's address, where this is a first's.
    #[inline(always)]
    pub(super) fn successor(&self) -> Option<usize> {
        // Acquire pairs with the release in `set`: the successor is seen as it was made.
        let word = self.0.load(Ordering::Acquire);
        (word != 0 && word & SUCCEEDS == 0).then_some(word)
    }

    /// The first's address, where this is a successor's.
    #[inline(always)]
    pub(super) fn first(&self) -> Option<usize> {
        // Relaxed: a successor has it from before it was published.
        let word = self.0.load(Ordering::Relaxed);
        (word & SUCCEEDS != 0).then_some(word & !SUCCEEDS)
    }

    /// Names the entry of the handle that was given up for this address as the successor, and owns the handle.
    pub(super) fn set(&self, successor: usize) {
        // Release pairs with the acquire in `successor`.
        self.0.store(successor, Ordering::Release);
    }

    /// Makes this that of a successor of the first at this address. Before the successor is published.
    pub(super) fn succeeds(&self, first: usize) {
        self.0.store(first | SUCCEEDS, Ordering::Relaxed);
    }
}
