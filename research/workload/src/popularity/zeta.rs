//! zeta(n, theta) = 1^-theta + 2^-theta + ... + n^-theta, the sum that every Zipfian distribution is divided by.
//!
//! Adding 10^8 powers takes seconds, so only the first [`HEAD`] terms are added. The others are the integral of the
//! same function plus the corrections of Euler and Maclaurin, of which three are enough: behind 128 terms the fourth
//! is below 10^-17 of the sum for every exponent up to 3.

/// How many terms are added one by one.
const HEAD: u64 = 128;

/// The sum of i^-theta for i from 1 to `n`, to about 15 digits, in a few microseconds for every `n`.
///
/// ```
/// use lookaside_workload::popularity::zeta;
///
/// // The constant in YCSB's source for 10^10 items.
/// assert!((zeta(10_000_000_000, 0.99) - 26.46902820178302).abs() < 1e-8);
/// ```
pub fn zeta(n: u64, theta: f64) -> f64 {
    // The smallest terms first: they would be lost beside the sum of the others.
    let head: f64 = (1..=n.min(HEAD)).rev().map(|i| (i as f64).powf(-theta)).sum();
    if n <= HEAD {
        return head;
    }
    head + tail(HEAD as f64, n as f64, theta)
}

/// The sum of i^-theta for i from `from` + 1 to `to`.
fn tail(from: f64, to: f64, theta: f64) -> f64 {
    // Substituting x = from * y makes it an integral from 1.
    let area = from.powf(1.0 - theta) * integral(to / from, theta);
    let difference = |f: &dyn Fn(f64) -> f64| f(to) - f(from);
    let value = |x: f64| x.powf(-theta);
    let first = |x: f64| -theta * x.powf(-theta - 1.0);
    let third = |x: f64| -theta * (theta + 1.0) * (theta + 2.0) * x.powf(-theta - 3.0);
    let fifth = |x: f64| {
        -theta * (theta + 1.0) * (theta + 2.0) * (theta + 3.0) * (theta + 4.0) * x.powf(-theta - 5.0)
    };
    area + difference(&value) / 2.0 + difference(&first) / 12.0 - difference(&third) / 720.0
        + difference(&fifth) / 30_240.0
}

/// The integral of t^-theta from 1 to `x`: (x^(1-theta) - 1) / (1 - theta), and ln x where theta is 1. Near 1 that form
/// subtracts two equal numbers and divides by almost nothing; so it is written as L g((1 - theta) L) with L = ln x and
/// g(t) = (e^t - 1) / t, which is smooth and 1 at 0.
fn integral(x: f64, theta: f64) -> f64 {
    let logarithm = x.ln();
    let t = (1.0 - theta) * logarithm;
    // Below, the terms left out of 1 + t/2 are smaller than the last digit.
    logarithm * if t.abs() < 1e-8 { 1.0 + t / 2.0 } else { t.exp_m1() / t }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum term by term, smallest first, with Kahan's compensation.
    fn naive(n: u64, theta: f64) -> f64 {
        let (mut sum, mut lost) = (0.0, 0.0);
        for i in (1..=n).rev() {
            let term = (i as f64).powf(-theta) - lost;
            let next: f64 = sum + term;
            lost = (next - sum) - term;
            sum = next;
        }
        sum
    }

    #[test]
    fn it_agrees_with_the_naive_sum() {
        for theta in [0.0, 0.3048, 0.5, 0.99, 1.0 - 1e-9, 1.0, 1.0 + 1e-9, 1.2117, 2.0994, 3.0] {
            for n in [0, 1, 2, 127, 128, 129, 130, 1000, 65_537, 1_000_000] {
                let (fast, slow) = (zeta(n, theta), naive(n, theta));
                assert!(
                    (fast - slow).abs() <= 2e-14 * slow,
                    "zeta({n}, {theta}) = {fast}, term by term {slow}"
                );
            }
        }
        let (fast, slow) = (zeta(20_000_000, 0.99), naive(20_000_000, 0.99));
        assert!((fast - slow).abs() <= 2e-14 * slow, "{fast} {slow}");
    }

    /// Known limits, which no sum here reaches: pi^2 / 6 and Apery's constant.
    #[test]
    fn it_tends_to_the_zeta_function() {
        let pi = std::f64::consts::PI;
        let n = 1u64 << 52;
        assert!((zeta(n, 2.0) - pi * pi / 6.0).abs() < 1e-14);
        assert!((zeta(n, 3.0) - 1.202_056_903_159_594_2).abs() < 1e-14);
    }
}
