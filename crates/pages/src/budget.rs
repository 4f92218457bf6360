//! One limit on bytes, shared by parts that grow at each other's expense: an index and the entries it finds.
//!
//! Whoever wants memory takes it from the budget first and touches it afterwards, so what is resident never exceeds
//! what was taken, but for what the kernel adds where it gives larger pages than were touched. The counter is written
//! when a page changes hands, never on a lookup.

use std::sync::atomic::{AtomicUsize, Ordering};

/// A limit on bytes and how much of it is taken.
///
/// ```
/// use lookaside_pages::Budget;
///
/// let budget = Budget::new(100);
/// assert!(budget.try_take(70));
/// assert!(!budget.try_take(40));
/// budget.give_back(30);
/// assert!(budget.try_take(40));
/// budget.raise(20);
/// assert_eq!((budget.taken(), budget.limit()), (80, 120));
/// assert!(budget.try_lower(40) && !budget.try_lower(1));
/// assert_eq!((budget.taken(), budget.limit()), (80, 80));
/// ```
#[derive(Debug)]
pub struct Budget {
    limit: AtomicUsize,
    taken: AtomicUsize,
}

impl Budget {
    /// A budget of `limit` bytes, none of them taken.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Budget { limit: AtomicUsize::new(limit), taken: AtomicUsize::new(0) }
    }

    /// Takes `bytes` if that many are left; all of them or none.
    #[must_use = "memory that was refused must not be touched"]
    pub fn try_take(&self, bytes: usize) -> bool {
        // Relaxed: the counter orders nothing; the memory itself is handed over under the taker's own lock.
        self.taken
            .try_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
                taken.checked_add(bytes).filter(|&after| after <= self.limit())
            })
            .is_ok()
    }

    /// Raises the limit by `bytes`: for a part of a larger budget, whose share has grown.
    pub fn raise(&self, bytes: usize) {
        self.limit.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Lowers the limit by `bytes` if that many are left: for a part of a larger budget, whose share has shrunk.
    #[must_use = "the share is as it was if this is false"]
    pub fn try_lower(&self, bytes: usize) -> bool {
        // Taken first, so that nobody else can take them while the limit goes down.
        let lowered = self.try_take(bytes);
        if lowered {
            self.limit.fetch_sub(bytes, Ordering::Relaxed);
            self.taken.fetch_sub(bytes, Ordering::Relaxed);
        }
        lowered
    }

    /// Gives `bytes` back.
    ///
    /// # Panics
    /// If more is given back than was taken, which is a defect of the caller.
    pub fn give_back(&self, bytes: usize) {
        let before = self.taken.fetch_sub(bytes, Ordering::Relaxed);
        assert!(before >= bytes, "gave back {bytes} bytes of {before} taken");
    }

    /// Bytes taken now.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// Bytes that may be taken in all.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// Bytes still to be had.
    #[must_use]
    pub fn left(&self) -> usize {
        self.limit().saturating_sub(self.taken())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takers_never_exceed_the_limit_together() {
        let budget = Budget::new(10_000);
        let taken: usize = std::thread::scope(|scope| {
            let takers: Vec<_> = (0..4)
                .map(|thread| {
                    let budget = &budget;
                    scope.spawn(move || {
                        let mut mine = 0;
                        for step in 0..1000 {
                            let bytes = 1 + (step * 7 + thread) % 13;
                            if budget.try_take(bytes) {
                                mine += bytes;
                            }
                        }
                        mine
                    })
                })
                .collect();
            takers.into_iter().map(|taker| taker.join().unwrap()).sum()
        });
        assert_eq!(taken, budget.taken());
        assert!(taken <= 10_000 && budget.left() < 13, "{taken} taken");
    }

    #[test]
    fn an_overflowing_request_is_refused() {
        let budget = Budget::new(usize::MAX);
        assert!(budget.try_take(10));
        assert!(!budget.try_take(usize::MAX));
        assert_eq!(budget.taken(), 10);
    }
}
