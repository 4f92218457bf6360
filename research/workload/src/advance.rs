//! Drawing before the clock starts.
//!
//! A draw costs tens of nanoseconds, as much as the lookup that it is for. A loop that is timed therefore takes its
//! requests from a vector. The warm-up gets a vector of its own: warming a cache with the very draws that are
//! measured afterwards puts all of them into it, and shows a hit ratio that no later request will see. Both come
//! from one generator, one behind the other, so neither repeats the other's draws.

use rand::Rng;
use rand::distr::Distribution;

/// Requests drawn in advance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drawn<T> {
    requests: Vec<T>,
    warm_up: usize,
}

impl<T> Drawn<T> {
    /// Calls `draw` `warm_up` times for the warm-up and then `measured` times for what is measured.
    ///
    /// ```
    /// use lookaside_workload::{advance::Drawn, generator, ycsb::{CoreWorkload, Ycsb}};
    ///
    /// let mut rng = generator::seeded(3);
    /// let mut workload = Ycsb::new(CoreWorkload::B, 1000, 3000)?;
    /// let requests = Drawn::from_fn(1000, 2000, || workload.draw(&mut rng));
    /// assert_eq!((requests.warm_up().len(), requests.measured().len()), (1000, 2000));
    /// # Ok::<(), lookaside_workload::DistributionError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// Where memory cannot hold `warm_up + measured` requests.
    pub fn from_fn(warm_up: usize, measured: usize, draw: impl FnMut() -> T) -> Drawn<T> {
        let count = warm_up.checked_add(measured).expect("the number of requests fits an address space");
        let requests: Vec<T> = std::iter::repeat_with(draw).take(count).collect();
        Drawn { requests, warm_up }
    }

    /// Draws `warm_up` and then `measured` requests from `distribution`.
    ///
    /// # Panics
    ///
    /// As [`from_fn`](Drawn::from_fn).
    pub fn from_distribution<R: Rng + ?Sized>(
        distribution: &impl Distribution<T>,
        rng: &mut R,
        warm_up: usize,
        measured: usize,
    ) -> Drawn<T> {
        Drawn::from_fn(warm_up, measured, || distribution.sample(rng))
    }

    /// The requests to warm up with.
    pub fn warm_up(&self) -> &[T] {
        &self.requests[..self.warm_up]
    }

    /// The requests to measure.
    pub fn measured(&self) -> &[T] {
        &self.requests[self.warm_up..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator;
    use crate::popularity::Zipfian;

    #[test]
    fn the_draws_are_those_that_the_loop_would_have_made_itself() {
        let zipfian = Zipfian::new(1000, 0.99).unwrap();
        let drawn = Drawn::from_distribution(&zipfian, &mut generator::seeded(5), 100, 300);
        let mut rng = generator::seeded(5);
        let expected: Vec<u64> = (0..400).map(|_| zipfian.sample(&mut rng)).collect();
        assert_eq!(drawn.warm_up(), &expected[..100]);
        assert_eq!(drawn.measured(), &expected[100..]);
    }

    #[test]
    fn the_streams_of_one_seed_differ_and_repeat() {
        let draws = || -> Vec<Vec<u64>> {
            let threads = generator::streams(9).take(4);
            threads.map(|mut rng| (0..50).map(|_| rng.next_u64()).collect()).collect()
        };
        let mut first = draws();
        assert_eq!(first, draws());
        first.sort();
        first.dedup();
        assert_eq!(first.len(), 4);
    }
}
