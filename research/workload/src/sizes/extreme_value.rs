//! The two extreme-value distributions that the measured sizes of keys and values were fitted with.
//!
//! Atikoglu et al. ("Workload analysis of a large-scale key-value store", SIGMETRICS 2012) fitted
//! Facebook's key sizes with a generalised extreme value distribution and its value sizes with a generalised Pareto
//! distribution. Both have a quantile function in closed form, so drawing needs no rejection.

use super::Sizes;

/// The generalised extreme value distribution: at the fraction u, with E = -ln u, mu + sigma (E^-k - 1) / k.
///
/// A size below zero becomes 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GeneralisedExtremeValue {
    /// Location, mu, in bytes.
    pub location: f64,
    /// Scale, sigma, in bytes.
    pub scale: f64,
    /// Shape, k.
    pub shape: f64,
}

impl GeneralisedExtremeValue {
    /// The size at `fraction`, not yet cut to whole bytes.
    pub fn real_quantile(&self, fraction: f64) -> f64 {
        // (E^-k - 1) / k, as its limit -ln E where k is 0. With y = -ln E it is (e^(k y) - 1) / k.
        let y = -(-fraction.ln()).ln();
        self.location + self.scale * growth(self.shape, y)
    }
}

impl Sizes for GeneralisedExtremeValue {
    fn quantile(&self, fraction: f64) -> u64 {
        self.real_quantile(fraction) as u64
    }
}

/// The generalised Pareto distribution: at the fraction 1 - u, theta + sigma (u^-k - 1) / k.
///
/// A size below zero becomes 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GeneralisedPareto {
    /// Location, theta, in bytes: the smallest size.
    pub location: f64,
    /// Scale, sigma, in bytes.
    pub scale: f64,
    /// Shape, k. From 1 on, the mean is infinite.
    pub shape: f64,
}

impl GeneralisedPareto {
    /// The size at `fraction`, not yet cut to whole bytes.
    pub fn real_quantile(&self, fraction: f64) -> f64 {
        self.location + self.scale * growth(self.shape, -(-fraction).ln_1p())
    }
}

impl Sizes for GeneralisedPareto {
    fn quantile(&self, fraction: f64) -> u64 {
        self.real_quantile(fraction) as u64
    }
}

/// (e^(k y) - 1) / k, and its limit y where k is 0.
fn growth(k: f64, y: f64) -> f64 {
    if k == 0.0 { y } else { (k * y).exp_m1() / k }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The published distribution functions undo the quantile functions.
        #[test]
        fn the_distribution_function_of_a_quantile_is_its_fraction(
            fraction in 1e-6..0.999_999f64,
            shape in -0.4..2.6f64,
            scale in 1.0..300.0f64,
        ) {
            let pareto = GeneralisedPareto { location: 15.0, scale, shape };
            let z = (pareto.real_quantile(fraction) - 15.0) / scale;
            let below = 1.0 - (1.0 + shape * z).powf(-1.0 / shape);
            prop_assert!((below - fraction).abs() < 1e-6, "{below}");

            let extreme = GeneralisedExtremeValue { location: 30.0, scale, shape };
            let z = (extreme.real_quantile(fraction) - 30.0) / scale;
            let below = (-(1.0 + shape * z).powf(-1.0 / shape)).exp();
            prop_assert!((below - fraction).abs() < 1e-6, "{below}");
        }

        #[test]
        fn sizes_rise_with_the_fraction(a in 0.0..1.0f64, b in 0.0..1.0f64, shape in -0.4..2.6f64) {
            let (low, high) = (a.min(b), a.max(b));
            let pareto = GeneralisedPareto { location: 0.0, scale: 20.0, shape };
            prop_assert!(pareto.quantile(low) <= pareto.quantile(high));
            let extreme = GeneralisedExtremeValue { location: 30.0, scale: 8.0, shape };
            prop_assert!(extreme.quantile(low) <= extreme.quantile(high));
        }
    }

    #[test]
    fn a_shape_of_zero_is_the_limit_of_small_shapes() {
        for fraction in [0.0, 0.1, 0.5, 0.9, 0.999] {
            let (zero, small) = (0.0, 1e-9);
            let pareto =
                |shape| GeneralisedPareto { location: 1.0, scale: 9.0, shape }.real_quantile(fraction);
            assert!((pareto(zero) - pareto(small)).abs() < 1e-6, "{fraction}");
            let extreme =
                |shape| GeneralisedExtremeValue { location: 1.0, scale: 9.0, shape }.real_quantile(fraction);
            let (zero, small) = (extreme(zero), extreme(small));
            assert!(fraction == 0.0 || (zero - small).abs() < 1e-6, "{fraction}: {zero} {small}");
        }
    }
}
