//! Memory's clock: a latency, and a channel that carries one line at a time.
//!
//! A line keeps the channel for 64 bytes / bandwidth. Requests do not come in the order of their times (see
//! `reservations`), and there are many of them, so the channel's future is cut into slots of that length,
//! each of which one line can have: a request takes the first free slot from its time on. Slots are a ring of
//! their own numbers, so nothing is ever cleared; a number that is not the ring's latest for its place is
//! free.
//!
//! Rejected: banks and rows. The papers give a latency and nothing else; random accesses to a large table
//! rarely hit an open row.

use crate::profile::MemoryShape;
use crate::reservations::Cycle;

/// Slots that are remembered: further apart no two instructions of a window are.
const RING: u64 = 1 << 14;

/// The channel.
#[derive(Debug, Clone)]
pub(crate) struct Dram {
    latency: Cycle,
    slot: Cycle,
    /// The number of the slot that was taken last in each place, plus one.
    taken: Vec<u64>,
    /// Cycles that requests waited for the channel.
    waited: Cycle,
}

impl Dram {
    pub(crate) fn new(shape: &MemoryShape) -> Dram {
        Dram {
            latency: shape.latency.into(),
            slot: shape.cycles_per_line.into(),
            taken: vec![0; RING as usize],
            waited: 0,
        }
    }

    /// A line is asked for at `at`: when it is there.
    pub(crate) fn read(&mut self, at: Cycle) -> Cycle {
        let begins = self.occupy(at);
        self.waited += begins - at;
        begins + self.latency
    }

    /// A line is written: nobody waits, but the channel is busy.
    pub(crate) fn write(&mut self, at: Cycle) {
        self.occupy(at);
    }

    fn occupy(&mut self, at: Cycle) -> Cycle {
        let mut slot = at / self.slot;
        // A ring that is full of later slots cannot be: that many lines are never in flight. The bound only
        // keeps a queue of writes that outgrows it from turning round for ever.
        for _ in 0..RING {
            let place = &mut self.taken[(slot % RING) as usize];
            if *place != slot + 1 {
                *place = slot + 1;
                break;
            }
            slot += 1;
        }
        at.max(slot * self.slot)
    }

    /// Cycles that reads waited for the channel, together.
    pub(crate) fn waited(&self) -> Cycle {
        self.waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_at_once_come_a_slot_apart() {
        let mut dram = Dram::new(&MemoryShape { latency: 120, cycles_per_line: 22 });
        assert_eq!([0, 0, 0].map(|at| dram.read(at)), [120, 142, 164]);
        assert_eq!(dram.read(1000), 1120);
        assert_eq!(dram.read(70), 190, "before a later one");
        assert_eq!(dram.waited(), 22 + 44);
        dram.write(2000);
        assert_eq!(dram.read(2000), 2002 + 120, "slot 91 begins at 2002");
    }
}
