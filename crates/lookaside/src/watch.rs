//! A thread's part in the monitor: it makes trials.
//!
//! Every thread lets lookups pass in blocks of [`BLOCK`], and from time to time makes a *trial*: some blocks are timed as decided,
//! some the other way round, without the table if it is on, with it if it is off, and some as decided again.
//!
//! ```text
//!    ... as decided ...  | as decided |  the other way   | the other way |    as decided    | as decided |  ... as decided ...
//!                           timed      to warm the caches     timed       to warm the caches     timed
//! ```
//!
//! The cost of a block is wall time by the number of its lookups, whatever the program does between them: that is the same in
//! both ways, and what is compared is what the program feels.
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
//! # One at a time, and in batches
//!
//! There is a verdict for each, and a block counts for what its first call is: so no lookup takes an instruction more. Each is as its
//! own verdict has it, or the other way round. One block is timed at a time where all of a trial are of one kind, as nearly always.
//! Where there were both, calls may come by turns, and what a block begins with says little of it: that trial says nothing, and the
//! next times [`MIXED`] blocks together, in which both kinds are nearly as in all, and compares those that began alike. There a table
//! that makes a tenth of a difference is at times taken for the contrary; one that makes a third is not.
//!
//! Rejected: *a count for each*: two more instructions a lookup, of which a quick index has fifty. *Trials of one kind, broken off
//! where the other comes*: of calls that come by turns none may ever end, and a table that only costs stays on.

use std::cell::Cell;
use std::time::Instant;

use crate::countdown::{Countdown, Turn};
use crate::monitor::{Call, Monitor};

/// Lookups in a block: some ten to a hundred microseconds.
pub(crate) const BLOCK: u32 = 1024;
/// Blocks between trials, at first, for each that is timed together.
const SHORTEST: u32 = 16;
/// And at most.
const LONGEST: u32 = 8192;
/// Blocks after which it is seen to whether the table fits; at once where there is something to be done about it: slots to be
/// copied, or a table to be replaced.
const PART: u32 = 64;
/// Blocks that are timed together where calls of both kinds come.
const MIXED: u32 = 16;
/// Where lookups the one way seem at most so much dearer than the other, they are given more blocks to warm.
const NEAR: f64 = 1.5;
/// So many without the table, at least and at most: a sixteenth of the interval. None where they are much dearer.
const TO_WARM: [u32; 2] = [8, 128];
/// The part of the interval with it. Where that is much dearer, a quarter of this: all of it would cost what the trials find.
const WARMS_TABLE: u32 = 64;

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

impl Phase {
    fn is_timed(self) -> bool {
        matches!(self, Phase::Before | Phase::Other | Phase::After)
    }

    fn is_other_way(self) -> bool {
        matches!(self, Phase::Warming | Phase::Other)
    }
}

/// Lookups that were timed, and the nanoseconds that they took.
#[derive(Debug, Clone, Copy, Default)]
struct Timed {
    lookups: u64,
    nanoseconds: u64,
}

impl Timed {
    /// Of a lookup; nothing if there was none.
    fn cost(self) -> Option<f64> {
        (self.lookups > 0).then(|| self.nanoseconds as f64 / self.lookups as f64)
    }
}

/// Lookups that are let ask together, or not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lookups {
    number: u32,
    call: Call,
}

impl Lookups {
    /// One call; more than [`BLOCK`] count as so many.
    #[inline(always)]
    pub(crate) fn of_call(number: u32) -> Lookups {
        Lookups { number, call: Call::of(number) }
    }

    /// A block of calls, of which the first is so many lookups.
    pub(crate) fn of_block(first: u32) -> Lookups {
        Lookups { number: BLOCK, call: Call::of(first) }
    }

    #[inline(always)]
    fn number(self) -> i32 {
        self.number.min(BLOCK) as i32
    }
}

/// One thread's part. Two of a thing are of lookups one at a time, and of those in batches.
#[derive(Debug)]
pub(crate) struct Watch {
    /// Whether the lookups of the block, or of a part of it, ask the table.
    asks: Cell<bool>,
    /// How many they are; what is left of them is in the [`Countdown`].
    block: Cell<i32>,
    /// Whether there was something to be done about the table, so that the next part should be short.
    soon: Cell<bool>,
    /// Lookups that asked the table in the blocks before, and those that did not.
    asked: Cell<u64>,
    passed_by: Cell<u64>,
    /// Those of the first that were told to who lets the table fit.
    told: Cell<u64>,
    phase: Cell<Phase>,
    /// Lookups of the phase behind its part of now. After each part without the table is seen whether the watching has been ended, so
    /// that no lookup has to; after each with it, whether the table fits. In a trial a part is a block, or about that.
    behind: Cell<u32>,
    /// What the part began with.
    call: Cell<Call>,
    /// When it began, if it is timed.
    began: Cell<Option<Instant>>,
    /// Turned by each part of a trial of both kinds: how long the next is.
    uneven: Cell<u32>,
    interval: Cell<u32>,
    /// Blocks that are timed together.
    together: Cell<u32>,
    /// Whether the table was on when the trial began.
    tried: Cell<[bool; 2]>,
    /// Blocks of the trial as decided, and the other way.
    costs: Cell<[[Timed; 2]; 2]>,
    /// Which kinds the blocks of the trial began with.
    met: Cell<[bool; 2]>,
    /// Whether the last trial found both ways about as dear.
    is_near: Cell<[bool; 2]>,
    /// Which kinds have come so far.
    known: Cell<[bool; 2]>,
    /// Lookups since the table began empty.
    lookups: Cell<u64>,
    /// Free slots filled when the last interval or trial ended.
    filled: Cell<u64>,
    /// Tables that had begun empty when the last block ended.
    begun: Cell<u64>,
}

/// Makes that of a kind so.
fn set<T: Copy>(both: &Cell<[T; 2]>, call: Call, to: T) {
    let mut now = both.get();
    now[call as usize] = to;
    both.set(now);
}

impl Watch {
    /// Nothing is known yet.
    pub(crate) fn new() -> Watch {
        Watch {
            asks: Cell::new(true),
            block: Cell::new(0),
            soon: Cell::new(false),
            asked: Cell::new(0),
            passed_by: Cell::new(0),
            told: Cell::new(0),
            phase: Cell::new(Phase::Decided),
            behind: Cell::new(SHORTEST * BLOCK),
            call: Cell::new(Call::Single),
            began: Cell::new(None),
            uneven: Cell::new(0),
            interval: Cell::new(SHORTEST),
            together: Cell::new(1),
            tried: Cell::new([true; 2]),
            costs: Cell::default(),
            met: Cell::default(),
            is_near: Cell::default(),
            known: Cell::default(),
            lookups: Cell::new(0),
            filled: Cell::new(0),
            begun: Cell::new(0),
        }
    }

    /// Whether the next lookups are to ask the table. `filled` is how many free slots this thread has
    /// filled so far, of the table's `capacity`. `fit` is told of those that asked it now and then, and says whether it wants to be
    /// soon again.
    #[inline(always)]
    pub(crate) fn uses_table(
        &self,
        countdown: &Countdown,
        lookups: Lookups,
        monitor: &Monitor,
        filled: &Cell<u64>,
        capacity: impl Fn() -> usize,
        fit: impl FnOnce(u64) -> bool,
    ) -> bool {
        match countdown.take(lookups.number()) {
            Turn::Asks => true,
            Turn::PassesBy => false,
            Turn::Ended => self.next_block(countdown, lookups, monitor, filled.get(), capacity, fit),
        }
    }

    /// Lookups that were told to ask the table, so far.
    pub(crate) fn asked(&self, countdown: &Countdown) -> u64 {
        self.asked.get() + if self.asks.get() { self.done(countdown) } else { 0 }
    }

    /// Lookups that were told not to, so far.
    pub(crate) fn passed_by(&self, countdown: &Countdown) -> u64 {
        self.passed_by.get() + if self.asks.get() { 0 } else { self.done(countdown) }
    }

    /// Lookups of the block, or of its part, so far.
    fn done(&self, countdown: &Countdown) -> u64 {
        (self.block.get() - countdown.rest()) as u64
    }

    /// Ends a block without the table if nobody watches any more.
    pub(crate) fn heed(&self, countdown: &Countdown, monitor: &Monitor) {
        if !self.asks.get() && !monitor.is_watching() {
            self.began.set(None);
            self.set_block(countdown, 0, false);
        }
    }

    #[cold]
    fn next_block(
        &self,
        countdown: &Countdown,
        lookups: Lookups,
        monitor: &Monitor,
        filled: u64,
        capacity: impl Fn() -> usize,
        fit: impl FnOnce(u64) -> bool,
    ) -> bool {
        // Not in a trial, whose blocks are to be alike.
        if self.phase.get() == Phase::Decided {
            // Those of trials, too: what they threw out is told with them.
            let asked = self.asked(countdown);
            self.soon.set(fit(asked - self.told.replace(asked)));
        }
        let before = self.call.replace(lookups.call);
        if !monitor.is_watching() || self.begun.get() != monitor.begun() {
            self.start_anew(monitor, filled);
        } else {
            self.time(countdown, before);
            self.meet(lookups.call);
            if self.behind.get() == 0 {
                let (phase, blocks) = self.next_phase(monitor, filled, capacity());
                self.phase.set(phase);
                self.behind.set(blocks * BLOCK);
            }
        }
        self.start_part(countdown, lookups, monitor);
        countdown.take(lookups.number()) == Turn::Asks
    }

    /// Nobody watches, or another table is there, of which nothing is known.
    fn start_anew(&self, monitor: &Monitor, filled: u64) {
        self.begun.set(monitor.begun());
        self.lookups.set(0);
        self.filled.set(filled);
        self.known.take();
        self.is_near.take();
        self.together.set(1);
        self.interval.set(SHORTEST);
        self.phase.set(Phase::Decided);
        self.behind.set(SHORTEST * BLOCK);
    }

    /// A kind that has not come before is tried soon, however long the interval of the other has become.
    fn meet(&self, call: Call) {
        if !self.known.get()[call as usize] && self.phase.get() == Phase::Decided {
            set(&self.known, call, true);
            self.interval.set(SHORTEST);
            self.behind.set(self.behind.get().min(SHORTEST * BLOCK));
        }
    }

    /// Lookups of the phase begin that ask the table, or do not: those of this call, at least. What came before is kept.
    fn start_part(&self, countdown: &Countdown, lookups: Lookups, monitor: &Monitor) {
        let (phase, call) = (self.phase.get(), self.call.get());
        let asks = monitor.is_on(call) != phase.is_other_way();
        let are_alike = monitor.is_on(Call::Single) == monitor.is_on(Call::Batch);
        let length = match phase {
            // Where calls of both kinds come, or would go other ways, the next block may be the other's.
            Phase::Decided if asks && !self.soon.get() && self.together.get() == 1 && are_alike => {
                PART * BLOCK
            }
            Phase::Decided => BLOCK,
            _ if self.together.get() == 1 => BLOCK,
            _ => self.uneven_length(),
        };
        let part = self.behind.get().min(length);
        self.behind.set(self.behind.get() - part);
        // A call goes one way, however little is left for it.
        self.set_block(countdown, (part as i32).max(lookups.number()), asks);
        if phase != Phase::Decided {
            set(&self.met, call, true);
        }
        self.began.set(phase.is_timed().then(moment));
    }

    /// Half a block to a whole one. Were all of one length, then calls that come by turns of
    /// about that length would all be met at the same moment of their turns; as in C, where each is of the lookups of a session's
    /// turn.
    fn uneven_length(&self) -> u32 {
        // The multiples of the golden ratio lie as evenly between whole numbers as any.
        self.uneven.set(self.uneven.get().wrapping_add(0x9e37_79b9));
        BLOCK / 2 + (self.uneven.get() >> 16) * (BLOCK / 2) / (1 << 16)
    }

    /// A part has passed, which began with such a call.
    fn time(&self, countdown: &Countdown, call: Call) {
        if let Some(began) = self.began.take() {
            let mut costs = self.costs.get();
            let timed = &mut costs[call as usize][usize::from(self.phase.get().is_other_way())];
            // Perhaps more than it was to be: the C interface takes 1024 at a time.
            timed.lookups += self.done(countdown);
            timed.nanoseconds += moment().duration_since(began).as_nanos() as u64;
            self.costs.set(costs);
        }
    }

    /// From now on so many lookups ask the table, or do not.
    fn set_block(&self, countdown: &Countdown, lookups: i32, asks: bool) {
        self.asked.set(self.asked(countdown));
        self.passed_by.set(self.passed_by(countdown));
        self.asks.set(asks);
        self.block.set(lookups);
        countdown.set(lookups, asks, BLOCK as i32);
    }

    /// What comes behind the phase that has passed, and for how many blocks.
    fn next_phase(&self, monitor: &Monitor, filled: u64, capacity: usize) -> (Phase, u32) {
        let on = Call::BOTH.map(|call| monitor.is_on(call));
        match self.phase.get() {
            Phase::Decided => {
                let passed = u64::from(BLOCK) * u64::from(self.interval.get());
                let newly_filled = filled - self.filled.replace(filled);
                self.lookups.set(self.lookups.get() + passed);
                let is_warm = newly_filled * 20 < passed || self.lookups.get() > 4 * capacity as u64;
                if !is_warm {
                    return (Phase::Decided, self.interval.get());
                }
                self.tried.set(on);
                self.costs.take();
                self.met.take();
                (Phase::Before, self.together.get())
            }
            // Another thread's trial has switched meanwhile: this one's blocks are not what they are taken for.
            _ if on != self.tried.get() => {
                self.filled.set(filled);
                self.interval.set(SHORTEST * self.together.get());
                (Phase::Decided, self.interval.get())
            }
            Phase::Before => self.warmed(Phase::Warming, Phase::Other),
            Phase::Other => self.warmed(Phase::Returning, Phase::After),
            Phase::Warming => (Phase::Other, self.together.get()),
            Phase::Returning => (Phase::After, self.together.get()),
            Phase::After => {
                self.conclude(monitor);
                self.filled.set(filled);
                (Phase::Decided, self.interval.get())
            }
        }
    }

    /// What is timed, or first what warms what it needs.
    fn warmed(&self, warming: Phase, timed: Phase) -> (Phase, u32) {
        let (interval, call) = (self.interval.get(), self.call.get() as usize);
        let [least, most] = TO_WARM;
        let to_warm = match (self.tried.get()[call], self.is_near.get()[call]) {
            (true, false) => 0,
            (true, true) => (interval / 16).clamp(least, most),
            (false, true) => interval.div_ceil(WARMS_TABLE),
            (false, false) => interval.div_ceil(4 * WARMS_TABLE),
        };
        if to_warm == 0 { (timed, self.together.get()) } else { (warming, to_warm) }
    }

    /// Tells what the trial has found, and says when the next one is.
    fn conclude(&self, monitor: &Monitor) {
        let is_mixed = self.met.get() == [true; 2];
        if is_mixed && self.together.get() < MIXED {
            self.together.set(MIXED);
            self.interval.set(self.interval.get().max(SHORTEST * MIXED));
            return;
        }
        if !is_mixed {
            self.together.set(1);
        }
        let (mut found, mut agree) = (false, true);
        for call in Call::BOTH {
            let [decided, other] = self.costs.get()[call as usize].map(Timed::cost);
            let (Some(decided), Some(other)) = (decided, other) else { continue };
            let gain = if self.tried.get()[call as usize] { other / decided } else { decided / other };
            set(&self.is_near, call, (1.0 / NEAR..NEAR).contains(&gain));
            found = true;
            agree &= gain.is_finite() && gain > 0.0 && monitor.record(call, gain);
        }
        if found {
            let shortest = SHORTEST * self.together.get();
            let longer = (2 * self.interval.get()).clamp(shortest, LONGEST);
            self.interval.set(if agree { longer } else { shortest });
        }
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
    use std::sync::atomic::Ordering;
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

    /// What a thread keeps.
    struct Thread {
        watch: Watch,
        countdown: Countdown,
    }

    impl Thread {
        fn new() -> Thread {
            Thread { watch: Watch::new(), countdown: Countdown::new(1) }
        }

        /// Whether lookups ask a table of such a capacity, of which so much has been filled.
        fn asks(&self, monitor: &Monitor, lookups: Lookups, filled: &Cell<u64>, capacity: usize) -> bool {
            let Thread { watch, countdown } = self;
            watch.uses_table(countdown, lookups, monitor, filled, || capacity, |_| false)
        }

        /// Lookups that asked, and those that did not.
        fn counts(&self) -> [u64; 2] {
            [self.watch.asked(&self.countdown), self.watch.passed_by(&self.countdown)]
        }
    }

    const ONE: Lookups = Lookups { number: 1, call: Call::Single };
    const BATCH: Lookups = Lookups { number: 16, call: Call::Batch };

    /// Lets so many lookups pass, or a few more, each call of them as many as `calls` says. They take so many nanoseconds, in such
    /// a call, with the table or without. How many were with it.
    fn run_calls(
        monitor: &Monitor,
        thread: &Thread,
        lookups: u32,
        mut calls: impl FnMut() -> Lookups,
        cost: impl Fn(Call, bool) -> u32,
    ) -> u64 {
        let (filled, mut with, mut done, before) = (Cell::new(0), 0, 0, thread.counts());
        while done < lookups {
            let asked = calls();
            let Lookups { number: together, call } = asked;
            let uses_table = thread.asks(monitor, asked, &filled, 1000);
            with += u64::from(uses_table) * u64::from(together);
            done += together;
            PASSED.set(
                PASSED.get() + Duration::from_nanos(u64::from(cost(call, uses_table)) * u64::from(together)),
            );
        }
        // Each is counted, the way that it went.
        let counted = [0, 1].map(|way| thread.counts()[way] - before[way]);
        assert_eq!(counted, [with, u64::from(done) - with]);
        with
    }

    /// As [`run_calls`], one at a time.
    fn run(monitor: &Monitor, thread: &Thread, lookups: u32, cost: impl Fn(bool) -> u32) -> u64 {
        run_calls(monitor, thread, lookups, || ONE, |_, with| cost(with))
    }

    #[test]
    #[cfg_attr(miri, ignore = "statistics of many steps, and no unsafe code")]
    fn a_table_that_costs_more_than_it_saves_is_switched_off_and_on_again_when_it_pays() {
        let (monitor, thread) = (Monitor::new(true), Thread::new());
        let lookups = 400_000;
        run(&monitor, &thread, lookups, |with| if with { 300 } else { 100 });
        let verdict = monitor.verdict();
        assert!(!verdict.on && verdict.switches == 1, "{verdict:?}");
        let with = run(&monitor, &thread, lookups, |with| if with { 300 } else { 100 });
        assert!(with < u64::from(lookups) / 20, "used in {with} lookups although off");
        // The interval has grown meanwhile.
        for _ in 0..100 {
            run(&monitor, &thread, lookups, |with| if with { 100 } else { 300 });
            if monitor.verdict().on {
                return;
            }
        }
        panic!("never switched on again: {:?}", monitor.verdict());
    }

    #[test]
    #[cfg_attr(miri, ignore = "statistics of many steps, and no unsafe code")]
    fn a_table_that_pays_stays_on_and_is_tried_ever_more_rarely() {
        let (monitor, thread) = (Monitor::new(true), Thread::new());
        run(&monitor, &thread, 2_000_000, |with| if with { 20 } else { 200 });
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
            let (monitor, thread) = (Monitor::new(true), Thread::new());
            let (last, same_way) = (Cell::new(true), Cell::new(cold_for));
            let cost = |with: bool| {
                same_way.set(if last.replace(with) == with { same_way.get() + 1 } else { 0 });
                let cold = if same_way.get() < cold_for { 30 } else { 0 };
                cold + if with { with_table } else { without }
            };
            let lookups = 10_000_000;
            let with = run(&monitor, &thread, lookups, cost);
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
            let (monitor, thread) = (Monitor::new(true), Thread::new());
            thread.watch.is_near.set([true; 2]);
            let cost = |with| if with { 300 } else { 100 };
            while thread.watch.phase.get() != interrupted {
                run(&monitor, &thread, 1, cost);
            }
            monitor.off[Call::Single as usize].store(true, Ordering::Relaxed);
            while thread.watch.phase.get() != Phase::Decided {
                run(&monitor, &thread, 1, cost);
            }
            assert_eq!(monitor.verdict().trials, 0, "{interrupted:?}: {:?}", monitor.verdict());
        }
    }

    /// It fills, and so looks worse than it is.
    #[test]
    fn an_empty_table_in_the_place_of_another_is_not_tried_before_it_has_filled() {
        let (monitor, thread) = (Monitor::new(true), Thread::new());
        let capacity = 100_000;
        let (filled, mut lookups) = (Cell::new(0), 0);
        let mut run = |cost: &dyn Fn(bool) -> u32, fills: u64, most: u64, until: &dyn Fn() -> bool| {
            for _ in 0..most {
                if until() {
                    return;
                }
                let with = thread.asks(&monitor, ONE, &filled, capacity);
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
        assert!(thread.watch.asks.get());
        // Each second lookup fills a slot: two lookups for each that there is, and no trial.
        run(&lost, 1, 2 * capacity as u64, &|| false);
        let filling = monitor.verdict();
        assert!(filling.on && filling.trials == before.trials, "{filling:?}");
        // Then it is judged as any.
        run(&lost, 0, 10_000_000, &|| !monitor.verdict().on);
        assert!(!monitor.verdict().on && monitor.verdict().trials > before.trials);
    }

    /// An index that looks up many keys together gains by that what a table would have saved.
    #[test]
    #[cfg_attr(miri, ignore = "statistics of many steps, and no unsafe code")]
    fn lookups_one_at_a_time_and_in_batches_have_a_verdict_each() {
        let (monitor, thread) = (Monitor::new(true), Thread::new());
        let cost = |call, with| match (call, with) {
            (Call::Single, true) | (Call::Batch, false) => 100,
            (Call::Single, false) | (Call::Batch, true) => 300,
        };
        let lookups = 400_000;
        // So many that they are tried rarely: the others soon nevertheless.
        run_calls(&monitor, &thread, 20_000_000, || ONE, cost);
        run_calls(&monitor, &thread, lookups, || BATCH, cost);
        let verdict = monitor.verdict();
        assert!(verdict.on && !verdict.on_in_batches, "{verdict:?}");
        assert!(verdict.gain > Some(2.0), "{verdict:?}");
        // Each time that they change, the verdict of theirs holds at once, but for what is left of a part.
        for _ in 0..10 {
            let single = run_calls(&monitor, &thread, lookups, || ONE, cost);
            let batches = run_calls(&monitor, &thread, lookups, || BATCH, cost);
            assert!(single > u64::from(lookups) * 9 / 10, "{single} with the table, which pays");
            let left = u64::from(PART * BLOCK);
            assert!(batches < left + u64::from(lookups) / 20, "{batches} with the table, which does not");
        }
        assert_eq!(monitor.verdict().switches, 1);
        assert_eq!((monitor.verdict().on, monitor.verdict().on_in_batches), (true, false));
    }

    /// Calls of both kinds: at random, batches one call in so many; or by turns, so many lookups of each.
    fn mixtures() -> Vec<(String, Box<dyn FnMut() -> Lookups>)> {
        let mut mixtures: Vec<(String, Box<dyn FnMut() -> Lookups>)> = Vec::new();
        for one_in in [17, 2] {
            let random = crate::random::Random::new(7);
            let calls = move || if random.below(one_in) == 0 { BATCH } else { ONE };
            mixtures.push((format!("one call in {one_in} a batch"), Box::new(calls)));
        }
        for run in [500, 1000, 2000, 3000, 20_000] {
            let mut done = 0;
            let calls = move || {
                let call = if done % (2 * run) < run { ONE } else { BATCH };
                done += call.number;
                call
            };
            mixtures.push((format!("{run} lookups of each by turns"), Box::new(calls)));
        }
        for blocks in [1, 3] {
            let mut done = 0;
            let calls = move || {
                done += 1;
                Lookups::of_block(if done % (2 * blocks) < blocks { 1 } else { 16 })
            };
            mixtures.push((format!("{blocks} blocks of C's sessions of each by turns"), Box::new(calls)));
        }
        mixtures
    }

    /// Blocks of both, as they come. What was found once is found otherwise when it is.
    #[test]
    #[cfg_attr(miri, ignore = "statistics of many steps, and no unsafe code")]
    fn calls_that_come_by_turns_are_judged_as_the_mixture() {
        for (first, then) in [(300, 30), (30, 300), (130, 60), (70, 140)] {
            for (mixture, mut calls) in mixtures() {
                let (monitor, thread) = (Monitor::new(true), Thread::new());
                for with_table in [first, then] {
                    let pays = with_table < 100;
                    // One at a time all is three times as dear.
                    let cost = |call, with| {
                        (if with { with_table } else { 100 }) * if call == Call::Single { 3 } else { 1 }
                    };
                    let verdict = || monitor.verdict();
                    let name = || format!("{mixture}, {first} then {then}: {:?}", monitor.verdict());
                    // Until it is found; the longest interval may have to pass for each trial that it takes.
                    let most = 16 * LONGEST;
                    let found = (0..most).any(|_| {
                        run_calls(&monitor, &thread, 8 * BLOCK, &mut calls, cost);
                        verdict().trials > 20 && (verdict().on, verdict().on_in_batches) == (pays, pays)
                    });
                    assert!(found, "{}", name());
                    let lookups = 8_000_000;
                    let with = run_calls(&monitor, &thread, lookups, &mut calls, cost);
                    let astray = if pays { u64::from(lookups).saturating_sub(with) } else { with };
                    assert!(astray < u64::from(lookups) / 10, "{}, {astray} the wrong way", name());
                }
            }
        }
    }

    /// And if they come in runs of some blocks, each goes the way of its own.
    #[test]
    #[cfg_attr(miri, ignore = "statistics of many steps, and no unsafe code")]
    fn runs_of_some_blocks_go_the_way_of_their_kind() {
        for run in [20_000, 100_000] {
            runs_go_the_way_of_their_kind(run);
        }
    }

    fn runs_go_the_way_of_their_kind(run: u32) {
        let (monitor, thread) = (Monitor::new(true), Thread::new());
        let (astray, done) = (Cell::new(0), Cell::new(0));
        let calls = || if done.get() % (2 * run) < run { ONE } else { BATCH };
        let cost = |call, with| {
            let together = if call == Call::Single { 1 } else { 16 };
            done.set(done.get() + together);
            let is_right = with == (call == Call::Single);
            astray.set(astray.get() + if is_right { 0 } else { together });
            if is_right { 100 } else { 300 }
        };
        run_calls(&monitor, &thread, 40_000_000, calls, cost);
        let verdict = monitor.verdict();
        assert_eq!((verdict.on, verdict.on_in_batches), (true, false), "{verdict:?}");
        astray.set(0);
        run_calls(&monitor, &thread, 8_000_000, calls, cost);
        assert!(astray.get() < 800_000, "{} the wrong way: {:?}", astray.get(), monitor.verdict());
    }

    /// Whoever ends the watching and lets it begin anew has both kinds tried soon, when they come.
    #[test]
    #[cfg_attr(miri, ignore = "statistics of many steps, and no unsafe code")]
    fn both_kinds_are_tried_soon_when_the_watching_begins_anew() {
        let (monitor, thread) = (Monitor::new(true), Thread::new());
        let pays = |_, with| if with { 100 } else { 300 };
        run_calls(&monitor, &thread, 10_000_000, || BATCH, pays);
        monitor.watch(false);
        run_calls(&monitor, &thread, 200_000, || ONE, pays);
        monitor.watch(true);
        run_calls(&monitor, &thread, 20_000_000, || ONE, pays);
        let loses = |_, with| if with { 300 } else { 100 };
        run_calls(&monitor, &thread, 500_000, || BATCH, loses);
        assert!(monitor.verdict().on && !monitor.verdict().on_in_batches, "{:?}", monitor.verdict());
        monitor.watch(false);
        run_calls(&monitor, &thread, 200_000, || BATCH, pays);
        monitor.watch(true);
        run_calls(&monitor, &thread, 500_000, || ONE, loses);
        assert!(!monitor.verdict().on, "{:?}", monitor.verdict());
    }

    #[test]
    #[cfg_attr(miri, ignore = "statistics of many steps, and no unsafe code")]
    fn who_does_not_watch_always_uses_the_table() {
        let (monitor, thread) = (Monitor::new(false), Thread::new());
        assert_eq!(run(&monitor, &thread, 100_000, |_| 1), 100_000);
        assert_eq!(monitor.verdict().trials, 0);
    }
}
