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
//!
//! How many units are in use at a time is the number of beginnings up to it, less that of ends: whose they are does not
//! matter. So both are kept in order, each by itself, and a request is one walk along them. Rejected: counting at each
//! beginning which intervals contain it, again for each time that is tried. It is quadratic, and dozens wait where all
//! accesses miss.

/// Cycles.
pub(crate) type Cycle = u64;

/// A number of equal units.
#[derive(Debug, Clone)]
pub(crate) struct Reservations {
    units: usize,
    /// When the intervals that are promised begin, in order.
    begin: Vec<Cycle>,
    /// When they end (exclusive), in order.
    end: Vec<Cycle>,
}

impl Reservations {
    pub(crate) fn new(units: u32) -> Reservations {
        Reservations { units: units as usize, begin: Vec::new(), end: Vec::new() }
    }

    /// Drops what ends by `now`, before which nobody will ask again.
    fn forget_before(&mut self, now: Cycle) {
        let ended = self.end.iter().take_while(|&&end| end <= now).count();
        if ended > 0 {
            self.end.drain(..ended);
            // As many have begun before: which of them, no time from now on tells.
            self.begin.drain(..ended);
        }
    }

    /// The first time from `from` on at which a unit is free for `cycles` cycles. Nobody asks for times
    /// before `now` again.
    pub(crate) fn earliest(&mut self, now: Cycle, from: Cycle, cycles: Cycle) -> Cycle {
        debug_assert!(now <= from, "asked for {from} at {now}");
        self.forget_before(now);
        if self.begin.len() < self.units {
            return from;
        }
        let mut from = from;
        // Those that have begun, and have ended, by the time that is looked at.
        let (mut begun, mut ended) = (0, 0);
        let mut time = from;
        loop {
            begun += self.begin[begun..].iter().take_while(|&&begin| begin <= time).count();
            ended += self.end[ended..].iter().take_while(|&&end| end <= time).count();
            if begun - ended >= self.units {
                // All are in use. Whoever begins before the next end still meets this time.
                match self.end.get(ended) {
                    Some(&end) => (from, time) = (end, end),
                    None => break,
                }
                continue;
            }
            // Only where one begins are more in use than before.
            match self.begin.get(begun) {
                Some(&begin) if begin < from.saturating_add(cycles) => time = begin,
                _ => break,
            }
        }
        from
    }

    /// Takes a unit for an interval that [`earliest`](Self::earliest) found.
    pub(crate) fn take(&mut self, from: Cycle, until: Cycle) {
        if until > from {
            for (times, time) in [(&mut self.begin, from), (&mut self.end, until)] {
                // Mostly it is among the last.
                let earlier = times.iter().rev().take_while(|&&other| other > time).count();
                times.insert(times.len() - earlier, time);
            }
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
    use proptest::prelude::*;

    use super::*;

    /// Intervals with both their ends, in the order in which they were taken: each time that is tried is compared with
    /// all.
    #[derive(Default)]
    struct Naive(Vec<(Cycle, Cycle)>);

    impl Naive {
        fn in_use(&self, time: Cycle) -> usize {
            self.0.iter().filter(|&&(begin, end)| begin <= time && time < end).count()
        }

        fn earliest(&self, units: usize, from: Cycle, cycles: Cycle) -> Cycle {
            let free = |at: Cycle| (at..at + cycles.max(1)).all(|time| self.in_use(time) < units);
            (from..).find(|&at| free(at)).expect("somebody ends")
        }
    }

    proptest! {
        #[test]
        fn it_answers_as_a_list_that_is_searched_at_every_cycle(
            units in 1..5_u32,
            steps in prop::collection::vec((0..6_u64, 0..30_u64, 0..25_u64, 0..40_u64, any::<bool>()), 1..200),
        ) {
            let (mut reservations, mut naive) = (Reservations::new(units), Naive::default());
            let mut now = 0;
            for (pause, later, cycles, longer, takes) in steps {
                now += pause;
                let from = reservations.earliest(now, now + later, cycles);
                prop_assert_eq!(from, naive.earliest(units as usize, now + later, cycles));
                if takes {
                    // Until its real end: a line may wait for the channel.
                    reservations.take(from, from + cycles + longer);
                    naive.0.push((from, from + cycles + longer));
                }
            }
        }
    }

    #[test]
    fn several_units_are_in_use_at_a_time() {
        let mut units = Reservations::new(2);
        assert_eq!(units.reserve(0, 0, 10), 0);
        assert_eq!(units.reserve(0, 4, 10), 4);
        assert_eq!(units.reserve(0, 5, 4), 10, "as in the picture");
        assert_eq!(units.reserve(14, 14, 1), 14);
        assert_eq!((units.begin.len(), units.end.len()), (1, 1), "what ended is dropped");
    }
}
