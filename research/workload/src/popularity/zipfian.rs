//! Zipfian ranks: the i-th hottest record is asked for in proportion to i^-theta.
//!
//! Two methods stand behind one type, because a comparison with published figures needs the formula behind them and
//! exponents of 1 and more need one that holds there: `gray` is YCSB's, for theta below 1; `rand_distr`'s is exact,
//! for every theta. It takes nine times as long for a draw (10^6 records, theta 0.99), and draws are made before a
//! clock starts.

use rand::distr::Distribution;
use rand::{Rng, RngExt};
use rand_distr::Zipf;

use super::gray::{self, Gray};
use super::{check_records, check_theta, zeta};
use crate::DistributionError;

/// Zipfian ranks, 0 the hottest.
///
/// ```
/// use lookaside_workload::{generator, popularity::Zipfian};
/// use rand::distr::Distribution;
///
/// let mut rng = generator::seeded(11);
/// let zipfian = Zipfian::new(1_000_000, 0.99)?;
/// let hottest = (0..10_000).filter(|_| zipfian.sample(&mut rng) == 0).count();
/// assert!((550..750).contains(&hottest), "about 650");
/// # Ok::<(), lookaside_workload::DistributionError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Zipfian {
    method: Method,
}

#[derive(Debug, Clone, PartialEq)]
enum Method {
    Gray(Gray),
    Exact { zipf: Zipf<f64>, records: u64, theta: f64 },
}

impl Method {
    fn exact(records: u64, theta: f64) -> Method {
        let zipf = Zipf::new(records as f64, theta).expect("both were checked");
        Method::Exact { zipf, records, theta }
    }
}

impl Zipfian {
    /// `records` ranks with exponent `theta`: by YCSB's formula where that holds, which is below 1 (by 10^-6 at
    /// least), otherwise exactly.
    ///
    /// # Errors
    ///
    /// [`DistributionError::Empty`] without records, [`DistributionError::TooManyRecords`] above 2^53,
    /// [`DistributionError::Theta`] where `theta` is not from 0 to 3.
    pub fn new(records: u64, theta: f64) -> Result<Zipfian, DistributionError> {
        if theta > gray::LARGEST_THETA {
            return Zipfian::exact(records, theta);
        }
        check_records(records)?;
        check_theta(theta)?;
        Ok(Zipfian { method: Method::Gray(Gray::new(records, theta)) })
    }

    /// `records` ranks with exponent `theta`, exactly, also where YCSB's formula would hold.
    ///
    /// # Errors
    ///
    /// As [`new`](Zipfian::new).
    pub fn exact(records: u64, theta: f64) -> Result<Zipfian, DistributionError> {
        check_records(records)?;
        check_theta(theta)?;
        Ok(Zipfian { method: Method::exact(records, theta) })
    }

    /// By YCSB's formula with its own constant for the sum.
    pub(super) fn with_zeta(records: u64, theta: f64, zeta: f64) -> Zipfian {
        Zipfian { method: Method::Gray(Gray::with_zeta(records, theta, zeta)) }
    }

    /// One rank more, in constant time.
    pub(super) fn grow(&mut self) {
        match &mut self.method {
            Method::Gray(gray) => gray.grow(),
            Method::Exact { records, theta, .. } => self.method = Method::exact(*records + 1, *theta),
        }
    }

    /// The number of ranks.
    pub fn records(&self) -> u64 {
        match &self.method {
            Method::Gray(gray) => gray.ranks(),
            Method::Exact { records, .. } => *records,
        }
    }

    /// The share of requests, from 0 to 1, that go to the `hottest` hottest records: the hit ratio of a cache that
    /// holds just these.
    pub fn share_of_hottest(&self, hottest: u64) -> f64 {
        match &self.method {
            Method::Gray(gray) => gray.share_of_hottest(hottest),
            Method::Exact { records, theta, .. } => {
                zeta(hottest.min(*records), *theta) / zeta(*records, *theta)
            }
        }
    }
}

impl Distribution<u64> for Zipfian {
    #[inline]
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> u64 {
        match &self.method {
            Method::Gray(gray) => gray.rank(rng.random()),
            // From 1 to their number, but for rounding.
            Method::Exact { zipf, records, .. } => (zipf.sample(rng) as u64).clamp(1, *records) - 1,
        }
    }
}
