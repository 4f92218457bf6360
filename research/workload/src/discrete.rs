//! A choice from a list of weighted alternatives.
//!
//! The alternatives lie side by side on the line from 0 to 1, each as long as its share. A fraction of that line
//! names one of them, found by binary search over the upper bounds: drawing is looking up a random fraction, and a
//! quantile is looking up a chosen one. Zero weights have no length and are left out, so that no rounding can draw
//! them.
//!
//! Rejected: Walker's alias table. It draws in constant time, but has no quantiles, and a key that is to keep its
//! size needs the quantile of its hash. Ten steps through a table that stays in the cache cost a few nanoseconds.

use rand::distr::Distribution;
use rand::{Rng, RngExt};

use crate::DistributionError;

/// A weighted choice.
///
/// ```
/// use lookaside_workload::discrete::Discrete;
///
/// let coin = Discrete::new([("heads", 3.0), ("tails", 1.0)])?;
/// assert_eq!(*coin.quantile(0.74), "heads");
/// assert_eq!(*coin.quantile(0.75), "tails");
/// # Ok::<(), lookaside_workload::DistributionError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Discrete<T> {
    alternatives: Vec<T>,
    /// Where each alternative ends on the line from 0 to 1; the last ends at 1.
    ends: Vec<f64>,
}

impl<T> Discrete<T> {
    /// A choice from `alternatives`, each with its weight. Weights need not add up to 1.
    ///
    /// # Errors
    ///
    /// [`DistributionError::Weight`] for a weight that is negative or not finite, or an infinite sum;
    /// [`DistributionError::Empty`] where no weight is positive.
    pub fn new(alternatives: impl IntoIterator<Item = (T, f64)>) -> Result<Discrete<T>, DistributionError> {
        let mut total = 0.0;
        let mut kept = Vec::new();
        let mut ends = Vec::new();
        for (alternative, weight) in alternatives {
            if !weight.is_finite() || weight < 0.0 {
                return Err(DistributionError::Weight { weight });
            }
            if weight > 0.0 {
                total += weight;
                kept.push(alternative);
                ends.push(total);
            }
        }
        if kept.is_empty() {
            return Err(DistributionError::Empty);
        }
        if !total.is_finite() {
            return Err(DistributionError::Weight { weight: total });
        }
        for end in &mut ends {
            *end /= total;
        }
        Ok(Discrete { alternatives: kept, ends })
    }

    /// The alternative at `fraction` of the line, which counts from 0 to just below 1. Beyond, it is the last one.
    pub fn quantile(&self, fraction: f64) -> &T {
        &self.alternatives[self.position(fraction)]
    }

    /// The alternative at `fraction`, and how far into it that is, from 0 to 1.
    pub(crate) fn quantile_within(&self, fraction: f64) -> (&T, f64) {
        let position = self.position(fraction);
        let start = if position == 0 { 0.0 } else { self.ends[position - 1] };
        let length = self.ends[position] - start;
        // A weight that vanishes beside the sum has no length left in floating point.
        let within = if length > 0.0 { (fraction - start) / length } else { 0.0 };
        (&self.alternatives[position], within)
    }

    fn position(&self, fraction: f64) -> usize {
        let inner = &self.ends[..self.ends.len() - 1];
        inner.partition_point(|end| *end <= fraction)
    }

    /// The alternatives and their shares, which add up to 1.
    pub fn iter(&self) -> impl Iterator<Item = (&T, f64)> {
        let starts = std::iter::once(&0.0).chain(&self.ends);
        let shares = self.ends.iter().zip(starts).map(|(end, start)| end - start);
        self.alternatives.iter().zip(shares)
    }
}

impl<T: Clone> Distribution<T> for Discrete<T> {
    #[inline]
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> T {
        self.quantile(rng.random()).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The oracle walks along the alternatives and subtracts their weights.
        #[test]
        fn the_search_finds_what_a_walk_finds(
            weights in prop::collection::vec(0u32..1000, 1..50),
            fraction in 0.0..1.0f64,
        ) {
            let total = weights.iter().sum::<u32>();
            let made = Discrete::new(weights.iter().enumerate().map(|(i, weight)| (i, f64::from(*weight))));
            if total == 0 {
                prop_assert_eq!(made.unwrap_err(), DistributionError::Empty);
                return Ok(());
            }
            let made = made.unwrap();
            let mut left = fraction * f64::from(total);
            let mut walked = 0;
            for (i, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0) {
                walked = i;
                left -= f64::from(*weight);
                if left < 0.0 {
                    break;
                }
            }
            // Where the walk stops within rounding of a bound, either side is right.
            prop_assume!(left.abs() > 1e-6);
            prop_assert_eq!(*made.quantile(fraction), walked);
            let (alternative, within) = made.quantile_within(fraction);
            prop_assert_eq!(*alternative, walked);
            prop_assert!((within - (1.0 + left / f64::from(weights[walked]))).abs() < 1e-6);
            prop_assert!((made.iter().map(|(_, share)| share).sum::<f64>() - 1.0).abs() < 1e-12);
        }

        #[test]
        fn no_fraction_panics_and_no_zero_weight_is_chosen(fraction: f64) {
            let made = Discrete::new([(0, 0.0), (1, 1.0), (2, 0.0), (3, 2.0), (4, 0.0)]).unwrap();
            prop_assert!([1, 3].contains(made.quantile(fraction)));
            prop_assert!([1, 3].contains(made.quantile_within(fraction).0));
        }
    }

    #[test]
    fn weights_that_are_none_are_refused() {
        for weight in [-1.0, f64::NAN, f64::INFINITY] {
            let error = Discrete::new([((), 1.0), ((), weight)]).unwrap_err();
            assert!(matches!(error, DistributionError::Weight { .. }), "{error:?}");
        }
        let error = Discrete::new([((), f64::MAX), ((), f64::MAX)]).unwrap_err();
        assert_eq!(error, DistributionError::Weight { weight: f64::INFINITY });
        assert_eq!(Discrete::<()>::new([]).unwrap_err(), DistributionError::Empty);
    }
}
