//! What every subject that is measured has in common: how it is asked, and what came of it.

use std::ops::AddAssign;

use serde::Deserialize;

/// How lookups are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Call {
    /// One key at a time.
    #[default]
    Single,
    /// Many keys at a time: as many as the subjects of an experiment are given at once.
    Batch,
}

impl Call {
    /// Both.
    pub const BOTH: [Call; 2] = [Call::Single, Call::Batch];
}

/// What a loop of requests found: a checksum, and the reason why the compiler may not leave the loop out. In memory a
/// struct of C, of which subjects in C++ know the first two fields.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Keys that were found.
    pub found: u64,
    /// The sum of what their values read as.
    pub sum: u64,
    /// Writes that were refused: too full, or nothing to remove.
    pub refused: u64,
}

impl Tally {
    /// Counts the answer to a lookup.
    #[inline(always)]
    pub fn count(&mut self, read: Option<u64>) {
        if let Some(read) = read {
            self.found += 1;
            self.sum = self.sum.wrapping_add(read);
        }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.found += other.found;
        self.sum = self.sum.wrapping_add(other.sum);
        self.refused += other.refused;
    }
}

/// The finaliser of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014):
/// a bijection, by which subjects' keys are made of the numbers of their records, so that neighbours by number are none
/// in order.
#[inline]
#[must_use]
pub fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let number = (number ^ number >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ number >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ number >> 31
}
