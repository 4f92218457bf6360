//! YCSB's latest distribution: the newest record is the hottest, and stays so while records are inserted.
//!
//! The record asked for is newest - zipf(newest): a Zipfian rank counted backwards from the newest record. The rank
//! is drawn over as many items as the newest record's number, so record 0 is never asked for once there are others;
//! that is YCSB's own definition and is kept.

use rand::Rng;
use rand::distr::Distribution;

use super::{LARGEST_RECORDS, Zipfian, check_records, check_theta};
use crate::DistributionError;

/// Records of which the newest are the hottest.
///
/// ```
/// use lookaside_workload::{generator, popularity::Latest};
/// use rand::distr::Distribution;
///
/// let mut latest = Latest::new(1000, 0.99)?;
/// assert_eq!(latest.insert(), 1000);
/// assert!(latest.sample(&mut generator::seeded(1)) <= 1000);
/// # Ok::<(), lookaside_workload::DistributionError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Latest {
    /// Distances from the newest record.
    distances: Zipfian,
    newest: u64,
}

impl Latest {
    /// `records` records, numbered from 0 as they were inserted, and the exponent `theta`.
    ///
    /// # Errors
    ///
    /// [`DistributionError::Empty`] without records, [`DistributionError::TooManyRecords`] above 2^53,
    /// [`DistributionError::Theta`] where `theta` is not from 0 to 3.
    pub fn new(records: u64, theta: f64) -> Result<Latest, DistributionError> {
        check_records(records)?;
        check_theta(theta)?;
        let newest = records - 1;
        // A single record leaves nothing to draw over; a distance of 0 is right then.
        Ok(Latest { distances: Zipfian::new(newest.max(1), theta)?, newest })
    }

    /// Inserts a record, and returns its number. At 2^53 records the numbers end and stay.
    pub fn insert(&mut self) -> u64 {
        if self.newest + 1 < LARGEST_RECORDS {
            self.newest += 1;
            if self.newest > 1 {
                self.distances.grow();
            }
        }
        self.newest
    }

    /// The number of the newest record.
    pub fn newest(&self) -> u64 {
        self.newest
    }
}

impl Distribution<u64> for Latest {
    #[inline]
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> u64 {
        self.newest - self.distances.sample(rng)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator;

    #[test]
    fn inserting_is_the_same_as_beginning_with_more() {
        for theta in [0.5, 0.99, 1.0, 1.5] {
            let mut grown = Latest::new(1, theta).unwrap();
            assert_eq!(grown.sample(&mut generator::seeded(1)), 0);
            for newest in 1..200 {
                assert_eq!(grown.insert(), newest);
                let made = Latest::new(newest + 1, theta).unwrap();
                let (mut a, mut b) = (generator::seeded(newest), generator::seeded(newest));
                for _ in 0..100 {
                    let record = grown.sample(&mut a);
                    assert_eq!(record, made.sample(&mut b), "theta {theta}, newest {newest}");
                    assert!((1..=newest).contains(&record));
                }
            }
        }
    }
}
