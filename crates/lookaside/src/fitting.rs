//! The table fits itself: while what is asked for has room in a part of it, it is no larger than that part.
//!
//! A bucket is a line, and a key's line is its own: a hundred thousand hot keys in a table of 32 MB lie in nearly as
//! many lines, six megabytes of them, seven eighths of which are empty. In two megabytes they lie two and three to a
//! line, and the second-level cache of a core holds the table. "It is ideal to match the cache size to the actual
//! working set size" (the paper, section 4.2.1): there the user does, who rarely knows. But keys that share a line are
//! no longer the first in it, where a lookup looks first, and that costs more than the nearer cache saves: a thousand
//! keys are found half as fast, a hundred thousand about as fast. So a table is of one size unless something else is
//! asked for.
//!
//! ```text
//!   whole --- for an eighth of its slots in lookups nothing much is new, and an eighth is in use at most ---> folded
//!     ^                                                                                                         |
//!     +-- four fifths are in use, or one lookup in a hundred throws a key out: begin anew, and wait twice as ---+
//!         long the next time
//! ```
//!
//! *Folding* halves the number of lines as often as half of the slots stay free, and twice at least: half a table of 32
//! MB lies in no faster a cache than all of it, and keys that had a line each would have to share it for nothing. A
//! line's number is the hash's low half times the number of lines, its upper half; so with half as many lines it is
//! half the number, whatever the hash was, and slots are copied without it. The copy goes on beside lookups, emissions
//! and writes ([`crate::current`]), some lines in each turn of whoever looks up, so that nobody waits; while nobody
//! looks up, it stays as far as it has come.
//!
//! *Unfolding* would need the hashes. What is in the table is there because it was asked for, and what is asked for
//! comes back as fast as it came; so the whole table begins empty.
//!
//! Where a table is replaced only while nobody writes (the C interface), that may not be possible for long: each
//! attempt that a stripe prevents is followed by a rest of twice as many turns as the one before, and of eight at most;
//! one for which there is no memory, by a rest of a thousand.
//!
//! Only lookups that asked the table count: one that the monitor has switched off is asked in trials only, and what is
//! not asked for is not new either.
//!
//! A table that is full of keys stays whole, however few of them are hot: what a smaller one would miss cannot be known
//! beforehand, and what it would gain depends on the index.
//!
//! Rejected: *growing from a small table*: each step loses what was there, and the largest sets, which can least afford
//! it, go through all of them. *Using every other line of the table in its place*: lines that are a power of two apart
//! share few sets of the processor's caches.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::slb::Slb;

/// Folded while at most a so many-th of the slots would be in use.
const ROOMY: usize = 2;
/// And only if the lines can be halved so often: what is saved has to be worth what is lost.
const HALVINGS: u32 = 2;
/// Unfolded if more than four fifths are.
const CROWDED: (usize, usize) = (4, 5);
/// Or if of so many lookups one throws a key out.
const THROWN_OUT: u64 = 100;
/// A watch: as many lookups as an eighth of the slots.
const WATCHED: u64 = 8;
/// Nothing much is new if it is less than a so many-th of what is there.
const NEW: usize = 64;
/// Lines copied in a turn: as many as take a tenth of the time of its lookups, about.
const LINES: usize = 1024;
/// Fewer than these are not worth folding: they lie in the first-level cache, or nearly.
const FEWEST: usize = 64;
/// Turns to rest after an attempt that somebody's stripe prevented, at most. An attempt takes some ten microseconds, a
/// turn of those that should come soon is a thousand lookups.
const LONGEST_REST: u32 = 8;
/// And after one for which there was no memory, which does not come back so soon: a million lookups while a whole table
/// is wanted, some ten millions while only a smaller one is, for turns are longer then. That the table is crowded is
/// seen nevertheless.
const WITHOUT_MEMORY: u32 = 1024;

/// What is to be done with the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Nothing,
    /// Copy to a successor of so many times half the lines.
    Fold(u32),
    /// Copy these lines.
    Copy {
        from: usize,
        to: usize,
    },
    /// All are copied: let the successor take its place.
    Succeed,
    /// Begin with the whole table, empty.
    Unfold,
}

/// What a thread has done since it was last asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Passed {
    /// Lookups that asked the table.
    pub lookups: u64,
    /// Keys that its emissions have thrown out.
    pub evictions: u64,
}

/// What threads have done since the last step: a thread that finds another at it leaves its part here.
#[derive(Debug, Default)]
pub(crate) struct Account {
    lookups: AtomicU64,
    evictions: AtomicU64,
}

// All relaxed: sums, of which a part may come one step later.
impl Account {
    pub(crate) fn add(&self, passed: Passed) {
        self.lookups.fetch_add(passed.lookups, Ordering::Relaxed);
        self.evictions.fetch_add(passed.evictions, Ordering::Relaxed);
    }

    pub(crate) fn take(&self) -> Passed {
        Passed {
            lookups: self.lookups.swap(0, Ordering::Relaxed),
            evictions: self.evictions.swap(0, Ordering::Relaxed),
        }
    }
}

/// How a table fits itself, and since when.
#[derive(Debug)]
pub(crate) struct Fitting {
    folded: bool,
    /// Lines copied so far, if there is a copy going on.
    copied: Option<usize>,
    /// Folded, and has thrown out too much.
    crowded: bool,
    /// In the watch that goes on.
    passed: Passed,
    /// Watches since `filled` was taken, and after how many it is looked at again.
    watches: u64,
    filled: usize,
    patience: u64,
    /// Turns in which nothing is to be tried, and how many after the next attempt that a stripe prevents.
    rest: u32,
    next_rest: u32,
}

impl Fitting {
    pub(crate) const fn new() -> Fitting {
        let passed = Passed { lookups: 0, evictions: 0 };
        Fitting {
            folded: false,
            copied: None,
            crowded: false,
            passed,
            watches: 0,
            filled: 0,
            patience: 1,
            rest: 0,
            next_rest: 1,
        }
    }

    /// Whether there is something to be done: slots to be copied, or a table to be replaced.
    pub(crate) fn is_at_work(&self) -> bool {
        self.copied.is_some() || self.crowded
    }

    /// What to do now that this has passed, too.
    pub(crate) fn step(&mut self, table: &Slb, passed: Passed) -> Step {
        let Some((filled, lines)) = table.filled() else { return Step::Nothing };
        self.passed.lookups += passed.lookups;
        self.passed.evictions += passed.evictions;
        let rests = self.rest > 0;
        self.rest = self.rest.saturating_sub(1);
        if rests && self.is_at_work() {
            return Step::Nothing;
        }
        if let Some(from) = self.copied {
            let to = (from + LINES).min(lines);
            return if from == to { Step::Succeed } else { Step::Copy { from, to } };
        }
        let capacity = table.capacity();
        self.crowded |= self.folded && filled * CROWDED.1 > capacity * CROWDED.0;
        if self.crowded {
            return Step::Unfold;
        }
        if self.passed.lookups < capacity as u64 / WATCHED {
            return Step::Nothing;
        }
        let Passed { lookups, evictions } = std::mem::take(&mut self.passed);
        self.crowded = self.folded && evictions * THROWN_OUT > lookups;
        if self.crowded {
            return Step::Unfold;
        }
        self.watches += 1;
        if self.watches < self.patience {
            return Step::Nothing;
        }
        self.watches = 0;
        let new = filled.abs_diff(std::mem::replace(&mut self.filled, filled));
        if rests || filled == 0 || new * NEW > filled {
            return Step::Nothing;
        }
        let roomy = |times: u32| filled << times <= capacity / ROOMY;
        let enough = |times: u32| lines >> times << times == lines && lines >> times >= FEWEST;
        let times = (1..usize::BITS).take_while(|&times| roomy(times) && enough(times));
        times.last().filter(|&times| times >= HALVINGS).map_or(Step::Nothing, Step::Fold)
    }

    /// So many lines have been copied.
    pub(crate) fn copied(&mut self, lines: usize) {
        self.copied = Some(lines);
    }

    /// The table is a folded one now.
    pub(crate) fn has_folded(&mut self) {
        *self = Fitting { folded: true, patience: self.patience, ..Fitting::new() };
    }

    /// The table is whole again, and empty.
    pub(crate) fn has_unfolded(&mut self) {
        *self = Fitting { patience: self.longer(), ..Fitting::new() };
    }

    /// There was no memory for another table: nothing is to be tried for a while.
    pub(crate) fn has_failed(&mut self) {
        self.patience = self.longer();
        self.rest = WITHOUT_MEMORY;
    }

    /// The table could not be replaced, since somebody had a stripe: that is to be tried again, but not at once.
    pub(crate) fn has_to_wait(&mut self) {
        self.rest = self.next_rest;
        self.next_rest = (self.next_rest * 2).min(LONGEST_REST);
    }

    fn longer(&self) -> u64 {
        /// Some thousand times as many lookups as there are slots.
        const MOST: u64 = 1 << 13;
        (self.patience * 2).min(MOST)
    }

    /// The table is another, of a size that was asked for.
    pub(crate) fn begins_anew(&mut self) {
        *self = Fitting::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::random::Random;
    use crate::word::Pointer;

    /// Spread over all bits, as a hash is.
    fn hash(key: u64) -> u64 {
        let random = Random::new(key);
        random.next();
        random.next()
    }

    fn pointer(key: u64) -> Pointer {
        Pointer::new(0x10_0000 + key).unwrap()
    }

    fn emit(table: &Slb, keys: std::ops::Range<u64>) {
        let random = Random::new(1);
        keys.for_each(|key| _ = table.insert(hash(key), pointer(key), &random));
    }

    fn holds(table: &Slb, key: u64) -> bool {
        table.find(hash(key), |found| found == pointer(key)).is_some()
    }

    fn lookups(lookups: u64) -> Passed {
        Passed { lookups, evictions: 0 }
    }

    const LINES_OF_ALL: usize = 4096;

    fn table(keys: u64) -> Slb {
        let table = Slb::new(&Config::with_size(LINES_OF_ALL * 64).fits(true)).unwrap();
        emit(&table, 0..keys);
        table
    }

    /// What it does after as many lookups as it watches, twice: first it sees what there is, then that nothing is new.
    fn settled(fitting: &mut Fitting, table: &Slb) -> Step {
        let watched = table.capacity() as u64 / WATCHED;
        assert_eq!(fitting.step(table, lookups(watched)), Step::Nothing);
        fitting.step(table, lookups(watched))
    }

    /// Folds it, as the buffer does.
    fn fold(fitting: &mut Fitting, table: &Slb, times: u32) -> Slb {
        let folded = table.folded(times).unwrap();
        fitting.copied(0);
        loop {
            match fitting.step(table, lookups(1)) {
                Step::Copy { from, to } => {
                    assert!(to > from);
                    table.copy_lines(from..to, &folded);
                    fitting.copied(to);
                }
                Step::Succeed => break,
                other => panic!("{other:?}"),
            }
        }
        fitting.has_folded();
        folded
    }

    #[test]
    fn a_sparse_table_is_folded_until_half_of_it_would_be_in_use_and_has_all_that_it_had() {
        for (keys, times) in [(3500, 2), (1500, 3), (800, 4), (200, 6), (1, 6)] {
            let (table, mut fitting) = (table(keys), Fitting::new());
            assert_eq!(settled(&mut fitting, &table), Step::Fold(times), "{keys} keys");
            let folded = fold(&mut fitting, &table, times);
            assert_eq!(folded.bytes(), table.bytes() >> times);
            let kept = (0..keys).filter(|&key| holds(&folded, key)).count();
            // Of seven slots, half in use, one line in thirty runs over.
            assert!(kept as f64 >= 0.98 * keys as f64, "{kept} of {keys} kept");
            assert_eq!((folded.occupancy(), folded.filled().unwrap().0), (kept, kept));
            assert!(!fitting.is_at_work());
        }
    }

    #[test]
    fn of_slots_that_have_no_room_together_the_warmer_ones_are_kept() {
        let (table, random) = (table(0), Random::new(1));
        // Of two lines that become one.
        let line = |lines: usize, key: u64| crate::lines::index(hash(key), lines);
        let keys: Vec<u64> = (0..1 << 20).filter(|&key| line(LINES_OF_ALL / 2, key) == 77).take(14).collect();
        for (n, &key) in keys.iter().enumerate() {
            table.insert(hash(key), pointer(key), &random);
            if n % 2 == 0 {
                (0..1000).for_each(|_| _ = table.hit(hash(key), &random, |found| found == pointer(key)));
            }
        }
        let there: Vec<u64> = keys.iter().copied().filter(|&key| holds(&table, key)).collect();
        let folded = fold(&mut Fitting::new(), &table, 1);
        for (n, key) in keys.iter().enumerate().filter(|(_, key)| there.contains(key)) {
            assert!(n % 2 == 1 || holds(&folded, *key), "a warm one was lost");
        }
        assert_eq!(folded.occupancy(), 7.min(there.len()));
    }

    #[test]
    fn nothing_is_folded_while_keys_are_new_or_an_eighth_of_the_slots_is_in_use() {
        let (busy, mut fitting) = (table(1000), Fitting::new());
        let watched = busy.capacity() as u64 / WATCHED;
        for round in 0..20 {
            emit(&busy, 1000 + 50 * round..1050 + 50 * round);
            assert_eq!(fitting.step(&busy, lookups(watched)), Step::Nothing, "{round}");
        }
        assert_eq!(settled(&mut Fitting::new(), &table(3700)), Step::Nothing);
        assert_eq!(
            settled(&mut Fitting::new(), &table(0)),
            Step::Nothing,
            "nobody has asked for anything yet"
        );
    }

    #[test]
    fn tables_that_cannot_be_halved_twice_and_those_of_one_size_stay() {
        for (lines, steps) in
            [(4095, None), (64, None), (128, None), (4098, None), (256, Some(2)), (320, Some(2))]
        {
            let table = Slb::new(&Config::with_size(lines * 64).fits(true)).unwrap();
            emit(&table, 0..10);
            let step = settled(&mut Fitting::new(), &table);
            assert_eq!(step, steps.map_or(Step::Nothing, Step::Fold), "{lines} lines");
        }
        let paper = Slb::new(&Config::paper(LINES_OF_ALL * 64)).unwrap();
        emit(&paper, 0..10);
        assert_eq!(settled(&mut Fitting::new(), &paper), Step::Nothing);
    }

    #[test]
    fn a_folded_table_that_fills_is_unfolded_and_folded_again_only_after_twice_as_long() {
        let (whole, mut fitting) = (table(800), Fitting::new());
        let folded = fold(&mut fitting, &whole, 4);
        assert_eq!(fitting.step(&folded, lookups(1)), Step::Nothing);
        emit(&folded, 800..4000);
        assert_eq!(fitting.step(&folded, lookups(1)), Step::Unfold);
        assert_eq!(fitting.step(&folded, lookups(1)), Step::Unfold, "until it could be done");
        fitting.has_unfolded();
        let watched = whole.capacity() as u64 / WATCHED;
        for _ in 0..3 {
            assert_eq!(fitting.step(&whole, lookups(watched)), Step::Nothing);
        }
        assert_eq!(fitting.step(&whole, lookups(watched)), Step::Fold(4));
        // Or throws keys out before so many are in use.
        let folded = fold(&mut fitting, &whole, 4);
        let watched = folded.capacity() as u64 / WATCHED;
        for (evictions, step) in [(0, Step::Nothing), (watched / 9, Step::Unfold)] {
            assert_eq!(fitting.step(&folded, Passed { lookups: watched, evictions }), step);
        }
        // What it has thrown out is remembered until it is done; here there is no memory for the whole one.
        assert_eq!(fitting.step(&folded, lookups(1)), Step::Unfold);
        fitting.has_failed();
        for _ in 0..WITHOUT_MEMORY {
            assert_eq!(fitting.step(&folded, lookups(1)), Step::Nothing);
        }
        assert_eq!(fitting.step(&folded, lookups(1)), Step::Unfold);
        // Or cannot be replaced, and rests between attempts, longer and longer.
        let rests: Vec<u32> = (0..12)
            .map(|_| {
                fitting.has_to_wait();
                (0..).find(|_| fitting.step(&folded, lookups(1)) == Step::Unfold).unwrap()
            })
            .collect();
        assert_eq!(rests, [1, 2, 4, 8, 8, 8, 8, 8, 8, 8, 8, 8]);
        // Of a smaller one there was no memory for: nothing more is tried, but it does not stay crowded.
        let mut fitting = Fitting { folded: true, ..Fitting::new() };
        let (folded, watched) = (table(200), table(0).capacity() as u64 / WATCHED);
        assert_eq!(settled(&mut fitting, &folded), Step::Fold(6));
        fitting.has_failed();
        for _ in 0..100 {
            assert_eq!(fitting.step(&folded, lookups(watched)), Step::Nothing);
        }
        assert_eq!(fitting.step(&folded, Passed { lookups: watched, evictions: watched / 9 }), Step::Unfold);
        // A whole one that is full has no other to become.
        assert_eq!(Fitting::new().step(&table(1 << 16), lookups(1 << 20)), Step::Nothing);
    }
}
