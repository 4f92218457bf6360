//! Which places of a space are in use: for builds with debug assertions, in which a reference that is followed after
//! its time is a panic rather than a wrong answer.
//!
//! Nodes and leaves lie in regions of their own, of which the address sanitizer knows nothing: to it, a place that was
//! given back is memory like any other. So each place has a bit here, at its first unit. It is set while the place is
//! given out, asked whenever a reference is followed, and a place that is given back is filled with [`FREED`] besides.
//! Builds without debug assertions have none of this.
//!
//! The bits order nothing (all accesses are relaxed), so that they hide no race between threads. They lie in pieces
//! that are made when a place of theirs is first given out: a process with few addresses has none for those of all
//! places.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// What fills places that were given back: neither zero, nor likely to be a key, a value or a reference.
pub(crate) const FREED: u8 = 0xA5;
/// Words of a piece.
const WORDS: usize = 1 << 13;

/// The places in use; without debug assertions, of none.
pub(crate) struct Census {
    pieces: Box<[OnceLock<Box<[AtomicU64]>>]>,
}

impl Census {
    pub(crate) fn of(units: usize) -> Census {
        let pieces = if cfg!(debug_assertions) { units.div_ceil(64 * WORDS) } else { 0 };
        Census { pieces: (0..pieces).map(|_| OnceLock::new()).collect() }
    }

    fn unit(&self, place: u32) -> (&AtomicU64, u64) {
        let word = place as usize / 64;
        let make = || (0..WORDS).map(|_| AtomicU64::new(0)).collect();
        let piece = self.pieces[word / WORDS].get_or_init(make);
        (&piece[word % WORDS], 1 << (place % 64))
    }

    #[inline(always)]
    pub(crate) fn enter(&self, place: u32) {
        if cfg!(debug_assertions) {
            let (word, bit) = self.unit(place);
            assert!(word.fetch_or(bit, Ordering::Relaxed) & bit == 0, "place {place} is given out twice");
        }
    }

    #[inline(always)]
    pub(crate) fn leave(&self, place: u32) {
        if cfg!(debug_assertions) {
            let (word, bit) = self.unit(place);
            assert!(word.fetch_and(!bit, Ordering::Relaxed) & bit != 0, "place {place} is freed twice");
        }
    }

    #[inline(always)]
    pub(crate) fn check(&self, place: u32) {
        if cfg!(debug_assertions) {
            let (word, bit) = self.unit(place);
            assert!(word.load(Ordering::Relaxed) & bit != 0, "place {place} is used after it was freed");
        }
    }
}
