//! What the server counts, each worker for itself, in all and by slab class.
//!
//! By class is counted what memcached counts so, and what it shows in all is the sum over the classes. A worker's
//! counts of one class are one cache line of its own: a `get` writes the lines of the sizes that it meets, and no other
//! thread does.

use atomics::CounterSet;

atomics::counters! {
    /// Counts since the start, summed over all workers.
    pub(crate) struct Sums;
    /// The counts of one worker.
    pub(crate) struct Metrics;
    /// Keys asked for by `get` and `gets`.
    gets,
    /// `flush_all`.
    flushes,
    /// Keys given another expiry, by `touch`, `gat` and `gats`.
    touches,
    /// `delete` of a key that was not there.
    delete_misses,
    /// `incr` of a key that was not there.
    increment_misses,
    /// `decr` of a key that was not there.
    decrement_misses,
    /// `cas` of a key that was not there.
    cas_misses,
    /// Stores refused because the item was too large.
    too_large,
    /// Stores refused because there was no memory.
    no_memory,
    /// Items shown by `me`, and keys that it did not find.
    inspections,
    /// Bytes received.
    bytes_read,
    /// Bytes sent.
    bytes_written,
    /// Times that a connection had sent more requests than one turn is for, and others had theirs first.
    yields,
    /// Connections that were closed because they were silent for too long.
    idle_kicks,
}

atomics::counters! {
    /// Counts of one slab class since the start, summed over all workers.
    pub(crate) struct ClassSums;
    /// The counts of one worker and one slab class.
    pub(crate) struct ClassMetrics;
    /// Storage commands whose value was taken; the class is that of the new item.
    sets,
    /// Keys found by `get` and `gets`.
    get_hits,
    /// Keys found by `touch`, `gat` and `gats`.
    touch_hits,
    /// `delete` of a key that was there.
    delete_hits,
    /// `incr` of a number that was there.
    increment_hits,
    /// `decr` of a number that was there.
    decrement_hits,
    /// `cas` that stored; the class is that of the old item.
    cas_hits,
    /// `cas` of a key that had changed.
    cas_badval,
}
const _: () = assert!(size_of::<ClassMetrics>() == 64);

/// As many classes as a class's number can name, so that none needs to be looked at twice.
const CLASSES: usize = 1 << u8::BITS;

/// The counts of one worker by slab class.
pub(crate) struct ByClass([ClassMetrics; CLASSES]);

/// Counts by slab class since the start, summed over all workers.
#[derive(Clone, Copy)]
pub(crate) struct SumsByClass([ClassSums; CLASSES]);

impl Default for ByClass {
    fn default() -> Self {
        ByClass(std::array::from_fn(|_| ClassMetrics::default()))
    }
}

impl Default for SumsByClass {
    fn default() -> Self {
        SumsByClass([ClassSums::default(); CLASSES])
    }
}

impl ByClass {
    /// The counts of the class of this number.
    #[inline]
    pub(crate) fn of(&self, class: u8) -> &ClassMetrics {
        &self.0[usize::from(class)]
    }
}

impl SumsByClass {
    /// The counts of the class of this number.
    pub(crate) fn of(&self, class: usize) -> ClassSums {
        self.0[class]
    }

    /// One of the counts, of all classes.
    pub(crate) fn total(&self, count: impl Fn(&ClassSums) -> u64) -> u64 {
        self.0.iter().map(count).sum()
    }

    /// What has been counted since.
    pub(crate) fn since(mut self, earlier: &Self) -> Self {
        for (sums, &earlier) in self.0.iter_mut().zip(&earlier.0) {
            *sums = *sums - earlier;
        }
        self
    }
}

impl CounterSet for ByClass {
    type Sums = SumsByClass;

    fn add_to(&self, sums: &mut SumsByClass) {
        for (counters, sums) in self.0.iter().zip(&mut sums.0) {
            counters.add_to(sums);
        }
    }
}
