//! Popularity as measured in production and published as a histogram.
//!
//! A bucket is a number of keys and the requests that they got together; inside a bucket all keys are alike. So one
//! key's rate is its bucket's weight over its bucket's size. Ranks count from the bucket with the highest rate on.

use rand::distr::Distribution;
use rand::{Rng, RngExt};

use super::check_records;
use crate::DistributionError;
use crate::discrete::Discrete;

/// Keys of about the same popularity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// How many keys.
    pub keys: u64,
    /// The requests that they got together, or any number in proportion.
    pub weight: u64,
}

/// A histogram of popularity. It draws ranks, 0 the hottest.
///
/// ```
/// use lookaside_workload::popularity::{Bucket, Buckets};
///
/// let buckets = Buckets::new(vec![Bucket { keys: 9, weight: 10 }, Bucket { keys: 1, weight: 30 }])?;
/// assert_eq!(buckets.records(), 10);
/// assert_eq!(buckets.share_of_hottest(1), 0.75);
/// # Ok::<(), lookaside_workload::DistributionError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Buckets {
    /// The hottest first, none without keys.
    spans: Discrete<Span>,
    records: u64,
}

/// A bucket's ranks.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Span {
    first: u64,
    keys: u64,
}

impl Buckets {
    /// The histogram made of `buckets`, in any order. Buckets without keys are left out. Keys without weight are
    /// records that are never drawn.
    ///
    /// # Errors
    ///
    /// [`DistributionError::Empty`] where no key has any weight, [`DistributionError::TooManyRecords`] where there
    /// are more than 2^53 keys.
    pub fn new(mut buckets: Vec<Bucket>) -> Result<Buckets, DistributionError> {
        buckets.retain(|bucket| bucket.keys > 0);
        // By falling rate: weight / keys compared crosswise, without rounding.
        let cross = |a: &Bucket, b: &Bucket| u128::from(a.weight) * u128::from(b.keys);
        buckets.sort_by(|a, b| cross(b, a).cmp(&cross(a, b)));
        let mut records = 0u64;
        let mut spans = Vec::with_capacity(buckets.len());
        for bucket in buckets {
            spans.push((Span { first: records, keys: bucket.keys }, bucket.weight as f64));
            records = records.saturating_add(bucket.keys);
        }
        check_records(records)?;
        Ok(Buckets { spans: Discrete::new(spans)?, records })
    }

    /// The number of keys.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The share of requests, from 0 to 1, that go to the `hottest` hottest keys.
    pub fn share_of_hottest(&self, hottest: u64) -> f64 {
        let part = |span: &Span| hottest.saturating_sub(span.first).min(span.keys) as f64 / span.keys as f64;
        self.spans.iter().map(|(span, share)| share * part(span)).sum()
    }
}

impl Distribution<u64> for Buckets {
    #[inline]
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> u64 {
        let span = self.spans.sample(rng);
        if span.keys == 1 { span.first } else { span.first + rng.random_range(0..span.keys) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The oracle gives every single key its rate and sorts the keys.
        #[test]
        fn shares_are_those_of_the_keys_sorted_one_by_one(
            buckets in prop::collection::vec((0u64..20, 0u64..1000), 1..20),
            hottest in 0u64..200,
        ) {
            let buckets: Vec<Bucket> =
                buckets.into_iter().map(|(keys, weight)| Bucket { keys, weight }).collect();
            let mut rates: Vec<f64> = buckets
                .iter()
                .flat_map(|bucket| (0..bucket.keys).map(|_| bucket.weight as f64 / bucket.keys as f64))
                .collect();
            rates.sort_by(|a, b| b.total_cmp(a));
            let total: f64 = rates.iter().sum();
            match Buckets::new(buckets) {
                Err(error) => {
                    prop_assert_eq!(error, DistributionError::Empty);
                    prop_assert_eq!(total, 0.0);
                }
                Ok(made) => {
                    prop_assert_eq!(made.records(), rates.len() as u64);
                    let share = rates.iter().take(hottest as usize).sum::<f64>() / total;
                    prop_assert!((made.share_of_hottest(hottest) - share).abs() < 1e-9);
                }
            }
        }
    }

    #[test]
    fn more_keys_than_can_be_counted_are_refused() {
        let huge = Bucket { keys: u64::MAX, weight: 1 };
        let error = Buckets::new(vec![huge, huge]).unwrap_err();
        assert!(matches!(error, DistributionError::TooManyRecords { .. }), "{error:?}");
    }
}
