//! Random numbers that a seed repeats: Marsaglia's xorshift64, for tests whose threads draw millions.

/// A stream of random numbers. The seed is not zero.
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    /// A number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }

    /// A number below `limit`, mostly a small one: some keys are hot.
    pub fn key(&mut self, limit: usize) -> usize {
        let most = if self.below(4) == 0 { limit } else { (limit / 64).max(1) };
        self.below(most)
    }
}
