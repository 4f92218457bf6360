//! The integral of x^-theta from 1, and its inverse.
//!
//! In closed form it is (x^(1-theta) - 1) / (1 - theta), and ln x where theta is 1. Near 1 that form subtracts two
//! equal numbers and divides by almost nothing. Written as L g((1 - theta) L) with L = ln x and g(t) = (e^t - 1) / t
//! it keeps all its digits, for g is smooth and 1 at 0; so does the inverse with ln(1 + t) / t.

/// The integral of x^-theta from 1 to `x`, which is at least 0.
pub(super) fn integral(x: f64, theta: f64) -> f64 {
    let logarithm = x.ln();
    logarithm * exponential_ratio((1.0 - theta) * logarithm)
}

/// The `x` up to which the integral of x^-theta from 1 is `area`.
#[inline]
pub(super) fn inverse(area: f64, theta: f64) -> f64 {
    // Above theta = 1 the integral has a limit, and rounding may place `area` beyond it: there x is infinite.
    let t = (area * (1.0 - theta)).max(-1.0);
    (area * logarithm_ratio(t)).exp()
}

/// (e^t - 1) / t, and 1 at 0.
fn exponential_ratio(t: f64) -> f64 {
    // Below, the terms left out of 1 + t/2 are smaller than the last digit.
    if t.abs() < 1e-8 { 1.0 + t / 2.0 } else { t.exp_m1() / t }
}

/// ln(1 + t) / t, and 1 at 0.
#[inline]
fn logarithm_ratio(t: f64) -> f64 {
    if t.abs() < 1e-8 { 1.0 - t / 2.0 } else { t.ln_1p() / t }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_inverse_inverts(x in 0.5..1e9f64, theta in 0.0..3.0f64, near in -1e-7..1e-7f64) {
            for theta in [theta, 1.0 + near] {
                let area = integral(x, theta);
                // How much x moves when the area moves by its last digit.
                let tolerance = 1e-13 * (1.0 + area.abs()) * x.powf(theta - 1.0) + 1e-12;
                // Far out under a steep curve, the area is the same to its last digit wherever it ends.
                if tolerance > 0.01 {
                    continue;
                }
                let back = inverse(area, theta);
                prop_assert!((back / x - 1.0).abs() < tolerance.max(1e-11), "{back} for {x}, theta {theta}");
            }
        }

        #[test]
        fn away_from_one_it_is_the_closed_form(x in 0.5..1e9f64, theta in 0.0..3.0f64) {
            prop_assume!((theta - 1.0).abs() > 0.01);
            let closed = (x.powf(1.0 - theta) - 1.0) / (1.0 - theta);
            prop_assert!((integral(x, theta) - closed).abs() <= 1e-11 * closed.abs().max(1.0));
        }
    }

    #[test]
    fn at_one_it_is_the_logarithm() {
        assert_eq!(integral(1e9, 1.0), 1e9f64.ln());
        assert_eq!(inverse(2.0, 1.0), 2.0f64.exp());
    }
}
