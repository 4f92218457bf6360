//! Who has a unit when: the one idea behind miss buffers, page walkers, the STU and the insertion buffer.
//!
//! The window model takes instructions in program order, but their times are not in that order: a load that
//! waits for another asks for a miss buffer later than an independent one that comes after it in the program.
//! A plain "free from" time per unit would make the second wait for the first. So here units keep the
//! intervals for which they are promised, and a request gets the earliest interval, from its time on, in
//! which one of them is free throughout.
//!
//! ```text
//!   units = 2      t -> |aaaaaaaa|
//!                            |bbbbbbbbbbbb|
//!   asked for 4 from here:   ^
//!   gets:                         |cccc|
//! ```
//!
//! Intervals that end before any request can begin are dropped, so the list stays as short as what is in flight.

/// Cycles.
pub(crate) type Cycle = u64;

/// A number of equal units.
#[derive(Debug, Clone)]
pub(crate) struct Reservations {
    units: usize,
    /// From, until (exclusive).
    taken: Vec<(Cycle, Cycle)>,
}

impl Reservations {
    pub(crate) fn new(units: u32) -> Reservations {
        Reservations { units: units as usize, taken: Vec::new() }
    }

    /// Drops what ends by `now`, before which nobody will ask again.
    fn forget_before(&mut self, now: Cycle) {
        self.taken.retain(|&(_, until)| until > now);
    }

    /// The most units in use at any time of `from..until`.
    fn peak(&self, from: Cycle, until: Cycle) -> usize {
        let at = |time: Cycle| self.taken.iter().filter(|&&(start, end)| start <= time && time < end).count();
        let inside =
            self.taken.iter().map(|&(start, _)| start).filter(|&start| from < start && start < until);
        inside.map(at).max().unwrap_or_default().max(at(from))
    }

    /// The first time from `from` on at which a unit is free for `cycles` cycles. Nobody asks for times
    /// before `now` again.
    pub(crate) fn earliest(&mut self, now: Cycle, from: Cycle, cycles: Cycle) -> Cycle {
        self.forget_before(now);
        if self.taken.len() < self.units {
            return from;
        }
        let mut from = from;
        while self.peak(from, from + cycles) >= self.units {
            // It can only become free when somebody ends. There is somebody: at the peak all units were taken.
            let next = self.taken.iter().map(|&(_, until)| until).filter(|&until| until > from).min();
            match next {
                Some(until) => from = until,
                None => break,
            }
        }
        from
    }

    /// Takes a unit for an interval that [`earliest`](Self::earliest) found.
    pub(crate) fn take(&mut self, from: Cycle, until: Cycle) {
        if until > from {
            self.taken.push((from, until));
        }
    }

    /// Both: when it begins.
    pub(crate) fn reserve(&mut self, now: Cycle, from: Cycle, cycles: Cycle) -> Cycle {
        let from = self.earliest(now, from, cycles);
        self.take(from, from + cycles);
        from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_unit_serves_one_after_the_other_and_fills_gaps() {
        let mut unit = Reservations::new(1);
        assert_eq!(unit.reserve(0, 100, 10), 100);
        assert_eq!(unit.reserve(0, 105, 10), 110);
        assert_eq!(unit.reserve(0, 0, 10), 0, "an earlier request is not held up by a later one");
        assert_eq!(unit.reserve(0, 5, 91), 120, "no gap of 91");
        assert_eq!(unit.reserve(0, 5, 90), 10);
    }

    #[test]
    fn several_units_are_in_use_at_a_time() {
        let mut units = Reservations::new(2);
        assert_eq!(units.reserve(0, 0, 10), 0);
        assert_eq!(units.reserve(0, 4, 10), 4);
        assert_eq!(units.reserve(0, 5, 4), 10, "as in the picture");
        assert_eq!(units.reserve(14, 14, 1), 14);
        assert_eq!(units.taken.len(), 1, "what ended is dropped");
    }
}
