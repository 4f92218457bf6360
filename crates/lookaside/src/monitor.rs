//! The monitor: switches the table off where it does not pay, and on again where it does.
//!
//! STLT's performance guarantee (HPCA 2021, section III-F) asks for turning the table off and on now and then and watching.
//! Here every thread lets lookups pass in blocks of [`BLOCK`], and from time to time makes a *trial* of three blocks, the
//! middle one the other way round: without the table if it is on, with it if it is off.
//!
//! ```text
//!    ... as decided ...  | as decided |  the other way   | the other way |    as decided    | as decided |  ... as decided ...
//!                           timed      to warm the caches     timed       to warm the caches     timed
//! ```
//!
//! The cost of a block is wall time by the number of its lookups, whatever the program does between them: that is the same in
//! both ways, and what is compared is what the program feels. The verdict is the median of the last [`TRIALS`] trials of all
//! threads, so a preempted block decides nothing; and going back takes a larger advantage than staying.
//!
//! Trials cost what the worse way costs. So they become rare where the answer is clear: the interval doubles after each
//! trial that confirms the verdict, up to [`LONGEST`] blocks, and begins anew when one contradicts it.
//!
//! The processor's caches hold what the way decided on asks for: the other way is cold. A table that was off holds what was hot
//! when it was switched off; before it is timed it is used for as many blocks as a sixty-fourth of the interval, so that it can
//! warm; for a quarter of that where it costs half as much again as the index alone, or more: there the warming alone would cost
//! two lookups in a hundred. An index that a table stands before is cold in the caches; where that could turn the verdict, where it
//! seems no more than half as dear again without the table, it is asked for some blocks before it is timed: else a table that
//! costs a tenth stays on. Where the table gains more, that would cost, and say nothing new.
//!
//! While a table first fills it must look worse than it is: nothing is tried before free slots have become rare, or four
//! times as many lookups have been made as there are slots. An empty table in the place of another (it was resized, or is whole
//! again: `fitting`) first fills like any: it is on, and what was found of the other is forgotten.
//!
//! While it is off, writes go on telling the table, so that it is never wrong when it comes back.
//!
//! # One at a time, and in batches
//!
//! An index that looks up many keys together is quicker in batches by a factor that a table in front of it does not have: there may
//! be a gain in lookups one at a time and a loss in batches. So there is a verdict for each, and a thread makes trials of each, by
//! what the first call of a block is. A trial is broken off where a block of it begins with another. Whose calls come by turns has
//! blocks of both, all of the same mixture: then both verdicts are the mixture's.
//!
//! Rejected: *a count for each*: two more instructions a lookup, of which a quick index has fifty.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

/// Lookups in a block: some ten to a hundred microseconds.
pub(crate) const BLOCK: u32 = 1024;
/// Blocks between trials, at first.
const SHORTEST: u32 = 16;
/// And at most.
const LONGEST: u32 = 8192;
/// Blocks after which it is seen to whether the table fits; at once where there is something to be done about it: slots to be
/// copied, or a table to be replaced.
const PART: i32 = 64;
/// Trials that the verdict is the median of.
const TRIALS: usize = 7;
/// Where lookups the one way seem at most so much dearer than the other, they are given more blocks to warm.
const NEAR: f64 = 1.5;
/// So many without the table, at least and at most: a sixteenth of the interval. None where they are much dearer.
const TO_WARM: [u32; 2] = [8, 128];
/// The part of the interval with it. Where that is much dearer, a quarter of this: all of it would cost what the trials find.
const WARMS_TABLE: u32 = 64;
/// How much cheaper lookups must be with the table for it to be switched on again: 2 %. It is switched off for a quarter of
/// that.
const MARGIN: f64 = 0.02;

/// How lookups come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Single,
    Batch,
}

impl Call {
    /// Of so many lookups.
    #[inline(always)]
    pub(crate) fn of(lookups: u32) -> Call {
        if lookups > 1 { Call::Batch } else { Call::Single }
    }
}

/// What all threads share. Two of a thing are of lookups one at a time, and of those in batches.
#[derive(Debug)]
pub(crate) struct Monitor {
    watching: AtomicBool,
    off: [AtomicBool; 2],
    switches: AtomicU64,
    made: AtomicU64,
    /// Tables that began empty in another's place.
    begun: AtomicU64,
    /// Cost without the table by cost with it, of the last trials; the oldest first.
    gains: Mutex<[Vec<f64>; 2]>,
}

/// What the monitor has found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict {
    /// Whether it watches at all.
    pub watching: bool,
    /// Whether lookups one at a time use the table.
    pub on: bool,
    /// Cost of such a lookup without the table by its cost with it, the median of the last trials; `None` before there were
    /// enough.
    pub gain: Option<f64>,
    /// Whether lookups in batches use the table.
    pub on_in_batches: bool,
    /// As `gain`, of lookups in batches.
    pub gain_in_batches: Option<f64>,
    /// Trials made.
    pub trials: u64,
    /// How often it has switched.
    pub switches: u64,
}

impl Monitor {
    pub(crate) fn new(watching: bool) -> Monitor {
        Monitor {
            watching: AtomicBool::new(watching),
            off: Default::default(),
            switches: AtomicU64::new(0),
            made: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            gains: Mutex::default(),
        }
    }

    /// Begins or ends watching. Who ends it leaves the table on.
    pub(crate) fn watch(&self, watching: bool) {
        // Under the lock, so that no trial that ends now has the last word. All relaxed: decisions, which threads follow at
        // their next block.
        let mut gains = self.gains.lock();
        self.watching.store(watching, Ordering::Relaxed);
        if !watching {
            self.off.iter().for_each(|off| off.store(false, Ordering::Relaxed));
        }
        gains.iter_mut().for_each(Vec::clear);
    }

    /// An empty table is in the place of the one that was judged.
    pub(crate) fn begins_anew(&self) {
        // As in `watch`. A thread in the middle of a trial sees the number before it says what it found.
        let mut gains = self.gains.lock();
        gains.iter_mut().for_each(Vec::clear);
        self.begun.fetch_add(1, Ordering::Relaxed);
        let were_off = self.off.iter().filter(|off| off.swap(false, Ordering::Relaxed)).count();
        self.switches.fetch_add(were_off as u64, Ordering::Relaxed);
    }

    pub(crate) fn is_watching(&self) -> bool {
        self.watching.load(Ordering::Relaxed)
    }

    fn is_on(&self, call: Call) -> bool {
        !self.off[call as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn verdict(&self) -> Verdict {
        let [gain, gain_in_batches] = self.gains.lock().each_ref().map(|gains| median(gains));
        Verdict {
            watching: self.watching.load(Ordering::Relaxed),
            on: self.is_on(Call::Single),
            gain,
            on_in_batches: self.is_on(Call::Batch),
            gain_in_batches,
            trials: self.made.load(Ordering::Relaxed),
            switches: self.switches.load(Ordering::Relaxed),
        }
    }

    /// Records a trial of such lookups, and says whether it agrees with the verdict as it now is.
    fn record(&self, call: Call, gain: f64) -> bool {
        let mut gains = self.gains.lock();
        if !self.is_watching() {
            return false;
        }
        let gains = &mut gains[call as usize];
        self.made.fetch_add(1, Ordering::Relaxed);
        if gains.len() == TRIALS {
            gains.remove(0);
        }
        gains.push(gain);
        let off = !self.is_on(call);
        let change = median(gains)
            .is_some_and(|gain| if off { gain > 1.0 + MARGIN } else { gain < 1.0 - MARGIN / 4.0 });
        if change {
            self.off[call as usize].store(!off, Ordering::Relaxed);
            self.switches.fetch_add(1, Ordering::Relaxed);
            // Those of the table in another state say nothing about this one.
            gains.clear();
            return true;
        }
        (gain < 1.0) == off
    }
}

fn median(gains: &[f64]) -> Option<f64> {
    let mut sorted = gains.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    (sorted.len() >= TRIALS.div_ceil(2)).then(|| sorted[sorted.len() / 2])
}

/// Where lookups are counted down to that do not ask the table. So one comparison of what is left tells a lookup that it asks, as
/// nearly all do; only those that do not, and the first of a block, look further.
const OFF: i32 = i32::MIN / 2;

/// What a thread is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// As decided, until the next trial.
    Decided,
    /// The blocks of a trial.
    Before,
    Warming,
    Other,
    Returning,
    After,
}

/// Where a thread is between trials of one kind of lookups, or in one.
#[derive(Debug)]
struct Course {
    phase: Cell<Phase>,
    /// Whether the table was on when the trial began.
    tried: Cell<bool>,
    /// Whether the last trial found both ways about as dear.
    is_near: Cell<bool>,
    interval: Cell<u32>,
    /// Lookups of a block behind its part of now: it is run in parts. After each of those without the table is seen whether the
    /// watching has been ended, so that no lookup has to; after each with it, whether the table fits.
    behind: Cell<i32>,
    began: Cell<Option<Instant>>,
    /// Nanoseconds of the blocks before and in the middle.
    costs: Cell<[u64; 2]>,
    /// Free slots filled when the last block ended.
    filled: Cell<u64>,
}

impl Course {
    fn new() -> Course {
        Course {
            phase: Cell::new(Phase::Decided),
            tried: Cell::new(true),
            is_near: Cell::new(false),
            interval: Cell::new(SHORTEST),
            behind: Cell::new(0),
            began: Cell::new(None),
            costs: Cell::new([0; 2]),
            filled: Cell::new(0),
        }
    }

    /// Lookups of the other kind come. A trial is broken off, and made when as many blocks have passed as before it.
    fn leave(&self) {
        if self.phase.replace(Phase::Decided) != Phase::Decided {
            self.behind.set((BLOCK * self.interval.get()) as i32);
        }
    }

    /// Another table is there, of which nothing is known.
    fn restart(&self, filled: u64) {
        self.phase.set(Phase::Decided);
        self.interval.set(SHORTEST);
        self.behind.set(0);
        self.began.set(None);
        self.filled.set(filled);
    }
}

/// One thread's part.
#[derive(Debug)]
pub(crate) struct Watch {
    /// Lookups until the block ends, or a part of it; that and [`OFF`] if they do not ask the table.
    left: Cell<i32>,
    /// What is left behind the lookup that counts next, if it is a hit.
    due: Cell<i32>,
    /// Whether they ask the table.
    asks: Cell<bool>,
    /// What was left at first.
    block: Cell<i32>,
    /// Whether the next part should be short: there was something to be done about the table, or it is the first of its kind.
    soon: Cell<bool>,
    /// Lookups that asked the table in the blocks before, and those that did not.
    asked: Cell<u64>,
    passed_by: Cell<u64>,
    /// Those of the first that were told to who lets the table fit.
    told: Cell<u64>,
    /// What the block began with.
    call: Cell<Call>,
    courses: [Course; 2],
    /// Lookups since the table began empty.
    lookups: Cell<u64>,
    /// Tables that had begun empty when the last block ended.
    begun: Cell<u64>,
}

impl Watch {
    /// The first lookup that counts is behind so many.
    pub(crate) fn new(due: i32) -> Watch {
        Watch {
            left: Cell::new(0),
            due: Cell::new(-due),
            asks: Cell::new(true),
            block: Cell::new(0),
            soon: Cell::new(false),
            asked: Cell::new(0),
            passed_by: Cell::new(0),
            told: Cell::new(0),
            call: Cell::new(Call::Single),
            courses: [Course::new(), Course::new()],
            lookups: Cell::new(0),
            begun: Cell::new(0),
        }
    }

    /// Whether the next `lookups` lookups, which come so, are to ask the table. `filled` is how many free slots this thread has
    /// filled so far, of the table's `capacity`. `fit` is told of those that asked it now and then, and says whether it wants to be
    /// soon again.
    #[inline(always)]
    pub(crate) fn uses_table(
        &self,
        lookups: u32,
        call: Call,
        monitor: &Monitor,
        filled: &Cell<u64>,
        capacity: impl Fn() -> usize,
        fit: impl FnOnce(u64) -> bool,
    ) -> bool {
        let lookups = lookups.min(BLOCK) as i32;
        // Subtracted and stored at once: before a quick index, two instructions more are a twentieth of its lookups.
        let left = self.left.get() - lookups;
        self.left.set(left);
        if left >= 0 {
            return true;
        }
        if (OFF..=OFF + BLOCK as i32).contains(&left) {
            return false;
        }
        self.left.set(left + lookups);
        self.next_block(lookups, call, monitor, filled.get(), capacity, fit)
    }

    /// Lookups that were told to ask the table, so far.
    pub(crate) fn asked(&self) -> u64 {
        self.asked.get() + if self.asks.get() { self.done() } else { 0 }
    }

    /// Lookups that were told not to, so far.
    pub(crate) fn passed_by(&self) -> u64 {
        self.passed_by.get() + if self.asks.get() { 0 } else { self.done() }
    }

    /// Lookups of the block, or of its part, so far.
    fn done(&self) -> u64 {
        (self.block.get() - self.left.get()) as u64
    }

    /// What is left behind the last lookup that was let ask.
    #[inline(always)]
    pub(crate) fn left(&self) -> i32 {
        self.left.get()
    }

    /// And behind that which counts next: see [`crate::cadence`].
    #[inline(always)]
    pub(crate) fn due(&self) -> i32 {
        self.due.get()
    }

    #[inline(always)]
    pub(crate) fn set_due(&self, due: i32) {
        self.due.set(due);
    }

    /// Ends a block without the table if nobody watches any more.
    pub(crate) fn heed(&self, monitor: &Monitor) {
        if !self.asks.get() && !monitor.is_watching() {
            self.set_block(0, false);
            self.course().behind.set(0);
        }
    }

    fn course(&self) -> &Course {
        &self.courses[self.call.get() as usize]
    }

    #[cold]
    fn next_block(
        &self,
        lookups: i32,
        call: Call,
        monitor: &Monitor,
        filled: u64,
        capacity: impl Fn() -> usize,
        fit: impl FnOnce(u64) -> bool,
    ) -> bool {
        // Not in a trial, whose blocks are to be alike.
        if self.course().phase.get() == Phase::Decided {
            // Those of trials, too: what they threw out is told with them.
            let asked = self.asked();
            self.soon.set(fit(asked - self.told.replace(asked)));
        }
        let changes = self.call.get() != call;
        if changes {
            self.course().leave();
            self.call.set(call);
            // Where calls come by turns, the few of one kind begin few parts; long ones would be most of all lookups.
            self.soon.set(true);
        }
        let behind = self.course().behind.get();
        let is_same_table = self.begun.get() == monitor.begun.load(Ordering::Relaxed);
        if behind > 0 && monitor.is_watching() && is_same_table {
            self.set_part(behind, if changes { monitor.is_on(call) } else { self.asks.get() });
        } else {
            self.start_block(monitor, filled, capacity());
        }
        self.left.set(self.left.get() - lookups);
        self.asks.get()
    }

    /// As [`Watch::set_block`], for the first part of so many lookups; the others stay behind.
    fn set_part(&self, lookups: i32, asks: bool) {
        let blocks = if asks && !self.soon.get() { PART } else { 1 };
        let part = lookups.min(blocks * BLOCK as i32);
        self.set_block(part, asks);
        self.course().behind.set(lookups - part);
    }

    /// From now on so many lookups ask the table, or do not; what came before is kept.
    fn set_block(&self, lookups: i32, asks: bool) {
        self.asked.set(self.asked());
        self.passed_by.set(self.passed_by());
        self.asks.set(asks);
        let left = if asks { lookups } else { OFF + lookups };
        // As far away as before; where no lookup was a hit for long, not too far behind to count from.
        let ahead = (self.left.get() - self.due.get()).max(-(BLOCK as i32));
        self.due.set(left - ahead);
        self.block.set(left);
        self.left.set(left);
    }

    fn start_block(&self, monitor: &Monitor, filled: u64, capacity: usize) {
        let (call, course) = (self.call.get(), self.course());
        let on = monitor.is_on(call);
        if !monitor.watching.load(Ordering::Relaxed) {
            course.interval.set(SHORTEST);
            self.begin(Phase::Decided, true, SHORTEST);
            return;
        }
        let begun = monitor.begun.load(Ordering::Relaxed);
        if self.begun.replace(begun) != begun {
            self.lookups.set(0);
            self.courses.iter().for_each(|course| course.restart(filled));
            self.begin(Phase::Decided, on, SHORTEST);
            return;
        }
        let now = moment();
        let passed = course.began.get().map_or(0, |began| now.duration_since(began).as_nanos() as u64);
        match course.phase.get() {
            // The first lookup of all: nothing has passed that could be judged.
            Phase::Decided if course.began.get().is_none() => {
                self.begin(Phase::Decided, on, course.interval.get());
            }
            Phase::Decided => {
                let blocks = u64::from(BLOCK) * u64::from(course.interval.get());
                let newly_filled = filled - course.filled.replace(filled);
                self.lookups.set(self.lookups.get() + blocks);
                let warm = newly_filled * 20 < blocks || self.lookups.get() > 4 * capacity as u64;
                if warm {
                    self.begin(Phase::Before, on, 1);
                } else {
                    self.begin(Phase::Decided, on, course.interval.get());
                }
            }
            // Another thread's trial has switched meanwhile: this one's blocks are not what they are taken for.
            _ if on != course.tried.get() => {
                course.filled.set(filled);
                course.interval.set(SHORTEST);
                self.begin(Phase::Decided, on, SHORTEST);
            }
            Phase::Before => {
                course.costs.set([passed, 0]);
                self.begin_warm(Phase::Warming, Phase::Other, !on);
            }
            Phase::Warming => self.begin(Phase::Other, !on, 1),
            Phase::Other => {
                course.costs.set([course.costs.get()[0], passed]);
                self.begin_warm(Phase::Returning, Phase::After, on);
            }
            Phase::Returning => self.begin(Phase::After, on, 1),
            Phase::After => {
                let [before, other] = course.costs.get();
                let decided = (before + passed) as f64 / 2.0;
                let gain = if on { other as f64 / decided } else { decided / other as f64 };
                course.is_near.set((1.0 / NEAR..NEAR).contains(&gain));
                let agrees = gain.is_finite() && gain > 0.0 && monitor.record(call, gain);
                let longer = if agrees { (course.interval.get() * 2).min(LONGEST) } else { SHORTEST };
                course.interval.set(longer);
                course.filled.set(filled);
                self.begin(Phase::Decided, monitor.is_on(call), longer);
            }
        }
    }

    /// Begins a block that is timed, behind as many that warm what it needs as that takes.
    fn begin_warm(&self, warming: Phase, timed: Phase, uses_table: bool) {
        let course = self.course();
        let [least, most] = TO_WARM;
        let to_warm = match (course.tried.get(), course.is_near.get()) {
            (true, false) => 0,
            (true, true) => (course.interval.get() / 16).clamp(least, most),
            (false, true) => course.interval.get().div_ceil(WARMS_TABLE),
            (false, false) => course.interval.get().div_ceil(4 * WARMS_TABLE),
        };
        match to_warm {
            0 => self.begin(timed, uses_table, 1),
            blocks => self.begin(warming, uses_table, blocks),
        }
    }

    fn begin(&self, phase: Phase, uses_table: bool, blocks: u32) {
        let course = self.course();
        if phase == Phase::Before {
            course.tried.set(uses_table);
        }
        course.phase.set(phase);
        self.set_part((BLOCK * blocks) as i32, uses_table);
        course.began.set(Some(moment()));
    }
}

/// Now.
#[cfg(not(test))]
fn moment() -> Instant {
    Instant::now()
}

#[cfg(test)]
use tests::moment;

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;
    use std::time::Duration;

    use super::*;

    static BEGINNING: LazyLock<Instant> = LazyLock::new(Instant::now);

    thread_local! {
        /// The time that has passed for this thread's test: it is not the machine's, on which others work, too.
        static PASSED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    }

    pub(super) fn moment() -> Instant {
        *BEGINNING + PASSED.get()
    }

    /// Lets so many lookups pass, or a few more, each call of them as many as `calls` says. They take so many nanoseconds, in such
    /// a call, with the table or without. How many were with it.
    fn run_calls(
        monitor: &Monitor,
        watch: &Watch,
        lookups: u32,
        mut calls: impl FnMut() -> u32,
        cost: impl Fn(Call, bool) -> u32,
    ) -> u64 {
        let (filled, mut with, mut done) = (Cell::new(0), 0, 0);
        while done < lookups {
            let together = calls();
            let call = Call::of(together);
            let uses_table = watch.uses_table(together, call, monitor, &filled, || 1000, |_| false);
            with += u64::from(uses_table) * u64::from(together);
            done += together;
            PASSED.set(
                PASSED.get() + Duration::from_nanos(u64::from(cost(call, uses_table)) * u64::from(together)),
            );
        }
        with
    }

    /// As [`run_calls`], one at a time.
    fn run(monitor: &Monitor, watch: &Watch, lookups: u32, cost: impl Fn(bool) -> u32) -> u64 {
        run_calls(monitor, watch, lookups, || 1, |_, with| cost(with))
    }

    #[test]
    #[cfg_attr(miri, ignore = "statistics of many steps, and no unsafe code")]
    fn a_table_that_costs_more_than_it_saves_is_switched_off_and_on_again_when_it_pays() {
        let (monitor, watch) = (Monitor::new(true), Watch::new(1));
        let lookups = 400_000;
        run(&monitor, &watch, lookups, |with| if with { 300 } else { 100 });
        let verdict = monitor.verdict();
        assert!(!verdict.on && verdict.switches == 1, "{verdict:?}");
        let with = run(&monitor, &watch, lookups, |with| if with { 300 } else { 100 });
        assert!(with < u64::from(lookups) / 20, "used in {with} lookups although off");
        // The interval has grown meanwhile.
        for _ in 0..100 {
            run(&monitor, &watch, lookups, |with| if with { 100 } else { 300 });
            if monitor.verdict().on {
                return;
            }
        }
        panic!("never switched on again: {:?}", monitor.verdict());
    }

    #[test]
    #[cfg_attr(miri, ignore = "statistics of many steps, and no unsafe code")]
    fn a_table_that_pays_stays_on_and_is_tried_ever_more_rarely() {
        let (monitor, watch) = (Monitor::new(true), Watch::new(1));
        run(&monitor, &watch, 2_000_000, |with| if with { 20 } else { 200 });
        let verdict = monitor.verdict();
        assert!(verdict.on && verdict.switches == 0 && verdict.gain > Some(2.0), "{verdict:?}");
        assert!((4..20).contains(&verdict.trials), "{verdict:?}");
    }

    /// What is asked for in one way only is cold in the caches for the other, at first.
    #[test]
    #[cfg_attr(miri, ignore = "statistics of many steps, and no unsafe code")]
    fn a_table_that_costs_a_tenth_is_switched_off_although_the_index_is_cold_at_first() {
        let cold_for = 4 * BLOCK;
        for (with_table, without, stays_on) in
            [(110_u32, 100_u32, false), (100, 110, true), (100, 1000, true)]
        {
            let (monitor, watch) = (Monitor::new(true), Watch::new(1));
            let (last, same_way) = (Cell::new(true), Cell::new(cold_for));
            let cost = |with: bool| {
                same_way.set(if last.replace(with) == with { same_way.get() + 1 } else { 0 });
                let cold = if same_way.get() < cold_for { 30 } else { 0 };
                cold + if with { with_table } else { without }
            };
            let lookups = 10_000_000;
            let with = run(&monitor, &watch, lookups, cost);
            assert_eq!(monitor.verdict().on, stays_on, "{with_table}, {without}: {:?}", monitor.verdict());
            // What that costs while it stays on: hardly a trial's blocks.
            let without_table = f64::from(lookups) - with as f64;
            let dearer =
                without_table * (f64::from(without) / f64::from(with_table) - 1.0) / f64::from(lookups);
            assert!(!stays_on || dearer < 0.02, "{with_table}, {without}: {dearer}");
        }
    }

    /// Another thread switches while this one compares: blocks with the table are taken for blocks without, or the other way.
    #[test]
    fn a_trial_in_which_the_table_is_switched_counts_for_nothing() {
        for interrupted in [Phase::Before, Phase::Warming, Phase::Other, Phase::Returning, Phase::After] {
            let (monitor, watch) = (Monitor::new(true), Watch::new(1));
            watch.course().is_near.set(true);
            let cost = |with| if with { 300 } else { 100 };
            while watch.course().phase.get() != interrupted {
                run(&monitor, &watch, 1, cost);
            }
            monitor.off[Call::Single as usize].store(true, Ordering::Relaxed);
            while watch.course().phase.get() != Phase::Decided {
                run(&monitor, &watch, 1, cost);
            }
            assert_eq!(monitor.verdict().trials, 0, "{interrupted:?}: {:?}", monitor.gains.lock());
        }
    }

    /// It fills, and so looks worse than it is.
    #[test]
    fn an_empty_table_in_the_place_of_another_is_not_tried_before_it_has_filled() {
        let (monitor, watch) = (Monitor::new(true), Watch::new(1));
        let capacity = 100_000;
        let (filled, mut lookups) = (Cell::new(0), 0);
        let mut run = |cost: &dyn Fn(bool) -> u32, fills: u64, most: u64, until: &dyn Fn() -> bool| {
            for _ in 0..most {
                if until() {
                    return;
                }
                let with = watch.uses_table(1, Call::Single, &monitor, &filled, || capacity, |_| false);
                PASSED.set(PASSED.get() + Duration::from_nanos(u64::from(cost(with))));
                lookups += 1;
                filled.set(filled.get() + if lookups % 2 == 0 { fills } else { 0 });
            }
        };
        let lost = |with: bool| if with { 300 } else { 100 };
        // One that does not pay is switched off.
        run(&lost, 0, 5 * capacity as u64, &|| false);
        run(&lost, 0, 10_000_000, &|| !monitor.verdict().on);
        assert!(!monitor.verdict().on);
        // And is tried ever more rarely.
        run(&lost, 0, 5_000_000, &|| false);
        let before = monitor.verdict();
        monitor.begins_anew();
        let after = monitor.verdict();
        assert!(after.on && after.gain.is_none() && after.switches == before.switches + 1, "{after:?}");
        // Whoever was in the middle of passing it by takes note.
        run(&lost, 0, u64::from(BLOCK), &|| false);
        assert!(watch.asks.get());
        // Each second lookup fills a slot: two lookups for each that there is, and no trial.
        run(&lost, 1, 2 * capacity as u64, &|| false);
        let filling = monitor.verdict();
        assert!(filling.on && filling.trials == before.trials, "{filling:?}");
        // Then it is judged as any.
        run(&lost, 0, 10_000_000, &|| !monitor.verdict().on);
        assert!(!monitor.verdict().on && monitor.verdict().trials > before.trials);
    }

    /// Whose trial ends as the watching does has no last word.
    #[test]
    fn nothing_is_switched_off_where_nobody_watches() {
        let monitor = Monitor::new(true);
        monitor.watch(false);
        for _ in 0..TRIALS {
            assert!(!monitor.record(Call::Single, 0.1) && !monitor.record(Call::Batch, 0.1));
        }
        let verdict = monitor.verdict();
        assert!(verdict.on && verdict.on_in_batches && verdict.trials == 0);
    }

    /// An index that looks up many keys together gains by that what a table would have saved.
    #[test]
    #[cfg_attr(miri, ignore = "statistics of many steps, and no unsafe code")]
    fn lookups_one_at_a_time_and_in_batches_have_a_verdict_each() {
        let (monitor, watch) = (Monitor::new(true), Watch::new(1));
        let cost = |call, with| match (call, with) {
            (Call::Single, true) | (Call::Batch, false) => 100,
            (Call::Single, false) | (Call::Batch, true) => 300,
        };
        let lookups = 400_000;
        run_calls(&monitor, &watch, lookups, || 1, cost);
        run_calls(&monitor, &watch, lookups, || 16, cost);
        let verdict = monitor.verdict();
        assert!(verdict.on && !verdict.on_in_batches, "{verdict:?}");
        assert!(verdict.gain > Some(2.0), "{verdict:?}");
        // Each time that they change, the verdict of theirs holds at once, but for what is left of a part.
        for _ in 0..10 {
            let single = run_calls(&monitor, &watch, lookups, || 1, cost);
            let batches = run_calls(&monitor, &watch, lookups, || 16, cost);
            assert!(single > u64::from(lookups) * 9 / 10, "{single} with the table, which pays");
            let left = u64::from(PART.unsigned_abs() * BLOCK);
            assert!(batches < left + u64::from(lookups) / 20, "{batches} with the table, which does not");
        }
        assert_eq!(monitor.verdict().switches, 1);
        assert_eq!((monitor.verdict().on, monitor.verdict().on_in_batches), (true, false));
    }

    /// Blocks of both, as they come: trials of each are broken off again and again, and made nevertheless.
    #[test]
    #[cfg_attr(miri, ignore = "statistics of many steps, and no unsafe code")]
    fn calls_that_come_by_turns_are_judged_as_the_mixture() {
        // Batches are one call in seventeen, half of all lookups; or half of the calls, and nearly all lookups.
        for (one_in, cost_with, stays_on) in
            [(17, 300, false), (17, 30, true), (2, 300, false), (2, 30, true)]
        {
            let (monitor, watch) = (Monitor::new(true), Watch::new(1));
            let random = crate::random::Random::new(7);
            let calls = || if random.below(one_in) == 0 { 16 } else { 1 };
            let cost = |_, with| if with { cost_with } else { 100 };
            run_calls(&monitor, &watch, 20_000_000, calls, cost);
            let verdict = monitor.verdict();
            assert_eq!(verdict.on_in_batches, stays_on, "{one_in}: {verdict:?}");
            // One at a time that are a seventeenth of all lookups begin too few blocks in a row to be tried.
            assert!(verdict.on == stays_on || one_in == 2, "{verdict:?}");
            let lookups = 4_000_000;
            let with = run_calls(&monitor, &watch, lookups, calls, cost);
            let astray = if stays_on { u64::from(lookups).saturating_sub(with) } else { with };
            assert!(astray < u64::from(lookups) / 10, "{one_in}, {cost_with}: {astray} the wrong way");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "statistics of many steps, and no unsafe code")]
    fn who_does_not_watch_always_uses_the_table() {
        let (monitor, watch) = (Monitor::new(false), Watch::new(1));
        assert_eq!(run(&monitor, &watch, 100_000, |_| 1), 100_000);
        assert_eq!(monitor.verdict().trials, 0);
    }
}
