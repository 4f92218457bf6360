//! The Zipfian ranks that YCSB draws: the approximation of Gray et al. ("Quickly generating billion-record
//! synthetic databases", SIGMOD 1994), for exponents below 1.
//!
//! ```text
//! alpha = 1 / (1 - theta)       eta = (1 - (2/n)^(1-theta)) / (1 - zeta(2) / zeta(n))
//! draw:   u uniform from 0 to 1
//!         u zeta(n) < 1               -> 0
//!         u zeta(n) < 1 + 0.5^theta   -> 1
//!         otherwise                   -> floor(n (eta u - eta + 1)^alpha)
//! ```
//!
//! Ranks 0 and 1 have exactly their shares; the others follow the integral in place of the sum, fitted to them. One
//! power a draw and no rejection. Published figures that say "Zipfian" after YCSB mean this formula.

use super::zeta::zeta;

/// Above this exponent alpha is so large that the power loses its digits; the exact method takes over.
pub(super) const LARGEST_THETA: f64 = 1.0 - 1e-6;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Gray {
    n: u64,
    theta: f64,
    zeta_n: f64,
    /// zeta(2): below it, u zeta(n) draws rank 1.
    zeta_two: f64,
    alpha: f64,
    eta: f64,
}

impl Gray {
    /// Ranks 0 to `n` - 1; `n` is at least 1 and `theta` from 0 to [`LARGEST_THETA`].
    pub(super) fn new(n: u64, theta: f64) -> Gray {
        Gray::with_zeta(n, theta, zeta(n, theta))
    }

    /// The same with a given zeta(n), where YCSB's own constant is wanted.
    pub(super) fn with_zeta(n: u64, theta: f64, zeta_n: f64) -> Gray {
        let zeta_two = 1.0 + 0.5f64.powf(theta);
        let alpha = 1.0 / (1.0 - theta);
        // Up to two ranks, the first two cases cover all, and eta is 0/0.
        let eta =
            if n <= 2 { 1.0 } else { (1.0 - (2.0 / n as f64).powf(1.0 - theta)) / (1.0 - zeta_two / zeta_n) };
        Gray { n, theta, zeta_n, zeta_two, alpha, eta }
    }

    /// One rank more. The sum grows by one term, as YCSB grows it.
    pub(super) fn grow(&mut self) {
        let n = self.n + 1;
        *self = Gray::with_zeta(n, self.theta, self.zeta_n + (n as f64).powf(-self.theta));
    }

    pub(super) fn ranks(&self) -> u64 {
        self.n
    }

    /// The rank that a uniform `u` draws, which is at least 0 and below 1.
    #[inline]
    pub(super) fn rank(&self, u: f64) -> u64 {
        let scaled = u * self.zeta_n;
        if scaled < 1.0 {
            return 0;
        }
        let rank = if scaled < self.zeta_two {
            1
        } else {
            (self.n as f64 * (self.eta * u - self.eta + 1.0).powf(self.alpha)) as u64
        };
        // The largest u may round up to 1.
        rank.min(self.n - 1)
    }

    /// The share of requests for the `hottest` hottest ranks: the formula solved for u.
    pub(super) fn share_of_hottest(&self, hottest: u64) -> f64 {
        match hottest {
            0 => 0.0,
            _ if hottest >= self.n => 1.0,
            1 => 1.0 / self.zeta_n,
            2 => self.zeta_two / self.zeta_n,
            _ => {
                let part = (hottest as f64 / self.n as f64).powf(1.0 - self.theta);
                (part - 1.0 + self.eta) / self.eta
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_u_draws_a_rank_that_exists(
            n in prop_oneof![1u64..20, 1u64..(1 << 53)],
            theta in 0.0..LARGEST_THETA,
            u in 0.0..1.0f64,
        ) {
            let gray = Gray::new(n, theta);
            let largest_u = 1.0 - f64::EPSILON / 2.0;
            for u in [0.0, u, largest_u] {
                prop_assert!(gray.rank(u) < n);
            }
            prop_assert!(gray.rank(u) <= gray.rank(largest_u));
        }

        /// Just below the share of the hottest k ranks u draws one of them, just above it another one.
        #[test]
        fn shares_are_where_the_ranks_change(
            n in 3u64..1_000_000,
            theta in 0.0..0.999f64,
            part in 0.0..1.0f64,
        ) {
            let k = 1 + (part * (n - 1) as f64) as u64;
            let gray = Gray::new(n, theta);
            let share = gray.share_of_hottest(k);
            prop_assert!(gray.rank(share - 1e-9) < k);
            prop_assert!(gray.rank((share + 1e-9).min(1.0 - 1e-16)) >= k);
        }
    }

    #[test]
    fn growing_is_the_same_as_being_made_larger() {
        let mut grown = Gray::new(1, 0.99);
        for n in 2..5000 {
            grown.grow();
            let made = Gray::new(n, 0.99);
            assert_eq!(grown.ranks(), made.ranks());
            assert!((grown.zeta_n / made.zeta_n - 1.0).abs() < 1e-13, "{n}");
            assert!((grown.eta / made.eta - 1.0).abs() < 1e-9, "{n}");
        }
    }

    #[test]
    fn an_exponent_of_zero_is_uniform() {
        let gray = Gray::new(10, 0.0);
        for i in 0..10_000 {
            let u = (f64::from(i) + 0.5) / 10_000.0;
            assert_eq!(gray.rank(u), (u * 10.0) as u64);
        }
    }
}
