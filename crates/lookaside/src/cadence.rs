//! Which hits are counted: some in a row of lookups, at distances that no program's own period meets.
//!
//! The multiples of the golden ratio, of 2^32, are spread evenly. A lookup counts if the multiple of its number lies below a
//! threshold; such numbers lie at three distances at most, of which the largest is the sum of the others (the three-distance
//! theorem): with an eighth for threshold at 5, 8 and 13. So nobody has to look at each lookup's number: who has counted says
//! how far it is to the next one, and a lookup compares one number with another.
//!
//! Rejected: multiplying each hit's number. It is two instructions and a load more, and the fewer instructions a hit takes the
//! more of them wait for memory at once.

use std::cell::Cell;

/// The golden ratio, of 2^32.
const STEP: u32 = 0x9e37_79b9;
/// The distance to a hit that is never reached.
const NEVER: i32 = 1 << 28;

/// The hits that count of one row of lookups.
#[derive(Debug)]
pub(crate) struct Cadence {
    /// Those of which the multiple is at most this.
    counted: u32,
    /// The two shorter distances: by the one the multiple comes to lie higher by at most the threshold, by the other lower.
    higher: u32,
    lower: u32,
    /// The multiple of the one that counted last.
    at: Cell<u32>,
}

impl Cadence {
    /// `counted` of 2^32 hits count, less one; 0 is none. Begins anywhere.
    pub(crate) fn new(counted: u32, anywhere: u32) -> Cadence {
        let first = |is_near: fn(u32, u32) -> bool| {
            // Distances to be told apart grow as one by the threshold. Of none nobody asks.
            (1..).take(1 << 16).find(|&distance: &u32| is_near(distance.wrapping_mul(STEP), counted))
        };
        let higher = first(|multiple, counted| multiple <= counted).unwrap_or(1);
        let lower = first(|multiple, counted| multiple.wrapping_neg() <= counted).unwrap_or(1);
        // Below the threshold, wherever that is.
        let at = (u64::from(anywhere) * (u64::from(counted) + 1)) >> 32;
        Cadence { counted, higher, lower, at: Cell::new(at as u32) }
    }

    /// How many lookups after the one that counted last the next does: 1 is the next lookup.
    #[inline]
    pub(crate) fn next(&self) -> i32 {
        if self.counted == 0 {
            return NEVER;
        }
        let at = |distance: u32| self.at.get().wrapping_add(distance.wrapping_mul(STEP));
        let (near, far) = (self.higher.min(self.lower), self.higher.max(self.lower));
        let distance = match () {
            () if at(near) <= self.counted => near,
            () if at(far) <= self.counted => far,
            () => near + far,
        };
        self.at.set(at(distance));
        distance as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks at each number, as `next` need not.
    fn one_by_one(counted: u32, mut at: u32) -> impl Iterator<Item = i32> {
        std::iter::repeat_with(move || {
            for distance in 1.. {
                at = at.wrapping_add(STEP);
                if at <= counted {
                    return distance;
                }
            }
            unreachable!("the multiples come everywhere")
        })
    }

    #[test]
    fn the_next_is_the_next_whatever_counts() {
        for counted in
            [u32::MAX, u32::MAX - 1, u32::MAX / 2, u32::MAX >> 3, u32::MAX / 7, u32::MAX / 100, 1 << 20]
        {
            for anywhere in [0, 1, 1 << 31, u32::MAX, 0x1234_5678] {
                let cadence = Cadence::new(counted, anywhere);
                assert!(cadence.at.get() <= counted);
                let expected = one_by_one(counted, cadence.at.get());
                for (turn, expected) in expected.take(2000).enumerate() {
                    assert_eq!(cadence.next(), expected, "{counted:#x}, {anywhere:#x}, {turn}");
                }
            }
        }
    }

    #[test]
    fn of_an_eighth_they_lie_at_three_distances() {
        let cadence = Cadence::new(u32::MAX >> 3, 77);
        let distances: Vec<i32> = (0..8000).map(|_| cadence.next()).collect();
        assert!(distances.iter().all(|distance| [5, 8, 13].contains(distance)));
        let mean = f64::from(distances.iter().sum::<i32>()) / 8000.0;
        assert!((7.9..8.1).contains(&mean), "{mean}");
    }

    #[test]
    fn every_hit_or_none() {
        let every = Cadence::new(u32::MAX, 5);
        assert!((0..100).all(|_| every.next() == 1));
        assert_eq!(Cadence::new(0, 5).next(), NEVER);
    }
}
