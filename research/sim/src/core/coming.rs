//! What is on its way: lines and translations that the machine has put in place already, and when they will really be
//! there.
//!
//! Every miss adds one, every walk several, and every hit asks while anything is on its way: a list that is searched
//! from end to end made the window a third slower where all accesses miss. So this is a table of buckets, found by a
//! multiplicative hash (Knuth, The Art of Computer Programming 3, 6.4), each of a few places that lie in two lines of
//! the host's cache. And of each bucket it is known when the last of it arrives: whoever asks for a later time, which
//! most do, searches none.
//!
//! Nothing is ever taken out. What has arrived is as good as absent, because whoever asks, asks for a time that is not
//! before the present; its place is given to the next. There are many more places than a window of instructions can
//! have misses; if a bucket is full all the same, what arrives first is forgotten.

use crate::reservations::Cycle;

/// Places of a bucket.
const PLACES: usize = 8;

/// What is on its way, and when it arrives.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Bucket([(u64, Cycle); PLACES]);

/// The table.
#[derive(Debug, Clone)]
pub(super) struct Coming {
    buckets: Vec<Bucket>,
    /// Of each bucket, the last arrival that it ever had: not before any of those that it has.
    latest: Vec<Cycle>,
    shift: u32,
    /// The last arrival of all: afterwards nobody need search.
    last: Cycle,
}

impl Coming {
    /// For a window of so many instructions.
    pub(super) fn new(window: u32) -> Coming {
        let buckets = (2 * window as usize).next_power_of_two().max(64);
        let shift = u64::BITS - buckets.trailing_zeros();
        Coming {
            buckets: vec![Bucket([(u64::MAX, 0); PLACES]); buckets],
            latest: vec![0; buckets],
            shift,
            last: 0,
        }
    }

    #[inline]
    fn bucket(&self, what: u64) -> usize {
        (what.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    /// It will be there at `arrival`. Nobody will ask for times before `now`.
    #[inline]
    pub(super) fn expect(&mut self, what: u64, now: Cycle, arrival: Cycle) {
        self.last = self.last.max(arrival);
        let bucket = self.bucket(what);
        let latest = self.latest[bucket];
        self.latest[bucket] = latest.max(arrival);
        let places = &mut self.buckets[bucket].0;
        // Mostly all that are there have arrived. One of them may be the same thing's: this stands before it, and
        // whoever looks takes the first.
        if latest <= now {
            places[0] = (what, arrival);
            return;
        }
        // One that has arrived is as good as any other that has.
        let earliest = || (0..PLACES).min_by_key(|&place| places[place].1.max(now)).unwrap_or_default();
        let chosen = places.iter().position(|place| place.0 == what).unwrap_or_else(earliest);
        places[chosen] = (what, arrival);
    }

    /// `done`, or when it arrives if that is later.
    #[inline]
    pub(super) fn arrived(&self, what: u64, done: Cycle) -> Cycle {
        if self.last <= done {
            return done;
        }
        let bucket = self.bucket(what);
        if self.latest[bucket] <= done {
            return done;
        }
        self.buckets[bucket]
            .0
            .iter()
            .find(|place| place.0 == what)
            .map_or(done, |&(_, arrival)| arrival.max(done))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_answers_as_a_list_of_everything(
            steps in prop::collection::vec((0..300_u64, 0..3_u64, 0..400_u64, any::<bool>()), 1..2_000),
        ) {
            let mut coming = Coming::new(128);
            let mut all = HashMap::new();
            let mut now = 0;
            for (what, pause, later, expects) in steps {
                now += pause;
                if expects {
                    coming.expect(what << 6, now, now + later);
                    all.insert(what << 6, now + later);
                } else {
                    let known = all.get(&(what << 6)).copied().unwrap_or_default();
                    prop_assert_eq!(coming.arrived(what << 6, now + later), known.max(now + later));
                }
            }
        }
    }
}
