//! A thread's part in the monitor: it makes trials.
//!
//! Every thread lets lookups pass in blocks of [`BLOCK`], and from time to time makes a *trial*: some blocks are timed
//! as decided, some the other way round, without the table if it is on, with it if it is off, and some as decided
//! again.
//!
//! ```text
//!   as decided ... | as decided |  the other way   | the other way |    as decided    | as decided | as decided ...
//!                     timed      to warm the caches     timed       to warm the caches     timed
//! ```
//!
//! The cost of a block is wall time by the number of its lookups, whatever the program does between them: that is the
//! same in both ways, and what is compared is what the program feels.
//!
//! Trials cost what the worse way costs. So they become rare where the answer is clear: the interval doubles after each
//! trial that confirms the verdict, up to [`LONGEST`] blocks, and begins anew when one contradicts it.
//!
//! The processor's caches hold what the way decided on asks for: the other way is cold. A table that was off holds what
//! was hot when it was switched off; before it is timed it is used for as many blocks as a sixty-fourth of the
//! interval, so that it can warm; for a quarter of that where it costs half as much again as the index alone, or more:
//! there the warming alone would cost two lookups in a hundred. An index that a table stands before is cold in the
//! caches; where that could turn the verdict, where it seems no more than half as dear again without the table, it is
//! asked for some blocks before it is timed: else a table that costs a tenth stays on. Where the table gains more, that
//! would cost, and say nothing new.
//!
//! While a table first fills it must look worse than it is: nothing is tried before free slots have become rare, or
//! four times as many lookups have been made as there are slots. An empty table in the place of another (it was
//! resized) first fills like any: it is on, and what was found of the other is forgotten.
//!
//! # One at a time, and in batches
//!
//! There is a verdict for each, and a block counts for what its first call is: so no lookup takes an instruction more.
//! Each is as its own verdict has it, or the other way round. One block is timed at a time where all of a trial are of
//! one kind, as nearly always. Where there were both, calls may come by turns, and what a block begins with says little
//! of it: that trial says nothing, and the next times [`MIXED`] blocks together, in which both kinds are nearly as in
//! all, and compares those that began alike. There a table that makes a tenth of a difference is at times taken for the
//! contrary; one that makes a third is not.
//!
//! Rejected: *a count for each*: two more instructions a lookup, of which a quick index has fifty. *Trials of one kind,
//! broken off where the other comes*: of calls that come by turns none may ever end, and a table that only costs stays
//! on.

use std::cell::Cell;
use std::time::Instant;

use crate::monitor::{Call, Monitor};
use crate::stats::Tally;

/// Lookups in a block: some ten to a hundred microseconds.
pub(crate) const BLOCK: u32 = 1024;
/// Blocks between trials, at first, for each that is timed together.
const SHORTEST: u32 = 16;
/// And at most.
const LONGEST: u32 = 8192;
/// Blocks that are let pass together between trials.
const PART: u32 = 64;
/// Blocks that are timed together where calls of both kinds come.
const MIXED: u32 = 16;
/// Where lookups the one way seem at most so much dearer than the other, they are given more blocks to warm.
const NEAR: f64 = 1.5;
/// So many without the table, at least and at most: a sixteenth of the interval. None where they are much dearer.
const TO_WARM: [u32; 2] = [8, 128];
/// The part of the interval with it. Where that is much dearer, a quarter of this: all of it would cost what the trials
/// find.
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
    pub(crate) fn of_call(number: u32) -> Lookups {
        Lookups { number, call: Call::of(number) }
    }

    /// A block of calls, of which the first is so many lookups.
    pub(crate) fn of_block(first: u32) -> Lookups {
        Lookups { number: BLOCK, call: Call::of(first) }
    }

    pub(crate) fn number(self) -> u64 {
        u64::from(self.number.min(BLOCK))
    }
}

/// One thread's part. Two of a thing are of lookups one at a time, and of those in batches.
#[derive(Debug)]
pub(crate) struct MonitorSampler {
    /// Whether the lookups of the block, or of a part of it, ask the table.
    asks: Cell<bool>,
    /// Lookups of both kinds before the part.
    before: Cell<u64>,
    phase: Cell<Phase>,
    /// Lookups of the phase behind its part of now. After each part without the table is seen whether the watching has
    /// been ended, so that no lookup has to. In a trial a part is a block, or about that.
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

impl MonitorSampler {
    /// Nothing is known yet.
    pub(crate) fn new() -> MonitorSampler {
        MonitorSampler {
            asks: Cell::new(true),
            before: Cell::new(0),
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

    /// Lookups of the part so far.
    fn done(&self, tally: &Tally) -> u64 {
        tally.asked.get() + tally.passed.get() - self.before.get()
    }

    /// Ends a block without the table if nobody watches any more.
    pub(crate) fn heed(&self, tally: &Tally, monitor: &Monitor) {
        if !self.asks.get() && !monitor.is_watching() {
            self.began.set(None);
            self.set_block(tally, 0, false);
        }
    }

    /// There was no room for these lookups in the block: whether they are to ask the table, as the first of another.
    /// Counts them. `filled` is how many free slots this thread has filled so far, of the table's `capacity`.
    #[cold]
    pub(crate) fn next_block(
        &self,
        tally: &Tally,
        lookups: Lookups,
        monitor: &Monitor,
        filled: u64,
        capacity: impl Fn() -> usize,
    ) -> bool {
        let before = self.call.replace(lookups.call);
        if !monitor.is_watching() || self.begun.get() != monitor.begun() {
            self.start_anew(monitor, filled);
        } else {
            self.time(tally, before);
            self.meet(lookups.call);
            if self.behind.get() == 0 {
                let (phase, blocks) = self.next_phase(monitor, filled, capacity());
                self.phase.set(phase);
                self.behind.set(blocks * BLOCK);
            }
        }
        self.start_part(tally, lookups, monitor);
        let asks = self.asks.get();
        (if asks { &tally.asked } else { &tally.passed }).add(lookups.number());
        asks
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

    /// Lookups of the phase begin that ask the table, or do not: those of this call, at least. What came before is
    /// kept.
    fn start_part(&self, tally: &Tally, lookups: Lookups, monitor: &Monitor) {
        let (phase, call) = (self.phase.get(), self.call.get());
        let asks = monitor.is_on(call) != phase.is_other_way();
        let are_alike = monitor.is_on(Call::Single) == monitor.is_on(Call::Batch);
        let length = match phase {
            // Where calls of both kinds come, or would go other ways, the next block may be the other's.
            Phase::Decided if asks && self.together.get() == 1 && are_alike => PART * BLOCK,
            Phase::Decided => BLOCK,
            _ if self.together.get() == 1 => BLOCK,
            _ => self.uneven_length(),
        };
        let part = self.behind.get().min(length);
        self.behind.set(self.behind.get() - part);
        // A call goes one way, however little is left for it.
        self.set_block(tally, u64::from(part).max(lookups.number()), asks);
        if phase != Phase::Decided {
            set(&self.met, call, true);
        }
        self.began.set(phase.is_timed().then(moment));
    }

    /// Half a block to a whole one. Were all of one length, then calls that come by turns of about that length would
    /// all be met at the same moment of their turns; as in C, where each is of the lookups of a session's turn.
    fn uneven_length(&self) -> u32 {
        // The multiples of the golden ratio lie as evenly between whole numbers as any.
        self.uneven.set(self.uneven.get().wrapping_add(0x9e37_79b9));
        BLOCK / 2 + (self.uneven.get() >> 16) * (BLOCK / 2) / (1 << 16)
    }

    /// A part has passed, which began with such a call.
    fn time(&self, tally: &Tally, call: Call) {
        if let Some(began) = self.began.take() {
            let mut costs = self.costs.get();
            let timed = &mut costs[call as usize][usize::from(self.phase.get().is_other_way())];
            // Perhaps more than it was to be: the C interface takes 1024 at a time.
            timed.lookups += self.done(tally);
            timed.nanoseconds += moment().duration_since(began).as_nanos() as u64;
            self.costs.set(costs);
        }
    }

    /// From now on so many lookups ask the table, or do not.
    fn set_block(&self, tally: &Tally, lookups: u64, asks: bool) {
        let (asked, passed) = (tally.asked.get(), tally.passed.get());
        self.asks.set(asks);
        self.before.set(asked + passed);
        tally.asked_end.set(if asks { asked + lookups } else { asked });
        tally.passed_end.set(if asks { passed } else { passed + lookups });
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
mod tests;
