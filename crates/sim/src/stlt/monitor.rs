//! The run-time monitor (section III-F, "performance guarantee", and III-H): switches the STLT off where it
//! does not pay.
//!
//! Operations are counted off in periods. At the end of a period come two trials of the same length, one with
//! the table and one without, and the cheaper way is taken for the next period; a tie leaves things as they
//! are. A table that makes every operation dearer, because it is too small or because someone floods it with
//! colliding keys, so costs its price only in trials: their share of all operations is 2 trial / (period + 2
//! trial).
//!
//! The first operations of a trial still feel the way before it (cold lines, a cold table): they are left out.

/// Lengths, in operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MonitorShape {
    /// As decided.
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
    with_cycles: u64,
    without_cycles: u64,
    switches: u64,
}

impl Monitor {
    /// A monitor that begins with the table on.
    #[must_use]
    pub fn new(shape: MonitorShape) -> Monitor {
        let phase = Phase::Decided;
        Monitor { shape, phase, done: 0, on: true, with_cycles: 0, without_cycles: 0, switches: 0 }
    }

    /// Whether the next operation should use the table.
    #[must_use]
    pub fn uses_table(&self) -> bool {
        match self.phase {
            Phase::Decided => self.on,
            Phase::With => true,
            Phase::Without => false,
        }
    }

    /// What the operation cost.
    pub fn took(&mut self, cycles: u64) {
        let measured = self.done >= self.shape.settle;
        self.done += 1;
        match self.phase {
            Phase::Decided if self.done >= self.shape.period => {
                (self.with_cycles, self.without_cycles) = (0, 0);
                self.enter(Phase::With);
            }
            Phase::Decided => {}
            Phase::With => {
                self.with_cycles += if measured { cycles } else { 0 };
                if self.done >= self.shape.trial {
                    self.enter(Phase::Without);
                }
            }
            Phase::Without => {
                self.without_cycles += if measured { cycles } else { 0 };
                if self.done >= self.shape.trial {
                    let on = match self.with_cycles.cmp(&self.without_cycles) {
                        std::cmp::Ordering::Less => true,
                        std::cmp::Ordering::Equal => self.on,
                        std::cmp::Ordering::Greater => false,
                    };
                    self.switches += u64::from(on != self.on);
                    self.on = on;
                    self.enter(Phase::Decided);
                }
            }
        }
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.done = 0;
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

    fn run(monitor: &mut Monitor, operations: u64, with: u64, without: u64) -> u64 {
        (0..operations)
            .map(|_| {
                let cycles = if monitor.uses_table() { with } else { without };
                monitor.took(cycles);
                cycles
            })
            .sum()
    }

    #[test]
    fn a_table_that_costs_is_switched_off_and_its_price_is_that_of_the_trials() {
        let mut monitor = Monitor::new(MonitorShape { period: 1000, trial: 20, settle: 5 });
        run(&mut monitor, 1040, 130, 100);
        assert!(!monitor.is_on());
        let cycles = run(&mut monitor, 1040 * 10, 130, 100);
        assert_eq!(
            cycles,
            1040 * 10 * 100 + 10 * 20 * 30,
            "ten trials of twenty operations at the higher price"
        );
        // It begins to pay: on again after the next trials.
        run(&mut monitor, 1040, 50, 100);
        assert!(monitor.is_on());
        assert_eq!(monitor.switches(), 2);
    }

    #[test]
    fn a_tie_changes_nothing() {
        let mut monitor = Monitor::new(MonitorShape::default());
        run(&mut monitor, 500_000, 100, 100);
        assert!(monitor.is_on());
        assert_eq!(monitor.switches(), 0);
    }
}
