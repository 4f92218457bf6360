//! What the last walks read, line by line: for whoever puts a clock on them.
//!
//! A walk's answer ([`WalkReads`]) says how many of its entries each level of the caches served, which is enough
//! without a clock. With one it matters which lines they were: another access may have asked for the same line a
//! moment ago, and it is still on its way. The lines would make every answer of the machine larger, and most
//! accesses walk nowhere; so they are noted here, in a ring, and the answer keeps the place at which its own
//! begin. The ring is longer than what one instruction can read, and nobody asks later than that.

use crate::cache::Level;
use crate::walker::WalkReads;

/// Entries that are remembered. The longest nested walk reads 35; an instruction walks a few times.
const RING: usize = 1 << 10;

/// The ring.
#[derive(Debug, Clone)]
pub(crate) struct WalkLog {
    lines: Vec<(u64, Level)>,
    next: u32,
}

impl WalkLog {
    pub(crate) fn new() -> WalkLog {
        WalkLog { lines: vec![(0, Level::L1); RING], next: 0 }
    }

    /// Where the next walk's entries will begin.
    pub(crate) fn place(&self) -> u32 {
        self.next
    }

    /// An entry was read: its physical line, and the level that had it.
    pub(crate) fn push(&mut self, line: u64, level: Level) {
        self.lines[self.next as usize % RING] = (line, level);
        self.next = self.next.wrapping_add(1);
    }

    /// The entries of a walk, in the order in which they were read.
    pub(crate) fn of(&self, walk: WalkReads) -> impl Iterator<Item = (u64, Level)> {
        (0..walk.total()).map(move |entry| self.lines[walk.place().wrapping_add(entry) as usize % RING])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_finds_its_own_entries_while_the_ring_has_them() {
        let mut log = WalkLog::new();
        for walk in 0..1000_u64 {
            let mut reads = WalkReads::default().beginning_at(log.place());
            for entry in 0..5 {
                log.push(walk * 5 + entry, Level::L2);
                reads = reads.with(Level::L2);
            }
            let expected: Vec<_> = (walk * 5..walk * 5 + 5).map(|line| (line, Level::L2)).collect();
            assert_eq!(log.of(reads).collect::<Vec<_>>(), expected);
        }
    }
}
