//! How the baselines compare keys: the "+int keycmp" step of the paper's Figure 5.

use super::records::Key;

/// A comparison of full keys.
pub(crate) trait Comparison: Sync + Default {
    /// Whether both keys are the same.
    fn same(&self, one: &Key, other: &Key) -> bool;
}

/// As memcached compares: a call of the C library's `memcmp` with a length that is known only at run time.
#[derive(Debug)]
pub(crate) struct Bytes {
    length: usize,
}

impl Default for Bytes {
    fn default() -> Self {
        // Were the length known to the compiler, it would compare integers.
        Bytes { length: std::hint::black_box(size_of::<Key>()) }
    }
}

impl Comparison for Bytes {
    #[inline]
    fn same(&self, one: &Key, other: &Key) -> bool {
        one.0[..self.length] == other.0[..self.length]
    }
}

/// As integers.
#[derive(Debug, Default)]
pub(crate) struct Integers;

impl Comparison for Integers {
    #[inline]
    fn same(&self, one: &Key, other: &Key) -> bool {
        one.same(other)
    }
}
