//! Random numbers that a seed repeats.

// Each test program uses a part of it.
#![allow(dead_code)]

/// Xorshift.
pub(crate) struct Random(pub u64);

impl Random {
    /// Mostly small ones: some keys are hot.
    pub(crate) fn key(&mut self, limit: usize) -> usize {
        let most = if self.below(4) == 0 { limit } else { (limit / 64).max(1) };
        self.below(most)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }
}
