//! Which lookups count, if they are hits: some in a row, at distances that no program's own period meets.
//!
//! The multiples of the golden ratio, of 2^32, are spread evenly. A lookup counts if the multiple of its number lies
//! below a threshold; such numbers lie at three distances at most, of which the largest is the sum of the others (the
//! three-distance theorem): with an eighth for threshold at 5, 8 and 13. So nobody has to look at each lookup's number:
//! from one that counts it is known how far it is to the next, and a hit compares one number with another. The first
//! hit behind one that counts looks for the next from there, and may be it ([`Cadence::due`]): it is not it for being
//! the first, else those behind a row of misses would count each time, and those behind them never.
//!
//! Rejected: multiplying each hit's number. It is two instructions and a load more, and the fewer instructions a hit
//! takes the more of them wait for memory at once.

use std::cell::Cell;

/// The golden ratio, of 2^32.
const STEP: u32 = 0x9e37_79b9;
/// The distance to the next where none counts: it may be reached, after seconds, and then nothing comes of it.
const NEVER: i32 = 1 << 28;

/// The lookups that count of one row.
#[derive(Debug)]
pub(crate) struct Cadence {
    /// Those of which the multiple is at most this.
    counted: u32,
    /// The two shorter distances: by the one the multiple comes to lie higher by at most the threshold, by the other
    /// lower.
    higher: u32,
    lower: u32,
    /// The multiple of the one that counted last.
    at: Cell<u32>,
}

impl Cadence {
    /// `counted` of 2^32 lookups count, less one; 0 is none. Begins anywhere.
    pub(crate) fn new(counted: u32, anywhere: u32) -> Cadence {
        // By Euclid's steps: the distances at which a multiple first comes so close, from above and from below.
        let (mut higher, mut up) = (1_u32, STEP);
        let (mut lower, mut down) = (1_u32, STEP.wrapping_neg());
        while counted > 0 && (up > counted || down > counted) {
            if up > down {
                (higher, up) = (higher + lower, up - down);
            } else {
                (lower, down) = (lower + higher, down - up);
            }
        }
        // Below the threshold, wherever that is.
        let at = (u64::from(anywhere) * (u64::from(counted) + 1)) >> 32;
        Cadence { counted, higher, lower, at: Cell::new(at as u32) }
    }

    /// Whether each lookup counts.
    #[inline]
    pub(crate) fn counts_every(&self) -> bool {
        self.counted == u32::MAX
    }

    /// Lookups are counted down: `due` is the number of one that counts, and `left` that of a hit, at it or behind.
    /// Whether this counts, and the next that does.
    #[inline]
    pub(crate) fn due(&self, mut due: i32, left: i32) -> (bool, i32) {
        while due > left {
            due = due.saturating_sub(self.next());
        }
        if due < left { (false, due) } else { (true, due.saturating_sub(self.next())) }
    }

    /// How many lookups after the one that counts, and was named last, the next does: 1 is the next lookup.
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

    /// Looks at each number, as [`Cadence::next`] need not.
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
        let seldom = [(u32::MAX / 100, 200), (1 << 20, 5), (5000, 1)];
        let often = [u32::MAX, u32::MAX - 1, u32::MAX / 2 + 5, u32::MAX / 2, u32::MAX >> 3, u32::MAX / 7];
        for (counted, turns) in often.map(|counted| (counted, 2000)).into_iter().chain(seldom) {
            for anywhere in [0, 1, 1 << 31, u32::MAX, 0x1234_5678] {
                let cadence = Cadence::new(counted, anywhere);
                assert!(cadence.at.get() <= counted);
                let expected = one_by_one(counted, cadence.at.get());
                for (turn, expected) in expected.take(if cfg!(miri) { 1 } else { turns }).enumerate() {
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

    /// Lookups that repeat themselves, most of them misses: each of the hits counts as often as the others, and an
    /// eighth of them in all.
    #[test]
    fn what_comes_behind_misses_counts_no_more_often() {
        for (period, hits) in [(23, 3), (8, 1), (100, 2), (13, 12), (1, 1)] {
            let cadence = Cadence::new(u32::MAX >> 3, 3);
            let rounds = if cfg!(miri) { 100 } else { 20_000 };
            let (mut left, mut due, mut counted) = (0, -cadence.next(), vec![0; hits]);
            for lookup in 0..rounds * period {
                left -= 1;
                let place = lookup % period;
                if place < hits && left <= due {
                    let (counts, next) = cadence.due(due, left);
                    counted[place] += usize::from(counts);
                    due = next;
                }
            }
            let expected = rounds / 8;
            for counted in counted {
                assert!(
                    counted.abs_diff(expected) <= expected / 10 + 2,
                    "{counted}, not {expected}: {period}, {hits}"
                );
            }
        }
    }

    #[test]
    fn every_hit_or_none() {
        let every = Cadence::new(u32::MAX, 5);
        assert!(every.counts_every() && (0..100).all(|_| every.next() == 1));
        assert!(!Cadence::new(u32::MAX - 1, 5).counts_every() && !Cadence::new(0, 5).counts_every());
        assert_eq!(Cadence::new(0, 5).next(), NEVER);
    }
}
