//! Sizes as a published histogram has them.
//!
//! CacheLib writes two kinds in one form. As many sizes as weights: each size is one value. One size more than
//! weights: the sizes bound ranges, and inside a range all sizes are equally frequent; the range from 8 to 64 holds
//! 8 and not 64.

use super::Sizes;
use crate::DistributionError;
use crate::discrete::Discrete;

/// A range of equally frequent sizes: `first`, and `others` above it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Span {
    first: u64,
    others: u64,
}

/// A histogram of sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    spans: Discrete<Span>,
}

impl Histogram {
    /// A histogram of rising `sizes` in bytes: with as many weights as sizes one of single sizes, with one weight
    /// less one of ranges between the sizes.
    ///
    /// # Errors
    ///
    /// [`DistributionError::Lengths`] where the two slices do not go together, [`DistributionError::Unsorted`]
    /// where the sizes do not rise, and those of [`Discrete::new`] for the weights.
    pub fn new(sizes: &[u64], weights: &[f64]) -> Result<Histogram, DistributionError> {
        if let Some(position) = sizes.windows(2).position(|pair| pair[0] > pair[1]) {
            return Err(DistributionError::Unsorted { position: position + 1 });
        }
        let spans: Vec<Span> = if sizes.len() == weights.len() {
            sizes.iter().map(|size| Span { first: *size, others: 0 }).collect()
        } else if sizes.len() == weights.len() + 1 {
            sizes
                .windows(2)
                .map(|pair| Span { first: pair[0], others: (pair[1] - pair[0]).saturating_sub(1) })
                .collect()
        } else {
            return Err(DistributionError::Lengths { sizes: sizes.len(), weights: weights.len() });
        };
        Ok(Histogram { spans: Discrete::new(spans.into_iter().zip(weights.iter().copied()))? })
    }

    /// The mean size in bytes.
    pub fn mean(&self) -> f64 {
        self.spans.iter().map(|(span, share)| share * (span.first as f64 + span.others as f64 / 2.0)).sum()
    }
}

impl Sizes for Histogram {
    fn quantile(&self, fraction: f64) -> u64 {
        let (span, within) = self.spans.quantile_within(fraction);
        let above = (within * (span.others as f64 + 1.0)) as u64;
        span.first + above.min(span.others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes at many evenly spaced fractions are the whole distribution, without chance.
    fn even(sizes: &impl Sizes, count: u32) -> Vec<u64> {
        (0..count).map(|i| sizes.quantile((f64::from(i) + 0.5) / f64::from(count))).collect()
    }

    #[test]
    fn as_many_sizes_as_weights_are_single_sizes() {
        let histogram = Histogram::new(&[31, 63, 95], &[1.0, 0.0, 3.0]).unwrap();
        let sizes = even(&histogram, 400);
        assert_eq!(sizes.iter().filter(|size| **size == 31).count(), 100);
        assert_eq!(sizes.iter().filter(|size| **size == 95).count(), 300);
        assert_eq!(histogram.mean(), (31.0 + 3.0 * 95.0) / 4.0);
    }

    #[test]
    fn one_weight_less_makes_ranges_of_equally_frequent_sizes() {
        // The key sizes of CacheLib's graph caches.
        let histogram = Histogram::new(&[1, 8, 64], &[0.3, 0.7]).unwrap();
        let count = 8 * 7 * 1000;
        let sizes = even(&histogram, count);
        assert_eq!(sizes.first(), Some(&1));
        assert_eq!(sizes.last(), Some(&63));
        for size in 1..64 {
            let share = if size < 8 { 0.3 / 7.0 } else { 0.7 / 56.0 };
            let expected = share * f64::from(count);
            let found = sizes.iter().filter(|drawn| **drawn == size).count() as f64;
            assert!((found - expected).abs() <= 1.0, "{size}: {found} instead of {expected}");
        }
        let mean = sizes.iter().sum::<u64>() as f64 / f64::from(count);
        assert!((histogram.mean() - mean).abs() < 0.01);
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let lengths = |sizes, weights| DistributionError::Lengths { sizes, weights };
        assert_eq!(Histogram::new(&[1, 2, 3], &[1.0]).unwrap_err(), lengths(3, 1));
        assert_eq!(Histogram::new(&[1], &[1.0, 1.0]).unwrap_err(), lengths(1, 2));
        assert_eq!(Histogram::new(&[], &[]).unwrap_err(), DistributionError::Empty);
        assert_eq!(Histogram::new(&[7], &[]).unwrap_err(), DistributionError::Empty);
        let unsorted = DistributionError::Unsorted { position: 2 };
        assert_eq!(Histogram::new(&[1, 5, 4], &[1.0; 3]).unwrap_err(), unsorted);
    }
}
