//! The run-time monitor (section III-F, "performance guarantee", and III-H): switches the STLT off where it
//! does not pay.
//!
//! ```text
//!   on:    ... period ...                            | with | without |
//!   off:   ... period, or up to 8 of them ... | warm | with | without |
//! ```
//!
//! Operations are counted off in periods. At the end of a period come two trials of the same length, one with
//! the table and one without, and the cheaper way is taken for the next period; a tie leaves things as they
//! are. The first operations of a trial still feel the way before it (cold lines): they are left out.
//!
//! While a table is off nothing is inserted, and whoever tries it as it was left, with what was asked for long ago or
//! with half of what is asked for now, finds it as bad as before, forever. So before its trial a table that is off is
//! warmed: used, and not judged, for a quarter of the time that it was off. And since some tables take long to fill,
//! each trial that leaves the table off doubles the time until the next, up to eight periods, and with it the warming:
//! what it takes in then stays, and adds up from trial to trial.
//!
//! A table that never pays, because it is too small or because someone floods it with colliding keys, so costs its
//! price in trials only, and they have a bounded share of all operations, however often they fail: warming takes a
//! fifth of the time at most, the trials themselves trial / (period + 2 trial). One that pays is without for that
//! latter share.
//!
//! Rejected: to judge a table only once its hit ratio has stopped rising. Over stretches that are short beside the time
//! that filling takes, the rise drowns in chance, and whoever decides what is asked for can keep it rising.

use serde::Deserialize;

/// The time for which a table was off, by that for which it is then warmed.
const WARMED_ONE_IN: u64 = 4;
/// Periods for which a table is off before it is tried again, at most.
const MOST_PERIODS: u64 = 8;

/// Lengths, in operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MonitorShape {
    /// As decided. A table that several trials have left off is tried after several of these.
    pub period: u64,
    /// Of each of the two trials.
    pub trial: u64,
    /// At the beginning of a trial, not measured.
    pub settle: u64,
}

impl Default for MonitorShape {
    fn default() -> MonitorShape {
        MonitorShape { period: 100_000, trial: 2_000, settle: 500 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Decided,
    Warming,
    With,
    Without,
}

/// The monitor of one table.
#[derive(Debug, Clone)]
pub struct Monitor {
    shape: MonitorShape,
    phase: Phase,
    /// Operations of this phase so far.
    done: u64,
    on: bool,
    /// Periods until the next trial.
    periods: u64,
    with_cycles: u64,
    without_cycles: u64,
    switches: u64,
}

impl Monitor {
    /// A monitor that begins with the table on.
    #[must_use]
    pub fn new(shape: MonitorShape) -> Monitor {
        let phase = Phase::Decided;
        Monitor {
            shape,
            phase,
            done: 0,
            on: true,
            periods: 1,
            with_cycles: 0,
            without_cycles: 0,
            switches: 0,
        }
    }

    /// Whether the next operation should use the table.
    #[must_use]
    pub fn uses_table(&self) -> bool {
        match self.phase {
            Phase::Decided => self.on,
            Phase::Warming | Phase::With => true,
            Phase::Without => false,
        }
    }

    /// What the operation cost.
    pub fn took(&mut self, cycles: u64) {
        let measured = if self.done >= self.shape.settle { cycles } else { 0 };
        self.done += 1;
        match self.phase {
            Phase::Decided | Phase::Warming => {}
            Phase::With => self.with_cycles += measured,
            Phase::Without => self.without_cycles += measured,
        }
        if self.done >= self.length() {
            self.advance();
        }
    }

    /// Operations of this phase.
    fn length(&self) -> u64 {
        let decided = self.periods.saturating_mul(self.shape.period);
        match self.phase {
            Phase::Decided => decided,
            Phase::Warming => decided / WARMED_ONE_IN,
            Phase::With | Phase::Without => self.shape.trial,
        }
    }

    fn advance(&mut self) {
        self.done = 0;
        self.phase = match self.phase {
            Phase::Decided if !self.on => Phase::Warming,
            Phase::Decided | Phase::Warming => {
                (self.with_cycles, self.without_cycles) = (0, 0);
                Phase::With
            }
            Phase::With => Phase::Without,
            Phase::Without => {
                self.decide();
                Phase::Decided
            }
        };
    }

    fn decide(&mut self) {
        let on = match self.with_cycles.cmp(&self.without_cycles) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Equal => self.on,
            std::cmp::Ordering::Greater => false,
        };
        let stays_off = !on && !self.on;
        self.periods = if stays_off { (2 * self.periods).min(MOST_PERIODS) } else { 1 };
        self.switches += u64::from(on != self.on);
        self.on = on;
    }

    /// The decision in force.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// How often the decision changed.
    #[must_use]
    pub fn switches(&self) -> u64 {
        self.switches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: MonitorShape = MonitorShape { period: 1000, trial: 20, settle: 5 };

    /// What so many operations cost, if one costs what `price` says of the way that it goes.
    fn run(monitor: &mut Monitor, operations: u64, mut price: impl FnMut(bool) -> u64) -> u64 {
        (0..operations)
            .map(|_| {
                let cycles = price(monitor.uses_table());
                monitor.took(cycles);
                cycles
            })
            .sum()
    }

    fn prices(with: u64, without: u64) -> impl FnMut(bool) -> u64 {
        move |table| if table { with } else { without }
    }

    #[test]
    fn a_table_that_costs_is_switched_off_and_tried_ever_more_seldom() {
        let mut monitor = Monitor::new(SHAPE);
        run(&mut monitor, 1040, prices(130, 100));
        assert!(!monitor.is_on());
        for periods in [1, 2, 4, 8, 8, 8] {
            let operations = periods * (1000 + 250) + 40;
            let cycles = run(&mut monitor, operations, prices(130, 100));
            assert_eq!(
                cycles,
                operations * 100 + (periods * 250 + 20) * 30,
                "the warming and the trial at the higher price"
            );
        }
        // It begins to pay: on again after the next trials, and once it does not, tried anew after one period.
        run(&mut monitor, 10_040, prices(50, 100));
        assert!(monitor.is_on());
        assert_eq!(monitor.switches(), 2);
        run(&mut monitor, 1040, prices(130, 100));
        assert!(!monitor.is_on());
        run(&mut monitor, 1290, prices(50, 100));
        assert!(monitor.is_on());
    }

    #[test]
    fn a_table_that_never_pays_is_used_for_a_fifth_of_the_time_and_the_trials() {
        for (period, trial) in [(1000, 20), (20_000, 1000), (50_000, 2000), (100, 50), (999, 1)] {
            let mut monitor = Monitor::new(MonitorShape { period, trial, settle: 0 });
            run(&mut monitor, period + 2 * trial, prices(130, 100));
            let bound = 1.0 / 5.0 + trial as f64 / (period + 2 * trial) as f64;
            // After each trial that fails, what was used until then.
            let (mut with_table, mut all) = (0, 0);
            for periods in [1, 2, 4, 8, 8, 8, 8] {
                let operations = periods * period + periods * period / 4 + 2 * trial;
                run(&mut monitor, operations, |table| {
                    with_table += u64::from(table);
                    if table { 130 } else { 100 }
                });
                all += operations;
                assert!(!monitor.is_on());
                let share = with_table as f64 / all as f64;
                assert!(share <= bound, "{share} of the operations, {bound} were promised");
                assert!(share >= 0.19, "it is tried: {share} of the operations");
            }
        }
    }

    #[test]
    fn a_table_that_takes_long_to_fill_is_on_in_the_end() {
        // Ten periods with the table fill it. Empty it costs a tenth, full it saves a third: it pays from a quarter on.
        let mut filled = 0;
        let mut price = |table| {
            filled += u64::from(table);
            if table { 110 - 43 * filled.min(10_000) / 10_000 } else { 100 }
        };
        let mut monitor = Monitor::new(SHAPE);
        run(&mut monitor, 1040, &mut price);
        assert!(!monitor.is_on(), "one period with the table were not enough");
        // What the bound leaves for warming, in so many operations: more than twice what is missing.
        run(&mut monitor, 30_000, &mut price);
        assert!(monitor.is_on());
        assert_eq!(monitor.switches(), 2);
    }

    #[test]
    fn a_tie_changes_nothing() {
        let mut monitor = Monitor::new(MonitorShape::default());
        run(&mut monitor, 500_000, prices(100, 100));
        assert!(monitor.is_on());
        assert_eq!(monitor.switches(), 0);
    }
}
