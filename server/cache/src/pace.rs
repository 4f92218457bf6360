//! How old items get in a class before it evicts them, told without looking at items: by how fast it uses up chunks.
//!
//! ```text
//!   supplied  chunks that came with pages or that a hand has freed, less those that were taken away free
//!   used up   supplied, less those that are free now
//!   lap       the time in which as many are used up as the class has: so old are items when they go
//! ```
//!
//! Time is the clock of [`crate::pool`]: pages' worth stored, in all classes. What is stored over itself, or deleted
//! and stored again, uses up nothing; a class of such items can spare pages. A lap answers at once when a page comes or
//! goes, a whole lap before the ages of the items do: with those instead, a class that had lost a page was robbed of
//! more, and who had gained one went on taking.
//!
//! # Rejected
//!
//! *Stamps of pages* (when the hand was there last): the page that the hand comes to next is younger by up to two pages
//! than what the class evicts. With a few pages for each class that is more than the difference that is looked for: a
//! cache of 8 MB with values of up to 2,000 bytes kept 0.34 of its limit instead of 0.62. *Counting evictions*: of
//! items that are used a hand passes many for each that it evicts, so the class looks older than it is.

/// For each chunk that comes free a hand passes so many, on average and at most: more is that all have been used, once.
const MOST_PASSED: usize = 4;
/// A lap that is so much longer than another is not so by chance.
const OLDER: f64 = 1.125;
/// The pace is measured over this part of a class's pages.
const MEASURED: usize = 8;
/// Part that the last measurement has in the mean.
const WEIGHT: f64 = 0.25;
/// A measurement that is further from the mean by such a factor is not chance: the load has changed.
const CHANGED: f64 = 2.0;

/// How fast a class uses up chunks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pace {
    supplied: u64,
    /// When a chunk was given out last.
    given_out: u32,
    /// What had been used up when it was measured last, and when that was.
    measured: (u64, u32),
    /// Time in which a chunk is used up.
    per_chunk: f64,
}

/// How old items get in a class before it evicts them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Lap {
    /// With the pages that it has.
    pub(crate) now: f64,
    /// With one page fewer.
    pub(crate) with_one_fewer: f64,
    /// How old everything is here at least: no chunk has been given out since.
    pub(crate) least: f64,
}

impl Lap {
    /// Whether the class would evict no younger items than another one does with a page fewer, if that one's lap is
    /// `other`: for sure, or by so much that it is not chance.
    pub(crate) fn spares_page_for(self, other: f64) -> bool {
        self.with_one_fewer > other * OLDER || self.least > 0.0 && self.least >= other
    }

    /// What the classes are asked in the order of.
    pub(crate) fn age(self) -> f64 {
        self.with_one_fewer.max(self.least)
    }
}

impl Pace {
    /// The class has had no page, and gets one.
    pub(crate) fn begin(&mut self, now: u32) {
        *self = Pace { measured: (self.supplied, now), per_chunk: 0.0, ..*self };
    }

    /// A chunk has been given out.
    pub(crate) fn gave_out(&mut self, now: u32) {
        self.given_out = now;
    }

    /// Chunks have come.
    pub(crate) fn came(&mut self, chunks: usize) {
        self.supplied += chunks as u64;
    }

    /// Free chunks have been taken away.
    pub(crate) fn went(&mut self, chunks: usize) {
        self.supplied -= chunks as u64;
    }

    /// The hand has passed so many chunks to free so many of them.
    pub(crate) fn passed(&mut self, chunks: usize, freed: usize) {
        self.supplied += chunks.min(MOST_PASSED * freed) as u64;
    }

    /// The lap of a class with `pages` of `per_page` chunks, of which so many are `free`.
    pub(crate) fn lap(&mut self, per_page: usize, pages: usize, free: usize, now: u32) -> Lap {
        let window = per_page * pages.div_ceil(MEASURED);
        let for_page = self.per_chunk(free, window, now) * per_page as f64;
        Lap {
            now: for_page * pages as f64,
            with_one_fewer: for_page * (pages - 1) as f64,
            least: f64::from(now.wrapping_sub(self.given_out)),
        }
    }

    /// The time in which a chunk is used up, measured over `window` of them. If that takes longer already than the last
    /// time, it is as much as it is at least.
    fn per_chunk(&mut self, free: usize, window: usize, now: u32) -> f64 {
        let used = self.supplied.saturating_sub(free as u64);
        let (used_then, then) = self.measured;
        let (used_since, elapsed) =
            (used.saturating_sub(used_then) as f64, f64::from(now.wrapping_sub(then)));
        if used_since < window as f64 {
            return self.per_chunk.max(elapsed / window as f64);
        }
        let last = elapsed / used_since;
        self.measured = (used, now);
        let changed = last * CHANGED < self.per_chunk || last > self.per_chunk * CHANGED;
        self.per_chunk = if changed { last } else { self.per_chunk + WEIGHT * (last - self.per_chunk) };
        self.per_chunk
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const PER_PAGE: usize = 10;

    /// A class of so many pages, all full, that uses up a page in so much time.
    fn steady(pages: usize, time: u32, until: u32) -> Pace {
        let mut pace = Pace::default();
        pace.begin(0);
        pace.came(pages * PER_PAGE);
        for now in (time..=until).step_by(time as usize) {
            pace.passed(PER_PAGE, PER_PAGE);
            pace.lap(PER_PAGE, pages, 0, now);
        }
        pace
    }

    #[test]
    fn a_lap_is_as_long_as_all_pages_take() {
        let lap = steady(4, 3, 300).lap(PER_PAGE, 4, 0, 300);
        assert!((lap.now - 12.0).abs() < 0.1, "{lap:?}");
        assert!((lap.with_one_fewer - 9.0).abs() < 0.1, "{lap:?}");
    }

    #[test]
    fn a_class_that_uses_up_nothing_grows_old() {
        let mut pace = steady(4, 3, 300);
        assert!(pace.lap(PER_PAGE, 4, 0, 400).now >= 400.0);
        // Deleted and stored again.
        for now in 400..500 {
            pace.lap(PER_PAGE, 4, now as usize % 2, now);
        }
        assert!(pace.lap(PER_PAGE, 4, 0, 500).now >= 800.0);
    }

    #[test]
    fn a_load_that_changes_is_noticed_within_a_page() {
        let mut pace = steady(4, 30, 300);
        for now in 301..=302 {
            pace.passed(PER_PAGE, PER_PAGE);
            pace.lap(PER_PAGE, 4, 0, now);
        }
        assert!((pace.lap(PER_PAGE, 4, 0, 302).now - 4.0).abs() < 0.1);
    }

    #[test]
    fn a_lap_answers_at_once_when_a_page_goes() {
        let mut pace = steady(4, 3, 300);
        let before = pace.lap(PER_PAGE, 4, 0, 300);
        // Half of its chunks were free.
        pace.went(PER_PAGE / 2);
        let after = pace.lap(PER_PAGE, 3, 0, 300);
        assert!((after.now - before.with_one_fewer).abs() < 0.1, "{before:?} {after:?}");
    }
}
