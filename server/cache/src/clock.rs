//! CLOCK: one bit an item and a hand (paper, section 4).
//!
//! ```text
//! victim:
//!   loop
//!     if the bit at the hand is 0: that one; advance the hand
//!     set it to 0; advance the hand
//! ```
//!
//! The chunks of a class are the ring. A hit sets the bit, and writes only if it was clear, so a hot item's cache line
//! stays clean. The bit lies in the item itself, whose line the lookup has fetched anyway, and costs no division to
//! find. A newcomer's bit is clear: an item that is never asked for again goes at the hand's first visit, which
//! measures better on real traces than the other choice (see research/experiments/memc3-policies.toml) and is still a
//! whole turn away, since new items take the places that the hand has just emptied.
//!
//! The hand looks at no more than [`MOST_LOOKS`] chunks, and makes no more than two turns a bit, before it takes the
//! last evictable one it saw: when thousands of neighbours in a row have been used since the last turn, any of them
//! will do, and nobody waits for a turn over millions.
//!
//! Rejected: a bitmap beside the slabs, which the hand scans faster but which costs every hit another cache line and a
//! division.

use crate::chunks::{Chunks, Look, Position};
use crate::policy::Policy;
use crate::recency::Recency;

/// Chunks that one search for a victim looks at, at the most.
const MOST_LOOKS: usize = 2048;

/// The paper's policy: one bit, clear on entry.
#[derive(Debug, Default)]
pub struct Clock {
    hand: Position,
}

/// A clock with two bits: an item that was hit three times since the hand came by is spared three times.
#[derive(Debug, Default)]
pub struct CountingClock {
    hand: Position,
}

/// The hand's walk: what has recency loses one and stays.
fn sweep(hand: &mut Position, chunks: &Chunks<'_>) -> Option<Position> {
    let mut last_live = None;
    for _ in 0..MOST_LOOKS.min(chunks.len() * (2 * Recency::MOST.get() as usize)) {
        let here = *hand;
        *hand = chunks.after(here);
        match chunks.look(here) {
            Look::Vacant => {}
            Look::Dead | Look::Live(Recency::NONE) => return Some(here),
            Look::Live(recency) => {
                chunks.set_recency(here, Recency::new(recency.get() - 1));
                last_live = Some(here);
            }
        }
    }
    last_live
}

impl Policy for Clock {
    const NAME: &'static str = "clock";
    const NEWCOMER: Recency = Recency::NONE;

    #[inline]
    fn hit(_recency: Recency) -> Recency {
        Recency::new(1)
    }

    fn victim(&mut self, chunks: &Chunks<'_>) -> Option<Position> {
        sweep(&mut self.hand, chunks)
    }

    fn came(&mut self, page: usize) {
        self.hand = self.hand.after_coming(page);
    }

    fn went(&mut self, page: usize) {
        self.hand = self.hand.after_going(page);
    }
}

impl Policy for CountingClock {
    const NAME: &'static str = "counting-clock";
    const NEWCOMER: Recency = Recency::NONE;

    #[inline]
    fn hit(recency: Recency) -> Recency {
        Recency::new(recency.get() + 1)
    }

    fn victim(&mut self, chunks: &Chunks<'_>) -> Option<Position> {
        sweep(&mut self.hand, chunks)
    }

    fn came(&mut self, page: usize) {
        self.hand = self.hand.after_coming(page);
    }

    fn went(&mut self, page: usize) {
        self.hand = self.hand.after_going(page);
    }
}
