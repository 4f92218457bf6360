//! Which record is asked for.
//!
//! | distribution | which records are hot |
//! |---|---|
//! | uniform | none |
//! | [`Zipfian`] | record 0, then 1, ...: the rank is the record |
//! | [`Permuted`] | as the ranks inside it, strewn over all records without a collision |
//! | [`ScrambledZipfian`] | as YCSB strews them: by a hash, with collisions, and a hottest key of 3.78 % |
//! | [`Latest`] | the records inserted last |
//! | [`Buckets`] | record 0, then 1, ..., at rates measured in production |
//!
//! A figure is to say which one it used: over 10^6 records the hottest gets 6.5 % from the plain Zipfian
//! distribution with exponent 0.99 and 3.78 % from the scrambled one, and the two differ everywhere else as well.
//!
//! [`Popularity`] is one of the first four, chosen when the program runs.

mod buckets;
mod gray;
mod latest;
mod permutation;
mod scrambled;
mod zeta;
mod zipfian;

use rand::Rng;
use rand::distr::{Distribution, Uniform};

use crate::DistributionError;

pub use buckets::{Bucket, Buckets};
pub use latest::Latest;
pub use permutation::{Permutation, Permuted};
pub use scrambled::ScrambledZipfian;
pub use zeta::zeta;
pub use zipfian::Zipfian;

/// The largest number of records: beyond it, a 64-bit float does not tell neighbours apart.
pub const LARGEST_RECORDS: u64 = 1 << 53;

/// The largest exponent of a Zipfian distribution. Measured caches stay below it (Twitter's go up to 2.68), and
/// beyond it one record gets nearly everything.
pub const LARGEST_THETA: f64 = 3.0;

/// YCSB's exponent (Cooper, Silberstein, Tam, Ramakrishnan and Sears, "Benchmarking cloud serving systems with YCSB",
/// SoCC 2010).
pub const YCSB_THETA: f64 = 0.99;

fn check_records(records: u64) -> Result<(), DistributionError> {
    match records {
        0 => Err(DistributionError::Empty),
        1..=LARGEST_RECORDS => Ok(()),
        _ => Err(DistributionError::TooManyRecords { records, largest: LARGEST_RECORDS }),
    }
}

fn check_theta(theta: f64) -> Result<(), DistributionError> {
    if (0.0..=LARGEST_THETA).contains(&theta) {
        Ok(())
    } else {
        Err(DistributionError::Theta { theta, largest: LARGEST_THETA })
    }
}

/// A distribution of requests over records, chosen when the program runs.
///
/// ```
/// use lookaside_workload::{generator, popularity::Popularity};
/// use rand::distr::Distribution;
///
/// let popularity = Popularity::scrambled(1000, 0.99)?;
/// assert!(popularity.sample(&mut generator::seeded(1)) < 1000);
/// # Ok::<(), lookaside_workload::DistributionError>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Popularity {
    /// All records alike.
    Uniform(Uniform<u64>),
    /// Record 0 is the hottest.
    Zipfian(Zipfian),
    /// Zipfian, strewn over the records without a collision.
    Permuted(Permuted<Zipfian>),
    /// Zipfian, strewn as YCSB does it.
    Scrambled(ScrambledZipfian),
}

impl Popularity {
    /// All of `records` records alike.
    ///
    /// # Errors
    ///
    /// As for all of them: [`DistributionError::Empty`] without records, [`DistributionError::TooManyRecords`]
    /// above [`LARGEST_RECORDS`], [`DistributionError::Theta`] where an exponent lies outside 0 to
    /// [`LARGEST_THETA`].
    pub fn uniform(records: u64) -> Result<Popularity, DistributionError> {
        check_records(records)?;
        // The range is not empty, which is the only way to fail.
        Uniform::new(0, records).map(Popularity::Uniform).map_err(|_| DistributionError::Empty)
    }

    /// A [`Zipfian`] distribution.
    ///
    /// # Errors
    ///
    /// As [`uniform`](Popularity::uniform).
    pub fn zipfian(records: u64, theta: f64) -> Result<Popularity, DistributionError> {
        Zipfian::new(records, theta).map(Popularity::Zipfian)
    }

    /// A [`Zipfian`] distribution, [`Permuted`] by `seed`.
    ///
    /// # Errors
    ///
    /// As [`uniform`](Popularity::uniform).
    pub fn permuted(records: u64, theta: f64, seed: u64) -> Result<Popularity, DistributionError> {
        let permutation = Permutation::new(records, seed)?;
        Ok(Popularity::Permuted(Permuted::new(Zipfian::new(records, theta)?, permutation)))
    }

    /// A [`ScrambledZipfian`] distribution.
    ///
    /// # Errors
    ///
    /// As [`uniform`](Popularity::uniform).
    pub fn scrambled(records: u64, theta: f64) -> Result<Popularity, DistributionError> {
        ScrambledZipfian::with_theta(records, theta).map(Popularity::Scrambled)
    }
}

impl Distribution<u64> for Popularity {
    #[inline]
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> u64 {
        match self {
            Popularity::Uniform(uniform) => uniform.sample(rng),
            Popularity::Zipfian(zipfian) => zipfian.sample(rng),
            Popularity::Permuted(permuted) => permuted.sample(rng),
            Popularity::Scrambled(scrambled) => scrambled.sample(rng),
        }
    }
}
